// SPDX-License-Identifier: Apache-2.0

package import DialtoneAPI
package import DialtoneVarlink

/// `dialtone history`: what happened, a line for each, by days, and in the end how long each connection was without a
/// flow.
package struct HistoryStory: Sendable {
    private let localTime: LocalTime
    private let reader: Reader
    /// Up to when it is told and summed.
    private let until: Timestamp?
    /// From when on it is told and summed; what was before says how things stood then.
    private let since: Timestamp?
    private var hasBegun = false
    private var hasTold = false
    /// How many runs of the agent were told of so far.
    private var run = 0
    /// Whether the last thing that was told of is that the agent ended.
    private var hasEnded = false
    /// The connections that are told of; none for all, and the network.
    private let names: Set<String>
    /// By the name that the reader knows the connection by.
    private var outages: [String: OutageSum] = [:]
    /// By the same name.
    private var turns: [String: UpAndDown] = [:]
    /// When something was last told of.
    private var last: HistoryInstant?
    /// From when on something is kept of all whose connections are told of, where that is not the beginning.
    private var beginning: Timestamp?

    /// A story that has not begun.
    ///
    /// - Parameters:
    ///   - since: from when on it is told; it is to hear of all that was before nevertheless.
    ///   - until: up to when; it passes over what comes later.
    ///   - names: the connections that are told of; none for all, and the network. It is to hear of the others
    ///     nevertheless: they show that the agent was there.
    package init(
        _ localTime: LocalTime, for reader: Reader = Reader(), since: Timestamp? = nil, until: Timestamp? = nil,
        names: Set<String> = []
    ) {
        self.names = names
        self.localTime = localTime
        self.since = since
        self.until = until
        self.reader = reader
    }

    /// One thing that is told.
    package enum Entry: Sendable {
        /// What is not kept any more.
        case note(String)
        /// What happened, and what is to be said before it.
        case line(WatchLine, after: String?)
    }

    /// What happened next; `nil` where there is nothing to be told.
    package mutating func entry(_ entry: ConnectionsAPI.History.Reply) -> Entry? {
        if let dropped = entry.dropped {
            guard since.map({ $0 < dropped.until }) ?? true else { return nil }
            if dropped.part == .connections { beginning = max(beginning ?? dropped.until, dropped.until) }
            return .note(text(dropped))
        }
        guard let time = entry.time, until.map({ time <= $0 }) ?? true else { return nil }
        let isTold = since.map { time >= $0 } ?? true
        if isTold { begin(by: instant(time, entry.uptime), afterRun: entry.agent?.kind == .started ? last : nil) }
        guard let line = line(entry), isTold else { return nil }
        hasTold = true
        return .line(
            line, after: entry.omitted.map { "\($0) events of this owner are left out: there were too many" })
    }

    /// What comes from `first` on is told. Its uptime says what the machine's was when the telling begins: the clock on
    /// the wall may have been set since something was seen on it.
    ///
    /// - Parameter last: when the run before was last heard of, where what comes first is another run's beginning:
    ///   nothing is known of the time between them.
    private mutating func begin(by first: HistoryInstant, afterRun last: HistoryInstant? = nil) {
        guard let since, !hasBegun else { return }
        hasBegun = true
        if let last { return begin(at: last) }
        let uptime = first.uptime.map { $0 - (first.wall - since) }
        let time = HistoryInstant(wall: since, uptime: uptime, run: run)
        begin(at: time)
    }

    private mutating func begin(at time: HistoryInstant) {
        for name in outages.keys where outages[name]?.begin(at: time) == false { outages[name] = nil }
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
            guard names.isEmpty || names.contains(event.connection.name) else { return nil }
            let name = reader.subject(event.connection)
            let remark = turns[name, default: UpAndDown()].heard(event, at: instant)
            if let count = entry.outages, count.isBelieved {
                outages[name, default: OutageSum()].heard(count, in: event, at: instant, from: hasBegun ? since : nil)
            }
            return WatchLine(event, adding: remark, for: reader)
        }
        if let change = entry.network {
            last = instant(change.time, entry.uptime)
            return names.isEmpty ? WatchLine(change) : nil
        }
        guard let change = entry.agent else { return nil }
        if change.kind == .started { run += 1 }
        let instant = instant(change.time, entry.uptime)
        let before = last
        last = instant
        defer { hasEnded = change.kind == .ended }
        guard change.kind == .started else { return WatchLine(change) }
        for name in outages.keys { outages[name]?.agentStarted(at: instant, after: before) }
        guard let before, !hasEnded else { return WatchLine(change) }
        let death = AgentDeath(before: instant.uptime, after: before.uptime)
        return WatchLine(change, after: "\(death.rawValue), after \(moment(before.wall))")
    }

    /// By the name that the reader knows a connection by: how often it was down, for how long, and why the longest time
    /// began.
    mutating func figures(now: Timestamp, uptime: Duration?) -> [String: OutageSum.Figures] {
        let now = end(instant(now, uptime))
        begin(by: now)
        return outages.mapValues { $0.figures(at: now) }
    }

    /// Up to when it is summed. The uptime of an instant in the past follows from the present one's.
    private func end(_ now: HistoryInstant) -> HistoryInstant {
        guard let until, until < now.wall else { return now }
        return .init(wall: until, uptime: now.uptime.map { $0 - (now.wall - until) }, run: run)
    }

    /// The uptimes that are believed: up to a century. A damaged line of the history may say anything.
    static let uptimes = Duration.zero...(.seconds(100 * 366 * 86_400))

    private func instant(_ time: Timestamp, _ uptime: Duration?) -> HistoryInstant {
        .init(wall: time, uptime: uptime.flatMap { Self.uptimes.contains($0) ? $0 : nil }, run: run)
    }

    /// What is to be said in the end: of each connection how often and how long it was without a flow.
    ///
    /// - Parameter uptime: how long the machine has been up, its sleep included.
    package mutating func summary(now: Timestamp, uptime: Duration?, _ style: Style) -> [String] {
        let now = end(instant(now, uptime))
        begin(by: now)
        guard !outages.isEmpty else {
            let nothing =
                until != nil
                ? "Nothing is known of that time." : since == nil ? "Nothing is kept." : "Nothing happened since then."
            return hasTold ? [] : [style.paint(nothing, .faint)]
        }
        var table = Table(["", ""])
        for (name, sum) in outages.sorted(by: { $0.key < $1.key }) {
            let (text, tone) = sum.text(at: now)
            table.add([.init(name), .init(text, tone)])
        }
        return (hasTold ? [""] : []) + table.lines(style).dropFirst()
            + sinceWhen.map { style.paint($0, .faint) }
    }

    /// Since when the sums are, where that is not when the time began that is told, or the first line that is kept.
    private var sinceWhen: [String] {
        guard let beginning else { return [] }
        if outages.values.contains(where: \.isPartial) {
            return ["Counted since \(moment(beginning)): nothing older is kept."]
        }
        guard since == nil, let first = outages.values.compactMap(\.since).min(), first < beginning else { return [] }
        return ["Counted since \(moment(first)), with what is not kept any more."]
    }
}

extension ConnectionsAPI.OutageCount {
    /// Whether it can be counted with: a damaged line of the history may say anything. A connection that is lost once a
    /// second is lost so often in 68 years.
    fileprivate var isBelieved: Bool { (0...Int(Int32.max)).contains(count) && HistoryStory.uptimes.contains(down) }
}
