// SPDX-License-Identifier: Apache-2.0

import DialtoneAPI
import DialtoneConnection
import DialtoneConnectionIO
import DialtoneExpectations
import DialtonePersistence
import DialtonePlatform
import DialtoneProcesses
import DialtoneTestSupport
import DialtoneVarlink
import Foundation
import Glibc
import Testing

@testable import DialtoneAgent
@testable import DialtoneConfiguration
@testable import DialtonePrivilegedLauncher

/// The agent is killed while it launches a program, or while one runs.
@Suite(.timeLimit(.minutes(2))) @AgentQueue
struct LaunchRestartTests {
    @Test func `a flow that was taken for a program that never began is there for the next attempt`() async throws {
        let launcher = try SilentLauncher()
        let fixture = try LaunchFixture(
            .script("read line; echo \"got $line\"; read rest"), launcher: LauncherClient(path: launcher.path))
        try await fixture.ready()
        fixture.send("hello\n")
        try await eventually("the launcher is asked") { launcher.hasBeenAsked }
        #expect(fixture.connection?.holder == .client)
        fixture.launcher = nil
        try fixture.kill()
        expect(try await fixture.line(), is: "got hello")
        #expect((fixture.connection?.holder, fixture.connection?.epoch) == (.client, 1))
        withExtendedLifetime(launcher) {}
    }

    @Test func `a program of which nobody has heard yet whether it runs has the flow, and no other beside it`()
        async throws
    {
        let fixture = try LaunchFixture(
            .script("read line; echo \"got $line\"; read rest; echo \"got $rest\"; read rest"))
        try await fixture.ready()
        try await fixture.kill(at: .taken) { fixture.send("hello\n") }
        #expect(fixture.agent.store.names.count == 4, "the state's two files, the flow and the program")
        #expect((fixture.connection?.holder, fixture.connection?.epoch) == (.client, 1))
        expect(try await fixture.line(), is: "got hello")
        fixture.send("again\n")
        expect(try await fixture.line(), is: "got again", "the same one reads on")
        fixture.send("bye\n")
        // Nobody saw how it ended, nor knows where in the stream it was.
        try await fixture.agent.wait(for: "office", "dialled anew") { $0.epoch == 2 }
        #expect(fixture.ends == [.unseen])
    }

    @Test func `a program that the launcher was asked for is the next process's, and nobody else gets its flow`()
        async throws
    {
        let settings = WakeSettings.script("read line; echo \"got $line\"; read rest; echo \"got $rest\"; read rest")
        var office = ConnectionSettings(name: "office", remote: "tcp://192.0.2.7:1")
        (office.owner, office.wake) = (geteuid(), settings)
        let launcher = try LauncherFixture([office])
        let fixture = try LaunchFixture(settings, launcher: launcher.client)
        try await fixture.ready()
        // Somebody acknowledges the wake late, so that none stands.
        let kill: @AgentQueue () throws -> Void = {
            let wake = try #require(fixture.connection?.wake)
            try fixture.agent.registry.acknowledge("office", wake: UInt64(wake), for: geteuid())
            #expect(fixture.connection?.wake == nil)
            try fixture.kill()
            #expect(throws: RegistryError.heldByClient(0)) {
                _ = try fixture.agent.registry.take("office", by: nil, for: geteuid())
            }
        }
        try await fixture.kill(at: .taken, by: kill) { fixture.send("hello\n") }
        expect(try await fixture.line(), is: "got hello")
        fixture.send("again\n")
        expect(try await fixture.line(), is: "got again", "the same one reads on")
        #expect((fixture.connection?.holder, fixture.connection?.epoch) == (.client, 1))
        #expect(fixture.attempts == 0)
        withExtendedLifetime(launcher) {}
    }

    @Test func `where the launcher launched none, the flow is given back`() async throws {
        let silent = try SilentLauncher()
        let settings = WakeSettings.script("read line; echo \"got $line\"; read rest")
        let fixture = try LaunchFixture(settings, launcher: LauncherClient(path: silent.path))
        try await fixture.ready()
        fixture.send("hello\n")
        try await eventually("the launcher is asked") { silent.hasBeenAsked }
        var office = ConnectionSettings(name: "office", remote: "tcp://192.0.2.7:1")
        (office.owner, office.wake) = (geteuid(), settings)
        let launcher = try LauncherFixture([office])
        fixture.launcher = launcher.client
        try fixture.kill()
        expect(try await fixture.line(), is: "got hello")
        #expect((fixture.connection?.holder, fixture.connection?.epoch) == (.client, 1))
        #expect(fixture.attempts == 1)
        withExtendedLifetime((silent, launcher)) {}
    }

    @Test func `what a program had not read of a flow that was replaced waits, though it ended with 0`() async throws {
        let place = NSTemporaryDirectory() + "replaced.\(UUID().uuidString.prefix(8))"
        let (gate, told) = (place + ".gate", place + ".told")
        defer { for file in [gate, told] { unlink(file) } }
        let settings = WakeSettings.script(
            "if test -e \(gate); then read line; echo $line > \(told); exit 0; fi; "
                + "echo $$ > \(told); until test -e \(gate); do sleep 0.01; done; exit 0")
        var office = ConnectionSettings(name: "office", remote: "tcp://192.0.2.7:1")
        (office.owner, office.wake) = (geteuid(), settings)
        let launcher = try LauncherFixture([office])
        let fixture = try LaunchFixture(settings, launcher: launcher.client)
        try await fixture.ready()
        fixture.send("hello\n")
        let text = { (try? String(contentsOfFile: told, encoding: .utf8)) ?? "" }
        try await eventually("the program says its number: \(text())") { text().hasSuffix("\n") }
        let number = text().dropLast()
        try await fixture.agent.wait(for: "office", "acknowledged") { $0.wake == nil }
        // It ends, the flow is replaced and the agent is killed in one turn, in which nobody hears of the end.
        try Data().write(to: URL(filePath: gate))
        // A child of this process, which stays to be reaped.
        var end = siginfo_t()
        #expect(waitid(P_PID, id_t(number) ?? 0, &end, WEXITED | WNOWAIT) == 0, "process \(number)")
        try fixture.agent.registry.redial("office", for: geteuid())
        try await fixture.kill {
            try launcher.hangUp()
            try await eventually("the launcher has heard of the end") { launcher.launcher.isIdle }
        }
        try await eventually("the next one reads it, and not \(text())") { text() == "hello\n" }
    }

    @Test(arguments: [0, 1])
    func `a program that the launcher launched and that ends between two processes gives its flow back as it ended`(
        status: Int32
    ) async throws {
        let settings = WakeSettings.script("read line; echo \"got $line\"; read line; exit \(status)")
        var office = ConnectionSettings(name: "office", remote: "tcp://192.0.2.7:1")
        (office.owner, office.wake) = (geteuid(), settings)
        let launcher = try LauncherFixture([office])
        let fixture = try LaunchFixture(settings, launcher: launcher.client)
        try await fixture.ready()
        fixture.send("hello\n")
        expect(try await fixture.line(), is: "got hello")
        try await fixture.agent.wait(for: "office", "acknowledged") { $0.wake == nil }
        try await fixture.kill {
            try launcher.hangUp()
            fixture.send("bye\n")
            try await eventually("the program has ended") { launcher.launcher.isIdle }
        }
        try await fixture.agent.wait(for: "office", "given back") { $0.holder == .daemon }
        #expect(fixture.ends == [.exited(status: status)])
        try await fixture.agent.ready("office")
        #expect(fixture.connection?.epoch == (status == 0 ? 1 : 2))
        #expect(fixture.agent.events.allSatisfy { if case .noPath = $0.event.reason { false } else { true } })
        withExtendedLifetime(launcher) {}
    }

    @Test func `a program that parked its flow and runs on is not launched beside itself in the next process`()
        async throws
    {
        let fixture = try LaunchFixture(
            .script("echo $$; read line; echo \"got $line\"; test $line = again || exec sleep 1000; read rest"))
        try await fixture.ready()
        fixture.send("hello\n")
        let program = try #require(Int32(try await fixture.line()))
        expect(try await fixture.line(), is: "got hello")
        try await fixture.agent.wait(for: "office", "acknowledged") { $0.wake == nil }
        try fixture.agent.registry.park("office", 1, for: 0)
        try fixture.kill()
        fixture.send("again\n")
        try await fixture.agent.wait(for: "office", "woken") { $0.wake != nil }
        #expect(fixture.attempts == 0, "while it runs, it may acknowledge")
        Glibc.kill(program, SIGKILL)
        expect(try await fixture.line()) { $0 != "\(program)" }
        expect(try await fixture.line(), is: "got again")
        #expect((fixture.attempts, fixture.ends) == (1, [.unseen]))
    }
}

/// Takes every call, and answers none.
@AgentQueue
private final class SilentLauncher {
    let path = NSTemporaryDirectory() + "silent.\(UUID().uuidString.prefix(8))"
    private let server: VarlinkServer
    private var exchanges: [VarlinkExchange<LauncherAPI.Wake>] = []

    var hasBeenAsked: Bool { !exchanges.isEmpty }

    init() throws {
        let service = VarlinkService(vendor: "", product: "", version: "", url: "")
        service.add(interface: LauncherAPI.name, description: LauncherAPI.description)
        server = VarlinkServer(service)
        try server.listen(at: path, mode: 0o600)
        // It may be asked once more after its last reference is gone, before its end's turn on the queue has come.
        service.handleLater(LauncherAPI.Wake.self) { [weak self] _, exchange in self?.exchanges.append(exchange) }
    }

    isolated deinit {
        server.close()
        unlink("\(path).lock")
    }
}

/// One process of the agent after the other, with a connection of the configuration whose client is a program.
@AgentQueue
final class LaunchFixture {
    private(set) var agent: RestartFixture
    private let server: WakeServer
    private let configured: ConfiguredConnection

    /// Launches for processes that have not got the rights themselves; `nil` for those that have.
    var launcher: LauncherClient? {
        get { choice.launcher }
        set { choice.launcher = newValue }
    }
    private let choice: Choice

    @AgentQueue
    private final class Choice {
        var launcher: LauncherClient?

        init(_ launcher: LauncherClient?) { self.launcher = launcher }

        func wakes() -> WakeContext {
            guard let launcher else { return WakeContext() }
            return WakeContext(
                Activator(bus: "unix:path=/nowhere", user: geteuid() + 1), launcher: launcher)
        }
    }

    init(_ settings: WakeSettings, launcher: LauncherClient? = nil) throws {
        let choice = Choice(launcher)
        self.choice = choice
        server = try WakeServer()
        agent = try RestartFixture { choice.wakes() }
        configured = ConfiguredConnection(
            name: "office", policy: ConnectionPolicy(remote: try Remote("tcp://127.0.0.1:\(server.port)")),
            owner: geteuid(), wake: settings)
        _ = agent.registry.reconcile(with: [configured])
    }

    var connection: ConnectionsAPI.Connection? { agent.connection("office") }

    /// What happened to wakes in this process.
    private var reports: [WakeReport.Kind] { agent.events.compactMap { $0.wake?.report?.kind } }
    /// How often a program was launched in this process.
    var attempts: Int { reports.count { $0 == .attempted(.exec) } }
    /// How programs ended in this process.
    var ends: [ProgramEnd] { reports.compactMap { if case .programEnded(let end) = $0 { end } else { nil } } }

    /// Waits until a flow stands, which its server has accepted.
    func ready() async throws {
        try await agent.ready("office")
        try await server.accept()
    }

    func kill() throws { try agent.kill(configured: [configured]) }

    /// Likewise, and has something happen before the next process begins.
    func kill(_ meanwhile: () async throws -> Void) async throws {
        try await agent.kill(configured: [configured], meanwhile)
    }

    /// Begins something, and kills the process right behind the turn in which its event comes.
    ///
    /// - Parameter kill: kills the process, where there is more to be done in that turn.
    func kill(
        at kind: ConnectionEvent.Kind, by kill: (@AgentQueue () throws -> Void)? = nil, _ begin: () -> Void
    ) async throws {
        let kill = kill ?? { try self.kill() }
        begin()
        let failure: (any Error)? = try await answer("\(kind)") { done in
            var isOver = false
            agent.registry.onEvent { event in
                guard event.event.kind == kind, !isOver else { return }
                isOver = true
                // A program is begun in the turn behind this one, and what is heard of it comes later.
                AgentQueue.async { AgentQueue.async { done(Result { try kill() }.failure) } }
            }
        }
        if let failure { throw failure }
    }

    func send(_ text: String) { server.send(text) }

    /// The next line that the client sent.
    func line() async throws -> String { try await server.line() }
}

extension Result {
    fileprivate var failure: Failure? { if case .failure(let failure) = self { failure } else { nil } }
}
