// SPDX-License-Identifier: Apache-2.0

internal import DialtoneNetlink
internal import DialtoneNetworkPath
internal import DialtonePlatform

/// Inquiries whose lookups go to the kernel together, and what it answered.
@AgentQueue
struct LookupBatch {
    /// The place of one inquiry in the batch.
    struct Slot {
        fileprivate let inquiry: Inquiry
        fileprivate let range: Range<Int>
    }

    private var slots: [Slot] = []
    private var queries: [PreparedQuery] = []
    private var answers: [RouteAnswer] = []

    /// Adds an inquiry; its path can be had from the slot once the batch ran.
    mutating func add(_ inquiry: Inquiry) -> Slot {
        let start = queries.count
        queries += inquiry.queries
        let slot = Slot(inquiry: inquiry, range: start..<queries.count)
        slots.append(slot)
        return slot
    }

    /// Asks the kernel, and has the gateways that it names watched along with `gateways`, to which they are added.
    mutating func run(
        on kernel: KernelMonitor, alsoWatching gateways: inout Set<NetworkSnapshot.Neighbour>
    ) throws(SystemError) {
        guard !slots.isEmpty else { return }
        // One that comes back after the answer is then told.
        if queries.contains(where: { $0.query.destination.family == .v6 }) { kernel.watchSilentRouters() }
        answers = try kernel.routes(for: queries)
        try askAgain(kernel)
        for case .route(let route) in answers {
            if let gateway = route.gateway {
                gateways.insert(.init(interfaceIndex: route.interfaceIndex, address: gateway))
            }
        }
        // Before the verdicts are made: what is known of a new gateway is then part of them.
        try kernel.watch(gateways: gateways)
        let snapshot = kernel.snapshot
        for slot in slots { slot.inquiry.note(answers[slot.range], in: snapshot) }
    }

    /// The kernel does not send packets where they cannot go. An answer that does so by the snapshot is often newer
    /// than that: the notice of a link that is up again is still to be read, while its routes are there. With nothing
    /// left to read, both are of the same moment.
    private mutating func askAgain(_ kernel: KernelMonitor) throws(SystemError) {
        for _ in 0..<Self.mostRepeats {
            let snapshot = kernel.snapshot
            let isDoubtful = zip(queries, answers).contains { snapshot.hasObstacle(on: $1, to: $0.query.destination) }
            guard isDoubtful, kernel.readAhead() else { return }
            answers = try kernel.routes(for: queries)
        }
    }

    /// In a storm there is always something left to read, and the next evaluation is due within milliseconds.
    private static let mostRepeats = 3

    /// The path that the answers make for the inquiry in `slot`.
    func path(_ slot: Slot, in snapshot: NetworkSnapshot) -> Path {
        slot.inquiry.path(by: answers[slot.range], in: snapshot)
    }

    /// Whether a packet of `family` can leave, by the inquiry in `slot`.
    func reaches(_ family: IPAddress.Family, by slot: Slot, in snapshot: NetworkSnapshot) -> Bool {
        slot.inquiry.reaches(family, by: answers[slot.range], in: snapshot)
    }
}
