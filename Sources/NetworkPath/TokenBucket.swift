// SPDX-License-Identifier: Apache-2.0

/// Lets a burst through and then one for each ``refill``: what paces work in a storm without a delay in a calm.
///
/// Kept as one instant (GCRA, ITU-T I.371), so that what is taken beyond what there is can be owed.
package struct TokenBucket: Hashable, Sendable {
    /// How many tokens there are at most.
    package let burst: Int
    /// The time in which one comes back.
    package let refill: Duration

    /// When the bucket is full again; in the past where it is.
    private var fullAt: Duration

    /// A full bucket.
    package init(burst: Int, refill: Duration, now: Duration) {
        self.burst = burst
        self.refill = refill
        fullAt = now
    }

    /// From when on there is a token.
    package var earliest: Duration { fullAt - refill * (burst - 1) }

    /// Whether nothing is known of it that a new one would not know.
    package func isFull(now: Duration) -> Bool { fullAt <= now }

    /// Takes a token; where there is none, takes nothing and returns when the next one comes.
    package mutating func take(now: Duration) -> Duration? {
        guard now >= earliest else { return earliest }
        spend(now: now)
        return nil
    }

    /// Takes a token, there or not. What is missing is owed: the next one comes later by as much.
    package mutating func spend(now: Duration) { fullAt = max(now, fullAt) + refill }
}
