// SPDX-License-Identifier: Apache-2.0

/// Lines with the day above the first of each.
package struct DayPages: Sendable {
    private var day: String?
    private var isFirst: Bool

    /// Nothing was written yet.
    ///
    /// - Parameter day: the day that needs no saying; `nil` where each is said.
    package init(knowing day: String? = nil) {
        self.day = day
        isFirst = day == nil
    }

    /// The lines, and the day before them where it is another one.
    package mutating func lines(_ lines: [String], of day: String?, _ style: Style) -> [String] {
        guard let day, day != self.day else { return lines }
        defer { (self.day, isFirst) = (day, false) }
        return (isFirst ? [] : [""]) + [style.paint(day, .strong)] + lines
    }

    /// The lines of an entry of the history, likewise.
    package mutating func lines(_ entry: HistoryStory.Entry, _ style: Style) -> [String] {
        lines(entry.lines, of: entry.day, style)
    }
}
