// SPDX-License-Identifier: Apache-2.0

internal import DialtoneAPI

/// How often and how long one connection was without a flow, as far as the history goes.
struct OutageTally: Sendable {
    /// An instant by both clocks.
    struct Instant: Sendable {
        /// What the wall clock showed, which somebody may have set since: a machine without a clock of its own learns
        /// the time when the network is there.
        let wall: Timestamp
        /// How long the machine had been up, in milliseconds, its sleep included.
        let uptime: Int64?
        /// Which run of the agent it belongs to.
        let run: Int

        /// The milliseconds from an earlier one. Within a run no setting of the wall clock shows; from one run to the
        /// next the machine may have been off.
        func milliseconds(since earlier: Instant) -> Int64 {
            if run == earlier.run, let uptime, let before = earlier.uptime { return max(uptime - before, 0) }
            return max(wall.milliseconds - earlier.wall.milliseconds, 0)
        }
    }

    private enum State {
        /// Nothing is known of it, or it is not supervised.
        case unknown
        /// Supervised from a time on, and nothing has failed yet.
        case beginning(since: Instant)
        case flowing(since: Instant)
        case without(since: Instant)
        /// Closed, with an outage before that if it had no flow then.
        case closed(at: Instant, outageSince: Instant?)
        /// The agent ended, and the connection with it. Supervised again, it had no flow since then, or since before.
        case interrupted(since: Instant, at: Instant)
    }

    private struct Sum {
        var count = 0
        var total: Int64 = 0
        var longest: Int64 = 0

        mutating func add(_ since: Instant, _ until: Instant) {
            let lasting = until.milliseconds(since: since)
            count += 1
            total += lasting
            longest = max(longest, lasting)
        }
    }

    /// Between the agent's end and its next start, as far as they belong together.
    private static let longestRestart: Int64 = 3_600_000
    /// Between the end of a connection and that of the agent, where the one is part of the other: ten thousand are
    /// closed in less.
    private static let longestEnding: Int64 = 5000

    private var state = State.unknown
    private var sum = Sum()

    /// Takes note of an event.
    ///
    /// - Returns: what there is to add to its line: how long the flow, or the time without, had lasted.
    mutating func heard(_ event: ConnectionsAPI.Event, at time: Instant) -> String? {
        switch (event.connection.state, state) {
        case (.closed, .flowing(let since)):
            state = .closed(at: time, outageSince: nil)
            return "after \(duration(since, time))"
        case (.closed, .without(let since)):
            state = .closed(at: time, outageSince: since)
        case (.closed, _):
            forget()
        case (.ready, .flowing), (.verifying, .flowing):
            break
        case (.ready, .without(let since)):
            sum.add(since, time)
            state = .flowing(since: time)
            return "\(duration(since, time)) without a flow"
        case (.ready, _), (.verifying, _):
            forget()
            state = .flowing(since: time)
        case (_, .flowing(let since)):
            state = .without(since: time)
            return "after \(duration(since, time))"
        case (_, .interrupted(let since, _)):
            state = .without(since: since)
        case (_, .unknown), (_, .closed):
            forget()
            state = event.kind == .opened ? .beginning(since: time) : .without(since: time)
        case (_, .without):
            break
        case (_, .beginning(let since)):
            if event.kind != .opened { state = .without(since: since) }
        }
        return nil
    }

    /// The agent was told to end, and closed its connections. Which of them come back shows when it starts again.
    mutating func agentEnded(at time: Instant) {
        guard case .closed(let end, let since) = state, time.milliseconds(since: end) <= Self.longestEnding else {
            return
        }
        state = .interrupted(since: since ?? end, at: end)
    }

    /// The agent began anew: whatever stood before stands no more.
    mutating func agentStarted(at time: Instant) {
        switch state {
        case .flowing:
            // It was killed, nobody knows when.
            state = .interrupted(since: time, at: time)
        case .without(let since):
            state = .interrupted(since: since, at: time)
        case .interrupted(_, let end):
            if time.milliseconds(since: end) > Self.longestRestart { forget() }
        case .unknown, .beginning, .closed:
            forget()
        }
    }

    /// `3 outages, 4 m 12 s without a flow, longest 2 m`.
    func text(now: Instant) -> (String, Style.Tone) {
        var sum = sum
        if let outage = unfinished(now) { sum.add(outage.since, outage.until) }
        guard sum.count > 0 else { return ("no outage", .good) }
        var text = "1 outage"
        if sum.count > 1 { text = "\(sum.count) outages" }
        text += ", \(DurationText.short(milliseconds: sum.total)) without a flow"
        if sum.count > 1 { text += ", longest \(DurationText.short(milliseconds: sum.longest))" }
        if case .without = state { text += ", and still without" }
        return (text, .warning)
    }

    /// Nothing is known from here on; an outage up to here counts.
    private mutating func forget() {
        if let outage = unfinished(nil) { sum.add(outage.since, outage.until) }
        state = .unknown
    }

    /// The outage that is not in the sum yet.
    private func unfinished(_ now: Instant?) -> (since: Instant, until: Instant)? {
        switch state {
        case .unknown, .beginning, .flowing: nil
        case .without(let since): now.map { (since, $0) }
        case .closed(let end, let since): since.map { ($0, end) }
        case .interrupted(let since, let end): end.milliseconds(since: since) > 0 ? (since, end) : nil
        }
    }

    private func duration(_ since: Instant, _ until: Instant) -> String {
        DurationText.short(milliseconds: until.milliseconds(since: since))
    }
}
