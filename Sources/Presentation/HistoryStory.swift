// SPDX-License-Identifier: Apache-2.0

package import DialtoneAPI
package import Varlink

/// `dialtone history`: what happened, a line for each, by days, and in the end how long each connection was without a
/// flow.
package struct HistoryStory: Sendable {
    /// What the clock and the calendar show at an instant.
    package struct LocalTime: Sendable {
        /// The day, as in `Sunday 2026-11-22`.
        package var day: @Sendable (Timestamp) -> String
        /// The time of day, as in `14:02:11.042`.
        package var clock: @Sendable (Timestamp) -> String

        /// A clock and a calendar.
        package init(day: @escaping @Sendable (Timestamp) -> String, clock: @escaping @Sendable (Timestamp) -> String) {
            self.day = day
            self.clock = clock
        }
    }

    private let localTime: LocalTime
    private let reader: Reader
    /// From when on it is told and summed; what was before says how things stood then.
    private let since: Timestamp?
    private var hasBegun = false
    private var day: String?
    /// How many runs of the agent were told of so far.
    private var run = 0
    /// By the name that the reader knows the connection by.
    private var outages: [String: OutageTally] = [:]
    /// When something was last told of.
    private var last: OutageTally.Instant?
    /// From when on something is kept of all whose connections are told of, where that is not the beginning.
    private var beginning: Timestamp?

    /// A story that has not begun.
    ///
    /// - Parameter since: from when on it is told; it is to hear of all that was before nevertheless.
    package init(_ localTime: LocalTime, for reader: Reader = Reader(), since: Timestamp? = nil) {
        self.localTime = localTime
        self.since = since
        self.reader = reader
    }

    /// The lines of what happened next: a new day where one begins, and the happening.
    package mutating func lines(_ entry: ConnectionsAPI.History.Reply, _ style: Style) -> [String] {
        if let dropped = entry.dropped {
            guard since.map({ $0 < dropped.until }) ?? true else { return [] }
            if dropped.part == .connections { beginning = max(beginning ?? dropped.until, dropped.until) }
            return [style.paint(text(dropped), .faint)]
        }
        guard let time = entry.time else { return [] }
        let isTold = since.map { time >= $0 } ?? true
        if isTold { begin(by: instant(time, entry.uptime)) }
        guard let line = line(entry), isTold else { return [] }
        let today = localTime.day(line.time)
        defer { day = today }
        var text = [line.line(style, clock: localTime.clock)]
        if let omitted = entry.omitted {
            text.insert(style.paint("\(omitted) events of this owner are left out: there were too many", .faint), at: 0)
        }
        if today == day { return text }
        return (day == nil ? [] : [""]) + [style.paint(today, .strong)] + text
    }

    /// What comes from `first` on is told. Its uptime says what the machine's was when the telling begins: the clock on
    /// the wall may have been set since something was seen on it.
    private mutating func begin(by first: OutageTally.Instant) {
        guard let since, !hasBegun else { return }
        hasBegun = true
        let uptime = first.uptime.map { $0 - (first.wall - since) }
        let time = OutageTally.Instant(wall: since, uptime: uptime, run: run)
        for name in outages.keys where outages[name]?.count(from: time) == false { outages[name] = nil }
    }

    private func text(_ dropped: ConnectionsAPI.Dropped) -> String {
        var what = dropped.count == 1 ? "1 event" : "\(dropped.count) events"
        switch dropped.part {
        case .network: what += " of the network and the agent"
        case .wakes: what += " of wakes"
        case .connections: what += " of connections"
        }
        if let user = reader.other(dropped.owner) { what += " (\(user))" }
        return "\(what) before \(moment(dropped.until)): not kept any more"
    }

    private func moment(_ time: Timestamp) -> String { "\(localTime.day(time)) \(localTime.clock(time))" }

    private mutating func line(_ entry: ConnectionsAPI.History.Reply) -> WatchLine? {
        if let event = entry.event {
            let instant = instant(event.time, entry.uptime)
            last = instant
            let remark = outages[reader.subject(event.connection), default: OutageTally()].heard(event, at: instant)
            return WatchLine(event, adding: remark, for: reader)
        }
        if let change = entry.network {
            last = instant(change.time, entry.uptime)
            return WatchLine(change)
        }
        guard let change = entry.agent else { return nil }
        if change.kind == .started { run += 1 }
        let instant = instant(change.time, entry.uptime)
        defer { last = instant }
        switch change.kind {
        case .started: for name in outages.keys { outages[name]?.agentStarted(at: instant, after: last) }
        case .ended: for name in outages.keys { outages[name]?.agentEnded(at: instant) }
        case .resumed: break
        }
        return WatchLine(change)
    }

    /// The uptimes that are believed: up to a century. A damaged line of the history may say anything.
    private static let uptimes = Duration.zero...(.seconds(100 * 366 * 86_400))

    private func instant(_ time: Timestamp, _ uptime: Duration?) -> OutageTally.Instant {
        .init(wall: time, uptime: uptime.flatMap { Self.uptimes.contains($0) ? $0 : nil }, run: run)
    }

    /// What is to be said in the end: of each connection how often and how long it was without a flow.
    ///
    /// - Parameter uptime: how long the machine has been up, its sleep included.
    package mutating func summary(now: Timestamp, uptime: Duration?, _ style: Style) -> [String] {
        let now = instant(now, uptime)
        begin(by: now)
        guard !outages.isEmpty else {
            let nothing = since == nil ? "Nothing is kept." : "Nothing happened since then."
            return day == nil ? [style.paint(nothing, .faint)] : []
        }
        var table = Table(["", ""])
        for (name, tally) in outages.sorted(by: { $0.key < $1.key }) {
            let (text, tone) = tally.text(now: now)
            table.add([.init(name), .init(text, tone)])
        }
        let since = beginning.map { [style.paint("Counted since \(moment($0)): nothing older is kept.", .faint)] } ?? []
        return [""] + table.lines(style).dropFirst() + since
    }
}
