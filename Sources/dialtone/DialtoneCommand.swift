// SPDX-License-Identifier: Apache-2.0

internal import ArgumentParser
internal import DialtoneClient
internal import Glibc
internal import Platform

@main
struct DialtoneCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "dialtone",
        abstract: "See the network's paths and the connections that the agent keeps alive.",
        discussion: """
            check, wait and replay work by themselves. The other commands talk to the agent, dialtoned, on the socket \
            that $DIALTONE_SOCKET names; else on /run/dialtone/dialtone.sock as root; else on the user's own \
            ($XDG_RUNTIME_DIR/dialtone/dialtone.sock), then the machine's.

            Exit status: 0 yes or done, 1 no or refused, 64 bad usage, 69 nobody to ask, 77 not allowed.
            """,
        version: Product.version,
        subcommands: [
            Status.self, Watch.self, Check.self, Wait.self, List.self, Open.self, Close.self, Redial.self,
            Take.self, Park.self, Adopt.self, History.self, Replay.self,
        ])

    /// Runs the command. The daemon's refusals end it with their own words and exit status.
    static func main() async {
        // A reader that is gone is an error of the next write, and no reason to die of a signal.
        signal(SIGPIPE, SIG_IGN)
        do {
            var command = try parseAsRoot()
            if var command = command as? any AsyncParsableCommand {
                try await command.run()
            } else {
                try command.run()
            }
        } catch let error as DialtoneError {
            Output.fail(error.description + (await KnownNames.hint(for: error)))
            Glibc.exit(error.exitStatus)
        } catch {
            exit(withError: error)
        }
    }
}

extension DialtoneError {
    /// The exit status, after sysexits.h.
    fileprivate var exitStatus: CInt {
        if isPermissionDenied { return EX_NOPERM }
        return switch self {
        case .notRunning, .busy, .unreachable, .interrupted, .timedOut: EX_UNAVAILABLE
        case .accessDenied: EX_NOPERM
        case .refused, .cancelled: EXIT_FAILURE
        }
    }
}
