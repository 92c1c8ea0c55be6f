// SPDX-License-Identifier: Apache-2.0

import Dispatch
import Reachability

/// Follows the network, and a host if one is given, until it is interrupted. No daemon is needed.
///
///     reachability-watch
///     reachability-watch sip.example.com 5061
@main
struct ReachabilityWatch {
    /// Every callback comes on a queue of yours; a serial one keeps the lines whole.
    static let queue = DispatchQueue(label: "example.reachability-watch")

    static func main() async {
        let arguments = CommandLine.arguments.dropFirst()

        // The network as such, as with NWPathMonitor: the present path first, then each that differs.
        let monitor = PathMonitor()
        monitor.pathUpdateHandler = { path in print("network:", describe(path)) }
        monitor.start(queue: queue)

        guard let name = arguments.first else {
            // The same as an asynchronous sequence. It never ends by itself.
            for await path in PathMonitor(requiring: .wifi) { queue.sync { print("wifi:   ", describe(path)) } }
            return
        }

        // One host. The kernel's rules are asked for exactly this packet, so the port counts.
        let host = HostReachability(name, port: arguments.dropFirst().first.flatMap { UInt16($0) })

        // For code that comes from SCNetworkReachability: its flags, under its names, once a name is resolved.
        do {
            let flags = try await host.flags()
            let isFree = flags.contains(.reachable) && !flags.contains(.isWWAN)
            queue.sync { print("flags:  ", flags.contains(.reachable), isFree ? "and not by mobile network" : "") }
        } catch {
            // The kernel cannot be asked here, in a sandbox without netlink. That is not "offline".
            queue.sync { print("flags:  ", error) }
        }

        // What changed has a name: a new source address means that connections from the old one are dead.
        host.setCallback(on: queue) { path, changes in
            print("\(name):", describe(path), changes.map(\.rawValue))
            if changes.contains(.source) { print("  now is the time to dial again") }
        }

        // Both are ended by `cancel()`, and by being let go of: keep them as long as you want to hear of them.
        for await (path, _) in host.updates where path.status == .satisfied {
            queue.sync { print("  packets go from", path.source?.description ?? "-") }
        }
    }

    static func describe(_ path: Path) -> String {
        switch path.status {
        case .satisfied:
            let interface = path.interface.map { "over \($0.name) (\($0.kind.rawValue))" } ?? ""
            return "satisfied \(interface)\(path.isExpensive ? ", expensive" : "")"
        case .unsatisfied: return "unsatisfied: \(path.reason?.rawValue ?? "")"
        case .requiresConnection: return "once a connection is brought up"
        case .unknown: return "unknown: the kernel cannot be asked"
        }
    }
}
