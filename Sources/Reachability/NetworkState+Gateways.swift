// SPDX-License-Identifier: Apache-2.0

internal import DialtoneNetlink
package import DialtoneNetworkPath
internal import DialtonePlatform

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
        let overdue = prober.probe(gatewaysToProbe(in: kernel.snapshot.failedNeighbours), isWanted: askers > 0)
        // Nobody asked for them for a while: what is known is old, and those who ask now wait for the outcome.
        for gateway in overdue { kernel.awaitAnew(gateway) }
        if !overdue.isEmpty { limitWaits() }
    }

    /// So many more observers want to know how the network is.
    func addAskers(_ count: Int) {
        let before = askers
        askers += count
        if (before > 0) != (askers > 0) { tendGateways() }
    }

    /// What asks for dead gateways.
    func makeProber() -> GatewayProber {
        GatewayProber(
            solicit: { [weak self] gateway in self?.kernel?.solicit(gateway) ?? false },
            hasAsked: { [weak self] gateway in
                // In a turn of its own: the prober is in the middle of its work.
                AgentQueue.async {
                    guard let self, let kernel = self.kernel else { return }
                    self.kernelChanged(kernel.recheckFailure(of: gateway))
                }
            },
            giveBenefitOfDoubt: { [weak self] gateway in
                guard let self, let kernel else { return }
                kernelChanged(kernel.doubtFailure(of: gateway))
            })
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

    // MARK: Gateways that are being asked for

    /// The kernel asks three times, a second apart (`mcast_solicit` and `retrans_time_ms`), and a second after the last
    /// it knows. A little later its word has come; what is not known by then is given the benefit of the doubt.
    static let longestWait = Duration.milliseconds(3500)

    /// Whether somebody who knows nothing yet should wait with `path`, for what becomes of its gateway. The path to a
    /// name without addresses rests on no lookup.
    func isAwaited(_ path: Path, of watched: WatchedQuestion) -> Bool {
        guard let kernel, watched.inquiry != nil else { return false }
        return kernel.snapshot.awaitsGateway(of: path)
    }

    /// Calls `body` when it is known of each of `gateways` whether it answers, or is not going to be.
    func whenKnown(_ gateways: Set<NetworkSnapshot.Neighbour>, _ body: @escaping @AgentQueue () -> Void) {
        guard let kernel else { return body() }
        self.gateways.formUnion(gateways)
        try? kernel.watch(gateways: self.gateways)
        awaiting.append((gateways, body))
        limitWaits()
        // Not in the turn of the caller, who is in the middle of it.
        AgentQueue.async { [weak self] in self?.endWaits() }
    }

    /// Sets the ends of the waits that have begun.
    func limitWaits() {
        let present = kernel?.snapshot.awaitedNeighbours ?? []
        guard !(present.isEmpty && awaited.isEmpty) else { return }
        for gateway in awaited.keys where !present.contains(gateway) {
            awaited.removeValue(forKey: gateway)?.cancel()
        }
        for gateway in present where awaited[gateway] == nil {
            awaited[gateway] = Timers.shared.schedule(after: Self.longestWait) { [weak self] in
                guard let self, let kernel else { return }
                awaited[gateway] = nil
                kernelChanged(kernel.stopAwaiting(gateway))
            }
        }
    }

    /// Calls those whose wait is over.
    func endWaits() {
        limitWaits()
        let present = kernel?.snapshot.awaitedNeighbours ?? []
        let over = awaiting.filter { present.isDisjoint(with: $0.gateways) }
        guard !over.isEmpty else { return }
        awaiting.removeAll { present.isDisjoint(with: $0.gateways) }
        for (_, body) in over { body() }
    }

    /// A default route that comes and goes has the same gateway each time, and a filter for it costs a system call; the
    /// gateways of all the networks that a laptop was in are not worth a word from the kernel.
    static let mostIdleGateways = 8
}
