// SPDX-License-Identifier: Apache-2.0

internal import DialtoneAPI
internal import DialtoneConnection
internal import DialtonePersistence
internal import DialtonePlatform
internal import DialtoneVarlink

/// The calls of `Take` that wait: for a flow that can be taken, or for something to be read on one. In the order in
/// which they came, and no longer than their clients.
@AgentQueue
final class WaitingTakes {
    /// One call.
    @AgentQueue
    final class Call {
        /// The connection that it meant when it came.
        let key: ConnectionKey
        let awaited: ConnectionsAPI.Take.Parameters.Until
        let exchange: VarlinkExchange<ConnectionsAPI.Take>
        /// Whether its turn to look comes, after something has happened.
        fileprivate var isDue = false

        init(
            _ key: ConnectionKey, until awaited: ConnectionsAPI.Take.Parameters.Until,
            _ exchange: VarlinkExchange<ConnectionsAPI.Take>
        ) {
            (self.key, self.awaited, self.exchange) = (key, awaited, exchange)
        }
    }

    private var calls: [ConnectionKey: [Call]] = [:]
    private let registry: ConnectionRegistry
    /// Answers a call if that can be done now; says whether it did.
    private let answer: @AgentQueue (Call) -> Bool

    /// No calls.
    init(of registry: ConnectionRegistry, answer: @escaping @AgentQueue (Call) -> Bool) {
        self.registry = registry
        self.answer = answer
        registry.onEvent { [weak self] in self?.happened(to: ConnectionKey($0.name, of: $0.owner)) }
    }

    /// Answers a call now, or when it can be.
    func add(_ call: Call) {
        guard !answer(call) else { return }
        calls[call.key, default: []].append(call)
        registry.subscriptionsChanged(of: call.key.owner)
        call.exchange.onCancel = { [weak self, weak call] in
            guard let self, let call else { return }
            remove(call)
            registry.subscriptionsChanged(of: call.key.owner)
        }
    }

    /// Whether a client waits to take the connection.
    func areAbout(_ connection: RegisteredConnection) -> Bool { calls[connection.key] != nil }

    private func happened(to key: ConnectionKey) {
        for call in calls[key] ?? [] where !call.isDue {
            call.isDue = true
            // Not in the middle of the event, and at its user's expense.
            call.exchange.inTurn { [weak self, weak call] in
                guard let self, let call else { return }
                call.isDue = false
                if answer(call) { remove(call) }
            }
        }
    }

    private func remove(_ call: Call) {
        calls[call.key]?.removeAll { $0 === call }
        if calls[call.key]?.isEmpty == true { calls[call.key] = nil }
    }
}
