// SPDX-License-Identifier: Apache-2.0

internal import Netlink
internal import NetworkPath
internal import Platform

/// Inquiries whose lookups go to the kernel together, and what it answered.
@AgentQueue
struct LookupBatch {
    /// The place of one inquiry in the batch.
    struct Slot {
        fileprivate let inquiry: Inquiry
        fileprivate let range: Range<Int>
    }

    private var queries: [PreparedQuery] = []
    private var answers: [RouteAnswer] = []

    /// Adds an inquiry; its path can be had from the slot once the batch ran.
    mutating func add(_ inquiry: Inquiry) -> Slot {
        let start = queries.count
        queries += inquiry.queries
        return Slot(inquiry: inquiry, range: start..<queries.count)
    }

    /// Asks the kernel, and has the gateways that it names watched along with `others`.
    ///
    /// - Returns: all gateways that are watched now.
    mutating func run(
        on kernel: KernelMonitor, alsoWatching others: Set<NetworkSnapshot.Neighbour>
    ) throws(SystemError) -> Set<NetworkSnapshot.Neighbour> {
        guard !queries.isEmpty else { return others }
        answers = try kernel.routes(for: queries)
        var gateways = others
        for case .route(let route) in answers {
            if let gateway = route.gateway {
                gateways.insert(.init(interfaceIndex: route.interfaceIndex, address: gateway))
            }
        }
        // Before the verdicts are made: what is known of a new gateway is then part of them.
        try kernel.watch(gateways: gateways)
        return gateways
    }

    /// The path that the answers make for the inquiry in `slot`.
    func path(_ slot: Slot, in snapshot: NetworkSnapshot) -> Path {
        slot.inquiry.path(by: answers[slot.range], in: snapshot)
    }

    /// Whether a packet of `family` can leave, by the inquiry in `slot`.
    func reaches(_ family: IPAddress.Family, by slot: Slot, in snapshot: NetworkSnapshot) -> Bool {
        slot.inquiry.reaches(family, by: answers[slot.range], in: snapshot)
    }
}
