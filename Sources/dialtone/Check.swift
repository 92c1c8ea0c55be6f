// SPDX-License-Identifier: Apache-2.0

internal import ArgumentParser
internal import DialtoneAPI
internal import Glibc
internal import Presentation
internal import Reachability

struct Check: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Say whether a host can be reached, and over what.",
        discussion: """
            Asks the kernel for the route that packets of this user would take; sends none, and needs no agent. A name \
            is \
            resolved first. Exit status: 0 it can be reached, 1 it cannot, 69 the kernel cannot be asked.
            """)

    @Argument(help: "HOST, HOST:PORT, ADDRESS or [ADDRESS]:PORT.", transform: TargetArgument.parse)
    var target: TargetArgument

    @Flag(help: "Write the path as one JSON object.")
    var json = false

    func run() async throws {
        let path = NetworkAPI.Path(await HostReachability(target.target).path())
        if json {
            try Output.write(json: path)
        } else {
            Output.write([PathText.check(path, target: target.text)])
        }
        switch path.status {
        case .satisfied: return
        case .unsatisfied, .requiresConnection: throw ExitCode(1)
        case .unknown: throw ExitCode(EX_UNAVAILABLE)
        }
    }
}
