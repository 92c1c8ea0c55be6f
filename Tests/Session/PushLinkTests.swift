// SPDX-License-Identifier: Apache-2.0

import DialtoneClient
import DialtoneDistributor
import DialtoneExpectations
import DialtonePlatform
import DialtoneTestSupport
import Logging
import Testing

@testable import DialtoneSession

/// The connection to a push server, at an agent that the test is.
@Suite struct PushLinkTests {
    /// A link, its agent, and what it wrote into the log.
    @AgentQueue
    private final class Fixture {
        let agent: StandInAgent
        let link: PushLink
        let log = LogLines()

        init(_ script: PushScript) throws {
            agent = try StandInAgent()
            let log = log
            link = PushLink(
                to: ScriptedServer(script: script), tls: nil, through: DialtoneClient(path: agent.path),
                Logger(label: "test") { _ in log })
            link.start()
        }

        func close() {
            link.close()
            agent.stop()
        }
    }

    /// Logs in on each socket on which nobody is.
    private static func logIn(_ input: PushServerInput) -> PushServerTurn {
        var turn = PushServerTurn()
        if input == .connected || input == .opened { turn.reports = [.loggedIn] }
        return turn
    }

    @Test func `a server that does wrong after each login is dialled later each time`() async throws {
        let script = PushScript { input in
            var turn = Self.logIn(input)
            if input == .connected { turn.redial = "it lies" }
            return turn
        }
        let fixture = try await onQueue { try Fixture(script) }
        try await eventually("it is dialled a third time") {
            // Each dial is made of events.
            fixture.agent.tell()
            return script.inputs.count { $0 == .connected } >= 3
        }
        let waits = fixture.log.lines.compactMap { $0.contains("dialled anew") ? $0.split(separator: "|").last : nil }
        #expect(waits.prefix(3) == ["1.0 seconds", "2.0 seconds", "4.0 seconds"])
        await onQueue { fixture.close() }
    }

    @Test func `a connection that was given up since nothing could be saved is opened when it can be`() async throws {
        let fixture = try await onQueue {
            let fixture = try Fixture(PushScript(Self.logIn))
            fixture.link.onTurn = { _ in false }
            return fixture
        }
        func opened() async -> Int { await fixture.agent.calls.count { $0 == "open" } }
        try await eventually("it is given up") { fixture.agent.calls.last == "close" }
        expect(await opened(), is: 1)
        await onQueue {
            fixture.link.onTurn = { _ in true }
            fixture.link.storeWorks()
        }
        try await eventually("it is parked") { fixture.agent.calls.last?.hasPrefix("park") == true }
        expect(await opened(), is: 2)
        await onQueue { fixture.close() }
    }

    @Test func `what is said on new sockets is what the value has to say now`() async throws {
        let script = PushScript(Self.logIn)
        let fixture = try await onQueue { try Fixture(script) }
        try await eventually("it is parked") { fixture.agent.calls.last == "park 1 leaving 1" }
        try await eventually("the value knows that") { script.inputs.last == .parked }
        script.parking?.opening.append(.init(send: [3], begins: [4]))
        await onQueue { fixture.link.tell(.timePassed) }
        try await eventually("it is parked by the new word") { fixture.agent.calls.last == "park 1 leaving 2" }
        expect(await fixture.agent.calls, is: ["open", "take 1", "park 1 leaving 1", "take 1", "park 1 leaving 2"])
        await onQueue { fixture.close() }
    }

    @Test func `while more and more comes, the socket is parked as well`() async throws {
        let fixture = try await onQueue { try Fixture(PushScript(Self.logIn)) }
        try await eventually("it is parked") {
            fixture.agent.say("x")
            return fixture.agent.calls.contains("park 1 leaving 1")
        }
        await onQueue { fixture.close() }
    }

    @Test func `a value that knows of no session gets the socket on which the agent logged in`() async throws {
        let script = PushScript(Self.logIn)
        let fixture = try await onQueue { try Fixture(script) }
        try await eventually("it is parked") { script.inputs.last == .parked }
        await onQueue { fixture.agent.say("x") }
        try await eventually("it is taken") { script.inputs.contains(.received(Array("x".utf8))) }
        await onQueue { fixture.agent.breakSocket() }
        try await eventually("the next one is taken") { script.inputs.contains(.opened) }
        // It may be parked again by now.
        let inputs = script.inputs.prefix { $0 != .opened }
        #expect(inputs.last == .disconnected, "\(inputs)")
        await onQueue { fixture.close() }
    }

    @Test func `a value that sleeps is not woken for a socket on which the agent logged in`() async throws {
        let script = PushScript(Self.logIn)
        let fixture = try await onQueue { try Fixture(script) }
        try await eventually("it is parked") { script.inputs.last == .parked }
        await onQueue {
            fixture.agent.breakSocket()
            fixture.agent.say("x")
        }
        let bytes = PushServerInput.received(Array("x".utf8))
        try await eventually("bytes wake it") { script.inputs.contains(bytes) }
        // It may be parked again by now.
        let inputs = script.inputs.prefix { $0 != bytes }
        #expect(inputs.suffix(3) == [.parked, .disconnected, .opened], "\(inputs)")
        expect(await fixture.agent.calls.filter { $0.hasPrefix("take") }.last, is: "take 2")
        await onQueue { fixture.close() }
    }

    @Test func `a value has no part in a socket on which the agent logged in and that ended`() async throws {
        let script = PushScript(Self.logIn)
        let fixture = try await onQueue { try Fixture(script) }
        try await eventually("it is parked") { script.inputs.last == .parked }
        await onQueue {
            fixture.agent.breakSocket()
            fixture.agent.breakSocket(leaving: "x")
            fixture.agent.say("y")
        }
        let bytes = PushServerInput.received(Array("y".utf8))
        try await eventually("what stands is taken") { script.inputs.contains(bytes) }
        let inputs = script.inputs.prefix { $0 != bytes }
        #expect(inputs.suffix(3) == [.parked, .disconnected, .opened], "\(inputs)")
        let takes = await fixture.agent.calls.filter { $0.hasPrefix("take") }
        #expect(takes.suffix(2) == ["take 2", "take 3"], "\(takes)")
        await onQueue { fixture.close() }
    }

    @Test func `a value that wants another socket gets one without the opening that was left`() async throws {
        let script = PushScript { input in
            var turn = Self.logIn(input)
            if input == .timePassed { (turn.redial, turn.isRedialWanted) = ("other topics", true) }
            return turn
        }
        let fixture = try await onQueue { try Fixture(script) }
        try await eventually("it is parked") { script.inputs.last == .parked }
        await onQueue { fixture.link.tell(.timePassed) }
        try await eventually("it is dialled anew") { script.inputs.count { $0 == .connected } == 2 }
        expect(script.inputsToLogin.suffix(3), is: [.timePassed, .disconnected, .connected])
        expect(await fixture.agent.calls.drop { $0 != "close" }.prefix(3), is: ["close", "open", "take 1"])
        #expect(!fixture.log.lines.contains { $0.contains("notice") })
        await onQueue { fixture.close() }
    }

    @Test func `an agent that forgot the connection gets a new one, whose sockets are numbered anew`() async throws {
        let script = PushScript(Self.logIn)
        let fixture = try await onQueue { try Fixture(script) }
        try await eventually("it is parked") { script.inputs.last == .parked }
        try await onQueue { try fixture.agent.restart() }
        try await eventually("it is logged in anew") { script.inputs.count { $0 == .connected } == 2 }
        expect(script.inputsToLogin.suffix(3), is: [.parked, .disconnected, .connected])
        await onQueue { fixture.close() }
    }

    @Test func `what a turn says goes out before what follows of it`() async throws {
        let script = PushScript { input in
            var turn = Self.logIn(input)
            switch input {
            case .received: turn.output = Array("first ".utf8)
            case .settled: turn.output = Array("second".utf8)
            default: break
            }
            return turn
        }
        let fixture = try await onQueue { try Fixture(script) }
        let id = try #require(ServerMessageID("m"))
        await onQueue {
            fixture.link.onTurn = { turn in
                if turn.output.count == 6, turn.output.last == UInt8(ascii: " ") {
                    fixture.link.tell(.settled(id, .taken))
                }
                return true
            }
        }
        try await eventually("it is parked") { script.inputs.last == .parked }
        await onQueue { fixture.agent.say("x") }
        try await eventually("both are said") { fixture.agent.heard().utf8.count == 12 }
        expect(await fixture.agent.heard(), is: "first second")
        await onQueue { fixture.close() }
    }
}

/// The log of a test: a line each, its metadata behind a bar.
struct LogLines: LogHandler {
    private let kept = Lock<[String]>([])
    var metadata: Logger.Metadata = [:]
    var logLevel = Logger.Level.debug

    var lines: [String] { kept.withLock { $0 } }

    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { metadata[key] }
        set { metadata[key] = newValue }
    }

    func log(event: LogEvent) {
        let line = "\(event.level): \(event.message)|\(event.metadata?["after"].map { "\($0)" } ?? "")"
        kept.withLock { $0.append(line) }
    }
}
