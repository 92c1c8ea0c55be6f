// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing

@testable import DialtoneVarlink

@Suite struct TimestampTests {
    @Test(arguments: [
        (0, "1970-01-01T00:00:00.000Z"),
        (-1, "1969-12-31T23:59:59.999Z"),
        (951_782_400_000, "2000-02-29T00:00:00.000Z"),
        (1_772_373_731_042, "2026-03-01T14:02:11.042Z"),
        (4_107_542_399_999, "2100-02-28T23:59:59.999Z"),
        (4_107_542_400_000, "2100-03-01T00:00:00.000Z"),
        (253_402_300_799_999, "9999-12-31T23:59:59.999Z"),
        (-62_167_219_200_000, "0000-01-01T00:00:00.000Z"),
    ])
    func `the text and the number are the same instant`(milliseconds: Int64, text: String) throws {
        #expect(Timestamp(milliseconds: milliseconds).description == text)
        #expect(Timestamp(text)?.milliseconds == milliseconds)
    }

    @Test func `it agrees with foundation`() throws {
        let format = Date.ISO8601FormatStyle(includingFractionalSeconds: true)
        let seed = UInt64.random(in: 0 ... .max)
        var state = seed
        for _ in 0..<2000 {
            state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            // The years 1902 to 2175.
            let milliseconds = Int64(state >> 21) - (1 << 41)
            let date = Date(timeIntervalSince1970: Double(milliseconds) / 1000)
            let text = Timestamp(milliseconds: milliseconds).description
            #expect(text.prefix(19) == format.format(date).prefix(19), "seed \(seed)")
            #expect(Timestamp(text)?.milliseconds == milliseconds, "seed \(seed)")
        }
    }

    @Test(arguments: [
        ("2026-03-01T14:02:11Z", Int64(1_772_373_731_000)),
        ("2026-03-01T14:02:11.0Z", 1_772_373_731_000),
        ("2026-03-01T14:02:11.04299999Z", 1_772_373_731_042),
        ("2016-12-31T23:59:60Z", 1_483_228_800_000),
    ])
    func `other numbers of digits are read`(text: String, milliseconds: Int64) {
        #expect(Timestamp(text)?.milliseconds == milliseconds)
    }

    @Test(arguments: [
        "", "Z", "2026-03-01", "2026-03-01T14:02:11", "2026-03-01T14:02:11+01:00", "2026-03-01 14:02:11Z",
        "2026-02-29T14:02:11Z", "2026-13-01T14:02:11Z", "2026-00-01T14:02:11Z", "2026-03-00T14:02:11Z",
        "2026-03-01T24:00:00Z", "2026-03-01T14:60:11Z", "2026-03-01T14:02:61Z", "2026-03-01T14:02:11.Z",
        "2026-03-01T14:02:11.1xZ", "2026-03-01T14:02:11,1Z", "-026-03-01T14:02:11Z", "20x6-03-01T14:02:11Z",
    ])
    func `what is no time in UTCIs refused`(text: String) {
        #expect(Timestamp(text) == nil)
    }

    @Test func `the present is after the past`() {
        #expect(Timestamp.now() > Timestamp(milliseconds: 1_767_225_600_000))
    }
}
