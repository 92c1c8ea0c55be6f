// SPDX-License-Identifier: Apache-2.0

import DialtoneAPI
import DialtoneConnection
import DialtoneExpectations
import DialtonePlatform
import DialtoneTestSupport
import DialtoneVarlink
import Glibc
import Testing

@testable import DialtoneAgent

/// Openings that clients leave over the socket.
@Suite(.timeLimit(.minutes(1))) @AgentQueue
struct OpeningServiceTests {
    private typealias Step = ConnectionsAPI.OpeningStep

    let fixture = ServiceFixture()
    let server: LoopbackListener
    let client: VarlinkConnection
    let events: VarlinkReplies<ConnectionsAPI.Monitor>

    init() throws {
        server = try LoopbackListener()
        fixture.network.becomeReachable()
        client = try fixture.client()
        events = try fixture.client().monitor()
    }

    private func event(_ kind: ConnectionsAPI.EventKind) async throws -> ConnectionsAPI.Event {
        while true {
            if let event = try await events.one().event, event.kind == kind { return event }
        }
    }

    private func open(_ opening: [ConnectionsAPI.OpeningStep]?) async throws {
        _ = try await client.ask(
            ConnectionsAPI.Open.self,
            .init(remote: "tcp://127.0.0.1:\(server.port)", name: "loop", settings: .init(opening: opening)))
    }

    @Test func `one that is left with a flow is said on the next, until an empty one is`() async throws {
        try await open(nil)
        let first = try server.accept()
        try await ready(1)
        try await takeAndPark(1, leaving: [.init(send: "HI", expect: .init(bytes: "\\?"))])
        let second = try await next(2)
        #expect(second.read(2) == "HI")
        second.write("!")
        let opened = try await event(.sessionOpened)
        #expect((opened.connection.epoch, opened.connection.holder, opened.connection.session) == (2, .daemon, .open))
        #expect(opened.reason == "logged in for its client")
        // What is not said stays as it is.
        try await takeAndPark(2, leaving: nil)
        let third = try await next(3)
        #expect(third.read(2) == "HI")
        third.write("!")
        _ = try await event(.sessionOpened)
        try await takeAndPark(3, leaving: [])
        _ = try await next(4)
        #expect(fixture.registry.visible(to: 0).first?.wire?.session == ConnectionsAPI.Connection.Session.none)
        withExtendedLifetime(first) {}
    }

    private func ready(_ epoch: Int) async throws {
        while true {
            let event = try await event(.state)
            if event.connection.state == .ready, event.connection.epoch == epoch { return }
        }
    }

    /// The server's end of the flow of this number, which takes the place of the one before.
    private func next(_ epoch: Int) async throws -> End {
        _ = try await client.ask(ConnectionsAPI.Redial.self, .init(name: "loop"))
        try await ready(epoch)
        return End(try server.accept())
    }

    private func takeAndPark(_ epoch: Int, leaving opening: [Step]?) async throws {
        expect(try await client.take().reply.epoch, is: epoch)
        _ = try await client.ask(ConnectionsAPI.Park.self, .init(name: "loop", epoch: epoch, opening: opening))
    }

    @Test(arguments: [
        ([Step(send: "x")], "no step expects an answer"),
        ([Step(send: "sword\\fish", expect: .init(bytes: "x"))], "step 1, send: a backslash"),
        ([Step(send: "x", expect: .init(bytes: "sword\\fish"))], "step 1, bytes: a backslash"),
        (
            [Step(send: "x", expect: .init(bytes: "y"), overtakenBy: ["sword\\fish"])],
            "step 1, overtakenBy: a backslash"
        ),
        ([Step(send: "x", expect: .init(length: 3, message: "mqtt"))], "step 1, message: the answer ends by length"),
        ([Step(send: "x", expect: .init(length: 0))], "step 1, length: 0 is out of range"),
        ([Step](repeating: Step(send: "x", expect: .init(bytes: "y")), count: 17), "17 steps are more than 16"),
    ])
    func `one that cannot be played is refused with the reason`(
        opening: [ConnectionsAPI.OpeningStep], reason: String
    ) async throws {
        let parameters = ConnectionsAPI.Open.Parameters(
            remote: "tcp://127.0.0.1:9", name: "x", settings: .init(opening: opening))
        let refusal: ConnectionsAPI.InvalidOpening = try await client.refusal(
            of: ConnectionsAPI.Open.self, parameters)
        #expect(refusal.reason.hasPrefix(reason), "\(refusal.reason)")
        #expect(!refusal.reason.contains("sword"))
        #expect(fixture.registry.count == 0)
    }

    /// `Park` as somebody calls it who misspells it.
    private enum MisspelledPark: VarlinkMethod {
        static let name = ConnectionsAPI.Park.name
        typealias Reply = VarlinkEmpty

        struct Parameters: VarlinkObject {
            var opening: [[String: [String: String]]]

            init(opening: [[String: [String: String]]]) { self.opening = opening }
            init?(from fields: inout some VarlinkFieldReader) { nil }

            func write(to fields: inout some VarlinkFieldWriter) {
                fields.put("name", "x")
                fields.put("epoch", 1)
                fields.put("opening", opening.map { Words($0.mapValues(Words.init)) })
            }
        }

        /// An object with members of any names.
        struct Words<Value>: VarlinkWritable {
            let members: [String: Value]
            init(_ members: [String: Value]) { self.members = members }

            func write(to fields: inout some VarlinkFieldWriter) {
                for (name, value) in members {
                    if let text = value as? String { fields.put(name, text) }
                    if let words = value as? Words<String> { fields.put(name, words) }
                }
            }
        }
    }

    @Test func `a field of a step that there is not is refused`() async throws {
        for (step, field) in [
            (["expects": ["bytes": "y"]], "expects"), (["expect": ["byte": "y"]], "byte"),
        ] {
            let refusal: ServiceAPI.InvalidParameter = try await client.refusal(
                of: MisspelledPark.self, .init(opening: [["expect": ["bytes": "y"]], step]))
            #expect(refusal.parameter.hasSuffix(field), "\(refusal.parameter)")
        }
        let right: ConnectionsAPI.NoSuchConnection = try await client.refusal(
            of: MisspelledPark.self, .init(opening: [["expect": ["bytes": "y"]]]))
        #expect(right.name == "x")
    }

    @Test func `the wire's own types show nothing of it either`() {
        let step = ConnectionsAPI.OpeningStep(
            send: "swordfish", expect: .init(bytes: "swordfish"), overtakenBy: ["swordfish"])
        let parameters = ConnectionsAPI.Open.Parameters(remote: "tcp://h:1", settings: .init(opening: [step]))
        var dumped = ""
        dump(parameters, to: &dumped)
        dump(step, to: &dumped)
        dump(step.expect, to: &dumped)
        for text in ["\(parameters)", String(reflecting: parameters), "\(step)", dumped] {
            #expect(!text.contains("swordfish"), "\(text)")
        }
        #expect(Mirror(reflecting: step).children.isEmpty)
    }
}
