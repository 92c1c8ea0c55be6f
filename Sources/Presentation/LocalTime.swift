// SPDX-License-Identifier: Apache-2.0

package import DialtoneVarlink

/// What the clock and the calendar show at an instant.
package struct LocalTime: Sendable {
    /// The day, as in `Sunday 2026-11-22`.
    package var day: @Sendable (Timestamp) -> String
    /// The time of day, as in `14:02:11.042`.
    package var clock: @Sendable (Timestamp) -> String

    /// A clock and a calendar.
    package init(day: @escaping @Sendable (Timestamp) -> String, clock: @escaping @Sendable (Timestamp) -> String) {
        self.day = day
        self.clock = clock
    }
}
