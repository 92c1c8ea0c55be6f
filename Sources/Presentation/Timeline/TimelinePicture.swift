// SPDX-License-Identifier: Apache-2.0

internal import DialtoneNetworkPath
internal import DialtoneVarlink

/// A timeline as SVG, and as a page of HTML that has everything in itself: no script, no font and no picture from
/// elsewhere.
package struct TimelinePicture: Sendable {
    private static let width = 1000
    private static let rowHeight = 38
    private static let barHeight = 18
    private static let top = 14
    /// What is shorter than this many pixels is drawn as wide, so that it is seen.
    private static let leastWidth = 3.0

    private let timeline: Timeline
    private let localTime: LocalTime
    private let labelWidth: Int
    private let figureWidth = 310
    /// Between the lines of the legend.
    private static let legendHeight = 24
    /// About as wide as a character is.
    private static let characterWidth = 8

    /// A picture of a timeline.
    package init(_ timeline: Timeline, _ localTime: LocalTime) {
        self.timeline = timeline
        self.localTime = localTime
        labelWidth = min(max((timeline.rows.map { $0.name.count }.max() ?? 0) * Self.characterWidth + 20, 80), 300)
    }

    private var chartWidth: Int { Self.width - labelWidth - figureWidth }
    private var axisHeight: Int { Self.top + timeline.rows.count * Self.rowHeight }
    private var height: Int {
        let lines = (legendPlaces.last?.line ?? 0) + (timeline.keptSince == nil ? 1 : 2)
        return axisHeight + 38 + lines * Self.legendHeight
    }

    /// The picture, as a document of its own.
    package var svg: String {
        """
        <svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 \(Self.width) \(height)" width="\(Self.width)" \
        height="\(height)" role="img" aria-label="\(Self.escaped(title))">
        <style>\(Self.style)</style>
        <rect class="page" width="\(Self.width)" height="\(height)"/>
        \(timeline.rows.enumerated().map(row).joined(separator: "\n"))
        \(axis)
        \(legend)
        \(kept)
        </svg>

        """
    }

    /// The picture on a page, with the figures and every time that something was not up as text below.
    package var html: String {
        """
        <!DOCTYPE html>
        <html lang="en">
        <head>
        <meta charset="utf-8">
        <meta name="viewport" content="width=device-width">
        <title>\(Self.escaped(title))</title>
        <style>\(Self.pageStyle)</style>
        </head>
        <body>
        <h1>\(Self.escaped(title))</h1>
        <figure>
        \(svg)</figure>
        \(keptText.map { "<p class=\"kept\">\(Self.escaped($0))</p>" } ?? "")
        <table class="figures">
        <caption>How long each was up</caption>
        <tr><th>Name</th><th>Up</th><th>Outages</th><th>Down</th><th>Longest</th><th>Why</th></tr>
        \(timeline.rows.map(figures).joined(separator: "\n"))
        </table>
        <table class="times">
        <caption>What was not up</caption>
        <tr><th>Name</th><th>What</th><th>From</th><th>For</th><th>Why</th></tr>
        \(timeline.rows.flatMap(times).joined(separator: "\n"))
        </table>
        </body>
        </html>

        """
    }

    private var title: String { "Dialtone from \(moment(timeline.since)) to \(moment(timeline.until))" }

    private func row(_ index: Int, _ row: Timeline.Row) -> String {
        let y = Self.top + index * Self.rowHeight
        let middle = y + Self.barHeight - 4
        // What is up begins behind the least width of what was not, which would be painted over otherwise.
        var end = 0.0
        let bars = row.spans.map { span in
            let place = self.place(span, after: end)
            end = max(end, place.end)
            return bar(span, of: row, from: place.begin, to: place.end, y)
        }.joined(separator: "\n")
        let x = labelWidth + chartWidth + 14
        let figures = TimelineChart.figures(row).split(separator: "  ").joined(separator: ", ")
        return """
            <g class="row">
            <text class="name" x="\(labelWidth - 12)" y="\(middle)" text-anchor="end">\(name(row))</text>
            <rect class="none" x="\(labelWidth)" y="\(y)" width="\(chartWidth)" height="\(Self.barHeight)"/>
            \(bars)
            <text class="figures" x="\(x)" y="\(middle)">\(Self.escaped(figures))</text>
            \(longest(of: row, x, middle + 15))
            </g>
            """
    }

    /// The longest outage and its cause, or the beginning of that with all of it under the pointer.
    private func longest(of row: Timeline.Row, _ x: Int, _ y: Int) -> String {
        guard let text = TimelineChart.longest(row) else { return "" }
        let room = (figureWidth - 14) / 7
        let shown = text.count > room ? text.prefix(room - 1) + "…" : text[...]
        return """
            <text class="longest" x="\(x)" y="\(y)">\(Self.escaped(String(shown)))\
            <title>\(Self.escaped(text))</title></text>
            """
    }

    private func place(_ span: Timeline.Span, after end: Double) -> (begin: Double, end: Double) {
        let (from, to) = (place(span.begin), place(span.end))
        guard span.kind == .up else { return (from, max(to, from + Self.leastWidth)) }
        let begin = max(from, end)
        return (begin, max(to, begin))
    }

    /// The name, or the beginning of one that has no room, with all of it under the pointer.
    private func name(_ row: Timeline.Row) -> String {
        let room = (labelWidth - 20) / Self.characterWidth
        guard row.name.count > room else { return Self.escaped(row.name) }
        return "\(Self.escaped(String(row.name.prefix(room - 1))))…<title>\(Self.escaped(row.name))</title>"
    }

    private func bar(
        _ span: Timeline.Span, of row: Timeline.Row, from begin: Double, to end: Double, _ y: Int
    ) -> String {
        let interface = span.interface.flatMap { timeline.interfaces.firstIndex(of: $0) }
        let style = interface.map { "up i\($0 % 6)" } ?? span.kind.rawValue
        let what = span.interface ?? span.kind.text
        let why = span.cause.map { ": \($0)" } ?? ""
        let text = "\(row.name): \(what) from \(moment(span.begin)) for \(span.lasting.short)\(why)"
        return """
            <rect class="\(style)" x="\(Self.number(begin))" y="\(y)" width="\(Self.number(end - begin))" \
            height="\(Self.barHeight)"><title>\(Self.escaped(text))</title></rect>
            """
    }

    private var axis: String {
        let count = max(min(chartWidth / 110, 8), 2)
        let whole = timeline.until.milliseconds - timeline.since.milliseconds
        let ticks = (0...count).map { index in
            let time = Timestamp(milliseconds: timeline.since.milliseconds + whole * Int64(index) / Int64(count))
            let x = Self.number(place(time))
            let text = TimelineTicks.text(time, within: timeline, localTime)
            return """
                <line class="tick" x1="\(x)" y1="\(axisHeight - 10)" x2="\(x)" y2="\(axisHeight - 4)"/>
                <text class="tick" x="\(x)" y="\(axisHeight + 10)" text-anchor="middle">\(Self.escaped(text))</text>
                """
        }
        return ticks.joined(separator: "\n")
    }

    private var legend: String {
        legendPlaces.map { place in
            let y = axisHeight + 34 + place.line * Self.legendHeight
            return """
                <rect class="\(place.style)" x="\(place.x)" y="\(y)" width="14" height="14"/>
                <text class="legend" x="\(place.x + 20)" y="\(y + 12)">\(Self.escaped(place.text))</text>
                """
        }.joined(separator: "\n")
    }

    /// What the legend says, and where: in as many lines as it takes.
    private var legendPlaces: [(style: String, text: String, x: Int, line: Int)] {
        let kinds = Set(timeline.connections.flatMap(\.spans).map(\.kind))
            .union(timeline.network?.spans.filter { $0.interface == nil }.map(\.kind) ?? [])
        var parts = timeline.interfaces.enumerated().map { ("up i\($0 % 6)", $1) }
        for kind in Timeline.Kind.allCases where kinds.contains(kind) { parts.append((kind.rawValue, kind.text)) }
        var (x, line) = (labelWidth, 0)
        return parts.map { style, text in
            let width = 34 + text.count * Self.characterWidth
            if x > labelWidth, x + width > Self.width { (x, line) = (labelWidth, line + 1) }
            defer { x += width }
            return (style, text, x, line)
        }
    }

    private var keptText: String? { timeline.keptSince.map { TimelineChart.kept(since: $0, localTime) } }

    private var kept: String {
        guard let keptText else { return "" }
        let y = height - 14
        return "<text class=\"legend\" x=\"\(labelWidth)\" y=\"\(y)\">\(Self.escaped(keptText))</text>"
    }

    private func figures(_ row: Timeline.Row) -> String {
        let isDown = row.outages > 0
        let cells = [
            row.name, row.uptime.map(TimelineChart.percent) ?? "–", "\(row.outages)", isDown ? row.down.short : "–",
            isDown ? row.longest.short : "–", row.longestCause ?? "",
        ]
        return "<tr>" + cells.map { "<td>\(Self.escaped($0))</td>" }.joined() + "</tr>"
    }

    private func times(_ row: Timeline.Row) -> [String] {
        row.spans.filter { $0.kind != .up }.map { span in
            let cells = [row.name, span.kind.text, moment(span.begin), span.lasting.short, span.cause ?? ""]
            return "<tr>" + cells.map { "<td>\(Self.escaped($0))</td>" }.joined() + "</tr>"
        }
    }

    private func moment(_ time: Timestamp) -> String {
        "\(localTime.day(time).suffix(10)) \(localTime.clock(time).prefix(8))"
    }

    /// Where a time is, from left to right.
    private func place(_ time: Timestamp) -> Double {
        let whole = max(timeline.until.milliseconds - timeline.since.milliseconds, 1)
        let part = Double(time.milliseconds - timeline.since.milliseconds) / Double(whole)
        return Double(labelWidth) + part * Double(chartWidth)
    }

    private static func number(_ value: Double) -> String {
        let tenths = Int((min(max(value, 0), 10_000) * 10).rounded())
        return "\(tenths / 10).\(tenths % 10)"
    }

    /// Text that XML takes for nothing else. What XML does not have at all (most control characters) becomes a
    /// replacement character.
    static func escaped(_ text: String) -> String {
        var result = ""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "&": result += "&amp;"
            case "<": result += "&lt;"
            case ">": result += "&gt;"
            case "\"": result += "&quot;"
            case "\t", "\n": result += " "
            case _ where scalar.value < 0x20 || (0x7F...0x9F).contains(scalar.value) || scalar.value & 0xFFFE == 0xFFFE:
                result += "\u{FFFD}"
            default: result.unicodeScalars.append(scalar)
            }
        }
        return result
    }

    /// Colours that people tell apart who do not see all of them (Okabe and Ito, "Color Universal Design").
    private static let style = """
        .page { fill: #ffffff } text { font: 14px system-ui, sans-serif; fill: #222222 }
        text.tick, text.legend, text.longest { font-size: 12px; fill: #555555 } line.tick { stroke: #999999 }
        .none { fill: #f0f0f0 } .up { fill: #009e73 } .retrying { fill: #e69f00 } .noNetwork { fill: #b22222 }
        .agentOff { fill: #b8b8b8 } .i0 { fill: #0072b2 } .i1 { fill: #56b4e9 } .i2 { fill: #cc79a7 }
        .i3 { fill: #806600 } .i4 { fill: #009e73 } .i5 { fill: #332288 }
        @media (prefers-color-scheme: dark) {
        .page { fill: #16181c } text { fill: #e8e8e8 } text.tick, text.legend, text.longest { fill: #b0b0b0 }
        .none { fill: #26292f } .noNetwork { fill: #e05050 } .agentOff { fill: #6a6e76 } .i5 { fill: #9a8cff }
        }
        """

    private static let pageStyle = """
        :root { color-scheme: light dark } body { font: 15px system-ui, sans-serif; margin: 2em auto; max-width: 1000px;
        padding: 0 1em; background: #ffffff; color: #222222 } figure { margin: 0 } svg { max-width: 100%; height: auto }
        h1 { font-size: 1.3em } table { border-collapse: collapse; margin: 1.5em 0; width: 100% }
        caption { text-align: left; font-weight: bold; padding-bottom: .4em }
        th, td { text-align: left; padding: .25em .8em .25em 0; border-bottom: 1px solid #cccccc; vertical-align: top }
        @media (prefers-color-scheme: dark) { body { background: #16181c; color: #e8e8e8 }
        th, td { border-color: #444444 } }
        """
}
