// SPDX-License-Identifier: Apache-2.0

import DialtoneClient
import DialtoneLabSupport
import DialtoneTestSupport
import Foundation

/// Where one daemon lives: its configuration and its socket. It outlives the daemon, which may be started in it again.
final class DaemonHome: Sendable {
    private let place = TemporaryDirectory()
    var directory: String { place.path }
    /// Talks to whatever serves the socket.
    let client: DialtoneClient

    var socket: String { "\(directory)/dialtone.sock" }
    var file: String { "\(directory)/dialtone.toml" }
    /// Where its daemons keep what outlives them.
    var state: String { "\(directory)/state" }

    init(_ configuration: String = "") throws {
        client = DialtoneClient(path: "\(place.path)/dialtone.sock")
        // For tests that come as another user.
        chmod(directory, 0o755)
        try configure(configuration)
    }

    /// - Parameter admission: how the test is let in, which is in another network than the daemon.
    func configure(_ text: String, admission: String = LabAgent.admission) throws {
        try Data((text + admission).utf8).write(to: URL(filePath: file))
        chmod(file, 0o600)
    }

    /// Whether the socket's name is in the file system, whoever listens.
    var hasSocket: Bool { FileManager.default.fileExists(atPath: socket) }

    /// Starts a daemon with these arguments, by default on this home's socket and configuration.
    ///
    /// - Parameter launcher: a command that becomes the daemon.
    func launch(
        on machine: Namespace, by launcher: [String] = [], arguments: [String]? = nil,
        environment: [String: String] = [:]
    ) async throws -> LabProcess {
        let arguments = arguments ?? ["--socket", socket, "--config", file]
        let environment = environment.merging(Self.quietCrashes) { mine, _ in mine }
            .merging(["STATE_DIRECTORY": state]) { mine, _ in mine }
        return try await machine.spawn(
            launcher + [LabAgent.program("dialtoned"), "--log-level", "debug"] + arguments, environment: environment)
    }

    /// Starts a daemon and returns when it serves.
    func start(
        on machine: Namespace, by launcher: [String] = [], environment: [String: String] = [:]
    ) async throws -> LabProcess {
        let daemon = try await launch(on: machine, by: launcher, environment: environment)
        _ = try await daemon.line(containing: "listening")
        return daemon
    }

    /// A subscriber of whatever daemon serves the socket.
    func recorder(after sequence: Int? = nil) async throws -> EventRecorder {
        try await EventRecorder.start(by: client, after: sequence)
    }

    /// Runs `dialtone` to its end, against this home's socket.
    func dialtone(
        _ arguments: String..., on machine: Namespace, by launcher: [String] = []
    ) async throws -> Outcome {
        try await machine.outcome(
            launcher + [LabAgent.program("dialtone")] + arguments, environment: ["DIALTONE_SOCKET": socket])
    }

    /// A crash is told by its signal; a page of frames from each of many processes helps nobody.
    static let quietCrashes = ["SWIFT_BACKTRACE": "enable=no"]
}

/// How a command ended, and what it wrote.
struct Outcome: CustomStringConvertible {
    let exit: LabProcess.Exit
    let output: String
    let error: String

    var lines: [String] { output.split(separator: "\n").map(String.init) }

    var description: String { "\(exit)\noutput: \(output)\nerror: \(error)" }

    /// The output as JSON, an object.
    func object() throws -> [String: Any] {
        try JSONSerialization.jsonObject(with: Data(output.utf8)) as? [String: Any] ?? [:]
    }
}

extension Namespace {
    /// Runs a program to its end, with nothing to read.
    func outcome(
        _ arguments: [String], environment: [String: String] = [:],
        within limit: Duration = ChangeSignal.generousLimit
    ) async throws -> Outcome {
        let process = try await spawn(
            arguments, environment: environment.merging(DaemonHome.quietCrashes) { mine, _ in mine })
        process.closeInput()
        let exit = try await process.exit(within: limit)
        return Outcome(exit: exit, output: process.text(of: .output), error: process.text(of: .error))
    }

    /// A machine with a loopback interface, and no way out.
    static func island() async throws -> Namespace {
        let machine = try await create("an island")
        try await machine.ip("link set lo up")
        return machine
    }

    /// Gives an island a link, and a way out to nowhere over it: there is a path, and nobody answers.
    func landBridge() async throws {
        try await ip(batch: [
            "link add name bridge0 type veth peer name bridge1", "link set bridge1 up", "link set bridge0 up",
            "address add 198.51.100.2/24 dev bridge0", "route add default via 198.51.100.1",
        ])
        try await link("bridge0", "has carrier") { $0.hasCarrier }
    }
}
