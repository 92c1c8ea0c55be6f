// SPDX-License-Identifier: Apache-2.0

internal import ArgumentParser
internal import DialtoneAPI
internal import TLSRelay

@main
struct TLSCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "dialtone-tls",
        abstract: "Does TLS for dialtoned, and has the keys.",
        discussion: """
            It is given connected sockets and opened files, and opens neither itself. dialtone-tls.socket starts it \
            with the first flow that has TLS; it ends half a minute after the last. Stopped or restarted, it goes on \
            with the flows that it has, and new ones go to the next process.
            """,
        version: Product.version)

    /// The process that serves parses no command line.
    static func main() {
        if CommandLine.arguments.dropFirst().first == RelayProcess.servingArgument { RelayProcess.serve() }
        main(nil)
    }

    func run() { RelayProcess.standGuard() }
}
