// SPDX-License-Identifier: Apache-2.0

import DialtoneAPI
import NetworkPath
import Testing
import Varlink

@testable import Presentation

@Suite("The timeline")
struct TimelineTests {
    private typealias Reply = ConnectionsAPI.History.Reply
    private static let boot = Duration.seconds(40)

    private static func at(_ seconds: Int64) -> Timestamp { Sample.noon.advanced(by: seconds * 1000) }

    private func event(
        _ state: ConnectionsAPI.State, at seconds: Int64, _ kind: ConnectionsAPI.EventKind = .state,
        because reason: String? = nil, of name: String = "office"
    ) -> Reply {
        var event = Sample.event(kind, Sample.connection(name, state), reason: reason)
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
            entries, since: Self.at(since), until: Self.at(until), now: Self.at(now),
            uptime: uptime ?? .seconds(now) + Self.boot, hasNetwork: network)
    }

    /// An evening: a cable that is out, an agent that is updated, a server that restarts.
    private var evening: [Reply] {
        [
            agent(.started, at: 0), network(.satisfied, "wlan0", at: 0), event(.waiting, at: 0, .opened),
            event(.ready, at: 1),
            network(.unsatisfied, "wlan0", at: 300), event(.waiting, at: 300, because: "no carrier"),
            network(.satisfied, "wwan0", at: 400), event(.ready, at: 401),
            event(.closed, at: 500), agent(.ended, at: 500), agent(.started, at: 510),
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
                "0-300 wlan0", "300-400 noNetwork: no carrier", "400-500 wwan0",
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
            for entry in evening { _ = story.entry(entry, Sample.plain) }
            let told = try #require(
                story.summary(now: Self.at(1000), uptime: .seconds(1000) + Self.boot, Sample.plain).last)
            let row2 = try #require(row)
            let figures = TimelineChart.figures(row2)
            let down = row2.outages == 0 ? "no outage" : "down \(row2.down.short)"
            #expect(told.contains(down), "\(told) and \(figures)")
            #expect(row2.outages < 2 || told.contains("longest \(row2.longest.short)"), "\(told)")
        }
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
                event(.closed, at: 20, because: "close requested"), agent(.ended, at: 20), agent(.started, at: 30),
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
        #expect(row.contains("3 outages, down 1 m 44 s"), "\(row)")
        #expect(lines.contains { $0.contains("longest 1 m 41 s: no carrier") })
        #expect(lines.last?.contains("A wlan0") == true && lines.last?.contains("! up, with a short gap") == true)
    }

    @Test(arguments: [1, 20, 40, 80, 200])
    func `it fits the terminal`(width: Int) {
        let localTime = LocalTime(day: { _ in "2026-11-22" }, clock: { _ in "14:02:11.042" })
        for isASCII in [true, false] {
            let chart = TimelineChart(timeline(evening), localTime, isASCII: isASCII)
            let lines = chart.lines(Style(hasColour: false, width: width))
            if width >= 40 { #expect(lines.allSatisfy { $0.count <= width }, "\(lines)") }
            #expect(lines.count { $0.hasPrefix("office") } == 1)
            if isASCII { #expect(lines.allSatisfy { $0.allSatisfy(\.isASCII) }) }
            #expect(chart.lines(Style(hasColour: true, width: width)).map(withoutEscapes) == lines)
        }
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
        for text in [picture.svg, picture.html] {
            #expect(!text.contains("<script"), "what is told is no markup")
            #expect(!text.contains("\u{1B}") && !text.contains("\u{0}"))
        }
        #expect(picture.html.contains("<td>office</td><td>no network</td>"))
        #expect(
            !picture.html.contains("http://") || picture.html.split(separator: "http://").count == 2, "its namespace")
    }

    @Test func `scripts get all of it`() throws {
        let json = String(decoding: timeline(evening).json, as: UTF8.self)
        #expect(json.contains("\"network\":{\"name\":\"network\",\"uptime\":0.8989"), "\(json)")
        #expect(json.contains("\"outages\":3,\"downMilliseconds\":104000"), "\(json)")
        #expect(json.contains("\"kind\":\"noNetwork\",\"begin\":\"2027-01-15T08:05:00.000Z\""), "\(json)")
    }
}
