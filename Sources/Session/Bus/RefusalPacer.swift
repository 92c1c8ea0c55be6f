// SPDX-License-Identifier: Apache-2.0

internal import DialtoneNetworkPath

/// Which refusals of callers are told. A program that calls without end does not fill the log.
struct RefusalPacer {
    /// So many are told at once: somebody who tries something out sees each refusal.
    static let burst = 16
    /// Then one in this time.
    static let refill = Duration.seconds(60)

    private var bucket: TokenBucket
    private var leftOut = 0

    /// Nothing was told yet.
    init(at now: Duration) { bucket = TokenBucket(burst: Self.burst, refill: Self.refill, now: now) }

    /// Whether a refusal is told: with how many that were not, since the last that was; `nil` where it is not.
    mutating func admit(at now: Duration) -> Int? {
        guard bucket.take(now: now) == nil else {
            leftOut += 1
            return nil
        }
        defer { leftOut = 0 }
        return leftOut
    }
}
