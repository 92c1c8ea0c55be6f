// SPDX-License-Identifier: Apache-2.0

internal import ArgumentParser
internal import DialtoneClient
internal import DialtoneHooks
internal import DialtonePlatform
internal import DialtoneSystemd
internal import Glibc
internal import Logging

struct Hooks: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Run hooks when the network or a connection changes.",
        discussion: """
            Runs the programs of a directory, one at a time, in the order of their names. Each gets the change as its \
            first argument, in its environment and as JSON on its standard input; see dialtone-hooks(8), whose service \
            runs this command.
            """)

    @Option(
        help: ArgumentHelp(
            """
            The directory; by default /etc/dialtone/hooks.d for root, and dialtone/hooks.d in $XDG_CONFIG_HOME or \
            ~/.config for others.
            """, valueName: "directory"), completion: .directory)
    var directory: String?

    @Option(
        help: ArgumentHelp(
            "How long a program may run before it is ended, 1s to 10m; by default 10s.", valueName: "duration"))
    var timeout: DurationArgument?

    private static let limits = (
        shortest: Duration.seconds(1), usual: Duration.seconds(10), longest: Duration.seconds(600)
    )

    func validate() throws {
        try timeout?.check("--timeout", atMost: Self.limits.longest)
        if let timeout, timeout.duration < Self.limits.shortest {
            throw ValidationError("--timeout is too short for a program: give 1s or more")
        }
    }

    func run() async throws {
        let user = geteuid()
        let standard = ConfigurationDirectory.standard(user: user) { Output.environment[$0] }
        guard let path = directory ?? standard.map({ "\($0)/hooks.d" }) else {
            throw ValidationError("there is neither $XDG_CONFIG_HOME nor $HOME: name a --directory")
        }
        guard path.hasPrefix("/") else { throw ValidationError("--directory \(path): write it from / on") }
        let logger = Logger(label: "hooks") { label in
            LogOutput.detect().handler(identifier: "dialtone-hooks", label: label, level: .notice)
        }
        let runner = HookRunner(HookDirectory(path, of: user), limit: timeout?.duration ?? Self.limits.usual, logger)
        try await runner.run(DialtoneClient()) {
            do throws(SystemError) {
                try ServiceManager.notifyReady()
            } catch {
                logger.error("the service manager was not told of the start: \(error)")
            }
        }
    }
}
