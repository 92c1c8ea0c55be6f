// SPDX-License-Identifier: Apache-2.0

/// A time of the wall clock, in milliseconds since 1970 (CLOCK_REALTIME). It can be set, forwards and backwards.
package struct WallTime: Hashable, Comparable, Sendable {
    /// Milliseconds since 1970-01-01T00:00:00Z.
    package let milliseconds: Int64

    /// That many milliseconds since 1970.
    package init(milliseconds: Int64) { self.milliseconds = milliseconds }

    package static func < (left: Self, right: Self) -> Bool { left.milliseconds < right.milliseconds }

    /// This time after another one. Where a clock or a server says what no clock can show, it is the last one there is.
    func advanced(by duration: Duration) -> WallTime {
        let (sum, overflows) = milliseconds.addingReportingOverflow(duration.milliseconds)
        return WallTime(milliseconds: overflows ? (duration < .zero ? .min : .max) : sum)
    }

    /// How long after `other` this is.
    func since(_ other: WallTime) -> Duration {
        let (difference, overflows) = milliseconds.subtractingReportingOverflow(other.milliseconds)
        return .milliseconds(overflows ? (self < other ? .min : .max) : difference)
    }
}

extension Duration {
    /// In whole milliseconds, as far as they go.
    var milliseconds: Int64 {
        let (seconds, overflows) = components.seconds.multipliedReportingOverflow(by: 1000)
        let (sum, overflowsToo) = seconds.addingReportingOverflow(components.attoseconds / 1_000_000_000_000_000)
        return overflows || overflowsToo ? (self < .zero ? .min : .max) : sum
    }
}

/// When something happens, by both clocks. What is promised to others (a message's expiry) goes by the wall clock; how
/// long this process waits goes by the other, which nobody sets.
package struct Moment: Hashable, Sendable {
    /// The time since the machine started, its sleep included (CLOCK_BOOTTIME).
    package let uptime: Duration
    /// The time of the wall clock.
    package let wall: WallTime

    /// Both times of one moment.
    package init(uptime: Duration, wall: WallTime) {
        self.uptime = uptime
        self.wall = wall
    }
}
