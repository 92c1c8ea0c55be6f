// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import DialtoneConnection

/// How much of the log one user can fill, in virtual time.
@Suite struct LogBudgetTests {
    private let start = Duration.seconds(1000)

    /// 43,500 lines a second for ten seconds, as of clients that are refused.
    @Test func `a storm of one kind is a burst and then the refill`() {
        var budget = LogBudget<String>()
        var written = 0
        for number in 0..<435_000 {
            let now = start + .microseconds(23 * number)
            if budget.admits("refused", of: 1000, now: now) { written += 1 }
        }
        #expect(written <= 500 + 50, "\(written)")
        #expect(budget.takeLeftOut(now: start + .seconds(10)) == [.init(user: 1000, lines: 435_000 - written)])
        #expect(budget.takeLeftOut(now: start + .seconds(10)) == [], "told once")
    }

    @Test func `each kind is seen once a minute in any storm`() {
        var budget = LogBudget<String>()
        var seen: [Duration] = []
        for number in 0..<300_000 {
            let now = start + .milliseconds(number)
            _ = budget.admits("refused", of: 1000, now: now)
            if number % 100 == 50, budget.admits("failed", of: 1000, now: now) { seen.append(now - start) }
        }
        let later = seen.filter { $0 > .seconds(120) }
        #expect(later.count >= 3, "\(later)")
        #expect(zip(later, later.dropFirst()).allSatisfy { $1 - $0 <= .seconds(61) }, "\(later)")
    }

    @Test func `one user's storm leaves the others their lines`() {
        var budget = LogBudget<String>()
        for _ in 0..<10_000 { _ = budget.admits("refused", of: 1000, now: start) }
        for user in [UInt32?.some(1001), nil] {
            let admitted = (0..<500).count { _ in budget.admits("refused", of: user, now: start) }
            #expect(admitted == 500, "\(user ?? 0)")
        }
        let roots = (0..<10_000).count { _ in budget.admits("refused", of: 0, now: start) }
        #expect(roots == 10_000, "root is not limited")
        #expect(budget.takeLeftOut(now: start) == [.init(user: 1000, lines: 9500)])
    }
}
