// SPDX-License-Identifier: Apache-2.0

internal import DialtoneNetworkPath
internal import DialtonePlatform
internal import DialtoneVarlink

/// A timeline as blocks of text, as wide as the terminal.
package struct TimelineChart: Sendable {
    /// What stands for each kind, in characters that a terminal has.
    private struct Glyphs {
        let up, gap, retrying, noNetwork, agentOff: Character

        static let blocks = Glyphs(up: "█", gap: "▚", retrying: "▒", noNetwork: "░", agentOff: "·")
        static let ascii = Glyphs(up: "#", gap: "!", retrying: "x", noNetwork: ".", agentOff: "-")

        func of(_ kind: Timeline.Kind) -> Character {
            switch kind {
            case .up: up
            case .retrying: retrying
            case .noNetwork: noNetwork
            case .agentOff: agentOff
            }
        }
    }

    /// One place of a row.
    private struct Block: Equatable {
        let character: Character
        let tone: Style.Tone
    }

    /// As wide as it is drawn where there is no terminal.
    private static let usualWidth = 100
    /// Below this nothing can be seen.
    private static let leastBlocks = 8
    /// No terminal is wider, and the arithmetic of blocks has an end.
    private static let longestLine = 2000
    /// Between two times below the rows.
    private static let tickDistance = 12

    private let timeline: Timeline
    private let localTime: LocalTime
    private let isASCII: Bool
    private var glyphs: Glyphs { isASCII ? .ascii : .blocks }

    /// - Parameter isASCII: whether only characters of ASCII are used.
    package init(_ timeline: Timeline, _ localTime: LocalTime, isASCII: Bool) {
        self.timeline = timeline
        self.localTime = localTime
        self.isASCII = isASCII
    }

    /// The lines.
    package func lines(_ style: Style) -> [String] {
        let rows = timeline.rows
        let kept = timeline.keptSince.map { Self.kept(since: $0, localTime) }
        guard !rows.isEmpty else {
            return (["Nothing is known of that time."] + (kept.map { [$0] } ?? [])).flatMap {
                style.sentence($0, .faint)
            }
        }
        let width = min(max(style.width ?? Self.usualWidth, 1), Self.longestLine)
        let layout = Layout(rows, width: width)
        var lines = rows.flatMap { self.lines(of: $0, layout, style) }
        let margin = String(repeating: " ", count: layout.margin)
        let axis = axis(layout.blocks)
        if !axis.isEmpty { lines.append(style.paint(margin + axis, .faint)) }
        lines.append("")
        let hasBlank = rows.contains { blocks(of: $0, layout.blocks).contains { $0.character == " " } }
        lines += legend(width, hasBlank: hasBlank).map { style.paint($0, .faint) }
        return lines + (kept.map { fitted($0, width, indent: 0).map { style.paint($0, .faint) } } ?? [])
    }

    /// Where everything stands on lines of a width.
    private struct Layout {
        let width: Int
        /// How wide the column of the names is; `nil` where they stand above the blocks.
        let names: Int?
        /// Whether the figures stand behind the blocks, and not below them.
        let isBeside: Bool
        let blocks: Int

        var margin: Int { names.map { $0 + 2 } ?? 0 }

        init(_ rows: [Timeline.Row], width: Int) {
            let longest = rows.map { $0.name.count }.max() ?? 0
            let behind = rows.map { TimelineChart.figures($0).count }.max() ?? 0
            let isBeside = width - longest - behind - 4 >= 3 * TimelineChart.leastBlocks
            let hasNames = width - longest - 2 >= TimelineChart.leastBlocks
            self.width = width
            self.isBeside = isBeside
            names = hasNames ? longest : nil
            blocks = max(width - (hasNames ? longest + 2 : 0) - (isBeside ? behind + 2 : 0), 1)
        }
    }

    private func lines(of row: Timeline.Row, _ layout: Layout, _ style: Style) -> [String] {
        let figures = Self.figures(row)
        let blocks = paint(blocks(of: row, layout.blocks), style)
        let name = printable(row.name)
        var lines: [String]
        if let names = layout.names {
            lines = [name + String(repeating: " ", count: max(names - name.count, 0) + 2) + blocks]
        } else {
            lines = [String(name.prefix(layout.width)), blocks]
        }
        if layout.isBeside, !figures.isEmpty { lines[lines.count - 1] += "  " + figures }
        let indent = layout.isBeside ? layout.margin : min(2, layout.width - 1)
        if !layout.isBeside { lines += fitted(figures, layout.width, indent: indent) }
        if let longest = Self.longest(row) {
            lines += fitted(longest, layout.width, indent: indent).map { style.paint($0, .faint) }
        }
        return lines
    }

    /// Text in lines of at most `width` characters. A word that is longer is broken.
    private func fitted(_ text: String, _ width: Int, indent: Int) -> [String] {
        let margin = String(repeating: " ", count: indent)
        return printable(text).wrapped(to: width - indent, indent: 0).flatMap { line -> [String] in
            var rest = line[...]
            var parts: [String] = []
            while !rest.isEmpty {
                parts.append(margin + rest.prefix(max(width - indent, 1)))
                rest = rest.dropFirst(max(width - indent, 1))
            }
            return parts
        }
    }

    /// Text that does nothing to a terminal but show, in the characters that are used.
    private func printable(_ text: String) -> String {
        let text = text.printable
        return isASCII ? String(text.map { $0.isASCII ? $0 : "?" }) : text
    }

    /// That the beginning is not known.
    static func kept(since time: Timestamp, _ localTime: LocalTime) -> String {
        "Complete since \(localTime.day(time).suffix(10)) \(localTime.clock(time).prefix(8)): "
            + "some of what was before is not kept any more."
    }

    /// `99.9 %  2 outages, down 2 m 10 s`.
    static func figures(_ row: Timeline.Row) -> String {
        guard let uptime = row.uptime else { return "" }
        let share = percent(uptime)
        guard row.outages > 0 else { return share }
        return "\(share)  \(row.outages == 1 ? "1 outage" : "\(row.outages) outages"), down \(row.down.short)"
    }

    /// `longest 2 m 5 s: no carrier`.
    static func longest(_ row: Timeline.Row) -> String? {
        guard row.outages > 0 else { return nil }
        return "longest \(row.longest.short)" + (row.longestCause.map { ": \($0)" } ?? "")
    }

    /// A share with two decimals; never 100 % of what is less.
    static func percent(_ share: Double) -> String {
        let hundredths = Int((min(max(share, 0), 1) * 10_000).rounded(.down))
        let decimals = hundredths % 100
        return hundredths == 10_000 ? "100 %" : "\(hundredths / 100).\(decimals < 10 ? "0" : "")\(decimals) %"
    }

    /// The letter of an interface: the order in which packets first left by them.
    static func letter(_ index: Int) -> Character {
        Character(UnicodeScalar(UInt8(ascii: "A") + UInt8(clamping: min(index, 25))))
    }

    private func blocks(of row: Timeline.Row, _ count: Int) -> [Block] {
        let (begin, whole) = (timeline.since.milliseconds, timeline.until.milliseconds - timeline.since.milliseconds)
        var next = 0
        return (0..<count).map { place in
            let from = begin + whole * Int64(place) / Int64(count)
            let to = begin + whole * Int64(place + 1) / Int64(count)
            while next < row.spans.count, row.spans[next].end.milliseconds <= from { next += 1 }
            let inside = row.spans[next...].prefix { $0.begin.milliseconds < to }
            return block(inside, from, to)
        }
    }

    /// What stands for the time from one instant to another.
    private func block(_ spans: ArraySlice<Timeline.Span>, _ from: Int64, _ to: Int64) -> Block {
        func share(_ span: Timeline.Span) -> Int64 {
            min(span.end.milliseconds, to) - max(span.begin.milliseconds, from)
        }
        var shares: [Timeline.Kind: Int64] = [:]
        for span in spans { shares[span.kind, default: 0] += share(span) }
        // The first of the largest, in the order of the kinds, so that a picture is the same each time.
        guard let most = Timeline.Kind.allCases.max(by: { (shares[$0] ?? 0) < (shares[$1] ?? 0) }),
            shares[most] ?? 0 > 0
        else { return Block(character: " ", tone: .faint) }
        switch most {
        case .up where spans.contains { $0.kind.isOutage }: return Block(character: glyphs.gap, tone: .warning)
        case .up:
            let longest = spans.filter { $0.kind == .up }.max { share($0) < share($1) }
            let letter = longest?.interface.flatMap { timeline.interfaces.firstIndex(of: $0) }.map(Self.letter)
            return Block(character: letter ?? glyphs.up, tone: .good)
        case .retrying: return Block(character: glyphs.retrying, tone: .bad)
        case .noNetwork: return Block(character: glyphs.noNetwork, tone: .warning)
        case .agentOff: return Block(character: glyphs.agentOff, tone: .faint)
        }
    }

    /// The blocks, with one change of colour where the colour changes.
    private func paint(_ blocks: [Block], _ style: Style) -> String {
        var text = ""
        var rest = blocks[...]
        while let first = rest.first {
            let same = rest.prefix { $0.tone == first.tone }
            text += style.paint(String(same.map(\.character)), first.tone)
            rest = rest.dropFirst(same.count)
        }
        return text
    }

    /// The times below the rows.
    private func axis(_ count: Int) -> String {
        let whole = timeline.until.milliseconds - timeline.since.milliseconds
        var line = ""
        for place in stride(from: 0, to: count, by: Self.tickDistance) {
            let time = Timestamp(milliseconds: timeline.since.milliseconds + whole * Int64(place) / Int64(count))
            let text = TimelineTicks.text(time, within: timeline, localTime)
            guard place + text.count <= count else { break }
            line += String(repeating: " ", count: place - line.count) + text
        }
        return line
    }

    /// What each block means, in lines that break between two of them.
    private func legend(_ width: Int, hasBlank: Bool) -> [String] {
        let kinds = Set(timeline.rows.flatMap(\.spans).map(\.kind))
        var parts = timeline.interfaces.enumerated().map { "\(Self.letter($0)) \(printable($1))" }
        if timeline.connections.contains(where: { $0.spans.contains { $0.kind == .up } }) {
            parts.append("\(glyphs.up) up")
        }
        if kinds.contains(where: \.isOutage) { parts.append("\(glyphs.gap) up, with a short gap") }
        for kind in Timeline.Kind.allCases where kind != .up && kinds.contains(kind) {
            parts.append("\(glyphs.of(kind)) \(kind.text)")
        }
        if hasBlank { parts.append("blank: not known") }
        var lines: [String] = []
        for part in parts {
            if let last = lines.last, last.count + 3 + part.count <= width {
                lines[lines.count - 1] = "\(last)   \(part)"
            } else {
                lines += fitted(part, width, indent: 0)
            }
        }
        return lines
    }
}

/// The times along a timeline.
enum TimelineTicks {
    /// A time as short as the length of what is shown allows: `14:02:11`, `14:02`, or with the day, `11-22 14h`.
    static func text(_ time: Timestamp, within timeline: Timeline, _ localTime: LocalTime) -> String {
        let clock = localTime.clock(time)
        let whole = timeline.until - timeline.since
        if whole <= .seconds(20 * 60) { return String(clock.prefix(8)) }
        if whole <= .seconds(36 * 3600) { return String(clock.prefix(5)) }
        return "\(localTime.day(time).suffix(5)) \(clock.prefix(2))h"
    }
}
