// SPDX-License-Identifier: Apache-2.0

internal import Netlink
package import NetworkPath

/// The gateways that paths lead over: which are watched, and which are asked for.
extension NetworkState {
    /// The link-layer address of a gateway, which tells its network from another; `nil` where the kernel has none.
    package func linkAddress(of gateway: NetworkSnapshot.Neighbour) -> [UInt8]? { kernel?.linkAddress(of: gateway) }

    /// Drops the gateways that no path leads over any more, once there are many, and probes the dead ones of the rest.
    func tendGateways() {
        guard let kernel else { return }
        if gateways.count > toleratedGateways {
            // One that the kernel passes over is of use again when it answers (``VerdictBasis``).
            gateways = gatewaysInUse().union(kernel.snapshot.failedNeighbours)
            toleratedGateways = 2 * gateways.count + Self.mostIdleGateways
            // What the kernel refuses is tried again with the next evaluation.
            try? kernel.watch(gateways: gateways)
        }
        prober.probe(gatewaysToProbe(in: kernel.snapshot.failedNeighbours))
    }

    /// Of the dead gateways those that are to be asked for: also where the kernel has gone round them, since it would
    /// go back. IPv6 asks for these itself, and while somebody else does it goes by them as if they lived (`rt6_probe`
    /// and `rt6_check_neigh` in net/ipv6/route.c). So there it is done only where nothing is to be lost by it.
    private func gatewaysToProbe(in failed: Set<NetworkSnapshot.Neighbour>) -> Set<NetworkSnapshot.Neighbour> {
        guard failed.contains(where: { $0.address.family == .v6 }) else { return failed }
        let isNeeded = gatewaysInUse().contains { $0.address.family == .v6 && failed.contains($0) }
        return isNeeded ? failed : failed.filter { $0.address.family == .v4 }
    }

    private func gatewaysInUse() -> Set<NetworkSnapshot.Neighbour> {
        var gateways: Set<NetworkSnapshot.Neighbour> = []
        let inquiries = watched.values.compactMap(\.inquiry) + (facts?.inquiries ?? [])
        for case let basis? in inquiries.map(\.basis) { gateways.formUnion(basis.gateways) }
        return gateways
    }

    /// A default route that comes and goes has the same gateway each time, and a filter for it costs a system call; the
    /// gateways of all the networks that a laptop was in are not worth a word from the kernel.
    static let mostIdleGateways = 8
}
