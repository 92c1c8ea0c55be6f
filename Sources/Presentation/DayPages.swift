// SPDX-License-Identifier: Apache-2.0

/// Lines of what happened, with the day above the first of each, and the subjects in a column.
package struct DayPages: Sendable {
    private let localTime: LocalTime
    private var day: String?
    private var isFirst: Bool
    private var subjectWidth: Int

    /// Subjects are at least as wide as "network", and from this width on they have no column.
    private static let widths = 8...20

    /// Nothing was written yet.
    ///
    /// - Parameters:
    ///   - day: the day that needs no saying; `nil` where each is said.
    ///   - subjects: the subjects that are known beforehand; the column is wider from the first line on.
    package init(_ localTime: LocalTime, knowing day: String? = nil, subjects: [String] = []) {
        self.localTime = localTime
        self.day = day
        isFirst = day == nil
        subjectWidth = Self.widths.lowerBound
        for subject in subjects { make(roomFor: subject) }
    }

    private mutating func make(roomFor subject: String) {
        subjectWidth = min(max(subjectWidth, subject.count), Self.widths.upperBound)
    }

    /// A line, and the day before it where it is another one.
    ///
    /// - Parameter note: what is to be said right before it.
    package mutating func lines(_ line: WatchLine, after note: String? = nil, _ style: Style) -> [String] {
        make(roomFor: line.subject)
        let day = localTime.day(line.time)
        var lines = note.map { [style.paint($0, .faint)] } ?? []
        lines += line.lines(style, subjectWidth: subjectWidth, clock: localTime.clock)
        guard day != self.day else { return lines }
        defer { (self.day, isFirst) = (day, false) }
        return (isFirst ? [] : [""]) + [style.paint(day, .strong)] + lines
    }

    /// The lines of an entry of the history, likewise.
    package mutating func lines(_ entry: HistoryStory.Entry, _ style: Style) -> [String] {
        switch entry {
        case .note(let text): [style.paint(text, .faint)]
        case .line(let line, let note): lines(line, after: note, style)
        }
    }
}
