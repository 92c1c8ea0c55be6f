// SPDX-License-Identifier: Apache-2.0

internal import DialtoneNetworkPath

/// How many lines of the log each user may cause. No clock: the moments are parameters.
///
/// What is beyond the budget is left out and counted, but for the first line of each kind in a minute: an operator
/// sees everything that happens, if not how often.
package struct LogBudget<Kind: Hashable & Sendable>: Sendable {
    /// Lines at once: a hundred connections that go and return write four each, and all of it is read.
    static var burst: Int { 500 }
    /// Then five a second, 430,000 a day: a tenth of what the journal keeps by default (`SystemMaxUse` of
    /// journald.conf(5)), at some hundred bytes each.
    static var refill: Duration { .milliseconds(200) }
    /// How often a kind is seen whatever the budget says, and what was left out is told.
    package static var period: Duration { .seconds(60) }

    private struct Use {
        var lines: TokenBucket
        /// When each kind was written last.
        var written: [Kind: Duration] = [:]
        var leftOut = 0
    }

    /// By user; `nil` for what no user is known to have caused.
    private var uses: [UInt32?: Use] = [:]

    /// Nothing was written yet.
    package init() {}

    /// Whether a line may be written; if not, it is counted as left out. Root's lines are not limited.
    package mutating func admits(_ kind: Kind, of user: UInt32?, now: Duration) -> Bool {
        guard user != 0 else { return true }
        var use = uses[user] ?? Use(lines: TokenBucket(burst: Self.burst, refill: Self.refill, now: now))
        defer { uses[user] = use }
        let isOverdue = use.written[kind].map { now - $0 >= Self.period } ?? true
        guard use.lines.take(now: now) == nil || isOverdue else {
            use.leftOut += 1
            return false
        }
        use.written[kind] = now
        return true
    }

    /// What was left out of a user since the last account.
    package struct LeftOut: Hashable, Sendable {
        /// The user; `nil` for nobody known.
        package let user: UInt32?
        /// How many lines.
        package let lines: Int
    }

    /// How many lines were left out since the last call, by user, and forgets users who wrote nothing for a while.
    package mutating func takeLeftOut(now: Duration) -> [LeftOut] {
        let leftOut = uses.compactMap { $1.leftOut > 0 ? LeftOut(user: $0, lines: $1.leftOut) : nil }
        uses = uses.filter { $1.leftOut > 0 || !$1.lines.isFull(now: now) }
        for user in uses.keys { uses[user]?.leftOut = 0 }
        // Root is not limited, so that the number is free for nobody.
        return leftOut.sorted { ($0.user ?? 0) < ($1.user ?? 0) }
    }
}
