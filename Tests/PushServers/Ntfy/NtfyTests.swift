// SPDX-License-Identifier: Apache-2.0

import DialtoneDistributor
import DialtonePlatform
import DialtoneTestSupport
import DialtoneVarlink
import Testing

@testable import DialtonePushServers

/// An ``NtfyServer`` that is led through its dialogue.
struct NtfyScript {
    /// The server's clock at the moment 0.
    static let start = 1_767_225_600
    var server: NtfyServer
    var now = 0
    /// The last request.
    var request = ""
    var memory: [UInt8]?

    init(memory: [UInt8]? = nil, credentials: NtfyServer.Credentials? = nil) throws {
        server = try #require(
            NtfyServer(url: "https://ntfy.test", credentials: credentials, memory: memory, random: SplitMix64(seed: 1)))
        self.memory = memory
    }

    @discardableResult
    mutating func take(_ input: PushServerInput, after seconds: Int = 0) -> PushServerTurn {
        now += seconds
        let turn = server.take(input, at: moment(now))
        memory = turn.memory ?? memory
        let text = String(decoding: turn.output, as: UTF8.self)
        if text.hasPrefix("GET ") { request = text }
        return turn
    }

    mutating func hear(_ text: String) -> PushServerTurn { take(.received(WebSocketScript.text(text))) }

    /// Connects, and has the subscription confirmed.
    @discardableResult
    mutating func connect() -> PushServerTurn {
        take(.connected)
        var turn = take(.received(WebSocketScript.acceptance(of: Array(request.utf8))))
        turn.append(hear(#"{"id":"open00000000","time":\#(Self.start + now),"event":"open","topic":"x"}"#))
        return turn
    }

    /// The topics and `since` of the last request.
    var path: String { String(request.split(separator: " ").dropFirst().first ?? "") }
    var since: String { String(path.split(separator: "=").last ?? "") }
    var topics: [String] { path.split(separator: "/").first.map { $0.split(separator: ",").map(String.init) } ?? [] }

    /// A message of that second.
    func message(_ id: String, at time: Int, _ more: String = #","message":"AQID","encoding":"base64""#) -> String {
        #"{"id":"\#(id)","time":\#(Self.start + time),"event":"message","topic":"\#(topics.first ?? "")"\#(more)}"#
    }
}

/// ntfy.
@Suite struct NtfyTests {
    typealias Script = NtfyScript

    @Test
    func `without an app a session stands all the same, on a topic that nobody is told`() throws {
        var script = try Script()
        #expect(script.connect().reports == [.loggedIn])
        #expect(script.topics.count == 1 && script.server.parking != nil)
        let spare = script.topics
        let first = script.take(.register(registration(1), vapid: nil))
        #expect(first.memory != nil && first.redial != nil && first.reports == [])
        script.take(.disconnected)
        let reports = script.connect().reports
        let endpoint = "https://ntfy.test/\(script.topics.first ?? "")?up=1"
        #expect(reports == [.loggedIn, .registered(registration(1), endpoint: endpoint, expires: nil)])
        #expect(script.topics.count == 1 && script.topics != spare)
        #expect(script.take(.unregister(registration(1), endpoint: nil)).redial == nil)
        script.take(.disconnected)
        #expect(script.connect().reports == [.loggedIn])
        #expect(script.topics == spare)
    }

    @Test
    func `draws a topic, asks for all that is stored, and tells the endpoint once the subscription stands`() throws {
        var script = try Script(credentials: .user("me", password: "pass"))
        let first = script.take(.register(registration(1), vapid: nil))
        #expect(first.memory != nil)
        script.take(.connected)
        #expect(script.topics.count == 1)
        let topic = try #require(script.topics.first)
        #expect(topic.hasPrefix("up") && topic.count == 14, "\(topic)")
        #expect(script.since == "all")
        #expect(script.request.contains("\r\nAuthorization: Basic bWU6cGFzcw==\r\n"))
        var turn = script.take(.received(WebSocketScript.acceptance(of: Array(script.request.utf8))))
        #expect(turn.reports == [])
        turn = script.hear(#"{"id":"o","time":1,"event":"open","topic":"\#(topic)"}"#)
        let endpoint = "https://ntfy.test/\(topic)?up=1"
        #expect(turn.reports == [.loggedIn, .registered(registration(1), endpoint: endpoint, expires: nil)])
        #expect(script.take(.register(registration(1), vapid: nil)).reports.count == 1, "told again")
        var next = try Script(memory: script.memory)
        next.take(.connected)
        #expect(next.topics == [topic])
    }

    @Test
    func `needs another socket for a new topic, once for several`() throws {
        var script = try Script()
        script.take(.register(registration(1), vapid: nil))
        script.connect()
        let turn = script.take(.register(registration(2), vapid: nil))
        #expect(turn.redial != nil)
        #expect(WebSocketScript.texts(turn.output) == ["close 1000"])
        #expect(script.take(.register(registration(3), vapid: nil)).redial == nil)
        script.take(.disconnected)
        let reports = script.connect().reports
        #expect(reports.count == 3, "\(reports)")
        #expect(script.topics.count == 3)
    }

    @Test
    func `goes on with its socket where a topic went, and passes over what still comes for it`() throws {
        var script = try Script()
        script.take(.register(registration(1), vapid: nil))
        script.connect()
        let message = script.message("aaaaaaaaaaaa", at: 5)
        script.take(.register(registration(2), vapid: nil))
        script.take(.disconnected)
        script.connect()
        let end = script.take(.unregister(registration(1), endpoint: nil))
        #expect(end.reports == [.unregistered(registration(1))] && end.redial == nil && end.output == [])
        let passed = script.hear(message)
        #expect(passed.arrived == [] && passed.reports == [] && passed.redial == nil, "\(passed)")
        // The next socket, whoever opens it, is without it.
        let parking = try #require(script.server.parking)
        script.take(.disconnected)
        script.connect()
        #expect(script.topics.count == 1 && !message.contains(script.topics.first ?? ""))
        #expect(String(decoding: parking.opening[0].send, as: UTF8.self).hasPrefix("GET \(script.path) "))
    }

    @Test
    func `gives no login up for a new topic`() throws {
        var script = try Script()
        script.take(.register(registration(1), vapid: nil))
        script.take(.connected)
        #expect(script.take(.register(registration(2), vapid: nil)).redial == nil)
        let asked = script.topics
        var turn = script.take(.received(WebSocketScript.acceptance(of: Array(script.request.utf8))))
        #expect(turn.redial == nil)
        turn = script.hear(#"{"id":"o","time":1,"event":"open","topic":"x"}"#)
        #expect(turn.reports.count == 2 && turn.isRedialWanted, "\(turn)")
        script.take(.disconnected)
        #expect(script.connect().reports.count == 2)
        #expect(script.topics.count == 2 && asked.count == 1)
    }

    @Test
    func `gives its socket up for new topics less and less often`() throws {
        var script = try Script()
        script.connect()
        var redials: [Int] = []
        var number = 0
        /// An app that registers and ends that each second.
        func hurry(until end: Int) {
            while script.now < end {
                number += 1
                if script.take(.register(registration(number), vapid: nil), after: 1).redial != nil {
                    redials.append(script.now)
                    script.take(.disconnected)
                    script.connect()
                }
                script.take(.unregister(registration(number), endpoint: nil))
            }
        }
        hurry(until: 3600)
        #expect(Array(redials.prefix(9)) == [1, 2, 3, 4, 5, 15, 35, 75, 135])
        #expect(zip(redials.dropFirst(8), redials.dropFirst(7)).allSatisfy { $0 - $1 >= 60 }, "\(redials)")
        // What registers last has its socket in the end, without another word.
        script.take(.register(registration(9999), vapid: nil), after: 1)
        let due = Int(try #require(script.server.deadline).components.seconds)
        #expect((1...60).contains(due - script.now) && script.server.parking == nil)
        #expect(script.take(.timePassed, after: due - script.now).isRedialWanted)
        script.take(.disconnected)
        #expect(script.connect().reports.count == 2)
        #expect(script.server.deadline == nil)
        // And it is forgotten.
        redials = []
        script.take(.timePassed, after: 300)
        let start = script.now
        hurry(until: start + 10)
        #expect(redials == (1...5).map { start + $0 })
    }

    @Test
    func `hands over a message with its body, urgency and end`() throws {
        var script = try Script()
        script.take(.register(registration(1), vapid: nil))
        script.connect()
        let turn = script.hear(
            script.message(
                "aaaaaaaaaaaa", at: 0, #","message":"AQID","encoding":"base64","priority":5,"expires":1767268800"#))
        #expect(
            turn.arrived == [
                ArrivedMessage(
                    id: try #require(ServerMessageID("aaaaaaaaaaaa")), registration: registration(1), body: [1, 2, 3],
                    urgency: .high, expires: WallTime(milliseconds: 1_767_268_800_000))
            ])
        #expect(turn.memory != nil)
        #expect(
            script.hear(script.message("bbbbbbbbbbbb", at: 1, #","message":"hé""#)).arrived.map(\.body) == [
                Array("hé".utf8)
            ])
    }

    @Test(arguments: [
        #","message":"AQID","attachment":{"name":"a","url":"https://x"}"#, #","message":"!","encoding":"base64""#,
        #","message":"x","encoding":"jwe""#, #","message":"""#, "",
        #","message":"\#(String(repeating: "x", count: 4097))""#,
    ])
    func `tells what it cannot hand over, and asks for it no more`(more: String) throws {
        var script = try Script()
        script.take(.register(registration(1), vapid: nil))
        script.connect()
        let turn = script.hear(script.message("aaaaaaaaaaaa", at: 5, more))
        #expect(turn.arrived == [] && turn.reports.count == 1, "\(turn)")
        script.take(.timePassed, after: 60)
        script.take(.disconnected)
        script.connect()
        #expect(script.since == "\(Script.start + 6)")
    }

    @Test
    func `asks from the second behind the last message once a minute passed without one`() throws {
        var script = try Script()
        script.take(.register(registration(1), vapid: nil))
        script.connect()
        _ = script.hear(script.message("aaaaaaaaaaaa", at: 5))
        #expect(script.server.deadline == .seconds(60))
        #expect(script.server.parking != nil)
        #expect(script.take(.timePassed, after: 60).memory != nil)
        #expect(script.server.deadline == nil)
        script.take(.disconnected)
        script.connect()
        #expect(script.since == "\(Script.start + 6)")
        let parking = try #require(script.server.parking)
        #expect(String(decoding: parking.opening[0].send, as: UTF8.self).hasPrefix("GET \(script.path) "))
        #expect(parking.opening[1].send == [] && parking.opening[1].isFrame)
    }

    @Test
    func `loses nothing where a new message comes before the stored ones, and the socket ends between them`() throws {
        var script = try Script()
        script.take(.register(registration(1), vapid: nil))
        script.connect()
        _ = script.hear(script.message("first0000000", at: 0))
        script.take(.timePassed, after: 60)
        script.take(.disconnected, after: 3600)
        script.connect()
        _ = script.hear(script.message("new000000000", at: script.now))
        _ = script.hear(script.message("stored000001", at: 100))
        script.take(.disconnected)
        script.connect()
        #expect(script.since == "\(Script.start + 1)", "the second stored one is behind it")
        #expect(script.hear(script.message("stored000001", at: 100)).arrived == [], "known")
        #expect(script.hear(script.message("stored000002", at: 101)).arrived.count == 1)
        #expect(script.hear(script.message("new000000000", at: script.now)).arrived == [])
    }

    @Test
    func `moves on while messages keep coming, and keeps a minute of them apart`() throws {
        var script = try Script()
        script.take(.register(registration(1), vapid: nil))
        script.connect()
        for count in 0..<200 {
            script.now += 10
            #expect(script.hear(script.message("message\(10000 + count)", at: script.now)).arrived.count == 1)
            script.take(.settled(ServerMessageID("message\(10000 + count)")!, .taken))
        }
        script.take(.disconnected)
        script.connect()
        #expect(script.since == "\(Script.start + 1990 - 60)")
        #expect(script.hear(script.message("message10199", at: 2000)).arrived == [])
    }

    @Test
    func `does not take a minute's sleep for a quiet minute`() throws {
        var script = try Script()
        script.take(.register(registration(1), vapid: nil))
        script.connect()
        _ = script.hear(script.message("aaaaaaaaaaaa", at: 5))
        script.take(.timePassed, after: 7200)
        #expect(script.server.deadline == .seconds(7260))
    }

    @Test
    func `asks again for what was put off or not saved`() throws {
        var script = try Script()
        script.take(.register(registration(1), vapid: nil))
        script.connect()
        _ = script.hear(script.message("aaaaaaaaaaaa", at: 5))
        script.take(.timePassed, after: 60)
        _ = script.hear(script.message("bbbbbbbbbbbb", at: 61))
        let id = try #require(ServerMessageID("bbbbbbbbbbbb"))
        script.take(.settled(id, .notNow("full")))
        _ = script.hear(script.message("cccccccccccc", at: 70))
        #expect(script.take(.timePassed, after: 600).redial != nil)
        script.take(.disconnected)
        script.connect()
        #expect(script.since == "\(Script.start + 6)")
        #expect(script.hear(script.message("bbbbbbbbbbbb", at: 61)).arrived.map(\.id) == [id])
        #expect(script.hear(script.message("cccccccccccc", at: 70)).arrived == [])
        // A value that is made anew from what was saved before a turn knows nothing of the turn.
        let saved = script.memory
        _ = script.hear(script.message("dddddddddddd", at: 700))
        var next = try Script(memory: saved)
        next.connect()
        #expect(next.hear(next.message("dddddddddddd", at: 700)).arrived.count == 1)
    }

    @Test
    func `asks again for a message of tomorrow, since it may be our clock that is wrong`() throws {
        var script = try Script()
        script.take(.connected)
        script.take(.register(registration(1), vapid: nil))
        script.connect()
        let message = script.message("m", at: 2 * 86_400)
        #expect(script.hear(message).arrived == [])
        #expect(script.server.deadline == .seconds(600))
        #expect(script.take(.timePassed, after: 600).isRedialWanted)
        script.take(.disconnected)
        // Somebody set the clock.
        script.now = 2 * 86_400
        script.connect()
        #expect(script.since == "all")
        #expect(script.hear(message).arrived.map(\.id.text) == ["m"])
    }

    @Test
    func `goes on after an opening, and asks for another socket where the topics changed meanwhile`() throws {
        var script = try Script()
        script.take(.register(registration(1), vapid: nil))
        script.connect()
        #expect(script.take(.opened).reports == [.loggedIn])
        #expect(script.hear(script.message("aaaaaaaaaaaa", at: 5)).arrived.count == 1)
        script.take(.disconnected)
        script.take(.register(registration(2), vapid: nil))
        #expect(script.take(.opened).redial != nil)
    }

    @Test
    func `tells refusals: of the account, and of too many requests with their pause`() throws {
        var script = try Script()
        script.take(.register(registration(1), vapid: nil))
        script.take(.connected)
        let forbidden = script.take(.received(Array("HTTP/1.1 403 Forbidden\r\n\r\n".utf8)))
        guard case .loginRefused = forbidden.reports.first, forbidden.redial != nil else {
            Issue.record("\(forbidden)")
            return
        }
        script.take(.connected)
        #expect(script.server.deadline == .seconds(60))
        #expect(script.take(.register(registration(2), vapid: nil)).redial == nil, "nothing was asked for yet")
        script.take(.timePassed, after: 60)
        #expect(script.topics.count == 2)
        let busy = script.take(.received(Array("HTTP/1.1 429 Slow\r\nRetry-After: 900\r\n\r\n".utf8)))
        guard case .trouble = busy.reports.first else {
            Issue.record("\(busy)")
            return
        }
        script.take(.connected)
        #expect(script.server.deadline == .seconds(960))
    }

    @Test(arguments: [
        #"{"event":"message"}"#, #"{"event":"message","id":"a","time":-1,"topic":"t"}"#,
        #"{"event":"message","id":"a","time":9223372036854775807,"topic":"t"}"#,
        #"{"event":"message","id":"a","time":1e300,"topic":"t"}"#,
        #"{"event":"message","id":"a","time":1767225600,"topic":"other","message":"x"}"#,
        #"{"event":"message","id":"\#(String(repeating: "i", count: 65))","time":1,"topic":"t"}"#, "[1]", "",
    ])
    func `tells what a lying server says, and goes on`(text: String) throws {
        var script = try Script()
        script.take(.register(registration(1), vapid: nil))
        script.connect()
        var reports = 0
        for _ in 0..<100 {
            let turn = script.hear(text)
            #expect(turn.arrived == [] && turn.output == [] && turn.redial == nil && turn.memory == nil, "\(turn)")
            reports += turn.reports.count
        }
        #expect(reports == 17)
        #expect(script.hear(script.message("aaaaaaaaaaaa", at: 5)).arrived.count == 1)
    }

    @Test
    func `keeps its memory under 64 KiB, and reads it again`() throws {
        var script = try Script()
        for number in 1...400 { script.take(.register(registration(number), vapid: nil)) }
        let turn = script.take(.register(registration(401), vapid: nil))
        guard case .registrationsFull = turn.reports.first else {
            Issue.record("\(turn)")
            return
        }
        script.connect()
        #expect(script.topics.count == 400)
        #expect(script.request.utf8.count < 8192)
        var arrived = 0
        for count in 0..<1100 {
            arrived +=
                script.hear(script.message(String(repeating: "i", count: 60) + "\(1000 + count)", at: 1)).arrived.count
        }
        #expect(arrived == 1000)
        let memory = try #require(script.memory)
        #expect(memory.count < 65536, "\(memory.count)")
        #expect(NtfyMemory(json: memory)?.json == memory)
    }

    @Test
    func `has no more wait than one that is read at a time, where each is kept`() throws {
        var script = try Script()
        script.take(.register(registration(1), vapid: nil))
        script.connect()
        for count in 1000..<2100 {
            let arrived = script.hear(script.message("message\(count)", at: 1)).arrived
            script.take(.settled(try #require(arrived.first?.id), .kept))
        }
        // What has no room is asked for again.
        let id = try #require(script.hear(script.message("full", at: 1)).arrived.first?.id)
        script.take(.settled(id, .full("too much waits")))
        #expect(script.server.deadline != nil)
        #expect(script.hear(script.message("full", at: 1)).arrived.map(\.id) == [id])
    }

    /// A session with a bit of everything, as the server sends it.
    static func session(_ script: Script) -> [UInt8] {
        WebSocketScript.acceptance(of: Array(script.request.utf8))
            + [
                #"{"id":"o","time":1,"event":"open","topic":"x"}"#, script.message("aaaaaaaaaaaa", at: 0),
                script.message("bbbbbbbbbbbb", at: -100), script.message("cccccccccccc", at: 0, ""), "nonsense",
                #"{"id":"k","time":1,"event":"keepalive","topic":"x"}"#, script.message("aaaaaaaaaaaa", at: 0),
            ].flatMap { WebSocketScript.text($0) + [0x89, 0] } + WebSocketScript.frame(0x88, [3, 232])
    }

    @Test(arguments: 1..<60)
    func `says the same however the bytes are cut`(size: Int) throws {
        var whole = try Script()
        whole.take(.register(registration(1), vapid: nil))
        whole.take(.connected)
        var cut = whole
        let bytes = Self.session(whole)
        let (first, second) = (whole.take(.received(bytes)), cut.server.receive(bytes, cut: size, at: moment(0)))
        #expect(first == second)
        #expect(first.arrived.count == 2 && first.redial != nil)
    }

    @Test(arguments: seeds(40))
    func `survives whatever comes, at any time`(seed: UInt64) throws {
        var random = SplitMix64(seed: seed)
        for _ in 0..<40 {
            var script = try Script(
                memory: (0..<random.below(40)).map { _ in UInt8(truncatingIfNeeded: random.next()) })
            script.take(.register(registration(1), vapid: nil))
            script.take(.connected)
            var bytes = Self.session(script)
            random.damage(&bytes, upTo: 12)
            for piece in WebSocketScript.pieces(of: bytes, 1 + random.below(200)) {
                let turn = script.take(.received(piece), after: random.below(40))
                for message in turn.arrived {
                    script.take(.settled(message.id, random.chance(50) ? .taken : .notNow("")))
                }
                let inputs: [PushServerInput] = [
                    .timePassed, .unparked, .opened, .disconnected, .connected,
                    .unregister(registration(1), endpoint: nil), .register(registration(2), vapid: "k"),
                ]
                if random.chance(4) { script.take(inputs[random.below(inputs.count)]) }
                #expect(script.memory?.count ?? 0 < 65536)
            }
        }
    }

    @Test(arguments: [
        ("wss://ntfy.test", "t"), ("https://ntfy.test/sub", "t"), ("https://ntfy.test", "t\r\nX: y"),
        ("https://", "t"),
    ])
    func `is not made from a URL that is none, or with credentials that break the request`(
        url: String, token: String
    ) {
        #expect(NtfyServer(url: url, credentials: .token(token))?.remote == nil)
    }
}
