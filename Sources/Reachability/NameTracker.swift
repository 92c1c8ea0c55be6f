// SPDX-License-Identifier: Apache-2.0

internal import NetworkPath
internal import Platform
internal import Resolver

/// The addresses of one watched name, shared by all questions that mention it.
@AgentQueue
final class NameTracker {
    /// What is known of the name.
    enum State: Hashable {
        /// The first answer is still to come.
        case pending
        /// It stands for these addresses.
        case resolved([IPAddress])
        /// It stands for none, or nobody could be asked.
        case unresolved
    }

    /// The first wait before a failed name is asked for again. A server that was just restarted, or a lease whose name
    /// server arrived a moment after its address, is there within a second or two.
    private static let firstRetry = Duration.seconds(1)
    /// The longest wait. The change of a network is an event and asks at once; this is only for a server that came back
    /// without any.
    private static let longestRetry = Duration.seconds(300)

    private(set) var state = State.pending
    private let name: String
    private let resolver: Resolver
    private let changed: @AgentQueue () -> Void
    private var query: Query?
    private var retry: Timers.Timer?
    private var retryDelay = firstRetry

    /// Begins to resolve `name`; `changed` is called when its state differs.
    init(_ name: String, by resolver: Resolver, changed: @escaping @AgentQueue () -> Void) {
        self.name = name
        self.resolver = resolver
        self.changed = changed
        resolve()
    }

    /// Asks again now: the network is another than the one that answered, and may have other name servers, other views
    /// of the name, or any at all.
    func networkChanged() {
        retryDelay = Self.firstRetry
        if query == nil { resolve() }
    }

    /// Ends the tracking.
    func stop() {
        query?.cancel()
        query = nil
        retry?.cancel()
    }

    private func resolve() {
        retry?.cancel()
        retry = nil
        query = resolver.resolve(name) { [weak self] result in self?.answered(result) }
    }

    private func answered(_ result: Result<Resolution, ResolutionError>) {
        query = nil
        let state: State
        switch result {
        case .success(let resolution):
            state = .resolved(resolution.addresses)
            retryDelay = Self.firstRetry
            // Servers rotate the order to spread the load; that is no news, and no reason to move the path.
            if case .resolved(let known) = self.state, Set(known) == Set(resolution.addresses) { return }
        case .failure:
            // Addresses that were good a moment ago beat none: a verdict on them is a verdict on the way there.
            if case .resolved = self.state { state = self.state } else { state = .unresolved }
            retry = Timers.shared.schedule(after: retryDelay) { [weak self] in self?.resolve() }
            retryDelay = min(retryDelay * 2, Self.longestRetry)
        }
        guard state != self.state else { return }
        self.state = state
        changed()
    }
}
