// SPDX-License-Identifier: Apache-2.0

internal import DialtoneAPI
internal import DialtoneNetworkPath
internal import DialtoneVarlink

/// How often and how long one connection was down in the time that is told. The agent counts the outages; the sum is
/// the difference between its counts at the end and at the beginning, whether or not the events between them are kept.
struct OutageSum: Sendable {
    /// A count of the agent, and when it was told.
    private struct Reading {
        var count: ConnectionsAPI.OutageCount
        var time: HistoryInstant

        /// How long it was down up to another time. In an outage, the clock may have been set to before it was told.
        func down(at now: HistoryInstant) -> Duration {
            guard count.isUnderWay else { return count.down }
            return max(count.down + now.duration(since: time) - time.duration(since: now), .zero)
        }
    }

    /// How often it was down, for how long, and the longest of these times with its cause.
    struct Figures {
        var count = 0
        var down = Duration.zero
        /// Of the outages whose beginning is kept.
        var longest = Duration.zero
        var cause: String?
    }

    /// The outage under way, where its beginning is kept.
    private struct Outage {
        /// How long the connection had been down before it, or before that part of it which is summed.
        let downBefore: Duration
        let cause: String?
    }

    /// The sum of what was counted before the counts were last reset.
    private var past = Figures()
    /// The last of its present counts.
    private var reading: Reading?
    /// What these had come to before the time that is told.
    private var before: (count: Int, down: Duration) = (0, .zero)
    private var outage: Outage?
    /// Whether the outage that was under way when that time began has not ended.
    private var isCarried = false
    private var isClosed = false
    /// How many outages there were whose beginning is not kept.
    private var unseen = 0
    /// Whether there may have been outages, in the time that is told, before the first count that is kept.
    private(set) var isPartial = false

    /// An event of the connection, with what the agent has counted.
    ///
    /// - Parameter start: when the time begins that is told; `nil` for no such limit, or while it has not begun.
    mutating func heard(
        _ count: ConnectionsAPI.OutageCount, in event: ConnectionsAPI.Event, at time: HistoryInstant,
        from start: Timestamp?
    ) {
        // One that ended with the agent may come back with it.
        isClosed = event.connection.state == .closed && event.connection.cause != .agentEnded
        if reading?.count.since != count.since { beganAnew(count, at: time, from: start, because: event.reason) }
        guard let known = reading?.count else { return }
        let news = count.count - known.count
        if news > 0 {
            let isSeen = news == 1 && !known.isUnderWay
            outage = isSeen ? Outage(downBefore: known.down, cause: event.reason) : nil
            unseen += isSeen ? 0 : news
        }
        if !count.isUnderWay {
            if let ended = outage.take() { past.note(ended.cause, lasting(count.down, ended)) }
            // It ended before that time.
            if isCarried, count.down <= before.down { before.count += 1 }
            isCarried = false
        }
        reading = Reading(count: count, time: time)
    }

    /// The agent began anew. Of an outage that was under way nothing is known after it was last heard of, unless it
    /// goes on with its counts.
    mutating func agentStarted(at time: HistoryInstant, after last: HistoryInstant?) {
        guard let known = reading, known.count.isUnderWay else { return }
        reading?.count.down = known.down(at: last ?? time)
        reading?.count.isUnderWay = false
        reading?.time = time
    }

    /// Sums from `time` on.
    ///
    /// - Returns: whether the connection is still there.
    mutating func begin(at time: HistoryInstant) -> Bool {
        guard let reading, !isClosed else { return false }
        past = Figures()
        carry(reading.count, down: reading.down(at: time), because: outage?.cause)
        return true
    }

    /// Of what was counted before, only the rest of an outage that is under way is in the sum.
    private mutating func carry(_ count: ConnectionsAPI.OutageCount, down: Duration, because cause: String?) {
        isCarried = count.isUnderWay
        before = (count.count - (isCarried ? 1 : 0), down)
        outage = isCarried ? Outage(downBefore: down, cause: cause) : nil
        unseen = 0
    }

    /// The sum up to `now`.
    func figures(at now: HistoryInstant) -> Figures {
        var sum = past
        guard let reading else { return sum }
        let down = reading.down(at: now)
        if let outage { sum.note(outage.cause, lasting(down, outage)) }
        let isOver = isCarried && down <= before.down
        sum.count += max(reading.count.count - before.count - (isOver ? 1 : 0), 0)
        sum.down += max(down - before.down, .zero)
        return sum
    }

    /// `3 outages, down 4 m 12 s, longest 2 m`.
    func text(at now: HistoryInstant) -> (String, Style.Tone) {
        let sum = figures(at: now)
        guard sum.count > 0 else { return ("no outage", .good) }
        var text = sum.count == 1 ? "1 outage" : "\(sum.count) outages"
        text += ", down \(sum.down.short)"
        if sum.count > 1, unseen == 0 { text += ", longest \(sum.longest.short)" }
        if reading?.count.isUnderWay == true { text += ", still down" }
        return (text, .warning)
    }

    /// Since when the agent has counted.
    var since: Timestamp? { reading?.count.since }

    /// The agent has begun to count anew, or nothing older is kept.
    private mutating func beganAnew(
        _ count: ConnectionsAPI.OutageCount, at time: HistoryInstant, from start: Timestamp?, because cause: String?
    ) {
        if let reading { past = figures(at: reading.time) }
        if let start, count.since < start {
            isPartial = true
            carry(count, down: count.down, because: cause)
            reading = Reading(count: count, time: time)
        } else {
            (before, outage, isCarried) = ((0, .zero), nil, false)
            let none = ConnectionsAPI.OutageCount(since: count.since, count: 0, down: .zero, isUnderWay: false)
            reading = Reading(count: none, time: time)
        }
    }

    private func lasting(_ down: Duration, _ outage: Outage) -> Duration { max(down - outage.downBefore, .zero) }
}

extension OutageSum.Figures {
    fileprivate mutating func note(_ cause: String?, _ lasting: Duration) {
        guard lasting > longest || self.cause == nil else { return }
        (longest, self.cause) = (lasting, cause)
    }
}
