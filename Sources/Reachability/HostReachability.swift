// SPDX-License-Identifier: Apache-2.0

public import DialtoneNetworkPath
internal import DialtonePlatform
public import Dispatch

/// Follows whether one host can be reached, and how. What `SCNetworkReachability` is on Apple's systems.
///
/// ```swift
/// let host = HostReachability("sip.example.com", port: 5061)
/// host.setCallback(on: queue) { path, changes in … }
/// ```
///
/// The verdict is the kernel's own: its rules, tables and routes are asked for exactly this packet. No packet is sent
/// to the host. A name is resolved asynchronously; of its addresses that can be reached, its path is the one to that
/// which is to be tried first (RFC 6724, section 6).
///
/// Any thread may call any method.
public final class HostReachability: Sendable {
    /// What is called on the user's queue: the path, and the names of what differs from the last call (none at first).
    public typealias Callback = @Sendable (Path, [PathChange]) -> Void

    /// What is asked about.
    public let target: Target

    let engine: @Sendable @AgentQueue () -> NetworkState
    private let subscription = Lock<PathSubscription?>(nil)

    /// Reachability of a host.
    ///
    /// - Parameters:
    ///   - host: a name, or an IPv4 or IPv6 address without brackets.
    ///   - port: the TCP port, for policy rules that look at it.
    public convenience init(_ host: String, port: UInt16? = nil) {
        self.init(Target(.init(host), port: port))
    }

    /// Reachability for a packet with given properties.
    public convenience init(_ target: Target) {
        self.init(target, on: { .shared })
    }

    package init(_ target: Target, on engine: @escaping @Sendable @AgentQueue () -> NetworkState) {
        self.target = target
        self.engine = engine
    }

    deinit { cancel() }

    /// Calls `callback` on `queue` with the present path, once it is known, then at each change. Replaces an earlier
    /// callback, which is not called any more when this returns.
    public func setCallback(on queue: DispatchQueue, _ callback: @escaping Callback) {
        replace(with: PathSubscription(to: .host(target), on: engine, queue: queue, callback))
    }

    /// Ends the callbacks. When this returns, none is running and none will be called: it waits for one that is running
    /// on another thread, so do not call it while holding what the callback waits for. It may be called from within the
    /// callback.
    public func cancel() {
        replace(with: nil)
    }

    private func replace(with new: PathSubscription?) {
        let old = subscription.withLock { subscription in
            defer { subscription = new }
            return subscription
        }
        old?.cancel()
    }

    /// The present path; for a name, once it is resolved or known not to be. Its status is `unknown` where the task is
    /// cancelled before.
    public func path() async -> Path {
        var updates = self.updates.makeAsyncIterator()
        return await updates.next()?.path ?? Path(status: .unknown)
    }

    /// The present reachability as flags under the names that `SCNetworkReachabilityGetFlags` gives them.
    ///
    /// Like its model it blocks until the verdict is there: at once for an address; for a name as long as the resolver
    /// takes, ten seconds at most. Not to be called on a queue or thread that must not wait.
    ///
    /// - Throws: ``ReachabilityError/unknown(_:)`` when the kernel cannot be asked.
    @available(*, noasync, message: "it blocks the thread; use \"try await flags()\"")
    public func flags() throws(ReachabilityError) -> ReachabilityFlags {
        dispatchPrecondition(condition: .notOnQueue(AgentQueue.queue))
        let answered = DispatchSemaphore(value: 0)
        let verdict = Lock<Path?>(nil)
        let queue = DispatchQueue(label: "org.dialtone.reachability.flags")
        let subscription = PathSubscription(to: .host(target), on: engine, queue: queue) { path, _ in
            verdict.withLock { $0 = $0 ?? path }
            answered.signal()
        }
        answered.wait()
        subscription.cancel()
        return try flags(of: verdict.withLock { $0 })
    }

    /// The present reachability as flags, without blocking.
    ///
    /// - Throws: ``ReachabilityError/unknown(_:)`` when the kernel cannot be asked, or the task is cancelled before the
    ///   verdict is there.
    public func flags() async throws(ReachabilityError) -> ReachabilityFlags {
        var updates = self.updates.makeAsyncIterator()
        guard let path = await updates.next()?.path else {
            throw .unknown("asking the kernel for the route to \(target.host): the task was cancelled")
        }
        return try flags(of: path)
    }

    private func flags(of path: Path?) throws(ReachabilityError) -> ReachabilityFlags {
        guard let path, path.status != .unknown else {
            throw .unknown(
                "asking the kernel for the route to \(target.host): is netlink blocked here (container, seccomp)?")
        }
        return ReachabilityFlags(path)
    }

    /// The paths with their changes as an asynchronous sequence, independent of ``setCallback(on:_:)``.
    public var updates: PathUpdates {
        PathUpdates(.host(target), on: engine)
    }
}

/// Why a question about reachability has no answer.
public enum ReachabilityError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The kernel cannot be asked. The host may well be reachable: this is not "offline".
    case unknown(String)
    /// No interface has this name; `known` are those that exist.
    case noSuchInterface(String, known: [String])

    /// What was tried and what came back.
    public var description: String {
        switch self {
        case .unknown(let text): text
        case .noSuchInterface(let name, let known):
            "there is no interface \"\(name)\" here; there are \(known.joined(separator: ", "))"
        }
    }
}
