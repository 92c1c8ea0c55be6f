// SPDX-License-Identifier: Apache-2.0

internal import ArgumentParser
internal import DialtoneClient
internal import DialtonePlatform
internal import Glibc

@main
struct DialtoneCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "dialtone",
        abstract: "See the network's paths and the connections that the agent keeps alive.",
        discussion: """
            check, wait, exec and replay work by themselves. The other commands talk to the agent, dialtoned, on the \
            socket that $DIALTONE_SOCKET names; else on /run/dialtone/dialtone.sock as root; else on the user's own \
            ($XDG_RUNTIME_DIR/dialtone/dialtone.sock), then the machine's.

            DURATION is 5s, 1m30s, 1h or plain seconds, everywhere.

            Exit status: 0 yes or done, 1 no or refused, 64 bad usage, 65 a file that makes no sense, 66 a file that \
            cannot be read, 69 the agent is not running or the kernel cannot be asked, 71 the system refuses, 73 a \
            file cannot be written, 74 the output cannot be written, 77 not allowed.
            """,
        version: Product.version,
        subcommands: [
            Status.self, Watch.self, Check.self, Wait.self, List.self, Open.self, Close.self, Redial.self,
            Take.self, Park.self, Adopt.self, Exec.self, History.self, TimelineCommand.self, Metrics.self, Replay.self,
            Hooks.self, Push.self, Notify.self,
        ])

    /// Runs the command. The daemon's refusals end it with their own words and exit status.
    static func main() async {
        // A reader that is gone is an error of the next write, and no reason to die of a signal.
        signal(SIGPIPE, SIG_IGN)
        // A standard stream that is closed (`>&-`) must not become a socket: to write to it fails as it should.
        for number in STDIN_FILENO...STDERR_FILENO where fcntl(number, F_GETFD) < 0 {
            _ = Glibc.open("/dev/null", O_RDONLY)
        }
        if let width = Output.terminalWidth, width < leastColumns { setenv("COLUMNS", "\(leastColumns)", 1) }
        do {
            requireCommandToHelpWith()
            var command = try parseAsRoot()
            if var command = command as? any AsyncParsableCommand {
                try await command.run()
            } else {
                try command.run()
            }
        } catch let error as DialtoneError {
            let words = SessionAgent.words(for: error) ?? error.description
            Output.fail(words + (await KnownNames.hint(for: error)))
            Glibc.exit(error.exitStatus)
        } catch let error as SystemError {
            Output.fail("\(error)")
            Glibc.exit(EX_OSERR)
        } catch {
            exit(saying: error)
        }
    }

    /// Ends the program as the parser would, but with the words and the prefix that all errors have here.
    private static func exit(saying error: any Error) -> Never {
        let text = fullMessage(for: error)
        // The parser would write the help where it cannot be written, and say nothing.
        if exitCode(for: error) == .success {
            Output.write(text.isEmpty ? [] : [text])
            Glibc.exit(EXIT_SUCCESS)
        }
        guard exitCode(for: error) == .validationFailure, text.hasPrefix(UsageText.prefix) else {
            exit(withError: error)
        }
        Output.fail(UsageText.reworded(text, arguments: CommandLine.arguments, commands: commandNames))
        Glibc.exit(EX_USAGE)
    }

    /// The parser's help traps on a terminal that is narrower than its column of options, which takes 26.
    private static let leastColumns = 40

    /// `dialtone help` shows its general help for whatever it does not know.
    private static func requireCommandToHelpWith() {
        let words = CommandLine.arguments.dropFirst()
        guard words.first == "help", let word = words.dropFirst().first, !word.hasPrefix("-"),
            !commandNames.contains(word)
        else { return }
        Output.fail(UsageText.unknownCommand(word, among: commandNames))
        Glibc.exit(EX_USAGE)
    }

    private static var commandNames: [String] {
        configuration.subcommands.map { $0.configuration.commandName ?? "\($0)".lowercased() } + ["help"]
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
