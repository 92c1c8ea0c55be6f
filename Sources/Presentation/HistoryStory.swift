// SPDX-License-Identifier: Apache-2.0

public import DialtoneAPI

/// `dialtone history`: what happened, a line for each, by days, and in the end how long each connection was without a
/// flow.
public struct HistoryStory: Sendable {
    /// What the clock and the calendar show at an instant.
    public struct LocalTime: Sendable {
        /// The day, as in `Sunday 2026-11-22`.
        public var day: @Sendable (Timestamp) -> String
        /// The time of day, as in `14:02:11.042`.
        public var clock: @Sendable (Timestamp) -> String

        /// A clock and a calendar.
        public init(day: @escaping @Sendable (Timestamp) -> String, clock: @escaping @Sendable (Timestamp) -> String) {
            self.day = day
            self.clock = clock
        }
    }

    private let localTime: LocalTime
    private var day: String?
    private var outages: [String: OutageTally] = [:]

    /// A story that has not begun.
    public init(_ localTime: LocalTime) {
        self.localTime = localTime
    }

    /// The lines of what happened next: a new day where one begins, and the happening.
    public mutating func lines(_ entry: ConnectionsAPI.History.Reply, _ style: Style) -> [String] {
        guard let line = line(entry) else { return [] }
        let today = localTime.day(line.time)
        defer { day = today }
        let text = line.line(style, clock: localTime.clock)
        if today == day { return [text] }
        return (day == nil ? [] : [""]) + [style.paint(today, .strong), text]
    }

    private mutating func line(_ entry: ConnectionsAPI.History.Reply) -> WatchLine? {
        if let event = entry.event {
            let remark = outages[event.connection.name, default: OutageTally()].heard(event)
            return WatchLine(event, adding: remark)
        }
        if let change = entry.network { return WatchLine(change) }
        guard let change = entry.agent else { return nil }
        if change.kind == .started { for name in outages.keys { outages[name]?.agentStarted(at: change.time) } }
        return WatchLine(change)
    }

    /// What is to be said in the end: of each connection how often and how long it was without a flow.
    public func summary(now: Timestamp, _ style: Style) -> [String] {
        guard !outages.isEmpty else { return day == nil ? [style.paint("Nothing is kept.", .faint)] : [] }
        var table = Table(["", ""])
        for (name, tally) in outages.sorted(by: { $0.key < $1.key }) {
            let (text, tone) = tally.text(now: now)
            table.add([.init(name), .init(text, tone)])
        }
        return [""] + table.lines(style).dropFirst()
    }
}

/// How long one connection was without a flow, as far as the history goes.
struct OutageTally: Sendable {
    private enum State {
        /// Nothing is known of it, or it is not supervised.
        case unknown
        /// Supervised from a time on, and nothing has failed yet.
        case beginning(since: Timestamp)
        case flowing(since: Timestamp)
        case without(since: Timestamp)
        /// Closed, by its user or because the agent ended.
        case closed(at: Timestamp)
    }

    /// Between the last connection's end and the agent's next start, as far as they belong together.
    private static let longestRestart: Int64 = 3_600_000

    private var state = State.unknown
    private(set) var count = 0
    private(set) var total: Int64 = 0
    private(set) var longest: Int64 = 0

    init() {}

    /// Takes note of an event.
    ///
    /// - Returns: what there is to add to its line: how long the flow, or the time without, had lasted.
    mutating func heard(_ event: ConnectionsAPI.Event) -> String? {
        let time = event.time
        switch (event.connection.state, state) {
        case (.closed, .flowing(let since)):
            state = .closed(at: time)
            return "after \(duration(since, time))"
        case (.closed, .without(let since)):
            add(since, time)
            state = .unknown
        case (.closed, _):
            state = .unknown
        case (.ready, .flowing), (.verifying, .flowing):
            break
        case (.ready, .without(let since)):
            add(since, time)
            state = .flowing(since: time)
            return "\(duration(since, time)) without a flow"
        case (.ready, _), (.verifying, _):
            state = .flowing(since: time)
        case (_, .flowing(let since)):
            state = .without(since: time)
            return "after \(duration(since, time))"
        case (_, .unknown):
            state = event.kind == .opened ? .beginning(since: time) : .without(since: time)
        case (_, .closed), (_, .without):
            break
        case (_, .beginning(let since)):
            if event.kind != .opened { state = .without(since: since) }
        }
        return nil
    }

    /// The agent began anew: whatever stood before stands no more.
    mutating func agentStarted(at time: Timestamp) {
        switch state {
        case .flowing:
            // It was killed, nobody knows when.
            state = .without(since: time)
        case .closed(let end):
            state = time.milliseconds - end.milliseconds <= Self.longestRestart ? .without(since: end) : .unknown
        case .unknown, .beginning, .without:
            break
        }
    }

    /// `3 outages, 4 m 12 s without a flow, longest 2 m`.
    func text(now: Timestamp) -> (String, Style.Tone) {
        var (count, total, longest) = (count, total, longest)
        var end = ""
        if case .without(let since) = state {
            let lasting = max(now.milliseconds - since.milliseconds, 0)
            (count, total, longest) = (count + 1, total + lasting, max(longest, lasting))
            end = ", and still without"
        }
        guard count > 0 else { return ("no outage", .good) }
        let sum = "\(DurationText.short(milliseconds: total)) without a flow"
        if count == 1 { return ("1 outage, \(sum)\(end)", .warning) }
        return ("\(count) outages, \(sum), longest \(DurationText.short(milliseconds: longest))\(end)", .warning)
    }

    private mutating func add(_ since: Timestamp, _ until: Timestamp) {
        let lasting = max(until.milliseconds - since.milliseconds, 0)
        count += 1
        total += lasting
        longest = max(longest, lasting)
    }

    private func duration(_ since: Timestamp, _ until: Timestamp) -> String {
        DurationText.short(milliseconds: max(until.milliseconds - since.milliseconds, 0))
    }
}
