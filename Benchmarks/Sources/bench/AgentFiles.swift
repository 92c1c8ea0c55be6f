// SPDX-License-Identifier: Apache-2.0

internal import CBench
internal import DialtoneLabSupport
internal import DialtonePlatform
internal import FoundationEssentials
internal import Glibc

/// The files of a daemon that is measured: its socket, its configuration and what it keeps, in a directory of their
/// own.
final class AgentFiles: Sendable {
    /// Where it listens.
    let socket: String

    private let directory: String
    private let configuration: String

    /// - Parameter text: the configuration, empty by default.
    init(_ text: String = "") throws {
        var template = Array("/tmp/dialtone-bench-XXXXXX".utf8CString)
        guard mkdtemp(&template) != nil else { throw SystemError.last("making a directory in /tmp") }
        directory = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
        // The socket is for other users as well.
        chmod(directory, 0o755)
        socket = "\(directory)/dialtone.sock"
        configuration = "\(directory)/dialtone.toml"
        try Data((text + LabAgent.admission).utf8).write(to: URL(filePath: configuration))
        chmod(configuration, 0o600)
    }

    deinit {
        try? FileManager.default.removeItem(atPath: directory)
    }

    /// The command line. Nothing is logged but trouble, as in production; what is logged shows beside the table.
    func command(_ daemon: String) -> [String] { managedCommand(daemon) + ["--socket", socket] }

    /// The command line of one that is passed its socket.
    func managedCommand(_ daemon: String) -> [String] {
        // The state of this machine's own daemon is none of the benchmark's.
        let environment = ["env", "STATE_DIRECTORY=\(directory)/state"]
        return environment + [daemon, "--config", configuration, "--log-level", "warning"]
    }

    /// A connection to the daemon, as soon as it serves.
    func connect() throws -> OwnedDescriptor {
        for _ in 0..<1000 {
            let number = bench_connect_unix(socket)
            if number >= 0 { return OwnedDescriptor(number) }
            usleep(10_000)
        }
        throw SystemError.last("connecting to \(socket)")
    }
}
