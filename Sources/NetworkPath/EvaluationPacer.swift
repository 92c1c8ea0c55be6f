// SPDX-License-Identifier: Apache-2.0

/// Decides when a change of the network is evaluated: at once, unless changes come in a storm.
///
/// A token bucket. The first events of a burst each find a token and are evaluated immediately: a carrier, then an
/// address, then a route, each may be the one that makes the path usable. A storm empties the bucket, and from then on
/// an evaluation waits for the next token, taking everything with it that came meanwhile. The wait never restarts on a
/// further event, so a verdict is never staler than ``refill``.
package struct EvaluationPacer: Sendable {
    /// What to do about a change.
    package enum Decision: Hashable, Sendable {
        /// Evaluate in this turn.
        case now
        /// Evaluate at this instant; further changes until then need nothing of their own.
        case at(Duration)
        /// An evaluation is due anyway.
        case alreadyDue
    }

    /// How many evaluations a burst gets at once. Bringing up a dual-stack interface makes some twenty notices.
    package static let burst = 24
    /// The time in which one token comes back, and so the greatest staleness of a verdict in a storm: a hundred
    /// evaluations a second at most.
    package static let refill = Duration.milliseconds(10)

    private var bucket: TokenBucket
    private var due: Duration?

    /// A pacer with a full bucket.
    package init(now: Duration) {
        bucket = TokenBucket(burst: Self.burst, refill: Self.refill, now: now)
    }

    /// Something changed.
    package mutating func changed(now: Duration) -> Decision {
        if due != nil { return .alreadyDue }
        guard let instant = bucket.take(now: now) else { return .now }
        due = instant
        return .at(instant)
    }

    /// The instant given by ``Decision/at(_:)`` has come, and everything is evaluated.
    package mutating func evaluated(now: Duration) {
        due = nil
        _ = bucket.take(now: now)
    }
}
