// SPDX-License-Identifier: Apache-2.0

package import DialtoneAPI
package import DialtoneConnection
package import DialtonePlatform
package import DialtoneVarlink

/// What is counted of a connection, as the state has it: the fields that clients are told, and what the next process
/// needs to count on.
package struct SavedTotals: Hashable {
    /// When the counting began, by the wall clock then. Computed from the boot clock, it would move whenever somebody
    /// sets the wall clock.
    package let since: Timestamp
    /// What was counted.
    package var totals: ConnectionTotals

    private enum Field {
        static let (counters, outageSince, isUp) = (1, 2, 3)
    }

    /// Nothing was counted yet.
    package init(since: Timestamp) { (self.since, totals) = (since, ConnectionTotals()) }

    /// What clients are told at an instant of the boot clock.
    package func wire(at now: Duration) -> ConnectionsAPI.Counters { wire(down: totals.down(at: now)) }

    private func wire(down: Duration) -> ConnectionsAPI.Counters {
        .init(
            since: since, outages: .init(totals.outages), down: down, connectedDials: totals.connectedDials,
            failedDials: .init(totals.failedDials), connectTime: .init(totals.connectTime),
            wakes: totals.wakes.sorted { $0.key?.rawValue ?? "" < $1.key?.rawValue ?? "" }.map { means, wakes in
                .init(
                    means: means.map { .init(rawValue: $0.rawValue) }, acknowledged: .init(wakes.acknowledged),
                    failed: wakes.failed)
            }, answeredMessages: totals.answeredMessages)
    }

    /// The outages up to an instant of the boot clock, for the history.
    package func outages(at now: Duration) -> ConnectionsAPI.OutageCount {
        .init(
            since: since, count: totals.outages.values.reduce(0, +), down: totals.down(at: now),
            isUnderWay: totals.outageSince != nil)
    }

    /// Writes them in numbered fields.
    package func write(_ fields: inout FieldWriter) {
        fields.put(Field.counters, KeptFieldWriter.bytes(of: wire(down: totals.downBefore)))
        if let since = totals.outageSince { fields.put(Field.outageSince, signed: since.nanoseconds) }
        if totals.isUp { fields.put(Field.isUp, 1) }
    }

    /// Those that were written.
    package init(_ fields: FieldReader) throws(DamagedState) {
        var (fields, counters) = (fields, ConnectionsAPI.Counters?.none)
        var (outageSince, isUp) = (Duration?.none, false)
        while let (field, value) = try fields.next() {
            switch field {
            case Field.counters: counters = try KeptFieldReader.object(value.bytes())
            case Field.outageSince: outageSince = .nanoseconds(try value.signed())
            case Field.isUp: isUp = try value.unsigned() != 0
            default: break
            }
        }
        guard let counters else { throw DamagedState() }
        since = counters.since
        totals = try ConnectionTotals(counters)
        (totals.outageSince, totals.isUp) = (outageSince, isUp)
    }
}

extension ConnectionTotals {
    /// What was counted. A cause or a means that this version does not know, it does not count on.
    fileprivate init(_ counters: ConnectionsAPI.Counters) throws(DamagedState) {
        self.init()
        outages = try counters.outages.counted()
        failedDials = try counters.failedDials.counted()
        connectedDials = try counters.connectedDials.counted()
        connectTime = try .init(counters.connectTime)
        answeredMessages = try counters.answeredMessages?.counted() ?? 0
        guard counters.down >= .zero, counters.down <= .milliseconds(FieldReader.largestCount) else {
            throw DamagedState()
        }
        downBefore = counters.down
        for count in counters.wakes {
            let means = count.means.map { WakeMeans(rawValue: $0.rawValue) }
            if case .some(nil) = means { continue }
            var wakes = Wakes()
            wakes.acknowledged = try .init(count.acknowledged)
            wakes.failed = try count.failed.counted()
            self.wakes[means ?? nil] = wakes
        }
    }
}

extension DurationHistogram {
    fileprivate init(_ wire: ConnectionsAPI.Histogram) throws(DamagedState) {
        for count in wire.counts { _ = try count.counted() }
        let sum = Duration.microseconds(try wire.sumMicroseconds.counted())
        guard let histogram = DurationHistogram(counts: wire.counts, sum: sum) else { throw DamagedState() }
        self = histogram
    }
}

extension ConnectionsAPI.Histogram {
    fileprivate init(_ histogram: DurationHistogram) {
        self.init(counts: histogram.counts, sumMicroseconds: Int(clamping: histogram.sum.wholeMicroseconds))
    }
}

extension [ConnectionsAPI.CauseCount] {
    /// Always in the same order.
    fileprivate init(_ counts: [Cause: Int]) {
        self = counts.map { .init(cause: .init(rawValue: $0.rawValue), count: $1) }
            .sorted { $0.cause.rawValue < $1.cause.rawValue }
    }

    fileprivate func counted() throws(DamagedState) -> [Cause: Int] {
        var counts: [Cause: Int] = [:]
        for each in self {
            let count = try each.count.counted()
            if let cause = Cause(rawValue: each.cause.rawValue) { counts[cause] = count }
        }
        return counts
    }
}

extension Int {
    /// As a number that is counted on from.
    func counted() throws(DamagedState) -> Int {
        guard self >= 0, self <= FieldReader.largestCount else { throw DamagedState() }
        return self
    }
}

extension Duration {
    fileprivate var wholeMicroseconds: Int64 {
        let (seconds, attoseconds) = components
        return seconds * 1_000_000 + attoseconds / 1_000_000_000_000
    }
}
