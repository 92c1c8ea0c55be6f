// SPDX-License-Identifier: Apache-2.0

internal import DialtonePlatform

/// Columns of text, each as wide as its widest cell. Cells are padded before they are painted, so that colour does not
/// count as width.
package struct Table: Sendable {
    /// One cell.
    package struct Cell: Sendable {
        let text: String
        let tone: Style.Tone?

        /// A cell of plain text, or of text in a tone.
        package init(_ text: String, _ tone: Style.Tone? = nil) {
            self.text = text.printable
            self.tone = tone
        }
    }

    private let header: [String]
    private var rows: [[Cell]] = []

    /// A table with these headings; without any, of its rows alone.
    package init(_ header: [String] = []) {
        self.header = header
    }

    /// Adds a row.
    package mutating func add(_ row: [Cell]) {
        rows.append(row)
    }

    /// How wide its widest line can be.
    var width: Int {
        let widths = widths(of: [header.map { Cell($0) }] + rows).filter { $0 > 0 }
        return widths.reduce(0, +) + 2 * max(widths.count - 1, 0)
    }

    private func widths(of rows: [[Cell]]) -> [Int] {
        (0..<(rows.map(\.count).max() ?? 0)).map { column in
            rows.map { $0.indices.contains(column) ? $0[column].text.count : 0 }.max() ?? 0
        }
    }

    /// The lines, without trailing blanks.
    package func lines(_ style: Style) -> [String] {
        let rows = (header.isEmpty ? [] : [header.map { Cell($0, .strong) }]) + rows
        let widths = widths(of: rows)
        return rows.map { row in
            // The last cell that says something needs no padding behind it.
            let used = row.prefix((row.lastIndex { !$0.text.isEmpty } ?? -1) + 1)
            return used.enumerated().map { column, cell in
                let isLast = column == used.count - 1
                let padding = isLast ? "" : String(repeating: " ", count: widths[column] - cell.text.count)
                return (cell.tone.map { style.paint(cell.text, $0) } ?? cell.text) + padding
            }.joined(separator: "  ")
        }
    }
}

extension String {
    /// Itself without control characters, in lines of at most `width` characters, broken between words where that is
    /// possible, each behind `indent` blanks. Of nothing, no lines.
    func wrapped(to width: Int, indent: Int) -> [String] {
        let room = max(width - indent, 8)
        var lines: [String] = []
        var line = ""
        for word in printable.split(separator: " ") {
            if !line.isEmpty, line.count + 1 + word.count > room {
                lines.append(line)
                line = ""
            }
            line += line.isEmpty ? word : " \(word)"
        }
        if !line.isEmpty { lines.append(line) }
        let margin = String(repeating: " ", count: indent)
        return lines.map { margin + $0 }
    }
}

extension Style {
    /// A sentence in as many lines as the terminal's width takes.
    package func sentence(_ text: String, _ tone: Tone? = nil) -> [String] {
        text.wrapped(to: width ?? .max, indent: 0).map { line in tone.map { paint(line, $0) } ?? line }
    }
}
