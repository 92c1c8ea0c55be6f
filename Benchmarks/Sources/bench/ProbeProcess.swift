// SPDX-License-Identifier: Apache-2.0

import DialtoneLabSupport

/// A probe in a process and a network of its own, which prints a line for each of its cases: its name, and numbers.
enum ProbeProcess {
    /// Runs this program with `option` on `daemon`, and returns the numbers of each case.
    ///
    /// - Parameter count: how many numbers a line has at the least.
    static func run<Case: RawRepresentable & Hashable>(
        _ option: String, _ daemon: String, in machine: Namespace, atLeast count: Int
    ) async throws -> [Case: [Int]] where Case.RawValue == String {
        let process = try await machine.spawn(
            ["unshare", "--net", "--", LabAgent.program("bench"), option, daemon])
        let exit = try await process.exit(within: .seconds(180))
        guard exit == .status(0) else {
            throw LabError.commandFailed(
                command: process.command, exit: exit, standardError: process.text(of: .error))
        }
        var all: [Case: [Int]] = [:]
        for line in process.text(of: .output).split(separator: "\n") {
            let fields = line.split(separator: " ")
            let numbers = fields.dropFirst().compactMap { Int($0) }
            guard let name = fields.first.flatMap({ Case(rawValue: String($0)) }), numbers.count >= count else {
                throw LabError.unexpectedOutput(command: process.command, output: String(line))
            }
            all[name] = numbers
        }
        return all
    }
}
