// SPDX-License-Identifier: Apache-2.0

internal import ArgumentParser
internal import Glibc
internal import NetworkPath
internal import Reachability

struct Wait: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Wait until a host, or the network as such, can be reached.",
        discussion: """
            Needs no agent. Exit status: 0 once it can be reached, 1 at the timeout, 69 the kernel cannot be asked.
            """)

    @Argument(
        help: "HOST, HOST:PORT, ADDRESS or [ADDRESS]:PORT; left out, the network as such.",
        transform: TargetArgument.parse)
    var target: TargetArgument?

    @Option(help: "Seconds after which to give up; by default never.")
    var timeout: Double?

    func validate() throws {
        if let timeout, !(0...1e9).contains(timeout) {
            throw ValidationError("--timeout \(timeout) is out of range: give seconds from 0 on")
        }
    }

    func run() async throws {
        let target = target
        let status = await withTaskGroup(of: Path.Status.self) { group in
            group.addTask {
                if let target {
                    for await (path, _) in HostReachability(target.target).updates where path.status.endsWaiting {
                        return path.status
                    }
                } else {
                    for await path in PathMonitor() where path.status.endsWaiting { return path.status }
                }
                return .unsatisfied
            }
            if let timeout {
                group.addTask {
                    try? await ContinuousClock().sleep(for: .seconds(timeout))
                    return .unsatisfied
                }
            }
            let first = await group.next() ?? .unsatisfied
            group.cancelAll()
            return first
        }
        switch status {
        case .satisfied: return
        case .unsatisfied, .requiresConnection: throw ExitCode(1)
        case .unknown:
            Output.fail("The kernel cannot be asked for a route. Is netlink to be had here?")
            throw ExitCode(EX_UNAVAILABLE)
        }
    }
}

extension Path.Status {
    /// Whether there is nothing to wait for: it can be reached, or no change would ever be told.
    fileprivate var endsWaiting: Bool {
        switch self {
        case .satisfied, .unknown: true
        case .unsatisfied, .requiresConnection: false
        }
    }
}
