// SPDX-License-Identifier: Apache-2.0

internal import ArgumentParser
internal import DialtoneAPI
internal import DialtoneNetworkPath
internal import DialtonePlatform
internal import DialtonePresentation
internal import Glibc
internal import Reachability

struct Wait: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Wait until there is a route to a host or to the network as such, or until a server answers.",
        discussion: """
            Sleeps between the changes of the network; needs no agent. With --probe, a server that does not answer is \
            asked again at each change of its path, and after 1, 2, 4 and so on up to 30 seconds.

            With --notify, it is what a service runs that is active while a host is reachable; see \
            dialtone-reachable(8).

            Exit status: 0 once it is so, 1 at the timeout, 64 bad usage, 69 the kernel cannot be asked.
            """)

    @Argument(
        help: "\(TargetArgument.forms); left out, the network as such.",
        transform: TargetArgument.parse)
    var target: TargetArgument?

    @OptionGroup
    var probing: ProbeOption

    @Flag(help: "Wait until there is no route any more.")
    var untilUnreachable = false

    @Flag(
        help: """
            For a unit of Type=notify: tell the service manager once it is so, and end when there is no route any more.
            """)
    var notify = false

    @Option(help: ArgumentHelp("When to give up, as in 30 or 1m30s; by default never.", valueName: "duration"))
    var timeout: DurationArgument?

    func validate() throws {
        try target?.requireLink()
        if timeout?.duration == .zero { throw ValidationError("--timeout 0 leaves no time for an answer") }
        try probing.refuse(target)
        if probing.probe, untilUnreachable {
            throw ValidationError("--until-unreachable goes by the route alone: leave --probe out")
        }
        if notify, untilUnreachable || timeout != nil {
            throw ValidationError("--notify goes on until there is no route: it takes no other end")
        }
    }

    func run() async throws {
        let isTerminal = isatty(STDERR_FILENO) == 1
        if isTerminal { Output.fail("waiting for \(goal)") }
        let end: Waiting.Goal = notify ? .reachableForUnit : untilUnreachable ? .unreachable : .reachable
        let waiting = Waiting(target, probes: probing.probe, end)
        switch try await waiting.outcome(within: timeout?.duration) {
        case .reached: return
        case .gaveUp(let why):
            Output.fail("gave up on \(goal): \(why ?? "there was no verdict by then")")
            throw ExitCode(1)
        case .unknown:
            Output.fail("The kernel cannot be asked for a route. Is netlink blocked here (container, seccomp)?")
            throw ExitCode(EX_UNAVAILABLE)
        }
    }

    private var goal: String {
        let name = target?.text ?? "the network"
        if probing.probe { return "an answer of \(name)" }
        return untilUnreachable ? "the end of the route to \(name)" : "a route to \(name)"
    }
}
