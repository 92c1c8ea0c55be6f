// SPDX-License-Identifier: Apache-2.0

import DialtoneDistributor
import DialtonePlatform
import DialtoneTestSupport
import DialtoneVarlink
import Testing

@testable import DialtonePushServers

/// An ``AutopushServer`` that is led through its dialogue.
struct AutopushScript {
    static let uaid = "0123456789abcdef0123456789abcdef"
    var server: AutopushServer
    var now = 0

    init(memory: [UInt8]? = nil) throws {
        server = try #require(AutopushServer(memory: memory, random: SplitMix64(seed: 1)))
    }

    @discardableResult
    mutating func take(_ input: PushServerInput, after seconds: Int = 0) -> PushServerTurn {
        now += seconds
        return server.take(input, at: moment(now))
    }

    /// A message of the server's.
    mutating func hear(_ text: String) -> PushServerTurn { take(.received(WebSocketScript.text(text))) }

    /// Connects and logs in.
    @discardableResult
    mutating func logIn(uaid: String = Self.uaid) -> PushServerTurn {
        let request = take(.connected).output
        var turn = take(.received(WebSocketScript.acceptance(of: request)))
        turn.append(hear(#"{"messageType":"hello","uaid":"\#(uaid)","status":200,"use_webpush":true,"broadcasts":{}}"#))
        return turn
    }

    /// Registers, and has it answered.
    @discardableResult
    mutating func register(_ number: Int) -> PushServerTurn {
        var turn = take(.register(registration(number), vapid: nil))
        turn.append(hear(Self.registered(number)))
        return turn
    }

    static func registered(_ number: Int, status: Int = 200, endpoint: String = "https://push.test/wpush/v1/x")
        -> String
    {
        #"{"messageType":"register","channelID":"\#(registration(number).channel)","status":\#(status),"#
            + #""pushEndpoint":"\#(endpoint)"}"#
    }

    static func notification(_ number: Int, version: String, data: String = "AQID", more: String = "") -> String {
        #"{"messageType":"notification","channelID":"\#(registration(number).channel)","version":"\#(version)","#
            + #""data":"\#(data)","headers":{"encoding":"aes128gcm"}\#(more)}"#
    }

    static func ack(_ number: Int, _ version: String, _ code: Int) -> String {
        #"{"messageType":"ack","updates":[{"channelID":"\#(registration(number).channel)","#
            + #""version":"\#(version)","code":\#(code)}]}"#
    }
}

/// autopush.
@Suite struct AutopushTests {
    typealias Script = AutopushScript

    @Test
    func `says hello, keeps the uaid, and says it the next time`() throws {
        var script = try Script()
        let turn = script.logIn()
        #expect(WebSocketScript.texts(turn.output) == [#"{"messageType":"hello","use_webpush":true,"broadcasts":{}}"#])
        #expect(turn.reports == [.loggedIn])
        #expect(turn.memory.map { String(decoding: $0, as: UTF8.self) } == #"{"uaid":"\#(Script.uaid)","channels":[]}"#)
        var next = try Script(memory: turn.memory)
        let again = next.logIn()
        #expect(
            WebSocketScript.texts(again.output)
                == [#"{"messageType":"hello","use_webpush":true,"uaid":"\#(Script.uaid)","broadcasts":{}}"#])
        #expect(again.memory == nil)
    }

    @Test
    func `registers a channel with its key, once the session stands`() throws {
        var script = try Script()
        #expect(script.take(.register(registration(1), vapid: "BKey")) == PushServerTurn())
        let turn = script.logIn()
        let request =
            #"{"messageType":"register","channelID":"00000000-0000-0000-0000-000000000001","key":"BKey"}"#
        #expect(WebSocketScript.texts(turn.output).last == request)
        #expect(script.server.parking == nil, "an answer is due")
        #expect(script.take(.register(registration(1), vapid: "BKey")).output == [], "said already")
        let answer = script.hear(Script.registered(1))
        #expect(
            answer.reports == [.registered(registration(1), endpoint: "https://push.test/wpush/v1/x", expires: nil)])
        #expect(answer.memory != nil)
        #expect(script.server.parking != nil)
        #expect(script.server.deadline == nil)
    }

    @Test(
        arguments: [
            (409, "https://push.test/", .internalError), (500, "https://push.test/", .network),
            (401, "https://push.test/", .unauthorized), (200, "http://push.test/", .internalError),
            (200, "https://push.test/\u{1F4A9}", .internalError), (200, "", .internalError),
            (200, "https://push.test/" + String(repeating: "x", count: 1000), .internalError),
        ] as [(Int, String, RegistrationFailure)])
    func `tells why a registration failed`(status: Int, endpoint: String, failure: RegistrationFailure) throws {
        var script = try Script()
        script.logIn()
        script.take(.register(registration(1), vapid: nil))
        let turn = script.hear(Script.registered(1, status: status, endpoint: endpoint))
        guard case .registrationFailed(registration(1), failure, _) = turn.reports.first else {
            Issue.record("\(turn.reports)")
            return
        }
        #expect(script.server.deadline == nil)
    }

    @Test
    func `acknowledges a message when it is kept or settled, by what became of it, and not before`() throws {
        var script = try Script()
        script.logIn()
        script.register(1)
        for (version, outcome, code) in [
            ("v1", MessageOutcome.kept, 100), ("v2", .taken, 100), ("v3", .givenUp("expired"), 102),
        ] {
            let turn = script.hear(Script.notification(1, version: version, more: #","ttl":60"#))
            let id = try #require(ServerMessageID(version))
            #expect(
                turn.arrived == [
                    ArrivedMessage(
                        id: id, registration: registration(1), body: [1, 2, 3], urgency: .normal,
                        expires: WallTime(milliseconds: moment(60).wall.milliseconds))
                ])
            #expect(turn.output == [])
            #expect(script.server.parking != nil, "it can be settled on this socket later")
            #expect(WebSocketScript.texts(script.take(.settled(id, outcome)).output) == [Script.ack(1, version, code)])
            #expect(script.take(.settled(id, outcome)) == PushServerTurn(), "once")
        }
    }

    @Test
    func `asks again for what was put off, by another socket`() throws {
        var script = try Script()
        script.logIn()
        script.register(1)
        _ = script.hear(Script.notification(1, version: "v1"))
        let id = try #require(ServerMessageID("v1"))
        #expect(script.take(.settled(id, .notNow("full"))) == PushServerTurn())
        #expect(script.server.deadline == .seconds(600))
        #expect(script.take(.timePassed, after: 600).redial != nil)
        script.take(.disconnected)
        script.logIn()
        #expect(script.hear(Script.notification(1, version: "v1")).arrived.map(\.id) == [id])
    }

    @Test
    func `has what an app has no room for given up, aloud, since others' messages are stored behind it`() throws {
        var script = try Script()
        script.logIn()
        script.register(1)
        _ = script.hear(Script.notification(1, version: "v1"))
        let turn = script.take(.settled(try #require(ServerMessageID("v1")), .full("too much waits")))
        #expect(WebSocketScript.texts(turn.output) == [Script.ack(1, "v1", 102)])
        #expect(turn.reports == [.trouble("a push was given up: too much waits")])
        #expect(script.server.deadline == nil)
    }

    @Test
    func `has no more wait than one that is read at a time, where each is kept`() throws {
        var script = try Script()
        script.logIn()
        script.register(1)
        for number in 0..<1100 {
            let turn = script.hear(Script.notification(1, version: "v\(number)"))
            let id = try #require(turn.arrived.first?.id)
            #expect(script.take(.settled(id, .kept)).output != [])
        }
        #expect(script.server.pending.isEmpty)
    }

    @Test
    func `acknowledges what was settled without a socket when it comes again, and tells it no second time`() throws {
        var script = try Script()
        script.logIn()
        script.register(1)
        let id = try #require(ServerMessageID("v1"))
        _ = script.hear(Script.notification(1, version: "v1"))
        script.take(.disconnected)
        #expect(script.take(.settled(id, .taken)).output == [])
        script.logIn()
        let turn = script.hear(Script.notification(1, version: "v1"))
        #expect(turn.arrived == [])
        #expect(WebSocketScript.texts(turn.output) == [Script.ack(1, "v1", 100)])
        // A socket without a session is no word of the server's; a session without the message is.
        _ = script.hear(Script.notification(1, version: "v0"))
        script.take(.connected)
        script.take(.disconnected)
        #expect(script.server.pending.count == 1)
        // Behind the pause for the login that did not come about.
        script.now += 5
        script.logIn()
        script.take(.disconnected)
        #expect(script.server.pending.isEmpty)
        script.logIn()
        // A new process knows the channel, and is told the message anew.
        _ = script.hear(Script.notification(1, version: "v2"))
        var next = try Script(memory: script.server.memory.json)
        next.logIn()
        #expect(next.hear(Script.notification(1, version: "v2")).arrived.map(\.id.text) == ["v2"])
    }

    @Test
    func `acknowledges a message on a socket that it came on, and on no other`() throws {
        var script = try Script()
        script.logIn()
        script.register(1)
        let id = try #require(ServerMessageID("v1"))
        _ = script.hear(Script.notification(1, version: "v1"))
        script.take(.disconnected)
        script.logIn()
        #expect(script.take(.settled(id, .taken)).output == [])
        let turn = script.hear(Script.notification(1, version: "v1"))
        #expect(WebSocketScript.texts(turn.output) == [Script.ack(1, "v1", 100)])
    }

    @Test
    func `tells that all is lost when the server gives another uaid, where anything was registered`() throws {
        var script = try Script()
        script.logIn()
        script.take(.disconnected)
        let other = String(Script.uaid.reversed())
        #expect(script.logIn(uaid: other).reports == [.loggedIn], "nothing was registered")
        script.register(1)
        script.take(.disconnected)
        let turn = script.logIn()
        guard case .identityLost = turn.reports.last else {
            Issue.record("\(turn.reports)")
            return
        }
        #expect(turn.memory.map { String(decoding: $0, as: UTF8.self) } == #"{"uaid":"\#(Script.uaid)","channels":[]}"#)
    }

    @Test
    func `refuses and ends a channel that nobody has, once on a socket`() throws {
        var script = try Script()
        script.logIn()
        let first = script.hear(Script.notification(7, version: "v1"))
        let unregister =
            #"{"messageType":"unregister","channelID":"00000000-0000-0000-0000-000000000007","code":200}"#
        #expect(WebSocketScript.texts(first.output) == [Script.ack(7, "v1", 102), unregister])
        #expect(first.arrived == [])
        let second = script.hear(Script.notification(7, version: "v2"))
        #expect(WebSocketScript.texts(second.output) == [Script.ack(7, "v2", 102)])
    }

    @Test
    func `ends a channel, and says it again on the next socket where no answer came`() throws {
        var script = try Script()
        script.logIn()
        script.register(1)
        let request =
            #"{"messageType":"unregister","channelID":"00000000-0000-0000-0000-000000000001","code":200}"#
        #expect(WebSocketScript.texts(script.take(.unregister(registration(1), endpoint: nil)).output) == [request])
        #expect(script.server.deadline == .seconds(30))
        #expect(script.take(.timePassed, after: 30).redial != nil)
        script.take(.disconnected)
        #expect(WebSocketScript.texts(script.logIn().output).last == request)
        let turn = script.hear(
            #"{"messageType":"unregister","channelID":"00000000-0000-0000-0000-000000000001","status":200}"#)
        #expect(turn.reports == [.unregistered(registration(1))])
        #expect(turn.memory.map { String(decoding: $0, as: UTF8.self) } == #"{"uaid":"\#(Script.uaid)","channels":[]}"#)
    }

    @Test(arguments: [
        (#""data":"AQID","headers":{"encoding":"aesgcm","encryption":"salt=x","crypto_key":"dh=y"}"#, 101),
        (#""data":"AQID""#, 101), (#""headers":{"encoding":"aes128gcm"}"#, 102),
        (#""data":"","headers":{"encoding":"aes128gcm"}"#, 102),
        (#""data":"A!","headers":{"encoding":"aes128gcm"}"#, 102),
        (#""data":"\#(String(repeating: "AAAA", count: 1366))","headers":{"encoding":"aes128gcm"}"#, 102),
    ])
    func `gives up a push that no app can read, by the code that says why`(members: String, code: Int) throws {
        var script = try Script()
        script.logIn()
        script.register(1)
        let turn = script.hear(
            #"{"messageType":"notification","channelID":"\#(registration(1).channel)","version":"v1",\#(members)}"#)
        #expect(turn.arrived == [])
        #expect(WebSocketScript.texts(turn.output) == [Script.ack(1, "v1", code)])
        #expect(turn.reports.count == 1, "\(turn.reports)")
    }

    @Test
    func `takes the largest body, an urgency, and a time to live however wrong`() throws {
        var script = try Script()
        script.logIn()
        script.register(1)
        let data = Base64.text(of: [UInt8](repeating: 0xFB, count: 4096)).map { $0 == "+" ? "-" : $0 == "/" ? "_" : $0 }
        for (ttl, seconds) in [("-5", nil), ("99999999999999999", 2_592_000), ("0", 0)] as [(String, Int?)] {
            let text = Script.notification(1, version: "v\(ttl)", data: String(data), more: #","ttl":\#(ttl)"#)
                .replacing(#""aes128gcm""#, with: #""aes128gcm","urgency":"high""#)
            let message = try #require(script.hear(text).arrived.first)
            #expect(message.body.count == 4096)
            #expect(message.urgency == .high)
            #expect(message.expires == seconds.map { moment($0).wall })
        }
    }

    @Test
    func `can be parked with an opening that knows the answer, and goes on after it`() throws {
        var script = try Script()
        #expect(script.server.parking == nil)
        script.logIn()
        let parking = try #require(script.server.parking)
        #expect(parking.answers == .webSocket)
        #expect(parking.opening.count == 2)
        let acceptance = WebSocketScript.acceptance(of: parking.opening[0].send)
        #expect(acceptance.starts(with: parking.opening[0].begins))
        let head = String(decoding: acceptance, as: UTF8.self)
        #expect(head.contains(String(decoding: parking.opening[0].contains ?? [0], as: UTF8.self)))
        #expect(
            WebSocketScript.texts(parking.opening[1].send)
                == [#"{"messageType":"hello","use_webpush":true,"uaid":"\#(Script.uaid)","broadcasts":{}}"#])
        #expect(parking.opening[1].contains == Array(#""uaid":"\#(Script.uaid)""#.utf8))
        script.register(1)
        #expect(script.take(.opened).reports == [.loggedIn])
        #expect(script.server.parking?.opening[0].send != parking.opening[0].send, "another nonce")
        #expect(script.hear(Script.notification(1, version: "v1")).arrived.count == 1)
        // Half of a message was read.
        script.take(.received([0x81]))
        #expect(script.server.parking == nil)
        // A new process on the socket that stayed.
        var next = try Script(memory: script.server.memory.json)
        next.take(.unparked)
        #expect(next.hear(Script.notification(1, version: "v2")).arrived.count == 1)
    }

    @Test
    func `waits longer after each refusal, and as long as the server asks`() throws {
        var script = try Script()
        script.take(.connected)
        for pause in [60, 120, 240] {
            let turn = script.take(.received(Array("HTTP/1.1 401 No\r\n\r\n".utf8)))
            guard case .loginRefused = turn.reports.first, turn.redial != nil else {
                Issue.record("\(turn)")
                return
            }
            script.take(.disconnected)
            #expect(script.take(.connected).output == [], "held")
            #expect(script.server.deadline == .seconds(script.now + pause))
            #expect(script.take(.timePassed, after: pause).output != [])
        }
        script.take(.received(Array("HTTP/1.1 503 No\r\nRetry-After: 3000\r\n\r\n".utf8)))
        #expect(script.take(.connected, after: 2999).output == [])
        #expect(script.take(.connected, after: 1).output != [])
        // A portal's word is nobody's refusal.
        let portal = script.take(.received(Array("HTTP/1.1 302 Found\r\nLocation: http://portal.test/\r\n\r\n".utf8)))
        #expect(portal.redial?.contains("portal.test") == true, "\(portal)")
        #expect(script.take(.connected).output != [])
    }

    @Test(arguments: [(429, false), (500, false), (599, false), (401, true), (600, true)])
    func `is let in later by an overloaded server, which refuses nobody`(status: Int, isRefusal: Bool) throws {
        var script = try Script()
        let request = script.take(.connected).output
        script.take(.received(WebSocketScript.acceptance(of: request)))
        let turn = script.hear(#"{"messageType":"hello","uaid":"","status":\#(status)}"#)
        let reason = "the server answered hello with status \(status)"
        let report: PushServerReport = isRefusal ? .loginRefused(reason) : .trouble(reason)
        #expect(turn.reports == [report] && turn.redial == reason, "\(turn)")
        #expect(script.take(.connected).output == [], "held")
        #expect(script.server.deadline == .seconds(60))
    }

    @Test
    func `is held back where the server closes at each hello`() throws {
        var script = try Script()
        var waits: [Duration] = []
        for _ in 0..<5 {
            let request = script.take(.connected).output
            script.take(.received(WebSocketScript.acceptance(of: request)))
            let turn = script.take(.received(WebSocketScript.frame(0x88, [3, 243])))
            #expect(turn.redial != nil)
            script.take(.connected)
            waits.append((script.server.deadline ?? .zero) - .seconds(script.now))
            script.now += 3600
        }
        #expect(waits == [5, 10, 20, 40, 80].map { .seconds($0) })
    }

    @Test(arguments: [
        "{", "[]", "{}}", #"{"messageType":5}"#, #"{"messageType":"hello","uaid":"x","status":200}"#,
        #"{"messageType":"register","channelID":"00000000-0000-0000-0000-000000000009","status":200}"#,
        #"{"messageType":"unregister","channelID":"zz","status":200}"#, #"{"messageType":"notification"}"#,
        #"{"messageType":"notification","channelID":"00000000-0000-0000-0000-000000000001","version":""}"#,
        #"{"messageType":"\u001b[31mred"}"#, #"{"ttl":1e400}"#, #"{"status":123456789012345678901234567890}"#,
        #"{"a":"# + String(repeating: "[", count: 3000) + String(repeating: "]", count: 3000) + "}",
    ])
    func `tells what a lying server says, and goes on`(text: String) throws {
        var script = try Script()
        script.logIn()
        script.register(1)
        for _ in 0..<100 {
            let turn = script.hear(text)
            #expect(turn.arrived == [] && turn.output == [] && turn.redial == nil, "\(turn)")
        }
        script.take(.disconnected)
        script.logIn()
        let turn = script.hear(text)
        guard case .trouble(let words) = turn.reports.first, turn.reports.count == 1 else {
            Issue.record("\(turn.reports)")
            return
        }
        #expect(!words.contains("\u{1B}"))
        #expect(script.hear(Script.notification(1, version: "v1")).arrived.count == 1)
    }

    @Test
    func `does not keep more than it has room for`() throws {
        var script = try Script()
        script.logIn()
        for number in 1...1500 { script.register(number) }
        let turn = script.take(.register(registration(9999), vapid: nil))
        guard case .registrationsFull = turn.reports.first else {
            Issue.record("\(turn.reports)")
            return
        }
        #expect(script.server.memory.json.count < 65536)
        var arrived = 0
        for number in 0..<1100 { arrived += script.hear(Script.notification(1, version: "v\(number)")).arrived.count }
        #expect(arrived == 1000)
        #expect(script.server.deadline == .seconds(script.now + 600), "the others are asked for again")
        #expect(AutopushMemory(json: script.server.memory.json) == script.server.memory)
    }

    /// A session with a bit of everything, as the server sends it.
    static func session(_ request: [UInt8]) -> [UInt8] {
        WebSocketScript.acceptance(of: request)
            + [
                #"{"messageType":"hello","uaid":"\#(Script.uaid)","status":200,"use_webpush":true,"broadcasts":{}}"#,
                Script.registered(1), Script.notification(1, version: "v1"), Script.notification(2, version: "v2"),
                "{}", "nonsense", Script.notification(1, version: "v3", data: ""),
            ].flatMap { WebSocketScript.text($0) + [0x89, 1, 33] } + WebSocketScript.frame(0x88, [3, 232])
    }

    @Test(arguments: 1..<60)
    func `says the same however the bytes are cut`(size: Int) throws {
        var (whole, cut) = (try Script(), try Script())
        for number in [1, 2] { whole.take(.register(registration(number), vapid: nil)) }
        cut.server = whole.server
        let request = whole.take(.connected).output
        cut.take(.connected)
        let bytes = Self.session(request)
        let (first, second) = (whole.take(.received(bytes)), cut.server.receive(bytes, cut: size, at: moment(0)))
        #expect(first == second)
        #expect(first.arrived.count == 1 && first.redial != nil)
    }

    @Test(arguments: seeds(40))
    func `survives whatever comes, at any time`(seed: UInt64) throws {
        var random = SplitMix64(seed: seed)
        for _ in 0..<40 {
            var script = try Script(
                memory: (0..<random.below(40)).map { _ in UInt8(truncatingIfNeeded: random.next()) })
            script.take(.register(registration(1), vapid: nil))
            var bytes = Self.session(script.take(.connected).output)
            random.damage(&bytes, upTo: 12)
            var size = 0
            for piece in WebSocketScript.pieces(of: bytes, 1 + random.below(200)) {
                let turn = script.take(.received(piece), after: random.below(3))
                size += turn.output.count
                for message in turn.arrived { size += script.take(.settled(message.id, .taken)).output.count }
                let inputs: [PushServerInput] = [
                    .timePassed, .unparked, .opened, .disconnected, .connected,
                    .unregister(registration(1), endpoint: nil), .register(registration(2), vapid: "k"),
                ]
                if random.chance(4) { size += script.take(inputs[random.below(inputs.count)]).output.count }
                if let parking = script.server.parking { #expect(parking.opening.count == 2) }
            }
            #expect(size < 20 * bytes.count + 20000)
        }
    }

    @Test(arguments: ["https://push.test/", "wss://", "wss://a b/", "wss://u@h/", ""])
    func `is not made from a URL that is none`(text: String) { #expect(AutopushServer(url: text)?.remote == nil) }

    @Test
    func `dials host and port, and asks for the path`() throws {
        var server = try #require(AutopushServer(url: "ws://[::1]:8080/a?b"))
        #expect(server.remote == "ws://[::1]:8080")
        let request = String(decoding: server.take(.connected, at: moment(0)).output, as: UTF8.self)
        #expect(request.hasPrefix("GET /a?b HTTP/1.1\r\nHost: [::1]:8080\r\n"), "\(request)")
        #expect(AutopushServer()?.remote == "wss://push.services.mozilla.com")
    }
}
