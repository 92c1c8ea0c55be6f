// SPDX-License-Identifier: Apache-2.0

import DialtoneDistributor
import DialtonePlatform
import Glibc
import Testing

@testable import DialtonePushServers

/// The value against prosody, and what prosody's module tells the app's server. Of 0.12.3 its answers are wrong in two
/// places, which are asserted as they are: the first test that fails because they are right is good news.
@Suite(.enabled(if: Prosody.isInstalled, Prosody.missing))
struct ProsodyTests {
    @Test func `a push is delivered, and its sender told once the app has it`() throws {
        let prosody = try Prosody()
        var line = try Line(to: prosody)
        try line.connect()
        let endpoint = try line.register()
        let post = try Post("hello", to: endpoint, prosody.webPort)
        try line.run { !$0.arrived.isEmpty }
        let message = try #require(line.talk.arrived.first)
        #expect(message.body == Array("hello".utf8))
        // It goes on with the rest meanwhile.
        line.take(.register(Talk.registration, vapid: nil))
        try line.run { $0.reports.filter { $0.isEndpoint }.count == 2 }
        #expect(post.socket.isQuiet)
        line.take(.settled(message.id, .taken))
        #expect(try post.status() == 201)
        // A registration anew has another URL, and the one of before is good until it expires.
        guard case .registered(_, let second, let expires) = line.talk.reports.last else {
            Issue.record("\(line.talk.reports)")
            return
        }
        #expect(second != endpoint)
        #expect(expires != nil)
        for (endpoint, text) in [(endpoint, "old"), (second, "new")] {
            let post = try Post(text, to: endpoint, prosody.webPort)
            try line.run { $0.arrived.last?.body == Array(text.utf8) }
            line.take(.settled(try #require(line.talk.arrived.last).id, .taken))
            #expect(try post.status() == 201)
        }
        #expect(line.troubles.isEmpty)
    }

    @Test func `what is not taken is answered as the protocol wants, which the module makes 500 of`() throws {
        let prosody = try Prosody()
        var line = try Line(to: prosody)
        try line.connect()
        let endpoint = try line.register()
        for outcome in [MessageOutcome.givenUp("expired"), .notNow("full")] {
            let post = try Post("\(outcome)", to: endpoint, prosody.webPort)
            try line.run { $0.arrived.last?.body == Array("\(outcome)".utf8) }
            line.take(.settled(try #require(line.talk.arrived.last).id, outcome))
            // The module's fault: 503 is meant for `recipient-unavailable`. It looks for the error where it is not.
            #expect(try post.status() == 500)
        }
        line.take(.unregister(Talk.registration, endpoint: endpoint))
        let post = try Post("gone", to: endpoint, prosody.webPort)
        try line.run { $0.output.contains("item-not-found") }
        // And so is 404 for `item-not-found`.
        #expect(try post.status() == 500)
        #expect(line.talk.arrived.count == 2)
    }

    @Test func `a push that comes while there is no socket comes with the next one, whoever dials it`() throws {
        let prosody = try Prosody()
        var line = try Line(to: prosody)
        try line.connect()
        let endpoint = try line.register()
        // By itself.
        line.disconnect()
        var post = try Post("first", to: endpoint, prosody.webPort)
        try line.connect()
        try line.run { $0.arrived.count == 1 }
        #expect(line.talk.output.contains("<resume "))
        // The answer is given while there is none again, in another process.
        line.disconnect()
        line.talk = Talk(memory: line.talk.memory, account: line.account, seed: 2)
        line.take(.settled(Talk.message(forBody: "first", in: line.talk), .taken))
        #expect(post.socket.isQuiet)
        try line.connect()
        #expect(try post.status() == 201)
        // By the agent, which plays the opening.
        try line.run { $0.server.parking?.opening.isEmpty == false }
        let parking = try #require(line.talk.server.parking)
        line.disconnect()
        post = try Post("second", to: endpoint, prosody.webPort)
        try line.open(parking)
        try line.run { $0.arrived.last?.body == Array("second".utf8) }
        line.take(.settled(try #require(line.talk.arrived.last).id, .taken))
        // It says that once it has heard how much of its own the server had.
        try line.run { $0.server.parking != nil }
        #expect(try post.status() == 201)
        #expect(line.troubles.isEmpty)
    }

    @Test func `without a session a push is lost, and the module says that it was delivered`() throws {
        let prosody = try Prosody()
        var line = try Line(to: prosody)
        try line.connect()
        let endpoint = try line.register()
        // The end of the stream ends the session.
        try line.hangUp()
        // The module's fault: it takes the server's own error for the app's receipt.
        #expect(try Post("lost", to: endpoint, prosody.webPort).status() == 201)
        try line.connect()
        line.talk.reports.removeAll { $0 == .loggedIn }
        // The endpoint is good all the same: the resource is the one of before.
        let post = try Post("found", to: endpoint, prosody.webPort)
        try line.run { !$0.arrived.isEmpty }
        #expect(line.talk.arrived.map(\.body) == [Array("found".utf8)])
        line.take(.settled(try #require(line.talk.arrived.last).id, .taken))
        #expect(try post.status() == 201)
        #expect(!line.talk.reports.contains { if case .identityLost = $0 { true } else { false } })
    }

    @Test func `a password that is wrong is refused`() throws {
        let prosody = try Prosody()
        var line = try Line(to: prosody, password: "guess")
        line.dial()
        try line.run { !$0.reports.isEmpty }
        guard case .loginRefused(let reason) = line.talk.reports.first else {
            Issue.record("\(line.talk.reports)")
            return
        }
        #expect(reason.hasPrefix("SASL failure, not-authorized"))
    }
}

extension PushServerReport {
    fileprivate var isEndpoint: Bool { if case .registered = self { true } else { false } }
}

extension Talk {
    /// The name of the message that waits for its answer, and was not told of in this process.
    fileprivate static func message(forBody body: String, in talk: Talk) -> ServerMessageID {
        talk.server.memory.pending.map(\.message).first ?? message("none", registration, Array(body.utf8))
    }
}

/// A value that speaks to prosody.
private struct Line {
    let account: XMPPAccount
    var talk: Talk
    private let prosody: Prosody
    private var socket: LoopbackSocket

    init(to prosody: Prosody, password: String = "secret") throws {
        self.prosody = prosody
        account = try XMPPAccount(
            jid: "juliet@lab.example", password: password, host: "127.0.0.1", port: prosody.port,
            security: .plainTextToLoopback)
        talk = Talk(account: account)
        socket = try LoopbackSocket(prosody.port)
    }

    var troubles: [PushServerReport] { talk.reports.filter { if case .trouble = $0 { true } else { false } } }

    mutating func take(_ input: PushServerInput) { socket.send(talk.take(input).output) }

    /// Hands over what comes until something is so.
    mutating func run(until isSo: (Talk) -> Bool) throws {
        while !isSo(talk) {
            let bytes = try socket.receive()
            try #require(!bytes.isEmpty && talk.redials.isEmpty, "it ended: \(talk.redials), \(talk.reports)")
            take(.received(bytes))
        }
    }

    mutating func dial() {
        guard let socket = try? LoopbackSocket(prosody.port) else { return }
        self.socket = socket
        talk.output = ""
        take(.connected)
    }

    /// Dials, and logs in.
    mutating func connect() throws {
        talk.reports = []
        dial()
        try run { $0.reports.contains(.loggedIn) }
    }

    mutating func disconnect() {
        // The server has to have noticed before anything else is asked of it.
        shutdownAndAwaitEnd()
        talk.take(.disconnected)
    }

    private func shutdownAndAwaitEnd() {
        socket.shutDown()
        while let bytes = try? socket.receive(), !bytes.isEmpty {}
    }

    /// Ends the stream, and waits for the server's end.
    mutating func hangUp() throws {
        socket.send(Array("</stream:stream>".utf8))
        while try !socket.receive().isEmpty {}
        take(.disconnected)
    }

    /// Registers, and returns the endpoint as soon as all is acknowledged.
    mutating func register() throws -> String {
        take(.register(Talk.registration, vapid: nil))
        try run { $0.server.parking != nil }
        guard case .registered(Talk.registration, let endpoint, _) = talk.reports.last else {
            throw SystemError("registering: \(talk.reports)", code: 0)
        }
        return endpoint
    }

    /// What the agent does with an opening: it reads the answers, and no byte more.
    mutating func open(_ parking: PushParking) throws {
        socket = try LoopbackSocket(prosody.port)
        for step in parking.opening {
            socket.send(step.send)
            var answer: [UInt8] = []
            while !step.matches(String(decoding: answer, as: UTF8.self)) {
                let byte = try socket.receive(atMost: 1)
                try #require(!byte.isEmpty, "\(String(decoding: answer, as: UTF8.self))")
                answer += byte
            }
        }
        take(.opened)
    }
}
