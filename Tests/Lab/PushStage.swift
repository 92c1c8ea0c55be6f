// SPDX-License-Identifier: Apache-2.0

import DialtoneAPI
import DialtoneClient
import DialtoneLabSupport
import DialtonePlatform
import DialtoneTLSTestSupport
import DialtoneTestSupport
import Foundation
import Testing

/// A push server behind two uplinks, and a host with the machine's agent, a session bus, the session agent and apps
/// that the bus can start.
final class PushStage: Sendable {
    let lab: LabNetwork
    let home: DaemonHome
    let server: LabServer
    let bus: PrivateBus
    /// Where the session agent looks for the system bus.
    private let system: [String: String]
    private let processes: Lock<Processes>

    private struct Processes {
        var agent, session: LabProcess
    }

    private init(
        _ lab: LabNetwork, _ home: DaemonHome, _ server: LabServer, _ bus: PrivateBus, _ system: [String: String],
        _ processes: Processes
    ) {
        (self.lab, self.home, self.server, self.bus, self.system) = (lab, home, server, bus, system)
        self.processes = Lock(processes)
    }

    /// Runs `body` on a stage whose session agent is logged in.
    ///
    /// - Parameters:
    ///   - bus: whose program the session bus is; dbus-broker starts no app here.
    ///   - system: the system bus; without it there is none.
    ///   - stateSize: how large the file system is that the session agent keeps its state on, as mount(8) has it; by
    ///     default it is that of the other files.
    static func set(
        _ apps: [(name: String, kind: AppKind)], at server: Server = .prosody, bus kind: PrivateBus.Kind = .daemon,
        system: Bus? = nil,
        stateSize: String? = nil, _ body: (PushStage) async throws -> Void
    ) async throws {
        let (files, home) = (TestFiles(), try DaemonHome())
        let (recipe, settings) = server.recipe(files)
        let bus = try PrivateBus(kind)
        try await LabNetwork.with { lab in
            let server = try await LabServer.start(recipe, on: lab.server)
            try Data("[push]\n\(settings)\n".utf8).write(to: URL(filePath: "\(home.directory)/session.toml"))
            chmod("\(home.directory)/session.toml", 0o600)
            for app in apps { try describe(app.name, app.kind, in: home, on: bus) }
            try await bus.start()
            _ = try await system?.start(on: lab.host)
            if let stateSize { try await mountState(of: stateSize, in: home, on: lab.host) }
            let variables = system?.environment ?? ["DBUS_SYSTEM_BUS_ADDRESS": "unix:path=\(home.directory)/none"]
            let agent = try await home.start(on: lab.host)
            let session = try await startSession(on: lab.host, home, bus, variables)
            let stage = PushStage(lab, home, server, bus, variables, Processes(agent: agent, session: session))
            try await stage.isLoggedIn()
            try await body(stage)
        }
        withExtendedLifetime(files) {}
    }

    // MARK: - The two agents

    /// What the session agent and the machine's agent wrote.
    var log: String {
        let now = processes.withLock { $0 }
        let texts = [now.session, now.agent].map { $0.text(of: .error).suffix(20_000) }
        return "session: \(texts[0])\nagent: \(texts[1])"
    }

    /// The number of the session agent's process.
    var sessionProcess: CInt { processes.withLock { $0.session.processID } }

    /// What the programs of the user have in their environment.
    var environment: [String: String] { Self.environment(home, bus, system) }

    private static func environment(
        _ home: DaemonHome, _ bus: PrivateBus, _ system: [String: String]
    ) -> [String: String] {
        let user = [
            "DBUS_SESSION_BUS_ADDRESS": bus.address, "DIALTONE_SOCKET": home.socket,
            "DIALTONE_SESSION_SOCKET": "\(home.directory)/session.sock", "XDG_RUNTIME_DIR": home.directory,
        ]
        return user.merging(system) { user, _ in user }
    }

    private static func mountState(of size: String, in home: DaemonHome, on machine: Namespace) async throws {
        let state = "\(home.directory)/push"
        try await machine.command(["mkdir", "-p", state])
        try await machine.command(["mount", "-t", "tmpfs", "-o", "size=\(size),mode=700", "tmpfs", state])
    }

    /// Fills the file system of the session agent's state to the last byte, or makes room again.
    func fillState(_ isOn: Bool = true) async throws {
        let file = "\(home.directory)/push/ballast"
        let fill = "dd if=/dev/zero of=\(file) bs=1k 2>/dev/null; dd if=/dev/zero bs=1 count=4096 2>/dev/null >>\(file)"
        _ = try await lab.host.outcome(["sh", "-c", isOn ? fill : "rm \(file)"])
    }

    private static func startSession(
        on machine: Namespace, _ home: DaemonHome, _ bus: PrivateBus, _ system: [String: String]
    ) async throws -> LabProcess {
        let session = try await machine.spawn(
            [
                LabAgent.program("dialtone-session"), "--config", "\(home.directory)/session.toml", "--socket",
                "\(home.directory)/session.sock", "--state", "\(home.directory)/push", "--log-level", "debug",
            ], environment: environment(home, bus, system).merging(DaemonHome.quietCrashes) { mine, _ in mine })
        _ = try await session.line(containing: "apps can register")
        return session
    }

    /// Kills the session agent, and starts it again.
    func killSession() async throws {
        try await processes.withLock { $0.session }.killNow()
        try await startSession()
    }

    /// Kills the machine's agent, and starts it again.
    func killAgent() async throws {
        try await processes.withLock { $0.agent }.killNow()
        try await startAgent()
    }

    /// Kills both at the same time, and starts them after what is to happen meanwhile.
    func killBoth(_ meanwhile: () async throws -> Void = {}) async throws {
        let (agent, session) = processes.withLock { ($0.agent, $0.session) }
        for process in [agent, session] { process.signal(SIGKILL) }
        for process in [agent, session] { _ = try await process.exit() }
        try await meanwhile()
        // The session agent first: it has to wait for the other one.
        try await startSession()
        try await startAgent()
    }

    private func startSession() async throws {
        let session = try await Self.startSession(on: lab.host, home, bus, system)
        processes.withLock { $0.session = session }
    }

    private func startAgent() async throws {
        let agent = try await home.start(on: lab.host)
        processes.withLock { $0.agent = agent }
    }

    /// Ends the session bus with the apps that it started, and starts it again.
    func restartBus() async throws {
        bus.stop()
        try await bus.start()
    }

    /// Resets the connection to the server.
    func cutConnection() async throws {
        let earlier = try await epoch()
        let these = ["state", "established", "sport", "=", ":\(server.port)"]
        _ = try await lab.server.outcome(["ss", "--kill", "--tcp"] + these)
        try await eventually("another socket\n\(log)") { try await epoch() > earlier }
    }

    /// Runs `dialtone push` to its end.
    func dialtone(_ arguments: String...) async throws -> Outcome {
        try await lab.host.outcome([LabAgent.program("dialtone"), "push"] + arguments, environment: environment)
    }

    /// Waits until the session agent is logged in at the server.
    func isLoggedIn() async throws {
        try await eventually("a login\n\(log)") {
            let status = try await dialtone("status", "--json")
            #expect(status.exit == .status(0), "\(status)\n\(log)")
            return status.output.contains("\"isUp\":true")
        }
    }

    /// Waits until the machine's agent watches the connection and the session agent sleeps.
    func isParked() async throws {
        try await eventually("a parked connection\n\(log)") {
            guard let connection = try await home.client.connections().first else { return false }
            return connection.state == .ready && connection.holder != .client && connection.session == .open
                && connection.wake == nil && connection.unreadBytes ?? 0 == 0
        }
    }

    /// The number of the connection's socket.
    func epoch() async throws -> Int { try await home.client.connections().first?.epoch ?? 0 }
}
