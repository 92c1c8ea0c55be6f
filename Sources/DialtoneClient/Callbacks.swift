// SPDX-License-Identifier: Apache-2.0

internal import DialtonePlatform
public import DialtoneVarlink
public import Dispatch

extension DialtoneClient {
    /// Calls `method`; `completion` is called once, on `queue`.
    public func call<M: VarlinkMethod>(
        _ method: M.Type, _ parameters: M.Parameters, timeout: Duration = defaultTimeout, on queue: DispatchQueue,
        _ completion: @escaping @Sendable (Result<M.Reply, DialtoneError>) -> Void
    ) {
        AgentQueue.async {
            PendingCall<M>(paths: paths, parameters: parameters, timeout: timeout).start { result in
                queue.async { completion(result.map(\.reply)) }
            }
        }
    }

    /// Calls `method` for a stream. `handler` is called on `queue` with each reply, and at the end once with `nil` or
    /// with what ended it. The next reply is read when `handler` has returned. It goes on until the returned object is
    /// cancelled or dropped.
    public func stream<M: VarlinkMethod>(
        _ method: M.Type, _ parameters: M.Parameters, on queue: DispatchQueue,
        _ handler: @escaping @Sendable (Result<M.Reply?, DialtoneError>) -> Void
    ) -> DialtoneSubscription {
        let subscription = DialtoneSubscription()
        let state = subscription.state
        AgentQueue.async {
            let stream = OpenStream<M>(paths: paths, parameters: parameters)
            guard state.attach({ AgentQueue.async { stream.cancel() } }) else { return }
            deliver(stream, on: queue, while: state, handler)
        }
        return subscription
    }

    @AgentQueue
    private func deliver<M: VarlinkMethod>(
        _ stream: OpenStream<M>, on queue: DispatchQueue, while state: DialtoneSubscription.State,
        _ handler: @escaping @Sendable (Result<M.Reply?, DialtoneError>) -> Void
    ) {
        stream.next { result in
            queue.async {
                guard !state.isCancelled else { return }
                handler(result)
                guard case .success(.some) = result, !state.isCancelled else { return }
                AgentQueue.async { deliver(stream, on: queue, while: state, handler) }
            }
        }
    }
}

/// A stream that is delivered to a handler on a queue.
public final class DialtoneSubscription: Sendable {
    let state = State()

    deinit { state.cancel() }

    /// Hangs up. Called on the handler's queue, no call of the handler follows; called elsewhere, one that has begun
    /// goes on to its end.
    public func cancel() {
        state.cancel()
    }

    /// What the handler's side and the canceller's share.
    final class State: Sendable {
        private struct Guarded {
            var isCancelled = false
            var hangUp: (@Sendable () -> Void)?
        }

        private let guarded = Lock(Guarded())

        var isCancelled: Bool { guarded.withLock { $0.isCancelled } }

        /// Notes what a cancellation has to do; false if it is too late.
        func attach(_ hangUp: @escaping @Sendable () -> Void) -> Bool {
            guarded.withLock {
                if !$0.isCancelled { $0.hangUp = hangUp }
                return !$0.isCancelled
            }
        }

        func cancel() {
            let hangUp = guarded.withLock {
                $0.isCancelled = true
                let hangUp = $0.hangUp
                $0.hangUp = nil
                return hangUp
            }
            hangUp?()
        }
    }
}
