// SPDX-License-Identifier: Apache-2.0

public import DialtoneNetworkPath
internal import DialtonePlatform
internal import Dispatch

/// Paths as an asynchronous sequence: the present one first, then each that differs, with the names of what does.
///
/// It holds at most the latest: a consumer that is slower than the network misses those between, and
/// ``Path/generation`` tells that there were some. The changes are always those from the path that the
/// consumer saw before. The observation ends with the task that iterates.
public struct PathUpdates: AsyncSequence, Sendable {
    /// A path, and the names of what differs from the one before it; no names for the first.
    public typealias Element = (path: Path, changes: [PathChange])

    private let question: Question
    private let engine: @Sendable @AgentQueue () -> NetworkState

    init(_ question: Question, on engine: @escaping @Sendable @AgentQueue () -> NetworkState) {
        self.question = question
        self.engine = engine
    }

    /// What an iteration stands at.
    public struct AsyncIterator: AsyncIteratorProtocol {
        fileprivate var paths: AsyncStream<Path>.AsyncIterator
        fileprivate var seen: Path?

        /// The next path that differs; `nil` when the task is cancelled.
        public mutating func next() async -> Element? {
            // A path that was replaced before it was fetched may leave nothing that differs from the one seen last.
            while let path = await paths.next() {
                let changes = seen.map { path.changes(from: $0) }
                seen = path
                if let changes, changes.isEmpty { continue }
                return (path, changes ?? [])
            }
            return nil
        }
    }

    /// Begins an observation.
    public func makeAsyncIterator() -> AsyncIterator {
        let (paths, continuation) = AsyncStream.makeStream(of: Path.self, bufferingPolicy: .bufferingNewest(1))
        let queue = DispatchQueue(label: "org.dialtone.reachability.updates")
        let subscription = PathSubscription(to: question, on: engine, queue: queue) { path, _ in
            continuation.yield(path)
        }
        continuation.onTermination = { _ in subscription.cancel() }
        return AsyncIterator(paths: paths.makeAsyncIterator())
    }
}
