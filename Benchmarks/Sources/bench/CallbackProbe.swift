// SPDX-License-Identifier: Apache-2.0

internal import Dispatch
internal import Reachability

/// From the kernel's event to the library's callback on the user's queue.
enum CallbackProbe {
    static func measure(hosts count: Int) async throws -> Measurement {
        let network = try ProbeNetwork.build()
        let stamps = CallbackStamps()
        let queue = DispatchQueue(label: "bench", qos: .userInteractive)
        let hosts = (1...count).map { HostReachability(ProbeNetwork.host($0)) }
        for host in hosts { host.setCallback(on: queue) { _, _ in stamps.add() } }
        defer { for host in hosts { host.cancel() } }
        for host in hosts { _ = await host.path() }
        let rounds = Rounds(count: count > 100 ? 200 : 500, stampsPerReaction: count)
        return try await rounds.measure(against: network.bare, stamps) {
            try network.route.change(add: $0.isMultiple(of: 2))
        }
    }
}
