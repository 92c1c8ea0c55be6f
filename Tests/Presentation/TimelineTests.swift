// SPDX-License-Identifier: Apache-2.0

import DialtoneAPI
import DialtoneNetworkPath
import DialtoneVarlink
import Testing

@testable import DialtonePresentation

/// The timeline.
@Suite struct TimelineTests {
    private typealias Reply = ConnectionsAPI.History.Reply
    private static let boot = Duration.seconds(40)
    private static let clock = LocalTime(day: { _ in "2026-11-22" }, clock: { _ in "14:02:11.042" })

    private static func at(_ seconds: Int64) -> Timestamp { Sample.noon.advanced(by: seconds * 1000) }

    private func event(
        _ state: ConnectionsAPI.State, at seconds: Int64, _ kind: ConnectionsAPI.EventKind = .state,
        because reason: String? = nil, by cause: ConnectionsAPI.Cause? = nil, of name: String = "office"
    ) -> Reply {
        var event = Sample.event(kind, Sample.connection(name, state) { $0.cause = cause }, reason: reason)
        event.time = Self.at(seconds)
        return .init(event: event, uptime: .seconds(seconds) + Self.boot)
    }

    private func network(_ status: ConnectionsAPI.Status, _ interface: String?, at seconds: Int64) -> Reply {
        .init(
            network: .init(
                time: Self.at(seconds), changes: ["status"], status: status,
                reason: status == .unsatisfied ? .noCarrier : nil, interface: interface, supportsIPv4: true,
                supportsIPv6: false, supportsDNS: true, expensive: false, constrained: false),
            uptime: .seconds(seconds) + Self.boot)
    }

    private func agent(_ kind: ConnectionsAPI.AgentChange.Kind, at seconds: Int64, uptime: Int64? = nil) -> Reply {
        .init(
            agent: .init(time: Self.at(seconds), kind: kind),
            uptime: uptime.map { .seconds($0) } ?? .seconds(seconds) + Self.boot)
    }

    private func timeline(
        _ entries: [Reply], from since: Int64 = 0, to until: Int64 = 1000, now: Int64 = 1000, uptime: Duration? = nil,
        network: Bool = true
    ) -> Timeline {
        Timeline(
            OutageCounter.counted(entries), since: Self.at(since), until: Self.at(until), now: Self.at(now),
            uptime: uptime ?? .seconds(now) + Self.boot, hasNetwork: network)
    }

    /// An evening: a cable that is out, an agent that is updated, a server that restarts.
    private var evening: [Reply] {
        [
            agent(.started, at: 0), network(.satisfied, "wlan0", at: 0), event(.waiting, at: 0, .opened),
            event(.ready, at: 1),
            network(.unsatisfied, "wlan0", at: 300), event(.waiting, at: 300, because: "no carrier"),
            network(.satisfied, "wwan0", at: 400), event(.ready, at: 401),
            event(.closed, at: 500, because: "the agent was stopped", by: .agentEnded), agent(.ended, at: 500),
            agent(.started, at: 510),
            network(.satisfied, "wwan0", at: 510), event(.ready, at: 511, .continued),
            event(.backingOff, at: 800, because: "closed by the server"), event(.ready, at: 802),
        ]
    }

    private func spans(_ row: Timeline.Row?) -> [String] {
        (row?.spans ?? []).map { span in
            let (begin, end) = (span.begin - Sample.noon, span.end - Sample.noon)
            let words = [span.interface ?? span.kind.rawValue, span.cause ?? ""].filter { !$0.isEmpty }
            return "\(begin.components.seconds)-\(end.components.seconds) \(words.joined(separator: ": "))"
        }
    }

    @Test func `each row has what was the case from when to when, and why`() {
        let timeline = timeline(evening)
        #expect(
            spans(timeline.network) == [
                "0-300 wlan0", "300-400 noNetwork: wlan0 has no carrier", "400-500 wwan0",
                "500-510 agentOff: the agent was stopped",
                "510-1000 wwan0",
            ])
        #expect(
            spans(timeline.connections.first) == [
                "0-1 retrying", "1-300 up", "300-401 noNetwork: no carrier", "401-500 up",
                "500-510 agentOff: the agent was stopped", "511-800 up", "800-802 retrying: closed by the server",
                "802-1000 up",
            ])
        #expect(timeline.interfaces == ["wlan0", "wwan0"])
    }

    @Test func `its figures are those of the history`() throws {
        for (since, until) in [(0, 1000), (350, 1000), (0, 350), (600, 700), (801, 1000)] as [(Int64, Int64)] {
            let row = timeline(evening, from: since, to: until).connections.first
            var story = HistoryStory(
                LocalTime(day: { _ in "" }, clock: { _ in "" }), since: Self.at(since), until: Self.at(until))
            for entry in OutageCounter.counted(evening) { _ = story.entry(entry) }
            let told = try #require(
                story.summary(now: Self.at(1000), uptime: .seconds(1000) + Self.boot, Sample.plain).last)
            let row2 = try #require(row)
            let figures = TimelineChart.figures(row2)
            let down = row2.outages == 0 ? "no outage" : "down \(row2.down.short)"
            #expect(told.contains(down), "\(told) and \(figures)")
            #expect(row2.outages < 2 || told.contains("longest \(row2.longest.short)"), "\(told)")
        }
    }

    @Test func `when an agent was killed nobody knows, unless its connections went on`() {
        let before = [agent(.started, at: 0), network(.satisfied, "wlan0", at: 0), event(.ready, at: 1)]
        let lost = [agent(.started, at: 500), event(.waiting, at: 500, .opened), event(.ready, at: 502)]
        #expect(
            spans(timeline(before + lost).connections.first) == [
                "500-502 retrying: the agent was killed or crashed", "502-1000 up",
            ])
        let kept = [agent(.started, at: 500), event(.ready, at: 500, .continued)]
        #expect(spans(timeline(before + kept).connections.first) == ["1-1000 up"])
        // Another connection shows that the agent was there, and one that is opened much later is another life.
        let beside = [event(.ready, at: 400, of: "door"), agent(.started, at: 500)]
        let one = Timeline(
            before + beside + [event(.waiting, at: 600, .opened), event(.ready, at: 602)], since: Self.at(0),
            until: Self.at(1000), now: Self.at(1000), uptime: .seconds(1000) + Self.boot, hasNetwork: false,
            names: ["office"])
        #expect(one.connections.map(\.name) == ["office"])
        #expect(spans(one.connections.first) == ["1-400 up", "600-602 retrying", "602-1000 up"])
        let closed = event(.closed, at: 499, by: .closeRequested)
        #expect(spans(timeline(before + [closed, agent(.ended, at: 500)]).connections.first) == ["1-499 up"])
    }

    @Test func `the longest outage has its cause`() {
        let row = timeline(evening).connections.first
        #expect(row?.longest == .seconds(101))
        #expect(row?.longestCause == "no carrier")
        #expect(row.flatMap(TimelineChart.longest) == "longest 1 m 41 s: no carrier")
    }

    @Test func `one that never came up is down for what it failed of, over a restart too`() {
        let start = [agent(.started, at: 0), event(.waiting, at: 0, .opened, because: "opened")]
        let failing =
            start + [event(.backingOff, at: 1, because: "refused"), event(.backingOff, at: 9, because: "later")]
        #expect(timeline(failing).connections.first?.longestCause == "refused")
        let stopped =
            failing + [
                event(.closed, at: 20, because: "the agent was stopped", by: .agentEnded), agent(.ended, at: 20),
                agent(.started, at: 30),
                event(.waiting, at: 31, .opened, because: "opened"), event(.ready, at: 40),
            ]
        let row = timeline(stopped).connections.first
        #expect(row?.longestCause == "refused", "\(String(describing: row))")
        #expect(row?.outages == 1)
    }

    @Test func `a clock that was set bends nothing`() {
        // The machine believed in 1970 until the network was there.
        let entries = evening.map { entry -> Reply in
            var entry = entry
            if entry.uptime ?? .zero < .seconds(490) + Self.boot {
                entry.event?.time = Timestamp(milliseconds: 5)
                entry.network?.time = Timestamp(milliseconds: 5)
                if entry.agent != nil { entry.agent?.time = Timestamp(milliseconds: 5) }
            }
            return entry
        }
        #expect(spans(timeline(entries).network) == spans(timeline(evening).network))
        #expect(spans(timeline(entries).connections.first) == spans(timeline(evening).connections.first))
    }

    @Test func `a machine that went off is seen as such, and an agent that was killed is not`() {
        let start = [agent(.started, at: 0), network(.satisfied, "wlan0", at: 0), event(.ready, at: 1)]
        let killed = start + [agent(.started, at: 500), event(.ready, at: 500, .continued)]
        #expect(spans(timeline(killed).connections.first) == ["1-1000 up"])
        var back = event(.ready, at: 501, .continued)
        back.uptime = .seconds(4)
        let off = start + [agent(.started, at: 500, uptime: 3), back]
        #expect(
            spans(timeline(off, uptime: .seconds(503)).network) == [
                "0-1 wlan0", "1-500 agentOff: the machine went off",
            ])
    }

    @Test func `blocks show the longest part of their time, and gaps too short for one`() {
        let lines = TimelineChart(
            timeline(evening), LocalTime(day: { _ in "2026-11-22" }, clock: { _ in "14:02:11.042" }), isASCII: true
        ).lines(Style(hasColour: false, width: 100))
        let row = lines.first { $0.hasPrefix("office") } ?? ""
        let blocks = row.dropFirst("network  ".count).prefix { $0 != " " }
        #expect(blocks.contains("!"), "the server's restart took two seconds: \(row)")
        #expect(blocks.contains("."), "\(row)")
        #expect(lines.first { $0.hasPrefix("network") }?.contains("AAA") == true, "\(lines)")
        #expect(row.contains("2 outages, down 1 m 43 s"), "\(row)")
        #expect(lines.contains { $0.contains("longest 1 m 41 s: no carrier") })
        #expect(lines.last?.contains("A wlan0") == true && lines.last?.contains("! up, with a short gap") == true)
    }

    @Test(arguments: [1, 8, 20, 40, 80, 200, 65_535])
    func `it fits the terminal`(width: Int) {
        let name = String(repeating: "long-", count: 12)
        let reason = "größer\u{1B}[2J " + String(repeating: "x", count: 90)
        let entries =
            evening + [event(.ready, at: 900, of: name), event(.backingOff, at: 901, because: reason, of: name)]
        for isASCII in [true, false] {
            let chart = TimelineChart(timeline(entries), Self.clock, isASCII: isASCII)
            let lines = chart.lines(Style(hasColour: false, width: width))
            #expect(lines.allSatisfy { $0.count <= width }, "\(lines)")
            #expect(lines.allSatisfy { line in !line.unicodeScalars.contains("\u{1B}") }, "\(lines)")
            if isASCII { #expect(lines.allSatisfy { $0.allSatisfy(\.isASCII) }) }
            #expect(chart.lines(Style(hasColour: true, width: width)).map(withoutEscapes) == lines)
        }
    }

    @Test func `twenty columns have a name, blocks and figures`() {
        let chart = TimelineChart(timeline(evening), Self.clock, isASCII: true)
        let lines = chart.lines(Style(hasColour: false, width: 20))
        #expect(lines.count { $0.hasPrefix("office   ") } == 1, "\(lines)")
        #expect(lines.contains { $0.contains("2 outages") }, "\(lines)")
        #expect(lines.contains("A wlan0   B wwan0"), "the legend is set in columns: \(lines)")
    }

    @Test func `a time that is longer than a calendar traps nothing`() {
        let whole = Timeline(
            evening, since: Timestamp(milliseconds: -1_000_000_000_000_000),
            until: Timestamp(milliseconds: 250_000_000_000_000), now: Self.at(1000), uptime: nil, hasNetwork: true)
        #expect(!TimelineChart(whole, Self.clock, isASCII: true).lines(Style(hasColour: true, width: 65_535)).isEmpty)
        #expect(TimelinePicture(whole, Self.clock).html.contains("</html>"))
    }

    @Test func `what was down is what the share lacks`() throws {
        let row = try #require(timeline(evening).connections.first)
        // Up from 1 to 300, 401 to 500, 511 to 800 and 802 to 1000; the first second was no outage.
        let up = 299.0 + 99 + 289 + 198
        let share = try #require(row.uptime)
        #expect(abs(share - up / (up + 103)) < 1e-9, "\(share)")
        let smooth = timeline(Array(evening.prefix(4)), to: 200, now: 200).connections.first
        #expect(smooth?.uptime == 1)
        #expect(smooth?.outages == 0)
    }

    @Test func `the figures are of the time in the picture, where the clock was set`() throws {
        // The outage happened before the machine knew the time.
        let entries = evening.map { entry -> Reply in
            var entry = entry
            guard entry.uptime ?? .zero < .seconds(490) + Self.boot else { return entry }
            entry.event?.time = Timestamp(milliseconds: 5)
            entry.network?.time = Timestamp(milliseconds: 5)
            entry.agent?.time = Timestamp(milliseconds: 5)
            return entry
        }
        for (since, until) in [(0, 1000), (200, 1000), (350, 1000)] as [(Int64, Int64)] {
            let (set, unset) = (
                timeline(entries, from: since, to: until), timeline(evening, from: since, to: until)
            )
            #expect(set == unset)
        }
        #expect(timeline(entries, from: 200).connections.first?.longest == .seconds(101))
    }

    @Test func `a history that was cut says so`() {
        func dropped(_ part: ConnectionsAPI.Dropped.Part) -> Reply {
            .init(dropped: .init(part: part, owner: 0, count: 7, until: Self.at(200)))
        }
        let rest = Array(evening.dropFirst(4))
        let cut = timeline([dropped(.connections)] + rest)
        #expect(cut.keptSince == Self.at(200))
        let picture = TimelinePicture(cut, Self.clock)
        let chart = TimelineChart(cut, Self.clock, isASCII: true).lines(Style(hasColour: false, width: 200))
        for text in [picture.svg, picture.html, chart.joined()] {
            #expect(text.contains("Complete since 2026-11-22 14:02:11: some of what was before"), "\(text)")
        }
        #expect(String(decoding: cut.json, as: UTF8.self).contains("\"keptSince\":\""))
        #expect(timeline([dropped(.connections)] + rest, from: 250).keptSince == nil)
        #expect(timeline([dropped(.network)] + rest, network: false).keptSince == nil)
        #expect(timeline([dropped(.wakes)] + rest).keptSince == nil)
        #expect(!TimelinePicture(timeline(rest), Self.clock).html.contains("Complete since"))
    }

    @Test func `a very long history takes no time that anybody notices`() {
        var entries = [agent(.started, at: 0)]
        for round in 0..<10_000 as Range<Int64> {
            entries.append(network(.satisfied, "wwan\(round % 40)", at: 2 * round))
            entries.append(event(round % 2 == 0 ? .ready : .backingOff, at: 2 * round + 1, because: "reset"))
        }
        let timeline = timeline(entries, to: 20_000, now: 20_000)
        #expect(timeline.connections.first?.outages == 5000)
        #expect(timeline.interfaces.count == 40)
        let elapsed = ContinuousClock().measure {
            #expect(TimelinePicture(timeline, Self.clock).html.contains("</html>"))
            #expect(!TimelineChart(timeline, Self.clock, isASCII: false).lines(Sample.plain).isEmpty)
        }
        #expect(elapsed < .seconds(20))
    }

    @Test func `what has no room in the picture is there under the pointer`() {
        let name = String(repeating: "long-", count: 12)
        let interfaces = (0..<20 as Range<Int64>).map { network(.satisfied, "interface-\($0)", at: 10 * $0) }
        let timeline = timeline([agent(.started, at: 0), event(.ready, at: 0, of: name)] + interfaces)
        let svg = TimelinePicture(timeline, Self.clock).svg
        #expect(svg.contains("…<title>\(name)</title>"))
        let places = svg.split(separator: "<text class=\"legend\" x=\"").dropFirst().compactMap { part in
            Int(part.prefix { $0.isNumber })
        }
        #expect(places.count == 21)
        #expect(places.allSatisfy { $0 + 16 <= 1000 }, "\(places)")
    }

    @Test(arguments: [(1, "100 %"), (0.99999, "99.99 %"), (0.5, "50.00 %"), (0, "0.00 %"), (2, "100 %")])
    func `a share is never rounded up to all`(share: Double, text: String) {
        #expect(TimelineChart.percent(share) == text)
    }

    @Test func `what is not known of is not drawn, and nothing at all is said`() {
        let localTime = LocalTime(day: { _ in "" }, clock: { _ in "" })
        let empty = timeline([], network: false)
        #expect(
            TimelineChart(empty, localTime, isASCII: true).lines(Sample.plain) == ["Nothing is known of that time."])
        #expect(timeline(evening, from: -500, to: -100, network: false).rows.isEmpty)
        #expect(TimelinePicture(empty, localTime).html.contains("</html>"))
    }

    @Test func `the picture has a bar for each time, and its text under the pointer`() {
        var entries = evening
        entries.append(event(.failed, at: 900, because: "<b>&\"\u{1B}[31m\u{0}", of: "<script>alert(1)</script>"))
        let timeline = timeline(entries)
        let picture = TimelinePicture(timeline, LocalTime(day: { _ in "2026-11-22" }, clock: { _ in "14:02:11.042" }))
        let bars = timeline.rows.flatMap(\.spans).count
        // One title for each bar, and one behind the figures of each row that was down.
        #expect(picture.svg.split(separator: "<title>").count - 1 == bars + timeline.rows.count { $0.outages > 0 })
        #expect(picture.svg.contains("office: retrying from 2026-11-22 14:02:11 for 2.0 s: closed by the server"))
        #expect(picture.svg.contains(" %, 2 outages, down 1 m 43 s</text>"))
        #expect(picture.svg.contains(">longest 1 m 41 s: no carrier<title>longest 1 m 41 s: no carrier</title>"))
        for text in [picture.svg, picture.html] {
            #expect(!text.contains("<script"), "what is told is no markup")
            #expect(!text.contains("\u{1B}") && !text.contains("\u{0}"))
        }
        #expect(picture.html.contains("<td>office</td><td>no network</td>"))
        #expect(
            !picture.html.contains("http://") || picture.html.split(separator: "http://").count == 2, "its namespace")
    }

    @Test func `one that was just opened has no word of the network, until there is one`() {
        let start = [agent(.started, at: 0), event(.waiting, at: 0, .opened, because: "opened")]
        #expect(spans(timeline(start + [event(.ready, at: 1)]).connections.first).first == "0-1 retrying: opened")
        let offline = start + [event(.waiting, at: 1, .pathChanged, because: "no route"), event(.ready, at: 9)]
        #expect(
            spans(timeline(offline).connections.first) == [
                "0-1 retrying: opened", "1-9 noNetwork: no route", "9-1000 up",
            ])
    }

    @Test func `a gap of a moment is as wide as can be seen, and nothing is painted over it`() throws {
        let entries = [
            agent(.started, at: 0), event(.ready, at: 0), event(.backingOff, at: 86_000, because: "reset"),
            event(.ready, at: 86_001),
        ]
        let svg = TimelinePicture(timeline(entries, to: 172_800, now: 172_800), Self.clock).svg
        let bars = svg.split(separator: "<rect class=\"").compactMap {
            part -> (kind: Substring, x: Double, width: Double)? in
            guard part.contains("<title>office") else { return nil }
            let fields = part.split(separator: "\"")
            guard fields.count > 6, let x = Double(fields[2]), let width = Double(fields[6]) else { return nil }
            return (fields[0], x, width)
        }
        #expect(bars.map(\.kind) == ["up", "retrying", "up"])
        let (gap, after) = try (#require(bars.dropFirst().first), #require(bars.last))
        #expect(gap.width >= 3, "\(gap)")
        #expect(after.x >= gap.x + gap.width - 0.11, "\(gap) and \(after)")
    }

    @Test func `scripts get all of it`() throws {
        let json = String(decoding: timeline(evening).json, as: UTF8.self)
        #expect(json.contains("\"network\":{\"name\":\"network\",\"uptime\":0.8989"), "\(json)")
        #expect(json.contains("\"outages\":2,\"downMilliseconds\":103000"), "\(json)")
        #expect(json.contains("\"kind\":\"noNetwork\",\"begin\":\"2027-01-15T08:05:00.000Z\""), "\(json)")
    }
}
