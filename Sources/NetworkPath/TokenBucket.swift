// SPDX-License-Identifier: Apache-2.0

/// Lets a burst through and then one for each ``refill``: what paces work in a storm without a delay in a calm.
public struct TokenBucket: Sendable {
    /// How many tokens there are at most.
    public let burst: Int
    /// The time in which one comes back.
    public let refill: Duration

    private var tokens: Int
    private var lastRefill: Duration

    /// A full bucket.
    public init(burst: Int, refill: Duration, now: Duration) {
        self.burst = burst
        self.refill = refill
        tokens = burst
        lastRefill = now
    }

    /// Takes a token; where there is none, takes nothing and returns when the next one comes.
    public mutating func take(now: Duration) -> Duration? {
        // The clock of this boot, by an interval of the program: far from any number that is none.
        let earned = Int((now - lastRefill) / refill)
        if tokens + earned >= burst {
            tokens = burst
            lastRefill = now
        } else {
            tokens += earned
            lastRefill += refill * earned
        }
        guard tokens > 0 else { return lastRefill + refill }
        tokens -= 1
        return nil
    }
}
