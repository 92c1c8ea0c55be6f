// SPDX-License-Identifier: Apache-2.0

internal import DialtoneAPI
internal import DialtoneNetworkPath
internal import DialtoneVarlink

/// How often and how long one connection was without a flow, as far as the history goes.
struct OutageTally: Sendable {
    /// An instant by both clocks.
    struct Instant: Sendable {
        /// What the wall clock showed, which somebody may have set since: a machine without a clock of its own learns
        /// the time when the network is there.
        let wall: Timestamp
        /// How long the machine had been up, its sleep included.
        let uptime: Duration?
        /// Which run of the agent it belongs to.
        let run: Int

        /// The time from an earlier one. Within a run no setting of the wall clock shows; from one run to the next the
        /// machine may have been off.
        func duration(since earlier: Instant) -> Duration {
            if run == earlier.run, let uptime, let before = earlier.uptime { return max(uptime - before, .zero) }
            return max(wall - earlier.wall, .zero)
        }
    }

    fileprivate enum State {
        /// Nothing is known of it, or it is not supervised.
        case unknown
        /// Supervised from a time on, and nothing has failed yet.
        case beginning(since: Instant)
        case flowing(since: Instant)
        /// Without a flow; before an interruption it had been for `carried` already.
        case without(since: Instant, carried: Duration)
        /// Closed, with an outage before that if it had no flow then.
        case closed(at: Instant, outage: Outage?)
        /// The agent ended, and the connection with it, or was killed. Whether it goes on shows when the agent is back.
        case interrupted(Interruption)
    }

    /// A time without a flow, up to now.
    fileprivate struct Outage {
        let since: Instant
        let carried: Duration

        func lasting(until end: Instant) -> Duration { carried + end.duration(since: since) }
    }

    fileprivate struct Interruption {
        /// What the connection had before it.
        let flowSince: Instant?
        let outage: Outage?
        /// Up to when it is known to have been supervised.
        let end: Instant
        /// When the agent was back.
        var restart: Instant?
    }

    private struct Sum {
        var count = 0
        var total = Duration.zero
        var longest = Duration.zero
        /// Why the longest began.
        var cause: String?

        /// What there was of the outage under way before it was counted from.
        var uncounted = Duration.zero

        mutating func add(_ whole: Duration, because cause: String?) {
            let lasting = whole - uncounted
            defer { uncounted = .zero }
            guard lasting > .zero || uncounted == .zero else { return }
            count += 1
            total += lasting
            guard count == 1 || lasting > longest else { return }
            (longest, self.cause) = (lasting, cause)
        }
    }

    /// Between the agent's end and its next start, as far as they belong together.
    private static let longestRestart = Duration.seconds(3600)
    /// Between the agent's start and that of a connection, where the one is part of the other: ten thousand are opened
    /// in less.
    static let longestTurn = Duration.seconds(5)

    private var state = State.unknown
    private var sum = Sum()
    /// Why the outage under way began.
    private var cause: String?

    /// Takes note of an event.
    ///
    /// - Returns: what there is to add to its line: how long it had been up, or down.
    mutating func heard(_ event: ConnectionsAPI.Event, at time: Instant) -> String? {
        if case .interrupted(let interruption) = state { state = interruption.ended(by: event, at: time) }
        defer {
            switch state {
            // That it was opened is no reason to be down; but it may be down since before.
            case .without: cause = cause ?? (event.kind == .opened ? nil : event.reason)
            case .closed, .interrupted: break
            case .unknown, .beginning, .flowing: cause = nil
            }
        }
        switch (event.connection.state, state) {
        case (.closed, .flowing(let since)):
            close(with: nil, event, at: time)
            return "after \(duration(since, time)) up"
        case (.closed, .without(let since, let carried)):
            close(with: Outage(since: since, carried: carried), event, at: time)
        case (.closed, _):
            forget()
        case (.ready, .flowing), (.verifying, .flowing):
            break
        case (.ready, .without(let since, let carried)):
            let lasting = Outage(since: since, carried: carried).lasting(until: time)
            sum.add(lasting, because: cause)
            state = .flowing(since: time)
            return "after \(lasting.short) down"
        case (.ready, _), (.verifying, _):
            forget()
            state = .flowing(since: time)
        case (_, .flowing(let since)):
            state = .without(since: time, carried: .zero)
            return "after \(duration(since, time)) up"
        case (_, .unknown), (_, .closed), (_, .interrupted):
            forget()
            state = event.kind == .opened ? .beginning(since: time) : .without(since: time, carried: .zero)
        case (_, .without), (.resolving, .beginning), (.connecting, .beginning), (.securing, .beginning):
            break
        case (_, .beginning(let since)):
            if event.kind != .opened { state = .without(since: since, carried: .zero) }
        }
        return nil
    }

    /// The agent began anew.
    ///
    /// - Parameter last: when the run before was last heard of. Where it did not say that it ended it was killed,
    ///   nobody knows when.
    mutating func agentStarted(at time: Instant, after last: Instant?) {
        let end = last ?? time
        switch state {
        case .flowing(let since):
            state = .interrupted(Interruption(flowSince: since, outage: nil, end: end, restart: time))
        case .without(let since, let carried):
            let outage = Outage(since: since, carried: carried)
            state = .interrupted(Interruption(flowSince: nil, outage: outage, end: end, restart: time))
        case .interrupted(var interruption):
            guard interruption.restart == nil, time.duration(since: interruption.end) <= Self.longestRestart else {
                return forget()
            }
            interruption.restart = time
            state = .interrupted(interruption)
        case .unknown, .beginning, .closed:
            forget()
        }
    }

    /// `3 outages, 4 m 12 s without a flow, longest 2 m`.
    func text(now: Instant) -> (String, Style.Tone) {
        let sum = sum(now: now)
        guard sum.count > 0 else { return ("no outage", .good) }
        var text = "1 outage"
        if sum.count > 1 { text = "\(sum.count) outages" }
        text += ", down \(sum.total.short)"
        if sum.count > 1 { text += ", longest \(sum.longest.short)" }
        if case .without = state { text += ", still down" }
        return (text, .warning)
    }

    /// How often it was down, for how long, and why the longest time began.
    func figures(now: Instant) -> (count: Int, total: Duration, longest: Duration, cause: String?) {
        let sum = sum(now: now)
        return (sum.count, sum.total, sum.longest, sum.cause)
    }

    private func sum(now: Instant) -> Sum {
        var sum = sum
        if let lasting = unfinished(now) { sum.add(lasting, because: cause) }
        return sum
    }

    /// Counts from `time` on: what was before is not in the sum.
    ///
    /// - Returns: whether the connection is still there.
    mutating func count(from time: Instant) -> Bool {
        sum = Sum(uncounted: unfinished(time) ?? .zero)
        switch state {
        case .unknown, .closed: return false
        case .beginning(let since): sum.uncounted = time.duration(since: since)
        case .flowing, .without, .interrupted: break
        }
        return true
    }

    /// It is closed. Whether one that ended with the agent comes back shows when that starts again.
    private mutating func close(with outage: Outage?, _ event: ConnectionsAPI.Event, at time: Instant) {
        state =
            event.connection.cause == .agentEnded
            ? .interrupted(Interruption(flowSince: nil, outage: outage, end: time))
            : .closed(at: time, outage: outage)
    }

    /// Nothing is known from here on; an outage up to here counts.
    private mutating func forget() {
        if let lasting = unfinished(nil) { sum.add(lasting, because: cause) }
        sum.uncounted = .zero
        state = .unknown
    }

    /// How long the outage has lasted that is not in the sum yet.
    private func unfinished(_ now: Instant?) -> Duration? {
        switch state {
        case .unknown, .beginning, .flowing: nil
        case .without(let since, let carried):
            now.map { Outage(since: since, carried: carried).lasting(until: $0) }
        case .closed(let end, let outage): outage?.lasting(until: end)
        case .interrupted(let interruption): interruption.outage?.lasting(until: interruption.end)
        }
    }

    private func duration(_ since: Instant, _ until: Instant) -> String { until.duration(since: since).short }
}

extension OutageTally.Interruption {
    /// What the first word of the connection makes of it.
    ///
    /// Between two runs of the agent nobody supervised it, and that time is no outage, unless the agent says that it
    /// went on: then it was away for a moment. Of a connection that is opened again at the agent's start, the time
    /// since then counts. One that is opened later is another life of it, and its outage before ended with the agent.
    fileprivate func ended(by event: ConnectionsAPI.Event, at time: OutageTally.Instant) -> OutageTally.State {
        guard let restart, event.connection.state != .closed else { return .interrupted(self) }
        if event.kind == .continued {
            if let outage { return .without(since: outage.since, carried: outage.carried) }
            guard let flowSince, event.connection.state.hasFlow else { return .without(since: restart, carried: .zero) }
            return .flowing(since: flowSince)
        }
        guard time.duration(since: restart) <= OutageTally.longestTurn else { return .interrupted(self) }
        return .without(since: restart, carried: outage?.lasting(until: end) ?? .zero)
    }
}
