// SPDX-License-Identifier: Apache-2.0

internal import DialtonePlatform

/// Looks again at how the clients of a user's standing wakes can be reached, after a subscriber of that user came or
/// went: a few wakes in each turn of the queue, so that others have theirs in between.
@AgentQueue
final class PresenceReview {
    /// How many wakes are looked at in one turn. Each costs up to 0.2 ms where the client's process is known, whose
    /// state the kernel is asked for: a turn stays below a millisecond.
    static let wakesPerTurn = 4

    private struct Review {
        var rest: ArraySlice<RegisteredConnection>
        /// Whether subscribers came or went since it began. However often they do, one review follows another.
        var isOutdated = false
    }

    private var reviews: [UInt32: Review] = [:]

    /// Begins a review of the wakes that `standing` returns, in a later turn; after the one that is under way.
    func begin(
        for user: UInt32, _ standing: @escaping @AgentQueue () -> [RegisteredConnection]
    ) {
        guard reviews[user] == nil else {
            reviews[user]?.isOutdated = true
            return
        }
        let connections = standing()
        guard !connections.isEmpty else { return }
        reviews[user] = Review(rest: connections[...])
        AgentQueue.async { self.goOn(for: user, standing) }
    }

    private func goOn(for user: UInt32, _ standing: @escaping @AgentQueue () -> [RegisteredConnection]) {
        guard var review = reviews[user] else { return }
        let batch = review.rest.prefix(Self.wakesPerTurn)
        review.rest = review.rest.dropFirst(Self.wakesPerTurn)
        reviews[user] = review
        for connection in batch { connection.subscriptionsChanged() }
        if reviews[user]?.rest.isEmpty == false { return AgentQueue.async { self.goOn(for: user, standing) } }
        let isOutdated = reviews.removeValue(forKey: user)?.isOutdated ?? false
        if isOutdated { begin(for: user, standing) }
    }
}
