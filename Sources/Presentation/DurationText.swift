// SPDX-License-Identifier: Apache-2.0

internal import NetworkPath

/// Durations as people say them.
package enum DurationText {
    /// `75 ms`, `41 s`, `2 m 10 s`, `3 h 12 m`, `5 d 4 h`: ``Swift/Duration/short``.
    package static func short(milliseconds: Int64) -> String {
        Duration.milliseconds(milliseconds).short
    }
}
