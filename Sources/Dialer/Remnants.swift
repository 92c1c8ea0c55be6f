// SPDX-License-Identifier: Apache-2.0

internal import Platform

/// The flows of one connection that ended before their client had read what came on them.
///
/// TCP has acknowledged those bytes to the server, which will not send them again. So a flow that ended while nobody
/// read it waits to be taken, and who took it may lose it on its way, or end before its first read: it is kept until
/// its taker has shown that it has it. One with TLS that ended while a client had it, or whose taker has moved on, is
/// kept until that client has read to its end. Both are bounded in number. Nothing is done until a client does
/// something; a timer runs for those alone that somebody reads.
@AgentQueue
final class Remnants {
    /// How many flows of either kind are kept: who does not come has slept through as many losses of the line.
    private static let most = 8
    /// How many of those are kept that are delivered.
    var mostDeliveries = Remnants.most
    /// How long the client of such a one may leave it unread.
    var patience = Duration.seconds(600)

    private struct Remnant {
        let flow: Flow
        /// Who has it; `nil` while it waits.
        var taker: FlowTaker?
        /// Whether it was given to that taker twice.
        var wasRepeated = false
        /// Whether nobody was logged in on it, and the server hung up.
        var isRefusal = false
    }

    /// Oldest first.
    private var remnants: [Remnant] = []
    /// Those that are delivered to whoever has the other end, the oldest first.
    private var deliveries: [(flow: Flow, isAborting: Bool, timer: Timers.Timer)] = []

    /// The flows that may be taken, the oldest first.
    var flows: [Flow] { remnants.map(\.flow) }

    /// Whether there is nothing that a client has not read.
    var isEmpty: Bool { deliveries.isEmpty && remnants.allSatisfy { !$0.flow.mayHaveUnread } }

    /// Whether one waits to be taken.
    var isWaiting: Bool { remnants.contains { $0.taker == nil } }

    // MARK: - What ends

    /// Keeps a flow that ended while nobody read it.
    func keep(_ flow: Flow) {
        if remnants.count == Self.most {
            // What somebody has taken is not lost by that.
            drop(at: remnants.firstIndex { $0.taker != nil } ?? 0)
        }
        flow.finish()
        flow.isParked = true
        remnants.append(Remnant(flow: flow))
    }

    /// Keeps what a server said that turned the agent away, in place of what it said before. It is of less use than
    /// what waits on other flows, and does not outlive the process.
    func keepRefusal(_ flow: Flow) {
        dropRefusal()
        guard remnants.count < Self.most else { return flow.close(aborting: false) }
        flow.leaveStore()
        keep(flow)
        remnants[remnants.count - 1].isRefusal = true
    }

    /// Nobody wants to know any more why the server turned the agent away; who has taken it reads on.
    func dropRefusal() {
        if let index = remnants.firstIndex(where: { $0.isRefusal && $0.taker == nil }) { drop(at: index) }
    }

    /// Keeps a flow that an earlier process left, which had ended by then.
    func restore(_ flow: Flow) { remnants.append(Remnant(flow: flow)) }

    /// Closes a flow, as soon as its client has been given what it has received.
    func letGo(_ flow: Flow, aborting: Bool = false) {
        // Behind what was delivered, the client of one that is cut reads an error.
        guard flow.owesClient, mostDeliveries > 0 else { return flow.close(aborting: aborting) }
        if deliveries.count == mostDeliveries { endDelivery(of: deliveries[0].flow) }
        deliveries.append((flow, aborting, timer(for: flow)))
        flow.deliverRest { [weak self, unowned flow] isAll in
            guard let self, let index = deliveries.firstIndex(where: { $0.flow === flow }) else { return }
            if isAll { return endDelivery(of: flow) }
            deliveries[index].timer.cancel()
            deliveries[index].timer = timer(for: flow)
        }
    }

    private func timer(for flow: Flow) -> Timers.Timer {
        Timers.shared.schedule(after: patience) { [weak self, weak flow] in
            if let flow { self?.endDelivery(of: flow) }
        }
    }

    private func endDelivery(of flow: Flow) {
        guard let index = deliveries.firstIndex(where: { $0.flow === flow }) else { return }
        let delivery = deliveries.remove(at: index)
        delivery.timer.cancel()
        flow.close(aborting: delivery.isAborting)
    }

    /// Closes all of them.
    func close() {
        for delivery in deliveries { endDelivery(of: delivery.flow) }
        for remnant in remnants { remnant.flow.close(aborting: false) }
        remnants = []
    }

    // MARK: - Who takes them

    /// The oldest flow that `taker` has not had; `nil` when there is none.
    ///
    /// Who comes again has what it took before, if it has read any of it. Else it may never have got the descriptor,
    /// and is given it once more: but not for ever, since it may be about to take everything first, and then read.
    func take(by taker: FlowTaker) throws(SystemError) -> HandedFlow? {
        var index = 0
        while index < remnants.count {
            let (flow, previous) = (remnants[index].flow, remnants[index].taker)
            let isAgain = previous == taker || previous == .unknown
            if !flow.mayHaveUnread || (isAgain && (remnants[index].wasRepeated || !flow.mayBeUntouched)) {
                drop(at: index)
            } else if previous == nil || isAgain {
                let descriptor = try flow.handOver()
                (remnants[index].taker, remnants[index].wasRepeated) = (taker, isAgain)
                return HandedFlow(epoch: flow.epoch, descriptor: descriptor, isOver: true)
            } else {
                index += 1
            }
        }
        return nil
    }

    /// Who has the flow of a number; `nil` where nobody has, or where it is not kept.
    func taker(of epoch: UInt64) -> FlowTaker? {
        remnants.first { $0.flow.epoch == epoch }?.taker
    }

    /// The program that a flow was taken for runs, and is known by this.
    func launched(_ epoch: UInt64, as taker: FlowTaker) {
        if let index = index(of: epoch) { remnants[index].taker = taker }
    }

    /// Its taker has shown that it has it.
    func settle(_ epoch: UInt64) {
        if let index = index(of: epoch) { drop(at: index) }
    }

    /// Whoever has taken one has shown that it has it.
    func settleAll() {
        for (index, remnant) in remnants.enumerated().reversed() {
            switch remnant.taker {
            case .process, .unknown: drop(at: index)
            case .program, nil: break
            }
        }
    }

    /// Its taker never ran.
    func giveBack(_ epoch: UInt64) { wait(index(of: epoch)) }

    /// Its taker is gone without a word.
    ///
    /// - Parameter keepsRest: whether what is left is of use to another one that did not read what came before it.
    /// - Returns: whether it waits to be taken again.
    func abandon(_ epoch: UInt64, keepsRest: Bool) -> Bool {
        guard let index = index(of: epoch) else { return false }
        let flow = remnants[index].flow
        if flow.mayHaveUnread, keepsRest || flow.mayBeUntouched {
            wait(index)
            return true
        }
        drop(at: index)
        return false
    }

    /// One that somebody has taken.
    private func index(of epoch: UInt64) -> Int? {
        remnants.firstIndex { $0.flow.epoch == epoch && $0.taker != nil }
    }

    private func wait(_ index: Int?) {
        guard let index else { return }
        remnants[index].flow.isParked = true
        (remnants[index].taker, remnants[index].wasRepeated) = (nil, false)
    }

    private func drop(at index: Int) { letGo(remnants.remove(at: index).flow) }
}
