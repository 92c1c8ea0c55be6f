// SPDX-License-Identifier: Apache-2.0

import Activation
import CLabSupport
import Dialer
import DialtoneAPI
import Expectations
import Foundation
import Glibc
import NetworkPath
import Platform
import TestSupport
import Testing

@testable import Daemon
@testable import Supervisor

@Suite("Waking clients") @AgentQueue
struct WakeTests {
    @Test func `who only watches a connection is told by an event, also before anybody took it`() async throws {
        let bench = try WakeBench(nil)
        bench.wakes.isWatched = { _, _ in true }
        try await bench.ready()
        bench.server.send("hello\n")
        try await bench.tells("began data", "attempted event")
        #expect(bench.connection?.wake != nil)
    }

    @Test func `where nobody watches and nobody took it, nobody is woken`() async throws {
        let bench = try WakeBench(nil)
        try await bench.ready()
        bench.server.send("hello\n")
        try await eventually("bytes have come") { bench.bench.events.contains { $0.event.kind == .arrived } }
        #expect(bench.story == [])
        #expect(bench.connection?.wake == nil)
    }

    @Test func `a message launches the program, which reads it and answers`() async throws {
        let bench = try WakeBench(.script("read line; echo \"got $line as $DIALTONE_REASON\"; read rest; exit 0"))
        try await bench.ready()
        #expect(bench.story.isEmpty, "nothing is there for it yet")
        bench.server.send("hello\n")
        expect(try await bench.server.line(), is: "got hello as data")
        try await bench.tells("began data", "attempted exec", "acknowledged data")
        #expect(bench.connection?.holder == .client)
        bench.server.send("bye\n")
        try await eventually("it has ended, and the flow is back") { bench.connection?.holder == .daemon }
        #expect(bench.connection?.session == .open && bench.connection?.epoch == 1)
        #expect(bench.story.last == "programEnded with status 0")
        bench.server.send("again\n")
        expect(try await bench.server.line(), is: "got again as data")
    }

    @Test func `the program finds the socket as descriptor three, and the wake in its environment`() async throws {
        let script = "read line <&3; echo $line $DIALTONE_NAME $DIALTONE_EPOCH $LISTEN_FDNAMES $DIALTONE_WAKE >&3"
        let bench = try WakeBench(.script(script, stdio: false))
        try await bench.ready()
        bench.server.send("hello\n")
        let words = try await bench.server.line().split(separator: " ")
        #expect(words.prefix(4) == ["hello", "office", "1", "office"])
        let wake = bench.bench.events.compactMap { $0.wake?.report }.first?.wake.number
        #expect(words.last.flatMap { UInt64($0) } == wake)
    }

    @Test func `a program that fails is launched again, with what was not read`() async throws {
        let bench = try WakeBench(
            .script("test -e $0 && { cat; exit 0; }; touch $0; exit 1") { settings in
                settings.command?.append(NSTemporaryDirectory() + "wake.\(UUID().uuidString.prefix(8))")
            }
        ) { $0.keepsAbandonedFlow = true }
        try await bench.ready()
        bench.server.send("hello\n")
        try await bench.tells(
            "began data", "attempted exec", "acknowledged data", "programEnded with status 1", "began clientDied")
        try await eventually("another program runs") {
            bench.story.filter { $0 == "attempted exec" }.count == 2 && bench.connection?.holder == .client
        }
    }

    @Test func `what cannot be launched gives the flow back untouched, and the wake up in the end`() async throws {
        let bench = try WakeBench(
            .script("") { settings in
                settings.command = ["/does/not/exist"]
                settings.rounds = 2
            })
        try await bench.ready()
        bench.server.send("hello\n")
        let failure = "attemptFailed running /does/not/exist: No such file or directory"
        try await bench.tells("began data", "attempted exec", failure, "attempted exec", failure, "failed data")
        #expect(bench.connection?.holder == .daemon && bench.connection?.unreadBytes == 6)
        #expect(bench.connection?.wake != nil, "who comes finds it in the status")
        // Whoever comes at last gets it all.
        let flow = try bench.bench.registry.take("office", by: nil, for: 0)
        #expect(flow.epoch == 1)
        try await bench.tells(
            "began data", "attempted exec", failure, "attempted exec", failure, "failed data", "acknowledged data")
        #expect(bench.connection?.wake == nil)
    }

    @Test func `the file may have the program run as soon as the connection stands`() async throws {
        let bench = try WakeBench(.script("echo $DIALTONE_REASON; read line") { $0.launch = .always })
        try await bench.ready()
        expect(try await bench.server.line(), is: "start")
        try await bench.tells("began start", "attempted exec", "acknowledged start")
    }

    @Test func `a client that watches is sent the event, and says when it has it`() async throws {
        let bench = try WakeBench(nil)
        bench.wakes.isWatched = { _, _ in true }
        try await bench.ready()
        try bench.takeAndPark()
        bench.server.send("hello\n")
        try await bench.tells("began data", "attempted event")
        let wake = try #require(bench.connection?.wake)
        try bench.bench.registry.acknowledge("office", wake: UInt64(wake) + 1, for: 0)
        #expect(bench.connection?.wake == wake, "another's number")
        try bench.bench.registry.acknowledge("office", wake: UInt64(wake), for: 0)
        #expect(bench.connection?.wake == nil)
        #expect(bench.story.last == "acknowledged data")
    }

    @Test func `a program that read what ended flows had left is launched again for the flow of now`() async throws {
        let file = NSTemporaryDirectory() + "wake.\(UUID().uuidString.prefix(8))"
        defer { unlink(file) }
        let bench = try WakeBench(
            .script("read line; echo $line $DIALTONE_EPOCH >> \(file); exit 0") { $0.answerTime = .seconds(60) }
        ) { policy in
            let answer = ExpectedAnswer(BytePattern(Array("+".utf8)))
            policy.opening = Opening([.init(send: Array("LOGIN".utf8), answer: answer)])
        }
        bench.wakes.isWatched = { _, _ in true }
        for epoch in 1...3 {
            try await bench.ready(epoch)
            bench.server.send("+flow\(epoch)\n")
            try await eventually("it came") { bench.connection?.epoch == epoch && bench.connection?.unreadBytes == 6 }
            if epoch < 3 { bench.server.hangUp() }
        }
        #expect(bench.story == ["began data", "attempted event"])
        // Whoever watched was not the client.
        bench.wakes.isWatched = { _, _ in false }
        bench.bench.registry.subscriptionsChanged(of: thisUser.user)
        try await eventually("all of it is read") {
            (try? String(contentsOfFile: file, encoding: .utf8)) == "flow1 1\nflow2 2\nflow3 3\n"
        }
        try await eventually("the flow is back") { bench.connection?.holder == .daemon }
        #expect(bench.connection?.epoch == 3 && bench.connection?.wake == nil)
    }

    @Test func `and to log in on the flow of now, where nobody has`() async throws {
        let bench = try WakeBench(
            .script("read line; test $line = old || echo $line $DIALTONE_REASON; exit 0") {
                $0.answerTime = .seconds(60)
            })
        bench.wakes.isWatched = { _, _ in true }
        try await bench.ready()
        try bench.takeAndPark()
        bench.server.send("old\n")
        try await eventually("it came") { bench.connection?.unreadBytes == 4 }
        bench.server.hangUp()
        try await bench.ready(2)
        try await bench.tells("began data", "attempted event", "joined data,reconnected")
        bench.wakes.isWatched = { _, _ in false }
        bench.bench.registry.subscriptionsChanged(of: thisUser.user)
        try await eventually("it is launched for the new flow, with nothing on it") {
            bench.story.suffix(3) == ["began reconnected", "attempted exec", "acknowledged reconnected"]
        }
        bench.server.send("login?\n")
        expect(try await bench.server.line(), is: "login? reconnected")
    }

    @Test func `a new flow wakes the client that had a session on the old one`() async throws {
        let bench = try WakeBench(.script("echo $DIALTONE_REASON; read line; exit 0"))
        try await bench.ready()
        #expect(bench.story.isEmpty, "no client has come yet")
        try bench.takeAndPark()
        bench.server.hangUp()
        try await bench.ready(2)
        expect(try await bench.server.line(), is: "reconnected")
        try await bench.tells("began reconnected", "attempted exec", "acknowledged reconnected")
    }

    @Test func `reasons that the file leaves out wake nobody, and the loss of a flow does where it names it`()
        async throws
    {
        let bench = try WakeBench(.script("exit 0") { $0.reasons = [.lost] })
        try await bench.ready()
        try bench.takeAndPark()
        bench.server.send("hello\n")
        try await eventually("it came") { bench.connection?.unreadBytes == 6 }
        #expect(bench.story.isEmpty)
        bench.server.hangUp()
        try await bench.tells("began lost", "attempted exec")
    }

    @Test func `a client that is gone without parking is missed`() async throws {
        let bench = try WakeBench(.script("echo $DIALTONE_REASON; read line; exit 0"))
        try await bench.ready()
        let client = try LaunchedProgram(
            ProgramRequest(
                command: ["/bin/sleep", "1000"], identity: thisUser, streams: .passed, connection: "office"),
            socket: nil, output: STDERR_FILENO, started: { _ in }, ended: { _ in })
        _ = try bench.bench.registry.take("office", by: client.process, for: 0)
        try client.process.signal(SIGKILL)
        try await bench.tells("began clientDied")
    }

    @Test func `a client that was woken and keeps the flow for too long is reported, and the flow stays watched`()
        async throws
    {
        let bench = try WakeBench(nil)
        bench.wakes.isWatched = { _, _ in true }
        bench.wakes.budget = .milliseconds(50)
        try await bench.ready()
        try bench.takeAndPark()
        // In time: its time has run out by the end of another one that began later.
        bench.server.send("one\n")
        try await bench.tells("began data", "attempted event")
        try bench.takeAndPark()
        let witness: Bool = try await answer("the end of its time") { done in
            _ = Timers.shared.schedule(after: .milliseconds(60)) { done(true) }
        }
        #expect(witness && !bench.story.contains("overran "))
        // The bytes are still there, and wake again.
        try await bench.tells("began data", "attempted event", "acknowledged data", "began data", "attempted event")
        _ = try bench.bench.registry.take("office", by: nil, for: 0)
        try await bench.tells(
            "began data", "attempted event", "acknowledged data", "began data", "attempted event", "acknowledged data",
            "overran ")
        #expect(bench.connection?.holder == .client)
        bench.server.hangUp()
        try await eventually("its end is seen") { bench.connection?.holder == .daemon }
    }

    @Test func `an agent that is about to end wakes nobody any more, whatever was planned`() async throws {
        let agent = try RestartBench()
        defer { withExtendedLifetime(agent) {} }
        let bench = try WakeBench(.script("") { $0.command = ["/does/not/exist"] }, continuity: agent.continuity)
        try await bench.ready()
        bench.server.send("hello\n")
        try await eventually("the first attempt failed") { bench.story.last?.hasPrefix("attemptFailed") == true }
        let story = bench.story
        #expect(bench.bench.registry.stepDown())
        let pause = try #require(WakeSettings.script("").pause)
        // Timers ring in their order.
        try await answer("what comes later") { done in
            _ = Timers.shared.schedule(after: pause * 3) { done(()) }
        }
        #expect(bench.story == story)
    }

    /// A client left with `hello` on the flow, which then ended.
    private func ended(_ settings: WakeSettings) async throws -> WakeBench {
        let bench = try WakeBench(settings)
        try await bench.ready()
        try bench.takeAndPark()
        bench.server.send("hello\n")
        try await eventually("it came") { bench.connection?.unreadBytes == 6 }
        #expect(bench.story.isEmpty)
        bench.server.hangUp()
        return bench
    }

    @Test func `what an ended flow left is there for the next one when its taker is gone before it read`() async throws
    {
        let file = NSTemporaryDirectory() + "wake.\(UUID().uuidString.prefix(8))"
        defer { unlink(file) }
        let bench = try await ended(
            .script("cat >$0.new; mv $0.new $0") { settings in
                settings.command?.append(file)
                settings.reasons = [.clientDied]
            })
        let client = try Sleeper()
        try await bench.ready(2)
        let flow = try bench.bench.registry.take("office", by: try ProcessHandle(client.process), for: 0)
        #expect((flow.epoch, flow.isOver) == (1, true))
        client.end()
        try await bench.tells("began clientDied", "attempted exec", "acknowledged clientDied")
        try await eventually("the program has it") {
            FileManager.default.contents(atPath: file) == Data("hello\n".utf8)
        }
    }

    @Test func `what an ended flow left is there again for a program that failed before it read`() async throws {
        let file = NSTemporaryDirectory() + "wake.\(UUID().uuidString.prefix(8))"
        defer { for end in ["", ".failed"] { unlink(file + end) } }
        let script = "test -e $0.failed && { cat >$0.new; mv $0.new $0; exit 0; }; touch $0.failed; exit 1"
        let bench = try await ended(
            .script(script) { settings in
                settings.command?.append(file)
                settings.reasons = [.lost, .clientDied]
            })
        try await bench.tells("began lost", "attempted exec", "acknowledged lost", "programEnded with status 1")
        try await eventually("the program has it") {
            FileManager.default.contents(atPath: file) == Data("hello\n".utf8)
        }
        try await eventually("it ended well") { bench.story.contains("programEnded with status 0") }
        try await bench.ready(2)
        try await eventually("and nothing is left of it") {
            (try? bench.bench.registry.take("office", by: nil, for: 0))?.epoch == 2
        }
    }

    @Test func `what an ended flow left is there for whoever comes when no program can be launched`() async throws {
        let bench = try await ended(
            .script("") { settings in
                settings.command = ["/does/not/exist"]
                settings.reasons = [.lost]
                settings.rounds = 1
            })
        try await bench.tells(
            "began lost", "attempted exec", "attemptFailed running /does/not/exist: No such file or directory",
            "failed lost")
        let flow = try bench.bench.registry.take("office", by: nil, for: 0)
        #expect((flow.epoch, flow.isOver) == (1, true))
        var bytes = [UInt8](repeating: 0, count: 9)
        #expect(recv(flow.descriptor.number, &bytes, 9, CInt(MSG_DONTWAIT)) == 6)
    }

    @Test func `a program that lost what it was launched with takes it again`() async throws {
        let bench = try await ended(.script("exec sleep 1000", stdio: false) { $0.reasons = [.lost] })
        try await bench.tells("began lost", "attempted exec", "acknowledged lost")
        let connection = try #require(bench.bench.registry.visible(to: 0).first)
        let program = try #require(connection.driver?.clientele.client.flatMap { connection.processes[$0] })
        defer { try? program.signal(SIGKILL) }
        let flow = try bench.bench.registry.take("office", by: program, for: 0)
        #expect((flow.epoch, flow.isOver) == (1, true))
        var bytes = [UInt8](repeating: 0, count: 9)
        #expect(recv(flow.descriptor.number, &bytes, 9, CInt(MSG_DONTWAIT)) == 6)
    }

    @Test func `a reload changes how the client is woken`() async throws {
        let bench = try WakeBench(.script("exit 1"))
        try await bench.ready()
        let policy = try bench.bench.policy("tcp://127.0.0.1:\(bench.server.port)")
        let configured = ConfiguredConnection(
            name: "office", policy: policy, owner: thisUser.user, wake: .script("cat"))
        #expect(bench.bench.registry.reconcile(with: [configured]).isEmpty)
        bench.server.send("hello\n")
        expect(try await bench.server.line(), is: "hello")
    }
}
