// SPDX-License-Identifier: Apache-2.0

internal import Agent
public import ArgumentParser
public import Logging

@main
struct DialtonedCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "dialtoned",
        abstract: "The network reachability and reconnection agent.",
        discussion: """
            Watches the kernel's network, supervises signaling connections, and tells subscribers on a Unix socket. \
            SIGHUP reloads the configuration, SIGTERM ends it. `dialtone` is its command line.

            Exit status as in sysexits.h: 0 after SIGTERM, 64 bad usage, 69 another agent serves the socket, 71 the \
            system refuses, 73 the socket cannot be made, 78 the configuration is wrong.
            """,
        version: DaemonProcess.version)

    @Option(
        name: .long,
        help: .init(
            "The configuration file; default: /etc/dialtone/dialtone.toml, for users ~/.config/dialtone/dialtone.toml.",
            valueName: "file"))
    var config: String?

    @Option(
        name: .long,
        help: .init(
            "The socket to serve on, unless the service manager passes one.", valueName: "path"))
    var socket: String?

    @Option(
        name: .long,
        help: .init(
            """
            Record what the kernel says of the network into this file, for `dialtone replay` and Wireshark. It holds \
            addresses and the names of watched hosts. A file that is there is kept as FILE.old.
            """, valueName: "file"))
    var record: String?

    @Flag(name: .long, help: "Check the configuration, say what is wrong with it, and end.")
    var checkConfig = false

    @Option(
        name: .long,
        help: .init("Minimum log level: trace, debug, info, notice, warning, error.", valueName: "level"))
    var logLevel: Logger.Level = .notice

    func run() throws {
        let options = DaemonOptions(configuration: config, socket: socket, recording: record, logLevel: logLevel)
        if checkConfig { throw ExitCode(DaemonProcess.checkConfiguration(options)) }
        DaemonProcess.run(options)
    }
}

extension Logger.Level: @retroactive ExpressibleByArgument {}
