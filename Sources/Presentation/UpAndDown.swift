// SPDX-License-Identifier: Apache-2.0

internal import DialtoneAPI
internal import DialtoneNetworkPath

/// What a line adds when a connection comes up or goes down: how long it was the other.
struct UpAndDown: Sendable {
    private var isUp = false
    /// Whether something has failed since it was opened, or since it was up: a beginning is not worth a word.
    private var hasFailed = false
    /// Since when it is up or down; `nil` for one that nothing is known of, or that is closed.
    private var since: HistoryInstant?

    /// Takes note of an event.
    ///
    /// - Returns: `after 10 m up`, or down; `nil` where it turned neither way.
    mutating func heard(_ event: ConnectionsAPI.Event, at time: HistoryInstant) -> String? {
        let state = event.connection.state
        let (wasUp, lasted) = (isUp, since.map { time.duration(since: $0).short })
        isUp = state.hasFlow
        if isUp {
            guard !wasUp || event.kind == .opened else { return nil }
            defer { (since, hasFailed) = (time, false) }
            return hasFailed ? lasted.map { "after \($0) down" } : nil
        }
        if wasUp || since == nil || event.kind == .opened { since = time }
        switch state {
        case .closed: (since, hasFailed) = (nil, false)
        case .resolving, .connecting, .securing: hasFailed = hasFailed || wasUp
        case .waiting, .backingOff, .failed, .ready, .verifying: hasFailed = event.kind != .opened
        }
        // Over a restart of the agent nobody knows how long it was up.
        guard wasUp, event.kind != .opened, event.kind != .continued else { return nil }
        return lasted.map { "after \($0) up" }
    }
}
