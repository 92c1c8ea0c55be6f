// SPDX-License-Identifier: Apache-2.0

public import ArgumentParser
public import Logging
internal import Platform
internal import PrivilegedLauncher

@main
struct LauncherCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "dialtone-launcher",
        abstract: "Wakes clients for dialtoned, which runs as a user who may not.",
        discussion: """
            Has the service manager run the programs and start the units, and signals and thaws the processes, that \
            root's own configuration names. dialtone-launcher.socket starts it for a wake; it ends when there is \
            nothing more to do.
            """,
        version: Product.version)

    @Option(
        name: .long,
        help: .init("The configuration file; default: /etc/dialtone/dialtone.toml.", valueName: "file"))
    var config: String?

    @Option(name: .long, help: .init("The daemon's socket.", valueName: "path"))
    var socket: String?

    @Option(
        name: .long,
        help: .init("Minimum log level: trace, debug, info, notice, warning, error.", valueName: "level"))
    var logLevel: Logger.Level = .notice

    /// What the launcher has systemd begin a program with, which is to begin soon: no command line of ours is parsed
    /// then.
    static func main() {
        let arguments = CommandLine.arguments
        if arguments.dropFirst().first == "--pass-socket" {
            LauncherProcess.passSocket(to: Array(arguments.dropFirst(2)))
        }
        main(nil)
    }

    func run() { LauncherProcess.run(configuration: config, socket: socket, logLevel: logLevel) }
}

extension Logger.Level: @retroactive ExpressibleByArgument {}
