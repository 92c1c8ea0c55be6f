// SPDX-License-Identifier: Apache-2.0

internal import ArgumentParser
internal import DialtonePlatform
internal import Glibc

/// A command that the user gave, with its arguments, to run in the foreground.
struct ForegroundCommand: Sendable {
    /// The path of the program, which the command's name may be looked for on `$PATH`.
    let program: String
    /// The command as it was given.
    let arguments: [String]

    /// Looks for a command as a shell does.
    ///
    /// - Throws: the exit status of a shell that finds none, which has been told by then.
    init(_ command: [String]) throws(ExitCode) {
        let name = command[0]
        let places =
            name.contains("/")
            ? [name]
            : (Output.environment["PATH"] ?? "/usr/local/bin:/usr/bin:/bin").split(separator: ":")
                .map { "\($0)/\(name)" }
        guard let found = places.first(where: { Self.isFile($0) && access($0, X_OK) == 0 }) else {
            if let place = places.first(where: { access($0, F_OK) == 0 }) {
                Output.fail("\(place) is not a program that this user may run.")
                throw ExitCode(126)
            }
            Output.fail("\(name): there is no such command.")
            throw ExitCode(127)
        }
        (program, arguments) = (found, command)
    }

    /// Refuses a command line that has none.
    static func require(_ command: [String]) throws {
        if command.isEmpty { throw ValidationError("there is nothing to run: give a command after --") }
    }

    private static func isFile(_ path: String) -> Bool {
        var status = stat()
        return stat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFREG
    }

    /// Runs what `start` starts, passes signals on to it, and returns its exit status when it has ended; 128 and the
    /// signal's number when a signal ended it.
    ///
    /// - Throws: the exit status of a shell that cannot start it, which has been told by then.
    @AgentQueue
    func run(_ start: @AgentQueue () throws(SystemError) -> pid_t) async throws(ExitCode) -> CInt {
        do throws(SystemError) {
            let signals = try PassedSignals()
            let process = try start()
            signals.pass(to: process)
            try await Spawn.awaitEnd(of: process)
            return try Spawn.exitStatus(of: process)
        } catch {
            Output.fail("\(error)")
            throw ExitCode(126)
        }
    }
}
