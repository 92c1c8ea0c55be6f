// SPDX-License-Identifier: Apache-2.0

package import DialtoneVarlink

/// Instants as people write them: `now`, `02:30`, `yesterday`, `2026-11-21`, `2026-11-21 23:00`, `3h` or `1h30m` or
/// `1 hour ago`, or as the interfaces do. As journalctl takes them (systemd.time(7)), but for what is yet to come.
package enum SinceText {
    /// A day and a time of it, as a calendar and a clock on the wall show them.
    package struct Local: Hashable, Sendable {
        /// The date.
        package var year, month, day: Int
        /// The time of day.
        package var hour = 0, minute = 0, second = 0

        /// A day's beginning.
        package init(year: Int, month: Int, day: Int) {
            (self.year, self.month, self.day) = (year, month, day)
        }
    }

    /// The instant that `text` means; `nil` if it means none.
    ///
    /// - Parameters:
    ///   - today: the day that it is now.
    ///   - instant: when the clock on the wall shows something; `nil` for what it never shows.
    package static func instant(
        _ text: String, now: Timestamp, today: Local, instant: (Local) -> Timestamp?
    ) -> Timestamp? {
        if let exact = Timestamp(text) { return exact }
        if let ago = ago(text) { return Timestamp(milliseconds: now.milliseconds - ago) }
        var local = Local(year: today.year, month: today.month, day: today.day)
        switch text {
        case "now": return now
        case "today": return instant(local)
        case "yesterday":
            local.day -= 1
            return instant(local)
        default: break
        }
        let words = text.split(whereSeparator: { $0 == " " || $0 == "T" })
        guard (1...2).contains(words.count) else { return nil }
        if words.count == 2 || words[0].contains("-") {
            let parts = numbers(words[0], "-")
            guard parts.count == 3, (1970...9999).contains(parts[0]), (1...12).contains(parts[1]),
                (1...Timestamp.days(in: parts[1], of: parts[0])).contains(parts[2])
            else { return nil }
            (local.year, local.month, local.day) = (parts[0], parts[1], parts[2])
            if words.count == 1 { return instant(local) }
        }
        let parts = numbers(words[words.count - 1], ":")
        guard (2...3).contains(parts.count), parts[0] < 24, parts[1] < 60, parts.count == 2 || parts[2] < 60 else {
            return nil
        }
        (local.hour, local.minute, local.second) = (parts[0], parts[1], parts.count == 3 ? parts[2] : 0)
        guard let time = instant(local) else { return nil }
        if words.count == 2 || time <= now { return time }
        // A time of day alone is the last one. The day before by the calendar: it may have had another length.
        local.day -= 1
        return instant(local)
    }

    /// The units of times ago, in milliseconds.
    private static let units: [(names: [String], milliseconds: Int64)] = [
        (["s", "sec", "second", "seconds"], 1000), (["m", "min", "minute", "minutes"], 60_000),
        (["h", "hr", "hour", "hours"], 3_600_000), (["d", "day", "days"], 86_400_000),
        (["w", "week", "weeks"], 7 * 86_400_000),
    ]

    /// `90s`, `1h30m`, `-45m`, `2 days ago`, `1 hour 30 min ago` in milliseconds.
    private static func ago(_ text: String) -> Int64? {
        var rest = text[...]
        if rest.hasSuffix("ago") { rest = rest.dropLast(3) } else if rest.hasPrefix("-") { rest = rest.dropFirst() }
        var total: Int64 = 0
        repeat {
            rest = rest.drop { $0 == " " }
            let digits = rest.prefix { $0.isASCII && $0.isNumber }
            guard let count = number(digits), count < 1_000_000 else { return nil }
            rest = rest.dropFirst(digits.count).drop { $0 == " " }
            let name = rest.prefix { $0.isLetter }
            guard let unit = units.first(where: { $0.names.contains(String(name)) }) else { return nil }
            total += Int64(count) * unit.milliseconds
            // Thirty thousand years: a word may come ten thousand times.
            guard total < 1_000_000_000_000_000 else { return nil }
            rest = rest.dropFirst(name.count)
        } while !rest.allSatisfy { $0 == " " }
        return total
    }

    private static func numbers(_ text: Substring, _ separator: Character) -> [Int] {
        let parts = text.split(separator: separator, omittingEmptySubsequences: false).map { number($0) }
        return parts.contains(nil) ? [] : parts.compactMap { $0 }
    }

    private static func number(_ text: Substring) -> Int? {
        !text.isEmpty && text.allSatisfy { $0.isASCII && $0.isNumber } ? Int(text) : nil
    }
}
