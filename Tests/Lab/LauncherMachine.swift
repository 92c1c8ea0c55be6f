// SPDX-License-Identifier: Apache-2.0

import DialtoneAPI
import DialtoneClient
import DialtoneLabSupport
import DialtoneTestSupport
import Foundation
import Testing

/// A machine on which an agent of another user's asks root's launcher to wake clients. The launcher finds a systemd on
/// the machine's own bus, which is what `Tests/LabSystemd` makes.
///
/// The agent and the launcher see a /run that is the machine's alone. So several of these can be there at a time, and
/// no other test finds a launcher, or takes its machine for one that systemd runs.
final class LauncherMachine: Sendable {
    /// The owner of the connection, and of its client.
    static let owner = "daemon"

    let network: Namespace
    let home: DaemonHome
    private let bus: Bus
    private let groups: GroupTree
    private let group: String
    private let listener: TCPSocket

    private init() async throws {
        network = try await Namespace.island()
        home = try DaemonHome()
        bus = try Bus()
        groups = try GroupTree()
        group = try groups.make("units")
        listener = try await network.run { try TCPSocket.listening(on: 0) }
        for directory in ["dialtone", "systemd/system"] {
            try FileManager.default.createDirectory(
                atPath: "\(run)/\(directory)", withIntermediateDirectories: true,
                attributes: [.posixPermissions: 0o755])
        }
    }

    /// The machine's /run, seen from the test.
    private var run: String { "\(home.directory)/run" }

    /// What becomes the command that follows, with the machine's /run.
    private var withRun: [String] { ["unshare", "--mount", "sh", "-c", #"mount --bind "$0" /run && exec "$@""#, run] }

    /// Starts the agent, with a connection "office" whose client is woken as `wake` says, and the launcher.
    ///
    /// - Returns: the machine, the launcher and the connection's other end.
    static func start(wake: String) async throws -> (LauncherMachine, LabProcess, TCPSocket) {
        let machine = try await LauncherMachine()
        let configuration = """
            [[connection]]
            name = "office"
            remote = "tcp://127.0.0.1:\(try machine.listener.port())"
            owner = "\(owner)"
            wake = { \(wake) }
            """
        let file = "\(machine.run)/dialtone/dialtone.toml"
        try Data((configuration + LabAgent.admission).utf8).write(to: URL(filePath: file))
        chmod(file, 0o644)
        let launcher = try await machine.startLauncher()
        let server = try await machine.startAgent()
        return (machine, launcher, server)
    }

    /// Starts the launcher, as the service manager does for the first wake.
    private func startLauncher() async throws -> LabProcess {
        let launcher = try await network.spawn(
            withRun + [
                LabAgent.program("lab-launch"), "--listen", "/run/dialtone/launcher.sock", "launcher",
                LabAgent.program("dialtone-launcher"), "--config", "/run/dialtone/dialtone.toml", "--socket",
                home.socket, "--log-level", "debug",
            ], environment: bus.environment)
        let socket = "\(run)/dialtone/launcher.sock"
        try await eventually("the launcher's socket") { access(socket, F_OK) == 0 }
        chown(socket, AnotherUser.number, AnotherUser.number)
        chmod(socket, 0o600)
        return launcher
    }

    private func startAgent() async throws -> TCPSocket {
        // Where its socket and its state are to be.
        chown(home.directory, AnotherUser.number, AnotherUser.number)
        // Its socket comes from the service manager: by that one's name the launcher knows who connected to it.
        let agent = try await home.launch(
            on: network,
            by: withRun + AnotherUser.command + [LabAgent.program("lab-launch"), "--listen", home.socket, "varlink"],
            arguments: ["--config", "/run/dialtone/dialtone.toml"])
        _ = try await agent.line(containing: "listening")
        // For the connection's owner.
        chmod(home.socket, 0o666)
        let server = try await network.run { [listener] in try listener.accept() }
        // Asked for and not watched: whoever watches might be the client.
        try await eventually("the connection") { [home] in
            try await home.client.connections().first?.state == .ready
        }
        return server
    }

    /// Starts the bus.
    func startBus() async throws { _ = try await bus.start(on: network) }

    /// Starts what stands for systemd; the bus is there.
    func startSystemd() async throws -> LabProcess { try await bus.systemd(on: network, group: group) }

    /// The connection.
    func office() async throws -> ConnectionsAPI.Connection { try #require(try await home.client.connections().first) }

    /// Starts a Python program of the owner's, with `Agent` of the sleeping client, to talk to the agent.
    func client(_ script: String) async throws -> LabProcess {
        let user = try #require(getpwnam(Self.owner)).pointee
        let examples = "\(SourceTree.root)/Examples"
        // The system's Python: the first in root's search path may lie in root's home, where nobody else may look.
        return try await network.spawn(
            [
                "setpriv", "--reuid", "\(user.pw_uid)", "--regid", "\(user.pw_gid)", "--clear-groups", "--pdeathsig",
                "KILL", "/usr/bin/python3", "-c", script,
            ],
            environment: [
                "DIALTONE_SOCKET": home.socket, "PYTHONPATH": "\(examples)/sleeping-client",
                "PYTHONDONTWRITEBYTECODE": "1",
            ])
    }
}

extension Trait where Self == ConditionTrait {
    /// Skips a test where no launcher can be shown at work, and says why.
    static var launcher: Self {
        .enabled(
            if: Bus.isThere && LabSandbox.isInside && GroupTree.isPossible,
            "there is no dbus-daemon here, or no control groups of version 2 can be made")
    }
}
