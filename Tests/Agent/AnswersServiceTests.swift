// SPDX-License-Identifier: Apache-2.0

import DialtoneAPI
import DialtoneConnection
import DialtoneConnectionIO
import DialtoneExpectations
import DialtonePersistence
import DialtonePlatform
import DialtoneTestSupport
import DialtoneVarlink
import Foundation
import Testing

@testable import DialtoneAgent
@testable import DialtoneConfiguration

/// Messages that are answered for sleeping clients, as they are written in the files and given over the socket.
@Suite struct AnswersConfigurationTests {
    private let fixture: ConfigurationFixture

    init() throws { fixture = try ConfigurationFixture() }

    private static let connection = "[[connection]]\nname = 'office'\nremote = 'wss://h'\n"

    /// The errors of a connection with this line, which is line 4.
    private func errors(_ line: String) throws -> [String] {
        try fixture.write(Self.connection + line)
        return fixture.errors().map { $0.replacingOccurrences(of: "dialtone.toml:4:", with: "") }
    }

    @Test func `a file says them as the interface does`() throws {
        try fixture.write(
            Self.connection
                + #"""
                answers = [
                    { protocol = "websocket" }, { protocol = "xmpp", handled = 7 },
                    { protocol = "custom", receive = 'PING \?\r\n', send = 'PONG\r\n' },
                ]
                """#)
        let settings = try #require(try fixture.load().configuration.connections.first?.settings)
        #expect(
            settings.answers.flatMap { AnswersCheck($0).answers }
                == AnsweredMessages([
                    .websocket, .xmpp(handled: 7),
                    .custom(
                        receive: BytePattern(
                            Array("PING \0\r\n".utf8), mask: [255, 255, 255, 255, 255, 0, 255, 255]),
                        send: Array("PONG\r\n".utf8)),
                ]))
    }

    @Test(arguments: [
        ("{ protocol = 'mqtt' }", #"answers.protocol: unknown value "mqtt"; one of websocket, xmpp, custom"#),
        ("{ protocol = 'custom', send = 'a' }", "answers.receive: missing"),
        (
            "{ protocol = 'websocket', send = 'a' }", #"answers.send: not for protocol = "websocket""#
        ),
        ("{ protocol = 'custom', receive = 'a', handled = 1 }", #"answers.handled: not for protocol = "custom""#),
        ("{ protocol = 'xmpp', handled = -1 }", "answers.handled: -1 is not from 0 to 4294967295"),
        (#"{ protocol = 'custom', receive = '\?\?' }"#, "answers.receive: any bytes at all would be answered"),
        ("{ protocol = 'custom', receive = '' }", "answers.receive: 0 bytes are not from 1 to 1024"),
        (#"{ protocol = 'custom', receive = 'a', send = '\q' }"#, "answers.send: \(OpeningCheck.noEscape)"),
    ])
    func `what is wrong is told where it is`(answer: String, message: String) throws {
        let errors = try errors("answers = [\(answer)]")
        #expect(errors.count == 1 && errors[0].hasSuffix(message), "\(errors)")
    }

    @Test func `a protocol that is missing, or nine of them, are told`() throws {
        expect(try errors("answers = [{}]")) { $0.count == 1 && $0[0].contains("protocol") }
        let nine = [String](repeating: "{ protocol = 'websocket' }", count: 9).joined(separator: ", ")
        expect(try errors("answers = [\(nine)]")) { $0.count == 1 && $0[0].contains("9 messages are more than 8") }
    }
}

/// Answers over the socket.
@Suite(.timeLimit(.minutes(1))) @AgentQueue
struct AnswersServiceTests {
    private static let custom = [
        ConnectionsAPI.AnsweredMessage(protocol: "custom", receive: "ASK\\n", send: "hunter2\\n")
    ]

    private func answered(_ fixture: RestartFixture) -> Int? {
        fixture.registry.visible(to: 0).first.map { $0.totals.wire(at: .zero).answeredMessages } ?? nil
    }

    @Test func `what a client left is answered by every process, and counted on`() async throws {
        let (fixture, listener) = (try RestartFixture(), try LoopbackListener())
        try fixture.open("office", "tcp://127.0.0.1:\(listener.port)")
        try await fixture.ready("office")
        let peer = End(try listener.accept())
        _ = try fixture.registry.take("office", by: nil, for: 1000).release()
        try fixture.registry.park("office", 1, answering: LeftAnswers(Self.custom), for: 1000)
        let before = fixture.events.count
        peer.write("ASK\n")
        try await eventually("the answer") { answered(fixture) == 1 }
        #expect(peer.read(8) == "hunter2\n")
        #expect(fixture.events.count == before, "\(fixture.events.dropFirst(before).map(\.event.kind))")
        try fixture.kill()
        peer.write("ASK\n")
        try await eventually("the next answer") { answered(fixture) == 2 }
        #expect(peer.read(8) == "hunter2\n")
        #expect(fixture.connection("office")?.wake == nil)
    }

    @Test func `a call with one that is wrong says which`() async throws {
        let fixture = ServiceFixture()
        let client = try fixture.client()
        let wrong = [ConnectionsAPI.AnsweredMessage(protocol: "websocket"), .init(protocol: "custom")]
        let opened: ServiceAPI.InvalidParameter = try await client.refusal(
            of: ConnectionsAPI.Open.self,
            .init(remote: "tcp://127.0.0.1:9", name: "loop", settings: .init(answers: wrong)))
        #expect(opened.parameter == "settings.answers[1].receive")
        let parked: ServiceAPI.InvalidParameter = try await client.refusal(
            of: ConnectionsAPI.Park.self, .init(name: "loop", epoch: 1, answers: wrong))
        #expect(parked.parameter == "answers[1].receive")
    }
}
