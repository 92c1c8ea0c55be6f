// SPDX-License-Identifier: Apache-2.0

/// How long something took, each time that it happened, by buckets: a few numbers, however often that is.
package struct DurationHistogram: Hashable, Sendable {
    /// The upper bounds of the buckets, each included; beyond the last one there is one more bucket.
    ///
    /// From a connect within one's own network, or a signal to a client that sleeps, to a dial with a name to look up
    /// and three retransmissions of the SYN (1, 3 and 7 s after the first, RFC 6298), and a unit that starts slowly. In
    /// the steps that Prometheus' client libraries have (1, 2.5, 5, 10), so that a quantile is off by less than half.
    package static let bounds: [Duration] = [
        .milliseconds(1), .microseconds(2500), .milliseconds(5), .milliseconds(10), .milliseconds(25),
        .milliseconds(50), .milliseconds(100), .milliseconds(250), .milliseconds(500), .seconds(1),
        .milliseconds(2500), .seconds(5), .seconds(10), .seconds(30),
    ]

    /// How often, by bucket; empty until it happens first.
    package private(set) var counts: [Int] = []
    /// All the times together.
    package private(set) var sum = Duration.zero

    /// It never happened.
    package init() {}

    /// One that was kept.
    ///
    /// - Parameters:
    ///   - counts: none of them negative.
    ///   - sum: not negative.
    /// - Returns: `nil` where there are other buckets than this version has.
    package init?(counts: [Int], sum: Duration) {
        guard counts.isEmpty || counts.count == Self.bounds.count + 1 else { return nil }
        (self.counts, self.sum) = (counts, sum)
    }

    /// It took so long.
    package mutating func add(_ time: Duration) {
        if counts.isEmpty { counts = Array(repeating: 0, count: Self.bounds.count + 1) }
        counts[Self.bounds.firstIndex { time <= $0 } ?? Self.bounds.count] += 1
        sum += time
    }
}
