// SPDX-License-Identifier: Apache-2.0

internal import DialtoneConnection
internal import DialtoneConnectionIO
internal import DialtonePlatform

/// The calls of a client that keeps its connection alive itself: while its flow is parked, and no more often than its
/// timeout asks.
@AgentQueue
final class ClientCalls {
    private let context: DialerContext
    private let call: @AgentQueue () -> Void
    /// What the client or the configuration said; `nil` where nobody is called.
    var handler: ClientHandler? {
        didSet {
            guard handler != oldValue else { return }
            let wasPlanned = plan != nil
            stop()
            if wasPlanned { begin() }
        }
    }
    private var plan: (any Ongoing)?

    /// Nobody is called yet.
    init(_ context: DialerContext, call: @escaping @AgentQueue () -> Void) {
        self.context = context
        self.call = call
    }

    isolated deinit { plan?.cancel() }

    /// The flow has this owner from now on; `nil` without one.
    func ownershipChanged(to ownership: FlowOwnership?) {
        let isParked = ownership?.isParked ?? false
        if isParked, plan == nil { begin() }
        if !isParked { stop() }
    }

    private func begin() {
        guard let handler else { return }
        plan = context.plan(handler.cadence, wakesMachine: handler.wakesMachine) { [weak self] in self?.call() }
    }

    private func stop() {
        plan?.cancel()
        plan = nil
    }
}
