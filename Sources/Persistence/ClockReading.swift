// SPDX-License-Identifier: Apache-2.0

internal import DialtonePlatform
package import DialtoneVarlink

/// Both clocks, read together: what turns instants of the boot clock into times of day.
///
/// An event keeps the reading of its moment, so that a reader sees the same time of day later, also when the wall clock
/// was set in between.
package struct ClockReading {
    package let wall: Timestamp
    package let boot: Duration

    /// The present.
    package static func now() -> ClockReading { ClockReading(wall: .now(), boot: BootClock.now()) }

    /// What the wall clock shows at an instant of the boot clock, as far as it can be told from this reading.
    package func wall(at instant: Duration) -> Timestamp {
        Timestamp(milliseconds: wall.milliseconds + (instant - boot).milliseconds)
    }
}
