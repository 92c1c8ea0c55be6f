// SPDX-License-Identifier: Apache-2.0

internal import DialtoneNetworkPath

// What a path says to a dial and to a flow.

extension Path {
    /// Whether a dial may be made over it.
    ///
    /// A path that is unknown may work, and a dial brings up a link on demand. A name without an address is dialled,
    /// too, as long as a name server can be asked: the dial asks for the name again.
    var permitsDialling: Bool {
        switch status {
        case .satisfied, .requiresConnection, .unknown: true
        case .unsatisfied: reason == .nameUnresolved && supportsDNS
        }
    }

    /// Whether packets take another way than by an earlier path. Only what both paths know can differ: a verdict or a
    /// source that was unknown before is news, not a move.
    func leadsElsewhere(than earlier: Path) -> Bool {
        guard status == .satisfied, earlier.status == .satisfied else { return false }
        if let source, let earlierSource = earlier.source, source != earlierSource { return true }
        return interface?.index != earlier.interface?.index || gateway != earlier.gateway
    }

    /// Whether a dial that failed before has a new chance.
    func promisesMore(than earlier: Path) -> Bool {
        status != earlier.status || reason != earlier.reason || interface?.index != earlier.interface?.index
            || gateway != earlier.gateway || source != earlier.source || (supportsDNS && !earlier.supportsDNS)
    }

    /// Whether packets leave from the flow's own address, which is on this machine then.
    func leadsBack(to flow: FlowEnds) -> Bool { status == .satisfied && source == flow.local.address }

    /// Whether this shows that a flow has no way any more: there is none, or it leads from another address by now. It
    /// says nothing of a flow over another uplink than the kernel's.
    func leadsAway(from flow: StandingFlow) -> Bool {
        guard !flow.way.isDetour, destination == flow.ends.remote.address else { return false }
        guard permitsDialling else { return true }
        return status == .satisfied && source.map { $0 != flow.ends.local.address } ?? false
    }
}
