// SPDX-License-Identifier: Apache-2.0

public import DialtoneNetworkPath
internal import DialtonePlatform

extension HostReachability {
    /// Why the path is as it is, step by step; with an interface to ignore, what the path would be without it.
    ///
    /// ```swift
    /// let explanation = try await HostReachability("sip.example.com").explanation(without: "wlan0")
    /// print(explanation.path.status, explanation.steps.map(\.text))
    /// ```
    ///
    /// The verdict is made anew, of what the kernel says now. Rules and routes are read for it, where lookups alone do
    /// not explain: a question for a person to ask, not for every event.
    ///
    /// - Parameter interface: the name of an interface of this machine. The path is then the one that the kernel would
    ///   choose if that interface were removed, with its addresses, its routes and the interfaces that stand on it.
    /// - Throws: ``ReachabilityError/noSuchInterface(_:known:)`` where there is no such interface. Where the kernel
    ///   cannot be asked, the path's status says so.
    public func explanation(without interface: String? = nil) async throws(ReachabilityError) -> Explanation {
        let inspection = RunningInspection()
        let result: NetworkState.Inspected = await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                inspection.start(continuation) { [engine, target] handler in
                    engine().inspect(target, without: interface, handler)
                }
            }
        } onCancel: {
            inspection.cancel()
        }
        switch result {
        case .success(let explanation): return explanation
        case .failure(.noSuchInterface(let name, let known)): throw .noSuchInterface(name, known: known)
        case .failure(.kernel(let error)): throw .unknown(error.description)
        }
    }
}

/// An inspection that a task waits for. Its continuation is resumed exactly once: by the answer, or when the task is
/// cancelled.
private final class RunningInspection: Sendable {
    private typealias Waiting = CheckedContinuation<NetworkState.Inspected, Never>

    @AgentQueue private var inspection: PathInspection?
    private let state = Lock<(waiting: Waiting?, isOver: Bool)>((nil, false))

    func start(
        _ continuation: CheckedContinuation<NetworkState.Inspected, Never>,
        _ begin:
            @escaping @Sendable @AgentQueue (@escaping @AgentQueue (NetworkState.Inspected) -> Void) ->
            PathInspection
    ) {
        state.withLock { $0.waiting = continuation }
        AgentQueue.async { [self] in
            guard !state.withLock({ $0.isOver }) else { return finish(.cancelled) }
            inspection = begin { self.finish($0) }
        }
    }

    func cancel() {
        state.withLock { $0.isOver = true }
        AgentQueue.async { [self] in
            inspection?.cancel()
            finish(.cancelled)
        }
    }

    private func finish(_ result: NetworkState.Inspected) {
        let waiting = state.withLock { state in
            state.isOver = true
            defer { state.waiting = nil }
            return state.waiting
        }
        waiting?.resume(returning: result)
    }
}

extension NetworkState.Inspected {
    /// What a task gets that does not want to know any more.
    fileprivate static var cancelled: Self { .success(Explanation(path: Path(status: .unknown))) }
}
