// SPDX-License-Identifier: Apache-2.0

import DialtoneNetworkPath
import Testing

struct TokenBucketTests {
    private static let start = Duration.seconds(1000)
    private static let refill = Duration.milliseconds(5)

    @Test func `a burst is let through and then nothing`() {
        var bucket = full(burst: 3)
        for _ in 0..<3 { #expect(bucket.take(now: Self.start) == nil) }
        #expect(bucket.take(now: Self.start) == Self.start + Self.refill)
    }

    @Test func `an attempt in vain takes nothing`() {
        var bucket = empty(burst: 3)
        for _ in 0..<10 { #expect(bucket.take(now: Self.start + .milliseconds(1)) == Self.start + Self.refill) }
        #expect(bucket.take(now: Self.start + Self.refill) == nil)
    }

    /// Else a steady stream of attempts would push the next token off for ever.
    @Test func `time that was too short for a token is not lost`() {
        var bucket = empty(burst: 3)
        let taken = (1...20).filter { bucket.take(now: Self.start + .milliseconds($0)) == nil }
        #expect(taken == [5, 10, 15, 20])
    }

    @Test func `several tokens come back in a longer pause`() {
        var bucket = empty(burst: 3)
        let later = Self.start + .milliseconds(12)
        #expect(bucket.take(now: later) == nil)
        #expect(bucket.take(now: later) == nil)
        #expect(bucket.take(now: later) == Self.start + Self.refill * 3)
    }

    @Test func `a quiet hour fills the bucket and no more`() {
        var bucket = empty(burst: 3)
        let later = Self.start + .seconds(3600)
        for _ in 0..<3 { #expect(bucket.take(now: later) == nil) }
        // What the hour was too long for is not kept either.
        #expect(bucket.take(now: later) == later + Self.refill)
    }

    private func full(burst: Int) -> TokenBucket {
        TokenBucket(burst: burst, refill: Self.refill, now: Self.start)
    }

    private func empty(burst: Int) -> TokenBucket {
        var bucket = full(burst: burst)
        for _ in 0..<burst { _ = bucket.take(now: Self.start) }
        return bucket
    }
}
