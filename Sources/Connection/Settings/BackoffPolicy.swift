// SPDX-License-Identifier: Apache-2.0

/// How long to wait between two dials: capped, growing, and jittered from the first retry on.
///
/// After *n* failures in a row the wait is at most `base` × `multiplier`ⁿ and never above `ceiling`; the part of it
/// that is left to chance is the ``jitter``. *n* is 0 when a flow ended that had been stable: a server that restarts
/// ends a thousand of them in the same second, and they must not all come back in the next one, which is what
/// ``spread`` is for.
package struct BackoffPolicy: Hashable, Sendable {
    /// Which part of the upper bound chance may choose from.
    package enum Jitter: String, Hashable, Sendable {
        /// Anything from nothing to the bound: the widest spread, for servers that many agents share.
        case full
        /// From half of the bound to all of it, as RFC 5626 asks for.
        case half

        var lowest: Double { self == .full ? 0 : 0.5 }
    }

    /// The upper bound of the wait after no failure.
    package var base: Duration
    /// What each failure multiplies it by; at least 1.
    package var multiplier: Double
    /// What it never exceeds.
    package var ceiling: Duration
    /// How much of it is left to chance.
    package var jitter: Jitter
    /// The upper bound of the wait after the end of a flow that was stable, where it is longer than ``base``.
    ///
    /// Who shares a server with a herd cannot know how large it is, and a server that restarted is back before the
    /// second wait: it is the first one that decides how it is met.
    package var spread = Duration.zero

    /// SIP: RFC 5626, section 4.5. 30 s, since a connection here has one flow and all of its flows have failed when
    /// that one has; doubling to 1800 s; 50 to 100 % of it. So the retry after the first failure comes in 30 to 60 s.
    package static let sip = BackoffPolicy(base: .seconds(30), multiplier: 2, ceiling: .seconds(1800), jitter: .half)

    /// All others: the figures of gRPC's connection back-off (1 s × 1.6 up to 120 s), with full jitter instead of its
    /// ±20 %, which leaves agents that lost one server together in step for the first seconds.
    ///
    /// A first wait of at most 1 s would have 100,000 agents dial 135,000 times in the first second after their server
    /// went; spread over 10 s it is 13,000 (`docs/herd.md`).
    package static let general = BackoffPolicy(
        base: .seconds(1), multiplier: 1.6, ceiling: .seconds(120), jitter: .full, spread: .seconds(10))

    /// For failures that time does not mend (a name that does not exist): 15 to 30 minutes, the ceiling of RFC 5626 and
    /// below the hour for which resolvers commonly keep a name's absence (RFC 2308, section 5).
    static let slow = BackoffPolicy(base: .seconds(1800), multiplier: 1, ceiling: .seconds(1800), jitter: .half)

    /// For failures of this machine's own network while it is still settling: 1 to 2 seconds.
    static let brief = BackoffPolicy(base: .seconds(2), multiplier: 1, ceiling: .seconds(2), jitter: .half)

    /// The waits that a user may choose. Below 100 ms it is a loop, not a back-off; beyond a day nobody waits for the
    /// connection.
    package static let waits = Duration.milliseconds(100)...Duration.seconds(86_400)
    /// What each wait may be multiplied by. Ten leaps from a second over the ceiling's two minutes in three steps.
    package static let multipliers = 1.0...10.0

    /// Throws where a figure is out of its range: nothing is computed with such a policy.
    func check() throws(PolicyError) {
        try PolicyError.check("backoff.base", base, in: Self.waits)
        try PolicyError.check("backoff.ceiling", ceiling, in: base...Self.waits.upperBound)
        try PolicyError.check("backoff.spread", spread, in: .zero...Self.waits.upperBound)
        try PolicyError.check("backoff.multiplier", multiplier, in: Self.multipliers)
    }

    /// The longest wait after `failures` failures in a row.
    package func bound(afterFailures failures: Int) -> Duration {
        if failures == 0 { return min(max(base, spread), ceiling) }
        guard multiplier > 1 else { return min(base, ceiling) }
        var bound = base
        for _ in 0..<failures where bound < ceiling { bound = bound * multiplier }
        return min(bound, ceiling)
    }

    /// The waits that chance chooses from after `failures` failures in a row.
    package func range(afterFailures failures: Int) -> ClosedRange<Duration> {
        let bound = bound(afterFailures: failures)
        return bound * jitter.lowest...bound
    }

    /// The longest wait that a server can ask for (`Retry-After` of RFC 3261, section 20.33, and of RFC 9110, section
    /// 10.2.3). A figure beyond a day is a mistake or meant to harm.
    package static let longestRequest = Duration.seconds(86_400)

    /// A wait after `failures` failures in a row.
    package func delay(afterFailures failures: Int, using random: inout some RandomNumberGenerator) -> Duration {
        let range = range(afterFailures: failures)
        // By hand and not by `Double.random`, whose way of drawing may change: a seed must replay on every toolchain.
        let fraction = Double(random.next() >> 11) * 0x1p-53
        return range.lowerBound + (range.upperBound - range.lowerBound) * fraction
    }
}

/// The most dials a connection makes, whatever the cause.
///
/// A path's return cuts a back-off short, so a link that flaps would otherwise turn each flap into a dial. A token
/// bucket, kept as one instant (GCRA, ITU-T I.371): ``burst`` dials at once, then one each ``interval``.
struct DialBudget: Hashable, Sendable {
    /// Ten changes of the network in a row are answered at once: more than roaming or a dock ever causes.
    static let burst = 10
    /// Then one dial in two seconds. ``BackoffPolicy/brief`` retries a little faster, and in its thirty seconds uses up
    /// half of the ten, so that the path's next return is still answered at once.
    static let interval = Duration.seconds(2)

    /// The instant at which the bucket is full again.
    private var fullAt = Duration.zero

    /// When the next dial may be made at the earliest.
    var earliest: Duration { fullAt - Self.interval * (Self.burst - 1) }

    /// Spends a dial at `now`, if one may be made then.
    mutating func spend(at now: Duration) -> Bool {
        guard now >= earliest else { return false }
        fullAt = max(now, fullAt) + Self.interval
        return true
    }
}
