// SPDX-License-Identifier: Apache-2.0

import CDialtoneLabSupport
import DialtoneAPI
import DialtoneConnectionIO
import DialtoneExpectations
import DialtoneNetworkPath
import DialtonePersistence
import DialtonePlatform
import DialtoneProcesses
import DialtoneTestSupport
import Foundation
import Glibc
import Testing

@testable import DialtoneAgent
@testable import DialtoneConfiguration
@testable import DialtoneConnection

/// Waking clients.
@Suite @AgentQueue
struct WakeTests {
    @Test func `a message launches the program, which reads it and answers`() async throws {
        let fixture = try WakeFixture(.script("read line; echo \"got $line as $DIALTONE_REASON\"; read rest; exit 0"))
        try await fixture.ready()
        #expect(fixture.story.isEmpty, "nothing is there for it yet")
        fixture.server.send("hello\n")
        expect(try await fixture.server.line(), is: "got hello as data")
        try await fixture.tells("began data", "attempted exec", "acknowledged data")
        #expect(fixture.connection?.holder == .client)
        fixture.server.send("bye\n")
        try await eventually("it has ended, and the flow is back") { fixture.connection?.holder == .daemon }
        #expect(fixture.connection?.session == .open && fixture.connection?.epoch == 1)
        #expect(fixture.story.last == "programEnded with status 0")
        fixture.server.send("again\n")
        expect(try await fixture.server.line(), is: "got again as data")
    }

    @Test func `the program finds the socket as descriptor three, and the wake in its environment`() async throws {
        let script = "read line <&3; echo $line $DIALTONE_NAME $DIALTONE_EPOCH $LISTEN_FDNAMES $DIALTONE_WAKE >&3"
        let fixture = try WakeFixture(.script(script, stdio: false))
        try await fixture.ready()
        fixture.server.send("hello\n")
        let words = try await fixture.server.line().split(separator: " ")
        #expect(words.prefix(4) == ["hello", "office", "1", "office"])
        let wake = fixture.fixture.events.compactMap { $0.wake?.report }.first?.wake.number
        #expect(words.last.flatMap { UInt64($0) } == wake)
    }

    @Test func `a program that fails is launched again, with what was not read`() async throws {
        let fixture = try WakeFixture(
            .script("test -e $0 && { cat; exit 0; }; touch $0; exit 1") { settings in
                settings.command?.append(NSTemporaryDirectory() + "wake.\(UUID().uuidString.prefix(8))")
            }
        ) { $0.keepsAbandonedFlow = true }
        try await fixture.ready()
        fixture.server.send("hello\n")
        try await fixture.tells(
            "began data", "attempted exec", "acknowledged data", "programEnded with status 1", "began clientDied")
        try await eventually("another program runs") {
            fixture.story.filter { $0 == "attempted exec" }.count == 2 && fixture.connection?.holder == .client
        }
    }

    @Test func `what cannot be launched gives the flow back untouched, and the wake up in the end`() async throws {
        let fixture = try WakeFixture(
            .script("") { settings in
                settings.command = ["/does/not/exist"]
                settings.rounds = 2
            })
        try await fixture.ready()
        fixture.server.send("hello\n")
        let failure = "attemptFailed running /does/not/exist: No such file or directory"
        try await fixture.tells("began data", "attempted exec", failure, "attempted exec", failure, "failed data")
        #expect(fixture.connection?.holder == .daemon && fixture.connection?.unreadBytes == 6)
        #expect(fixture.connection?.wake != nil, "who comes finds it in the status")
        // Whoever comes at last gets it all.
        let flow = try fixture.fixture.registry.take("office", by: nil, for: 0)
        #expect(flow.epoch == 1)
        try await fixture.tells(
            "began data", "attempted exec", failure, "attempted exec", failure, "failed data", "acknowledged data")
        #expect(fixture.connection?.wake == nil)
    }

    @Test func `the file may have the program run as soon as the connection stands`() async throws {
        let fixture = try WakeFixture(.script("echo $DIALTONE_REASON; read line") { $0.launch = .always })
        try await fixture.ready()
        expect(try await fixture.server.line(), is: "start")
        try await fixture.tells("began start", "attempted exec", "acknowledged start")
    }

    @Test func `a client that watches is sent the event, and says when it has it`() async throws {
        let fixture = try WakeFixture(nil)
        fixture.wakes.isWatched = { _, _ in true }
        try await fixture.ready()
        try fixture.takeAndPark()
        fixture.server.send("hello\n")
        try await fixture.tells("began data", "attempted event")
        let wake = try #require(fixture.connection?.wake)
        try fixture.fixture.registry.acknowledge("office", wake: UInt64(wake) + 1, for: 0)
        #expect(fixture.connection?.wake == wake, "another's number")
        try fixture.fixture.registry.acknowledge("office", wake: UInt64(wake), for: 0)
        #expect(fixture.connection?.wake == nil)
        #expect(fixture.story.last == "acknowledged data")
    }

    @Test func `a program that read what ended flows had left is launched again for the flow of now`() async throws {
        let file = NSTemporaryDirectory() + "wake.\(UUID().uuidString.prefix(8))"
        defer { unlink(file) }
        let fixture = try WakeFixture(
            .script("read line; echo $line $DIALTONE_EPOCH >> \(file); exit 0") { $0.answerTime = .seconds(60) }
        ) { policy in
            let answer = ExpectedAnswer(BytePattern(Array("+".utf8)))
            policy.opening = Opening([.init(send: Array("LOGIN".utf8), answer: answer)])
        }
        try fixture.server.greet { "+flow\($0)\n" }
        fixture.wakes.isWatched = { _, _ in true }
        for epoch in 1...3 {
            try await fixture.ready(epoch)
            try await eventually("it came") {
                fixture.connection?.epoch == epoch && fixture.connection?.unreadBytes == 6
            }
            if epoch < 3 { fixture.server.hangUp() }
        }
        #expect(fixture.story == ["began data", "attempted event"])
        // Whoever watched was not the client.
        fixture.wakes.isWatched = { _, _ in false }
        fixture.fixture.registry.subscriptionsChanged(of: thisUser.user)
        try await eventually("all of it is read") {
            (try? String(contentsOfFile: file, encoding: .utf8)) == "flow1 1\nflow2 2\nflow3 3\n"
        }
        try await eventually("the flow is back") { fixture.connection?.holder == .daemon }
        #expect(fixture.connection?.epoch == 3 && fixture.connection?.wake == nil)
    }

    @Test func `and to log in on the flow of now, where nobody has`() async throws {
        let fixture = try WakeFixture(
            .script("read line; test $line = old || echo $line $DIALTONE_REASON; exit 0") {
                $0.answerTime = .seconds(60)
            })
        fixture.wakes.isWatched = { _, _ in true }
        try await fixture.ready()
        try fixture.takeAndPark()
        fixture.server.send("old\n")
        try await eventually("it came") { fixture.connection?.unreadBytes == 4 }
        fixture.server.hangUp()
        try await fixture.ready(2)
        try await fixture.tells("began data", "attempted event", "joined data,reconnected")
        fixture.wakes.isWatched = { _, _ in false }
        fixture.fixture.registry.subscriptionsChanged(of: thisUser.user)
        try await eventually("it is launched for the new flow, with nothing on it") {
            fixture.story.suffix(3) == ["began reconnected", "attempted exec", "acknowledged reconnected"]
        }
        fixture.server.send("login?\n")
        expect(try await fixture.server.line(), is: "login? reconnected")
    }

    @Test func `a new flow wakes the client that had a session on the old one`() async throws {
        let fixture = try WakeFixture(.script("echo $DIALTONE_REASON; read line; exit 0"))
        try await fixture.ready()
        #expect(fixture.story.isEmpty, "no client has come yet")
        try fixture.takeAndPark()
        fixture.server.hangUp()
        try await fixture.ready(2)
        expect(try await fixture.server.line(), is: "reconnected")
        try await fixture.tells("began reconnected", "attempted exec", "acknowledged reconnected")
    }

    @Test func `reasons that the file leaves out wake nobody, and the loss of a flow does where it names it`()
        async throws
    {
        let fixture = try await ended(.script("exit 0") { $0.reasons = [.lost] })
        try await fixture.tells("began lost", "attempted exec")
    }

    @Test func `a client that is gone without parking is missed`() async throws {
        let fixture = try WakeFixture(.script("echo $DIALTONE_REASON; read line; exit 0"))
        try await fixture.ready()
        let client = try LaunchedProgram(
            ProgramRequest(
                command: ["/bin/sleep", "1000"], identity: thisUser, streams: .passed, connection: "office"),
            socket: nil, output: STDERR_FILENO, started: { _ in }, ended: { _ in })
        _ = try fixture.fixture.registry.take("office", by: client.process, for: 0)
        try client.process.signal(SIGKILL)
        try await fixture.tells("began clientDied")
    }

    @Test func `a client that was woken and keeps the flow for too long is reported, and the flow stays watched`()
        async throws
    {
        let fixture = try WakeFixture(nil)
        fixture.wakes.isWatched = { _, _ in true }
        fixture.wakes.budget = .milliseconds(50)
        try await fixture.ready()
        try fixture.takeAndPark()
        // In time: its time has run out by the end of another one that began later.
        fixture.server.send("one\n")
        try await fixture.tells("began data", "attempted event")
        try fixture.takeAndPark()
        let witness: Bool = try await answer("the end of its time") { done in
            _ = Timers.shared.schedule(after: .milliseconds(60)) { done(true) }
        }
        #expect(witness && !fixture.story.contains("overran "))
        // The bytes are still there, and wake again.
        try await fixture.tells("began data", "attempted event", "acknowledged data", "began data", "attempted event")
        _ = try fixture.fixture.registry.take("office", by: nil, for: 0)
        try await fixture.tells(
            "began data", "attempted event", "acknowledged data", "began data", "attempted event", "acknowledged data",
            "overran ")
        #expect(fixture.connection?.holder == .client)
        fixture.server.hangUp()
        try await eventually("its end is seen") { fixture.connection?.holder == .daemon }
    }

    @Test func `an agent that is about to end wakes nobody any more, whatever was planned`() async throws {
        let agent = try RestartFixture()
        defer { withExtendedLifetime(agent) {} }
        let fixture = try WakeFixture(.script("") { $0.command = ["/does/not/exist"] }, continuity: agent.continuity)
        try await fixture.ready()
        fixture.server.send("hello\n")
        try await eventually("the first attempt failed") { fixture.story.last?.hasPrefix("attemptFailed") == true }
        let story = fixture.story
        #expect(fixture.fixture.registry.stepDown())
        let pause = try #require(WakeSettings.script("").pause)
        // Timers ring in their order.
        try await answer("what comes later") { done in
            _ = Timers.shared.schedule(after: pause * 3) { done(()) }
        }
        #expect(fixture.story == story)
    }

    /// A client left with `hello` on the flow, which then ended.
    private func ended(_ settings: WakeSettings) async throws -> WakeFixture {
        let fixture = try WakeFixture(settings)
        try await fixture.ready()
        try fixture.takeAndPark()
        fixture.server.send("hello\n")
        try await eventually("it came") { fixture.connection?.unreadBytes == 6 }
        #expect(fixture.story.isEmpty)
        fixture.server.hangUp()
        return fixture
    }

    @Test func `what an ended flow left is there again for a program that failed before it read`() async throws {
        let file = NSTemporaryDirectory() + "wake.\(UUID().uuidString.prefix(8))"
        defer { for end in ["", ".failed"] { unlink(file + end) } }
        let script = "test -e $0.failed && { cat >$0.new; mv $0.new $0; exit 0; }; touch $0.failed; exit 1"
        let fixture = try await ended(
            .script(script) { settings in
                settings.command?.append(file)
                settings.reasons = [.lost, .clientDied]
            })
        try await fixture.tells("began lost", "attempted exec", "acknowledged lost", "programEnded with status 1")
        try await eventually("the program has it") {
            FileManager.default.contents(atPath: file) == Data("hello\n".utf8)
        }
        try await eventually("it ended well") { fixture.story.contains("programEnded with status 0") }
        try await fixture.ready(2)
        try await eventually("and nothing is left of it") {
            (try? fixture.fixture.registry.take("office", by: nil, for: 0))?.epoch == 2
        }
    }

    @Test func `a program that lost what it was launched with takes it again`() async throws {
        let fixture = try await ended(.script("exec sleep 1000", stdio: false) { $0.reasons = [.lost] })
        try await fixture.tells("began lost", "attempted exec", "acknowledged lost")
        let connection = try #require(fixture.fixture.registry.visible(to: 0).first)
        let program = try #require(connection.driver?.processes.first.flatMap { connection.processes[$0] })
        defer { try? program.signal(SIGKILL) }
        let flow = try fixture.fixture.registry.take("office", by: program, for: 0)
        #expect((flow.epoch, flow.isOver) == (1, true))
        var bytes = [UInt8](repeating: 0, count: 9)
        #expect(recv(flow.descriptor.number, &bytes, 9, CInt(MSG_DONTWAIT)) == 6)
    }
}
