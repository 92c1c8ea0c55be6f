// SPDX-License-Identifier: Apache-2.0

internal import DialtoneNetworkPath
internal import DialtonePlatform
internal import Dispatch

/// What the library's two public classes share: an observation of the engine, delivered to a user's queue.
final class PathSubscription: Sendable {
    private let gate: CallbackGate<(path: Path, changes: [PathChange])>
    private let observation = AgentBox<PathObservation>()

    /// Observes `question` and calls `handler` on `queue`.
    init(
        to question: Question, on engine: @escaping @Sendable @AgentQueue () -> NetworkState, queue: DispatchQueue,
        _ handler: @escaping @Sendable (Path, [PathChange]) -> Void
    ) {
        gate = CallbackGate(to: queue) { handler($0.path, $0.changes) }
        AgentQueue.async { [gate, observation] in
            observation.set(engine().observe(question) { path, changes in gate.deliver((path, changes)) })
        }
    }

    deinit { cancel() }

    /// Ends the callbacks; see ``CallbackGate/shut()`` for what holds when it returns.
    func cancel() {
        gate.shut()
        AgentQueue.async { [observation] in observation.take()?.cancel() }
    }
}

/// A value of the agent's queue that is held from elsewhere.
private final class AgentBox<Value: Sendable>: Sendable {
    @AgentQueue private var value: Value?

    @AgentQueue func set(_ value: Value) { self.value = value }

    @AgentQueue func take() -> Value? {
        defer { value = nil }
        return value
    }
}
