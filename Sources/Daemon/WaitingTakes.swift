// SPDX-License-Identifier: Apache-2.0

internal import DialtoneAPI
internal import Platform
internal import Supervisor
internal import Varlink

/// The calls of `Take` that wait: for a flow that can be taken, or for something to be read on one. In the order in
/// which they came, and no longer than their clients.
@AgentQueue
final class WaitingTakes {
    /// One call.
    @AgentQueue
    final class Call {
        let which: ConnectionReference
        let awaited: ConnectionsAPI.Take.Awaited
        let exchange: VarlinkExchange<ConnectionsAPI.Take>
        /// Whether its turn to look comes, after something has happened.
        fileprivate var isDue = false

        init(
            _ which: ConnectionReference, until awaited: ConnectionsAPI.Take.Awaited,
            _ exchange: VarlinkExchange<ConnectionsAPI.Take>
        ) {
            (self.which, self.awaited, self.exchange) = (which, awaited, exchange)
        }

        /// Whether it may be about a connection.
        fileprivate func mayMean(_ name: String, of owner: UInt32) -> Bool {
            guard which.name == name else { return false }
            return RegisteredConnection.isVisible(ownedBy: owner, to: exchange.peer.uid)
        }
    }

    private var calls: [String: [Call]] = [:]
    private let registry: ConnectionRegistry
    /// Answers a call if that can be done now; says whether it did.
    private let answer: @AgentQueue (Call) -> Bool

    /// No calls.
    init(of registry: ConnectionRegistry, answer: @escaping @AgentQueue (Call) -> Bool) {
        self.registry = registry
        self.answer = answer
        registry.onEvent { [weak self] in self?.happened(to: $0.name, of: $0.owner) }
    }

    /// Answers a call now, or when it can be.
    func add(_ call: Call) {
        guard !answer(call) else { return }
        calls[call.which.name, default: []].append(call)
        let user = call.exchange.peer.uid
        registry.subscriptionsChanged(of: user)
        call.exchange.onCancel = { [weak self, weak call] in
            guard let self, let call else { return }
            remove(call)
            registry.subscriptionsChanged(of: user)
        }
    }

    /// Whether somebody waits to take a connection: nobody else has to be woken for it.
    func areAbout(_ connection: RegisteredConnection) -> Bool {
        calls[connection.name]?.contains { $0.mayMean(connection.name, of: connection.owner) } ?? false
    }

    private func happened(to name: String, of owner: UInt32) {
        for call in calls[name] ?? [] where !call.isDue && call.mayMean(name, of: owner) {
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
        let name = call.which.name
        calls[name]?.removeAll { $0 === call }
        if calls[name]?.isEmpty == true { calls[name] = nil }
    }
}
