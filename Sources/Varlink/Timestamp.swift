// SPDX-License-Identifier: Apache-2.0

internal import Glibc

/// An instant of the wall clock as the interfaces write it: RFC 3339, in UTC, with milliseconds:
/// `2026-03-01T14:02:11.042Z`. For people and logs; no deadline is computed from one.
public struct Timestamp: Hashable, Comparable, Sendable, CustomStringConvertible {
    /// Milliseconds since 1970-01-01T00:00:00Z, leap seconds not counted.
    public let milliseconds: Int64

    /// An instant. The years 0 to 9999 can be written.
    public init(milliseconds: Int64) {
        self.milliseconds = milliseconds
    }

    /// The present.
    public static func now() -> Timestamp {
        var time = timespec()
        clock_gettime(CLOCK_REALTIME, &time)
        return Timestamp(milliseconds: Int64(time.tv_sec) * 1000 + Int64(time.tv_nsec) / 1_000_000)
    }

    /// Reads an instant; `nil` if `text` is none. Any number of digits of the second is read, and those beyond the
    /// milliseconds are dropped. Only UTC, which the interfaces promise, is read: an offset is refused.
    public init?(_ text: String) {
        let bytes = Array(text.utf8)
        guard bytes.count >= 20, bytes.last == UInt8(ascii: "Z") else { return nil }
        for (position, separator) in zip([4, 7, 10, 13, 16], "--T::".utf8) where bytes[position] != separator {
            return nil
        }
        guard let year = bytes.decimal(0..<4), let month = bytes.decimal(5..<7), let day = bytes.decimal(8..<10),
            let hour = bytes.decimal(11..<13), let minute = bytes.decimal(14..<16), let second = bytes.decimal(17..<19),
            (1...12).contains(month), (1...Self.days(in: month, of: year)).contains(day),
            hour < 24, minute < 60, second <= 60,
            let fraction = Self.milliseconds(ofFraction: bytes[19..<(bytes.count - 1)])
        else { return nil }
        let days = Self.days(to: Int64(year), Int64(month), Int64(day))
        milliseconds = ((days * 24 + Int64(hour)) * 60 + Int64(minute)) * 60_000 + Int64(second) * 1000 + fraction
    }

    /// The text that the interfaces carry.
    public var description: String {
        let (days, ofDay) = milliseconds.quotientAndRemainderRoundedDown(by: 86_400_000)
        let (year, month, day) = Self.date(ofDay: days)
        let seconds = ofDay / 1000
        return "\(year.padded(4))-\(month.padded(2))-\(day.padded(2))T"
            + "\((seconds / 3600).padded(2)):\((seconds / 60 % 60).padded(2)):\((seconds % 60).padded(2))"
            + ".\((ofDay % 1000).padded(3))Z"
    }

    /// The earlier one is less.
    public static func < (left: Timestamp, right: Timestamp) -> Bool { left.milliseconds < right.milliseconds }

    /// How much later the first one is.
    public static func - (later: Timestamp, earlier: Timestamp) -> Duration {
        .milliseconds(later.milliseconds) - .milliseconds(earlier.milliseconds)
    }

    private static func milliseconds(ofFraction bytes: ArraySlice<UInt8>) -> Int64? {
        guard let first = bytes.first else { return 0 }
        let digits = Array(bytes.dropFirst())
        guard first == UInt8(ascii: "."), !digits.isEmpty, digits.decimal(0..<digits.count) != nil else { return nil }
        let three = (digits + Array("00".utf8)).prefix(3)
        return Array(three).decimal(0..<3).map(Int64.init)
    }

    private static func isLeap(_ year: Int) -> Bool {
        year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
    }

    /// How many days a month has; `month` is from 1 to 12.
    package static func days(in month: Int, of year: Int) -> Int {
        [31, isLeap(year) ? 29 : 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31][month - 1]
    }

    // Counted in years that begin in March, so that the leap day is the last of its year and the months before it have
    // the same lengths in each (Hinnant, "chrono-Compatible Low-Level Date Algorithms"). 400 years are 146,097 days;
    // from the first of March of the year 0 to 1970-01-01 there are 719,468.

    /// Days from 1970-01-01 to a date.
    private static func days(to year: Int64, _ month: Int64, _ day: Int64) -> Int64 {
        let (era, ofEra) = (month > 2 ? year : year - 1).quotientAndRemainderRoundedDown(by: 400)
        let ofYear = (153 * ((month + 9) % 12) + 2) / 5 + day - 1
        return era * 146_097 + ofEra * 365 + ofEra / 4 - ofEra / 100 + ofYear - 719_468
    }

    private static func date(ofDay day: Int64) -> (year: Int64, month: Int64, day: Int64) {
        let (era, ofEra) = (day + 719_468).quotientAndRemainderRoundedDown(by: 146_097)
        let year = (ofEra - ofEra / 1460 + ofEra / 36_524 - ofEra / 146_096) / 365
        let ofYear = ofEra - (365 * year + year / 4 - year / 100)
        let month = (5 * ofYear + 2) / 153
        return (
            era * 400 + year + (month < 10 ? 0 : 1), month < 10 ? month + 3 : month - 9,
            ofYear - (153 * month + 2) / 5 + 1
        )
    }
}

extension [UInt8] {
    /// The number that these decimal digits are, without sign; `nil` if there is another character.
    fileprivate func decimal(_ range: Range<Int>) -> Int? {
        self[range].reduce(0) { value, byte in
            guard let value, (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) else { return nil }
            return (value &* 10) &+ Int(byte - UInt8(ascii: "0"))
        }
    }
}

extension Int64 {
    fileprivate func padded(_ width: Int) -> String {
        let digits = String(self)
        return String(repeating: "0", count: Swift.max(0, width - digits.count)) + digits
    }

    fileprivate func quotientAndRemainderRoundedDown(by divisor: Int64) -> (Int64, Int64) {
        let (quotient, remainder) = quotientAndRemainder(dividingBy: divisor)
        return remainder < 0 ? (quotient - 1, remainder + divisor) : (quotient, remainder)
    }
}
