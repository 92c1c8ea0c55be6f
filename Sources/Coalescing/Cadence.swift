// SPDX-License-Identifier: Apache-2.0

/// How often something must happen: at the latest each ``interval``, and no earlier than ``tolerance`` before that.
package struct Cadence: Hashable, Sendable {
    /// The longest time between two occurrences; more than zero.
    package let interval: Duration
    /// How much earlier it may happen, so that it can share a wake with others; from zero to ``interval``.
    ///
    /// All of the interval means: goes along with every wake there is.
    package let tolerance: Duration

    /// A cadence. A tolerance outside of its range is brought into it; an interval below a millisecond counts as one,
    /// because a planner of wakes must not be made to spin.
    package init(interval: Duration, tolerance: Duration) {
        self.interval = max(interval, .milliseconds(1))
        self.tolerance = min(max(tolerance, .zero), self.interval)
    }

    /// When it may and must happen next, if it happened last at `last`.
    package func window(after last: Duration) -> ClosedRange<Duration> {
        last + (interval - tolerance)...last + interval
    }

    /// Whether something of this cadence can happen at wakes that come each `period`, and at no others.
    func canRide(each period: Duration) -> Bool {
        let wakes = (interval / period).rounded(.down)
        return period * wakes >= interval - tolerance
    }
}
