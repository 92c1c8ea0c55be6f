// SPDX-License-Identifier: Apache-2.0

internal import NetworkPath
internal import Varlink

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
    /// Between two times below the rows.
    private static let tickDistance = 12

    private let timeline: Timeline
    private let localTime: LocalTime
    private let glyphs: Glyphs

    /// - Parameter isASCII: whether only characters of ASCII are used.
    package init(_ timeline: Timeline, _ localTime: LocalTime, isASCII: Bool) {
        self.timeline = timeline
        self.localTime = localTime
        glyphs = isASCII ? .ascii : .blocks
    }

    /// The lines.
    package func lines(_ style: Style) -> [String] {
        let rows = timeline.rows
        guard !rows.isEmpty else { return [style.paint("Nothing is known of that time.", .faint)] }
        let figures = rows.map(Self.figures)
        let width = style.width ?? Self.usualWidth
        let names = rows.map { $0.name.count }.max() ?? 0
        let behind = figures.map(\.count).max() ?? 0
        // The figures stand behind the blocks where there is room for both, and below them otherwise.
        let isBeside = width - names - behind - 4 >= 3 * Self.leastBlocks
        let count = max(width - names - 2 - (isBeside ? behind + 2 : 0), Self.leastBlocks)
        var lines: [String] = []
        for (row, figures) in zip(rows, figures) {
            let blocks = paint(blocks(of: row, count), style)
            let name = row.name + String(repeating: " ", count: names - row.name.count)
            lines.append(name + "  " + blocks + (isBeside && !figures.isEmpty ? "  " + figures : ""))
            if !isBeside, !figures.isEmpty { lines += figures.wrapped(to: width, indent: 2) }
            if let longest = Self.longest(row) {
                let indent = isBeside ? names + 2 : 2
                lines += longest.wrapped(to: width, indent: indent).map { style.paint($0, .faint) }
            }
        }
        let margin = String(repeating: " ", count: names + 2)
        lines += [style.paint(margin + axis(count), .faint), ""]
        return lines + legend(style).wrapped(to: style.width ?? .max, indent: 0).map { style.paint($0, .faint) }
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

    private func legend(_ style: Style) -> String {
        let kinds = Set(timeline.rows.flatMap(\.spans).map(\.kind))
        var parts = timeline.interfaces.enumerated().map { "\(Self.letter($0)) \($1)" }
        if timeline.connections.contains(where: { $0.spans.contains { $0.kind == .up } }) {
            parts.append("\(glyphs.up) up")
        }
        if kinds.contains(where: \.isOutage) { parts.append("\(glyphs.gap) up, with a short gap") }
        for kind in Timeline.Kind.allCases where kind != .up && kinds.contains(kind) {
            parts.append("\(glyphs.of(kind)) \(kind.text)")
        }
        return parts.joined(separator: "   ")
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
