// SPDX-License-Identifier: Apache-2.0

import DialtoneAPI
import DialtoneVarlink
import Testing

@testable import DialtonePresentation

/// The story of a night.
@Suite struct HistoryStoryTests {
    private typealias State = ConnectionsAPI.State

    private func entry(
        _ state: State, at seconds: Int64, from previous: State? = nil, _ kind: ConnectionsAPI.EventKind = .state,
        because reason: String? = nil, by cause: ConnectionsAPI.Cause? = nil, of name: String = "office"
    ) -> ConnectionsAPI.History.Reply {
        let connection = Sample.connection(name, state) { ($0.epoch, $0.cause) = (1, cause) }
        var event = Sample.event(kind, connection, reason: reason, from: previous)
        event.time = Sample.noon.advanced(by: seconds * 1000)
        return .init(event: event, uptime: .seconds(seconds) + Self.boot)
    }

    @Test func `what was left out is told before what follows`() {
        var flood = entry(.closed, at: 5)
        flood.omitted = 1204
        let (lines, _) = tell([agent(.started, at: 0), flood], until: 9)
        #expect(lines.dropLast().last == "1204 events of this owner are left out: there were too many", "\(lines)")
    }

    @Test func `what is not kept any more is told first, and that the sums go further back`() {
        let until = Sample.noon.advanced(by: 3000)
        let entries: [ConnectionsAPI.History.Reply] =
            [
                .init(dropped: .init(part: .connections, owner: 0, count: 1412, until: until)),
                .init(dropped: .init(part: .wakes, owner: 0, count: 1, until: until.advanced(by: 90_000))),
                .init(dropped: .init(part: .network, count: 7, until: until.advanced(by: 90_000))),
            ] + night
        let (lines, summary) = tell(entries)
        #expect(
            lines.prefix(4) == [
                "1412 events of connections before day 0 3 s: not kept any more",
                "1 event of wakes before day 0 93 s: not kept any more",
                "7 events of the network and the agent before day 0 93 s: not kept any more", "day 0",
            ])
        #expect(
            summary == [
                "", "office  2 outages, down 2 m 10 s, longest 2 m",
                "Counted since day 0 0 s, with what is not kept any more.",
            ])
        #expect(tell(Array(entries.dropFirst())).summary.count == 2, "outages are whole where wakes are not")
    }

    @Test func `what comes after the end of the time asked for is not told, and an outage counts up to there`() {
        let entries = [
            entry(.ready, at: 0, .opened), entry(.waiting, at: 100, from: .ready),
            entry(.ready, at: 500, from: .waiting),
        ]
        let (lines, summary) = tell(entries, upTo: 300)
        #expect(lines.count == 3, "\(lines)")
        #expect(summary.last?.contains("3 m 20 s") == true, "\(summary)")
        #expect(tell(entries, upTo: 50).summary.last?.contains("no outage") == true)
    }

    private func agent(_ kind: ConnectionsAPI.AgentChange.Kind, at seconds: Int64) -> ConnectionsAPI.History.Reply {
        .init(
            agent: .init(time: Sample.noon.advanced(by: seconds * 1000), kind: kind),
            uptime: .seconds(seconds) + Self.boot)
    }

    /// How long the machine has been up at noon.
    private static let boot = Duration.seconds(40)

    /// The lines of it all, and the last ones.
    private func tell(
        _ entries: [ConnectionsAPI.History.Reply], until seconds: Int64 = 10_000, since: Int64? = nil,
        upTo end: Int64? = nil
    ) -> (lines: [String], summary: [String]) {
        // A day of a thousand seconds shows that a new one is told.
        let localTime = LocalTime(
            day: { "day \(($0.milliseconds - Sample.noon.milliseconds) / 1_000_000)" },
            clock: { "\(($0.milliseconds - Sample.noon.milliseconds) / 1000) s" })
        var story = HistoryStory(
            localTime, since: since.map { Sample.noon.advanced(by: $0 * 1000) },
            until: end.map { Sample.noon.advanced(by: $0 * 1000) })
        var pages = DayPages(localTime)
        let isCounted = entries.contains { $0.outages != nil }
        let lines = (isCounted ? entries : OutageCounter.counted(entries)).compactMap { story.entry($0) }.flatMap {
            pages.lines($0, Sample.plain)
        }
        let now = Sample.noon.advanced(by: seconds * 1000)
        return (lines, story.summary(now: now, uptime: .seconds(seconds) + Self.boot, Sample.plain))
    }

    @Test func `what a damaged history says of the machine's uptime is not counted with`() {
        for uptime in [Int.min, -1, Int.max].map({ Duration.milliseconds($0) }) {
            var entries = night
            for index in entries.indices where index % 2 == 1 { entries[index].uptime = uptime }
            #expect(tell(entries).lines.count == tell(night).lines.count, "\(uptime)")
        }
    }

    private var night: [ConnectionsAPI.History.Reply] {
        [
            agent(.started, at: 0), entry(.waiting, at: 0, .opened), entry(.ready, at: 1, from: .connecting),
            entry(.connecting, at: 601, from: .ready, because: "source 192.0.2.1 is gone"),
            entry(.backingOff, at: 602, from: .connecting, because: "no route"),
            entry(.ready, at: 721, from: .connecting), entry(.verifying, at: 800, from: .ready),
            entry(.ready, at: 801, from: .verifying),
            entry(.backingOff, at: 1321, from: .ready, because: "closed by the server"),
            entry(.ready, at: 1331, from: .connecting),
        ]
    }

    @Test func `lines come by days, with what was lost and for how long`() {
        let lines = tell(night).lines
        #expect(lines.first == "day 0")
        #expect(lines.filter { $0.hasPrefix("day") } == ["day 0", "day 1"])
        #expect(lines.contains { $0.contains("ready -> connecting: source 192.0.2.1 is gone, after 10 m up") })
        #expect(lines.contains { $0.contains("connecting -> ready") && $0.contains("after 2 m down") })
        #expect(lines.contains { $0.contains("closed by the server, after 10 m") })
    }

    @Test func `outages are summed`() {
        #expect(tell(night).summary == ["", "office  2 outages, down 2 m 10 s, longest 2 m"])
    }

    @Test(arguments: [
        // In the middle of the first outage, of two minutes.
        (671, "2 outages, down 1 m, longest 50 s"), (721, "1 outage, down 10 s"),
        (1325, "1 outage, down 6.0 s"), (1331, "no outage"),
    ]) func `of an outage that was there already the rest counts`(since: Int64, text: String) {
        let told = tell(night, until: 2000, since: since)
        #expect(told.summary == ["", "office  \(text)"])
        #expect(
            told.lines.count { $0.contains(" s  ") }
                == night.count { $0.time! >= Sample.noon.advanced(by: since * 1000) })
    }

    @Test func `what was down all the time was down from the beginning of what is told`() {
        let down = [
            entry(.waiting, at: 0, .opened), entry(.backingOff, at: 1, from: .connecting),
            entry(.backingOff, at: 3000, from: .connecting),
        ]
        let (lines, summary) = tell(down, until: 4000, since: 2000)
        #expect(lines.count == 2, "\(lines)")
        #expect(summary == ["", "office  1 outage, down 33 m 20 s, still down"])
        #expect(
            tell(down, until: 4000, since: 3500).summary == ["office  1 outage, down 8 m 20 s, still down"])
        let gone = down + [entry(.closed, at: 3100, from: .backingOff)]
        #expect(tell(gone, until: 9000, since: 8000).summary == ["Nothing happened since then."], "closed before")
    }

    @Test func `a beginning that never failed takes nothing from a later outage`() {
        let reopened = [
            entry(.waiting, at: 0, .opened), entry(.closed, at: 2500, from: .waiting),
            entry(.waiting, at: 3000, .opened), entry(.backingOff, at: 3001, from: .connecting),
            entry(.ready, at: 3600, from: .connecting),
        ]
        #expect(tell(reopened, until: 4000, since: 2000).summary == ["", "office  1 outage, down 10 m"])
        let restarted = [
            agent(.started, at: 0), entry(.waiting, at: 0, .opened), agent(.started, at: 2500),
            entry(.waiting, at: 2500, .continued), entry(.ready, at: 3000, from: .connecting),
        ]
        #expect(tell(restarted, until: 4000, since: 2000).summary == ["", "office  1 outage, down 8 m 20 s"])
    }

    @Test func `a clock that is set within an outage makes it no shorter`() {
        var down = [entry(.waiting, at: 0, .opened), entry(.backingOff, at: 1, from: .connecting)]
        for index in down.indices { down[index].event?.time = Timestamp(milliseconds: Int64(index) * 1000) }
        let entries = down + [entry(.ready, at: 181, from: .connecting)]
        #expect(tell(entries, until: 400, since: -3600).summary == ["", "office  1 outage, down 3 m 1 s"])
    }

    @Test func `a beginning is no outage, unless it failed`() {
        let good = [entry(.waiting, at: 0, .opened), entry(.ready, at: 3, from: .connecting)]
        #expect(tell(good).summary == ["", "office  no outage"])
        #expect(tell(good).lines.last?.contains(" down") == false, "\(tell(good).lines)")
        let bad = [
            entry(.waiting, at: 0, .opened), entry(.backingOff, at: 1, from: .connecting),
            entry(.ready, at: 30, from: .connecting),
        ]
        #expect(tell(bad).summary == ["", "office  1 outage, down 30 s"])
        #expect(tell(bad).lines.last?.contains("after 30 s down") == true, "\(tell(bad).lines)")
    }

    @Test func `an outage that lasts is counted up to now`() {
        let lost = [entry(.ready, at: 0, from: .connecting), entry(.waiting, at: 60, from: .ready)]
        #expect(tell(lost, until: 120).summary == ["", "office  1 outage, down 1 m, still down"])
    }

    @Test func `what an agent opens when it starts is counted from nothing, and its first dial is no outage`() {
        let killed = [
            entry(.ready, at: 0, from: .connecting), agent(.started, at: 100),
            entry(.waiting, at: 101, .opened), entry(.ready, at: 105, from: .connecting),
        ]
        #expect(tell(killed).summary == ["", "office  no outage"])
        let ended = [
            entry(.ready, at: 0, from: .connecting), entry(.closed, at: 90, from: .ready, .closed, by: .agentEnded),
            agent(.ended, at: 90), agent(.started, at: 100), entry(.waiting, at: 101, .opened),
            entry(.ready, at: 105, from: .connecting),
        ]
        #expect(tell(ended).summary == ["", "office  no outage"])
    }

    @Test func `a connection that its user closed is without nothing`() {
        let closed = [entry(.ready, at: 0, from: .connecting), entry(.closed, at: 60, from: .ready, .closed)]
        #expect(tell(closed).summary == ["", "office  no outage"])
    }

    @Test func `what does not come back with the agent is not without a flow for ever`() {
        let start: [ConnectionsAPI.History.Reply] = [agent(.started, at: 0), entry(.ready, at: 0, from: .connecting)]
        let closed = [entry(.closed, at: 60, from: .ready, .closed), agent(.ended, at: 600), agent(.started, at: 601)]
        let again = [entry(.waiting, at: 700, .opened), entry(.ready, at: 701, from: .connecting)]
        #expect(tell(start + closed + again).summary == ["", "office  no outage"], "its user had closed it before")
        let ended = [
            entry(.closed, at: 60, from: .ready, .closed, by: .agentEnded), agent(.ended, at: 60),
            agent(.started, at: 61),
        ]
        #expect(tell(start + ended).summary == ["", "office  no outage"], "a client's, and nobody opened it again")
        #expect(tell(start + [agent(.started, at: 60)]).summary == ["", "office  no outage"])
        let lost = [entry(.waiting, at: 30, from: .ready), agent(.started, at: 60)]
        // Killed nobody knows when; the network was heard of at 50.
        let heard = ConnectionsAPI.History.Reply(
            network: .init(
                time: Sample.noon.advanced(by: 50_000), changes: [], to: Sample.path(), previousStatus: nil,
                previousDuration: nil), uptime: .seconds(50) + Self.boot)
        #expect(
            tell(start + [lost[0], heard, lost[1]]).summary == ["", "office  1 outage, down 20 s"])
    }

    @Test func `what its user closed right before the agent was restarted, and opened after, was not down`() {
        let told = tell([
            agent(.started, at: 0), entry(.ready, at: 0, from: .connecting),
            entry(.closed, at: 59, from: .ready, .closed, by: .closeRequested), agent(.ended, at: 60),
            agent(.started, at: 61), entry(.waiting, at: 62, .opened), entry(.ready, at: 63, from: .connecting),
        ])
        #expect(told.summary == ["", "office  no outage"])
    }

    @Test func `an agent that did not say that it ended was killed, or went off with the machine`() {
        let before = [agent(.started, at: 0), entry(.ready, at: 1, from: .connecting)]
        let killed = tell(before + [agent(.started, at: 70)]).lines.last
        #expect(
            killed?.hasSuffix("agent     started; before that, the agent was killed or crashed, after day 0 1 s")
                == true,
            "\(killed ?? "none")")
        var off = agent(.started, at: 70)
        off.uptime = .seconds(3)
        #expect(tell(before + [off]).lines.last?.contains("before that, the machine went off, after") == true)
        let ended = tell(before + [agent(.ended, at: 60), agent(.started, at: 70)]).lines.last
        #expect(ended?.hasSuffix("agent     started") == true, "\(ended ?? "none")")
    }

    @Test func `of the time that an agent was killed for nothing is counted, from wherever the story is told`() {
        let night = [
            agent(.started, at: 0), entry(.ready, at: 1, from: .connecting), entry(.backingOff, at: 30, from: .ready),
            agent(.started, at: 2800), entry(.waiting, at: 2800, .opened), entry(.ready, at: 2810, from: .connecting),
        ]
        #expect(tell(night).summary.last == "office  1 outage, down 0 ms")
        #expect(tell(night, since: 2000).summary.last == "office  no outage")
        // The machine went off, too.
        var rebooted = night
        for index in 3..<6 { rebooted[index].uptime = .seconds(3 + index) }
        #expect(tell(rebooted, since: 2000).summary.last == "office  no outage")
    }

    @Test func `an outage ends with the agent, if the agent closes the connection`() {
        let lost = [
            agent(.started, at: 0), entry(.ready, at: 0, from: .connecting), entry(.waiting, at: 30, from: .ready),
            entry(.closed, at: 60, from: .waiting, .closed, by: .agentEnded), agent(.ended, at: 60),
            agent(.started, at: 61),
            entry(.waiting, at: 61, .opened), entry(.ready, at: 90, from: .connecting),
        ]
        #expect(tell(lost).summary == ["", "office  1 outage, down 30 s"])
    }

    @Test func `a connection that is opened again later was not without a flow while it was not there`() {
        let before = [
            agent(.started, at: 0), entry(.waiting, at: 0, .opened), entry(.ready, at: 1, from: .connecting),
        ]
        let ended = [
            entry(.closed, at: 60, from: .ready, .closed, by: .agentEnded), agent(.ended, at: 60),
            agent(.started, at: 70),
        ]
        let again = [entry(.waiting, at: 2830, .opened), entry(.ready, at: 2831, from: .connecting)]
        #expect(tell(before + ended + again).summary == ["", "office  no outage"], "46 m later")
        #expect(tell(before + [agent(.started, at: 70)] + again).summary == ["", "office  no outage"], "killed")
        let lost = [entry(.backingOff, at: 30, from: .ready), agent(.started, at: 2800)]
        #expect(
            tell(before + lost + again).summary == ["", "office  1 outage, down 0 ms"],
            "lost, and the agent killed some time after")
    }

    @Test func `a connection that goes on over a restart was never away`() {
        let before = [agent(.started, at: 0), entry(.ready, at: 1, from: .connecting)]
        let kept = [agent(.started, at: 70), entry(.ready, at: 70, from: .ready, .continued)]
        #expect(tell(before + kept).summary == ["", "office  no outage"])
        let end = [entry(.backingOff, at: 121, from: .ready), entry(.ready, at: 122, from: .connecting)]
        #expect(tell(before + kept + end).lines.contains { $0.contains("after 2 m") })
        let lost = [
            entry(.backingOff, at: 31, from: .ready), agent(.started, at: 70),
            entry(.backingOff, at: 70, from: .backingOff, .continued), entry(.ready, at: 91, from: .connecting),
        ]
        #expect(tell(before + lost).summary == ["", "office  1 outage, down 1 m"])
        let cut = [
            agent(.started, at: 70), entry(.waiting, at: 70, from: .ready, .continued),
            entry(.ready, at: 75, from: .connecting),
        ]
        #expect(tell(before + cut).summary == ["", "office  1 outage, down 5.0 s"])
        #expect(!tell(before + cut).lines.contains { $0.contains(" up") }, "nobody knows when the socket went")
    }

    @Test func `a wall clock that is set changes no duration, and a machine that was off is no outage`() {
        var night = [
            agent(.started, at: 0), entry(.ready, at: 0, from: .connecting), entry(.waiting, at: 10, from: .ready),
        ]
        // Fifty years later by the wall clock, and five seconds by the other.
        var back = entry(.ready, at: 15, from: .connecting)
        back.event?.time = Sample.noon.advanced(by: 1_600_000_000_000)
        #expect(tell(night + [back]).summary == ["", "office  1 outage, down 5.0 s"])
        // The other way round: it was off for an hour.
        night += [
            entry(.closed, at: 10, from: .waiting, .closed, by: .agentEnded), agent(.ended, at: 10),
            agent(.started, at: 3000),
            entry(.waiting, at: 3000, .opened), entry(.ready, at: 3010, from: .connecting),
        ]
        for index in night.indices.suffix(3) { night[index].uptime = .seconds(51 + index) }
        #expect(tell(night).summary == ["", "office  1 outage, down 0 ms"])
    }

    /// What is left of the night, which the agent counted, when the files are full.
    private func rest(from seconds: Int64) -> [ConnectionsAPI.History.Reply] {
        let until = Sample.noon.advanced(by: seconds * 1000)
        return [.init(dropped: .init(part: .connections, owner: 0, count: 9, until: until))]
            + OutageCounter.counted(night).filter { $0.time.map { $0 >= until } == true }
    }

    @Test func `sums are whole although the events are not kept, for all the time that the agent has counted`() {
        let sum = "office  2 outages, down 2 m 10 s"
        #expect(
            tell(rest(from: 1321)).summary == [
                "", sum, "Counted since day 0 0 s, with what is not kept any more.",
            ], "which was the longest is not known")
        #expect(tell(rest(from: 1331), since: -1).summary == ["", sum], "it was opened in that time")
        // The first outage without its end.
        let gap = OutageCounter.counted(night).filter { !(602..<1000).contains($0.uptime! / .seconds(1) - 40) }
        #expect(tell(gap).summary == ["", sum])
    }

    @Test func `where it was opened before the time asked for, the sum begins with what is kept`() {
        for (kept, sum) in [(1321, "1 outage, down 10 s"), (1331, "no outage")] as [(Int64, String)] {
            #expect(
                tell(rest(from: kept), since: 600).summary == [
                    "", "office  \(sum)", "Counted since day 1 \(kept) s: nothing older is kept.",
                ])
        }
    }

    @Test func `what a damaged history says of outages is not counted with`() {
        let damage: [(inout ConnectionsAPI.OutageCount) -> Void] = [
            { $0.count = .max }, { $0.count = .min }, { $0.count = -1 }, { $0.down = .milliseconds(Int.max) },
            { $0.down = .milliseconds(-1) },
        ]
        for spoil in damage {
            var entries = OutageCounter.counted(night)
            for index in entries.indices where index % 2 == 1 && entries[index].outages != nil {
                spoil(&entries[index].outages!)
            }
            #expect(tell(entries).summary.last?.contains("2 outages") == true, "\(tell(entries).summary)")
        }
    }

    @Test func `nothing kept is said`() {
        #expect(tell([]).summary == ["Nothing is kept."])
    }

    @Test func `the network and the agent have lines of their own`() {
        let change = ConnectionsAPI.NetworkChange(
            time: Sample.noon, changes: ["status"], to: Sample.path(), previousStatus: .unsatisfied,
            previousDuration: .seconds(130))
        let lines = tell([
            .init(network: change),
            .init(agent: .init(time: Sample.noon, kind: .resumed, slept: .seconds(3600))),
        ]).lines
        #expect(
            lines[1].contains("available over wlan0 (wifi) via 192.168.1.1, IPv4 DNS, after unavailable for 2 m 10 s"))
        #expect(lines[2].hasSuffix("the machine woke after 1 h"))
    }
}

/// Instants as people write them.
@Suite struct SinceTextTests {

    /// As a clock in UTC shows it.
    private func instant(_ text: String) -> String? {
        SinceText.instant(text, now: Sample.noon, today: .init(year: 2027, month: 1, day: 15)) { local in
            func two(_ number: Int) -> String { number < 10 ? "0\(number)" : "\(number)" }
            return Timestamp(
                "\(local.year)-\(two(local.month))-\(two(local.day))T\(two(local.hour)):\(two(local.minute)):"
                    + "\(two(local.second))Z")
        }?.description
    }

    @Test func `they are understood`() {
        #expect(Sample.noon.description == "2027-01-15T08:00:00.000Z")
        #expect(instant("3h") == "2027-01-15T05:00:00.000Z")
        #expect(instant("2d") == "2027-01-13T08:00:00.000Z")
        #expect(instant("-3h") == "2027-01-15T05:00:00.000Z", "as journalctl has it")
        #expect(instant("1h30m") == "2027-01-15T06:30:00.000Z")
        #expect(instant("1 hour ago") == "2027-01-15T07:00:00.000Z")
        #expect(instant("1 day 2 hours ago") == "2027-01-14T06:00:00.000Z")
        #expect(instant("1 week ago") == "2027-01-08T08:00:00.000Z")
        #expect(instant("now") == "2027-01-15T08:00:00.000Z")
        #expect(instant("today") == "2027-01-15T00:00:00.000Z")
        #expect(instant("yesterday") == "2027-01-14T00:00:00.000Z")
        #expect(instant("02:30") == "2027-01-15T02:30:00.000Z")
        #expect(instant("23:00") == "2027-01-14T23:00:00.000Z", "the last one")
        #expect(instant("2027-01-02") == "2027-01-02T00:00:00.000Z")
        #expect(instant("2027-01-02 03:04:05") == "2027-01-02T03:04:05.000Z")
        #expect(instant("2027-01-02T03:04:05Z") == "2027-01-02T03:04:05.000Z")
    }

    @Test(arguments: [
        "", "soon", "3x", "h", "-", "--3h", "3h-", "ago", "1 fortnight ago", "9999999h",
        String(repeating: "999999w", count: 18_000), "25:00", "12:60", "12",
        "2027-13-01", "2027-01", "1 2 3", "2027-01-02 x",
    ])
    func `nonsense is none`(text: String) {
        #expect(instant(text) == nil)
    }
}
