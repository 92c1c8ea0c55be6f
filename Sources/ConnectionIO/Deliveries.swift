// SPDX-License-Identifier: Apache-2.0

internal import Platform

/// Flows with TLS that are closed but for what they have received and their client has not: it is delivered until the
/// client has read to its end. Bounded in number and time.
@AgentQueue
final class Deliveries {
    /// How many there are at a time.
    var most = 8
    /// How long the client of one may leave it unread.
    var patience = Duration.seconds(600)

    /// The oldest first.
    private var deliveries: [(flow: Flow, isAborting: Bool, timer: Timers.Timer)] = []

    /// Whether nothing is being delivered.
    var isEmpty: Bool { deliveries.isEmpty }

    /// Closes a flow, as soon as its client has been given what it has received.
    func letGo(_ flow: Flow, aborting: Bool = false) {
        // Behind what was delivered, the client of one that is cut reads an error.
        guard flow.owesClient, most > 0 else { return flow.close(aborting: aborting) }
        if deliveries.count == most { endDelivery(of: deliveries[0].flow) }
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
    }
}
