// SPDX-License-Identifier: Apache-2.0

/// Tells from readings of two clocks whether the machine was asleep between them, and how long.
///
/// `CLOCK_BOOTTIME` goes on while the machine sleeps and `CLOCK_MONOTONIC` stands still; nothing else ever moves one
/// against the other, neither a step of the wall clock nor NTP's slewing, which bends both alike. So their difference
/// is constant but for sleep. They cannot be read at the same instant, and a busy machine may do anything between two
/// reads; therefore a reading is taken as what it is, a bound, and sleep is reported only when no bound allows for its
/// absence. There is no threshold to choose, and no false alarm.
package struct SuspendDetector: Sendable {
    /// The boot clock, read between two readings of the monotonic one.
    package struct Reading: Hashable, Sendable {
        /// `CLOCK_MONOTONIC`, first.
        package var before: Duration
        /// `CLOCK_BOOTTIME`, second.
        package var boot: Duration
        /// `CLOCK_MONOTONIC` again, third.
        package var after: Duration

        /// A reading.
        package init(before: Duration, boot: Duration, after: Duration) {
            self.before = before
            self.boot = boot
            self.after = after
        }

        /// What boot time is ahead of monotonic time by, at least and at most.
        fileprivate var lead: ClosedRange<Duration> { (boot - after)...max(boot - before, boot - after) }
    }

    /// The lead as the readings since the last sleep agree on it.
    private var lead: ClosedRange<Duration>

    /// A detector of sleep after `reading`.
    package init(from reading: Reading) {
        lead = reading.lead
    }

    /// How long the machine slept at least between the last reading and this one; `nil` if it need not have at all.
    package mutating func slept(until reading: Reading) -> Duration? {
        let present = reading.lead
        guard present.lowerBound > lead.upperBound else {
            // The same lead, seen twice: each reading narrows it down. They overlap, as it cannot shrink.
            let lower = max(lead.lowerBound, present.lowerBound)
            lead = lower...max(lower, min(lead.upperBound, present.upperBound))
            return nil
        }
        defer { lead = present }
        return present.lowerBound - lead.upperBound
    }
}
