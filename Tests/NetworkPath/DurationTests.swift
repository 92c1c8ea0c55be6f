// SPDX-License-Identifier: Apache-2.0

import DialtoneNetworkPath
import Testing

/// Durations.
@Suite struct DurationTests {
    @Test(arguments: [
        (0, "0 ms"), (75, "75 ms"), (999, "999 ms"),
        (1000, "1.0 s"), (1099, "1.0 s"), (1100, "1.1 s"), (9999, "9.9 s"),
        (10_000, "10 s"), (41_999, "41 s"), (59_999, "59 s"),
        (60_000, "1 m"), (61_000, "1 m 1 s"), (130_000, "2 m 10 s"), (3_599_999, "59 m 59 s"),
        (3_600_000, "1 h"), (3_659_999, "1 h"), (11_520_000, "3 h 12 m"), (86_399_999, "23 h 59 m"),
        (86_400_000, "1 d"), (89_999_999, "1 d"), (446_400_000, "5 d 4 h"), (31_536_000_000, "365 d"),
        (Int64.max, "106751991167 d 7 h"),
    ])
    func `a duration has its two largest units, rounded down`(milliseconds: Int64, text: String) {
        #expect(Duration.milliseconds(milliseconds).short == text)
    }

    @Test(arguments: [-1, -86_400_000, Int64.min])
    func `a clock that was set back shows no time at all`(milliseconds: Int64) {
        #expect(Duration.milliseconds(milliseconds).short == "0 ms")
    }
}
