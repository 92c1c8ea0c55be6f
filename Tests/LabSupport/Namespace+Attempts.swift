// SPDX-License-Identifier: Apache-2.0

/// What `ip` made of many commands, of which some may have failed.
package struct IPAttempts: Sendable {
    /// What it printed, by lines.
    package let output: [String]
    /// Its words on the commands that failed, by their places in the batch.
    package let failures: [Int: String]
    /// Whether the kernel's state changed while it was read: what is printed of it may not be consistent.
    package let wasInterrupted: Bool
}

extension Namespace {
    /// Runs many `ip` commands, one a line, in one process, each whatever became of those before.
    ///
    /// - Parameter options: for all of them, such as `-json`.
    package func ip(attempting commands: [String], options: [String] = []) async throws -> IPAttempts {
        let process = try await spawn(["ip"] + options + ["-force", "-batch", "-"])
        try process.send(commands.joined(separator: "\n") + "\n")
        process.closeInput()
        let exit = try await process.exit()
        // 1 when any command failed.
        guard exit == .status(0) || exit == .status(1) else {
            throw LabError.commandFailed(
                command: process.command, exit: exit, standardError: process.text(of: .error))
        }
        let lines = process.lines
        var failures: [Int: String] = [:]
        var wasInterrupted = false
        var words = ""
        // First what went wrong, then `Command failed -:3`, numbered from one.
        for line in lines where line.stream == .error {
            if let number = line.text.wholeMatch(of: #/Command failed -:(\d+)/#).flatMap({ Int($0.output.1) }) {
                failures[number - 1] = words
            } else if line.text.hasPrefix("Dump was interrupted") {
                wasInterrupted = true
            } else {
                words = line.text
            }
        }
        let output = lines.filter { $0.stream == .output }.map(\.text)
        return IPAttempts(output: output, failures: failures, wasInterrupted: wasInterrupted)
    }
}
