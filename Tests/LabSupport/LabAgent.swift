// SPDX-License-Identifier: Apache-2.0

package import DialtoneClient
internal import DialtonePlatform
internal import FoundationEssentials
internal import Glibc

/// A `dialtoned` that runs on a machine of the Lab, and the client that talks to it.
///
/// Its socket is a file, and files are not part of a network namespace: the test reaches it from where it is.
package final class LabAgent: Sendable {
    /// The daemon.
    package let process: LabProcess
    /// Talks to it.
    package let client: DialtoneClient
    /// Its socket's path.
    package let socket: String

    /// Goes with the agent.
    package let directory: String

    private init(process: LabProcess, socket: String, directory: String) {
        self.process = process
        self.socket = socket
        self.directory = directory
        client = DialtoneClient(path: socket)
    }

    deinit {
        try? FileManager.default.removeItem(atPath: directory)
    }

    /// Starts a daemon and returns when it serves.
    ///
    /// - Parameter configuration: the text of its configuration; `nil` for the embedded default.
    package static func start(on machine: Namespace, configuration: String? = nil) async throws -> LabAgent {
        let directory = try makeDirectory()
        let socket = "\(directory)/dialtone.sock"
        let file = "\(directory)/dialtone.toml"
        // A file of its own in any case: the machine's configuration is none of the test's.
        try Data(((configuration ?? "") + Self.admission).utf8).write(to: URL(filePath: file))
        chmod(file, 0o600)
        let process = try await machine.spawn(
            [program("dialtoned"), "--socket", socket, "--config", file, "--log-level", "debug"],
            environment: ["STATE_DIRECTORY": "\(directory)/state"])
        _ = try await process.line(containing: "listening")
        return LabAgent(process: process, socket: socket, directory: directory)
    }

    /// What a configuration ends with so that tests, which stay in the network they were started in, get connections of
    /// a daemon on a machine of the Lab: its users are root and the other one.
    package static let admission = "\n[clients]\nother_namespaces = [\"0\", \"65534\"]\n"

    /// Where a program of this package is: where `DIALTONE_BIN` says, else beside the program that runs.
    package static func program(_ name: String) -> String {
        if let directory = ProcessInfo.processInfo.environment["DIALTONE_BIN"] { return "\(directory)/\(name)" }
        return "\(OwnProgram.directory)/\(name)"
    }

    /// An example program, which is built from a package of its own.
    package static func example(_ name: String) throws(LabError) -> String {
        let path = program(name)
        guard access(path, X_OK) == 0 else { throw .notBuilt(program: path) }
        return path
    }

    private static func makeDirectory() throws -> String {
        var template = Array("/tmp/dialtone-lab-XXXXXX".utf8CString)
        guard mkdtemp(&template) != nil else { throw LabError.unexpectedOutput(command: "mkdtemp", output: "\(errno)") }
        return String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }
}
