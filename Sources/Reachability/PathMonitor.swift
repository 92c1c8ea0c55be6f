// SPDX-License-Identifier: Apache-2.0

public import DialtoneNetworkPath
internal import DialtonePlatform
public import Dispatch

/// Follows the path to "the network": whether packets for the Internet can leave this machine, by which interface, over
/// which gateway, and at what cost. What `NWPathMonitor` is on Apple's systems.
///
/// ```swift
/// let monitor = PathMonitor()
/// monitor.pathUpdateHandler = { path in print(path.status) }
/// monitor.start(queue: .main)
/// ```
///
/// The handler is called with the present path first, then with each that differs. Alternatively the monitor is an
/// asynchronous sequence; it is started by iterating:
///
/// ```swift
/// for await path in PathMonitor(requiring: .wifi) { … }
/// ```
///
/// Any thread may call any method.
public final class PathMonitor: Sendable {
    /// What is called on the queue given to ``start(queue:)``, one call at a time and in order.
    public typealias Handler = @Sendable (Path) -> Void

    private struct State {
        var handler: Handler?
        var path = Path(status: .unknown)
        var subscription: PathSubscription?
        var isCancelled = false
    }

    private let question: Question
    private let engine: @Sendable @AgentQueue () -> NetworkState
    private let state = Lock(State())

    /// A monitor of the path that the kernel would choose.
    public convenience init() {
        self.init(.any)
    }

    /// A monitor of the path over interfaces of one kind, like `NWPathMonitor(requiredInterfaceType:)`.
    public convenience init(requiring kind: InterfaceKind) {
        self.init(.requires(kind))
    }

    /// A monitor of the path over interfaces of other kinds than these.
    public convenience init(prohibiting kinds: Set<InterfaceKind>) {
        self.init(.prohibits(kinds))
    }

    package init(
        _ requirement: InterfaceRequirement, on engine: @escaping @Sendable @AgentQueue () -> NetworkState = { .shared }
    ) {
        question = .network(requirement)
        self.engine = engine
    }

    deinit { cancel() }

    /// Called with the present path once the monitor is started, then at each change. May be set at any time; a change
    /// of handler takes effect with the next call.
    public var pathUpdateHandler: Handler? {
        get { state.withLock { $0.handler } }
        set { state.withLock { $0.handler = newValue } }
    }

    /// The path last delivered; of status ``Path/Status/unknown`` until the first.
    public var currentPath: Path {
        state.withLock { $0.path }
    }

    /// Begins to deliver paths on `queue`. Does nothing when the monitor is started or cancelled already.
    ///
    /// - Parameter queue: any queue; also on a concurrent one the handler sees one path at a time, in order.
    public func start(queue: DispatchQueue) {
        state.withLock { state in
            guard state.subscription == nil, !state.isCancelled else { return }
            state.subscription = PathSubscription(to: question, on: engine, queue: queue) { [weak self] path, _ in
                self?.deliver(path)
            }
        }
    }

    /// Ends the monitor for good. When this returns, no handler is running and none will be called: it waits for one
    /// that is running on another thread, so do not call it while holding what the handler waits for. It may be called
    /// from within the handler.
    public func cancel() {
        let subscription = state.withLock { state in
            state.isCancelled = true
            defer { state.subscription = nil }
            return state.subscription
        }
        subscription?.cancel()
    }

    private func deliver(_ path: Path) {
        let handler = state.withLock { state in
            state.path = path
            return state.handler
        }
        handler?(path)
    }
}

extension PathMonitor: AsyncSequence {
    /// Paths, the present one first. A consumer that is slower than the network gets the latest and misses those
    /// between; ``Path/generation`` tells that there were some.
    public struct AsyncIterator: AsyncIteratorProtocol {
        fileprivate var updates: PathUpdates.AsyncIterator

        /// The next path; `nil` when the task is cancelled.
        public mutating func next() async -> Path? {
            await updates.next()?.path
        }
    }

    /// Begins an iteration of its own, independent of ``start(queue:)`` and of others; it ends with its task.
    public func makeAsyncIterator() -> AsyncIterator {
        AsyncIterator(updates: PathUpdates(question, on: engine).makeAsyncIterator())
    }
}
