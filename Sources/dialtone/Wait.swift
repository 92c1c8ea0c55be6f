// SPDX-License-Identifier: Apache-2.0

internal import ArgumentParser
internal import NetworkPath
internal import Reachability

struct Wait: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Wait until a host, or the network as such, can be reached.",
        discussion: "Needs no agent. Exit status: 0 once it can be reached, 1 at the timeout.")

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
        let isReached = await withTaskGroup(of: Bool.self) { group in
            group.addTask {
                if let target {
                    for await (path, _) in HostReachability(target.target).updates where path.status == .satisfied {
                        return true
                    }
                } else {
                    for await path in PathMonitor() where path.status == .satisfied { return true }
                }
                return false
            }
            if let timeout {
                group.addTask {
                    try? await ContinuousClock().sleep(for: .seconds(timeout))
                    return false
                }
            }
            let first = await group.next() ?? false
            group.cancelAll()
            return first
        }
        if !isReached { throw ExitCode(1) }
    }
}
