// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import DialtonePlatform

/// Whose turn is next, in virtual time.
@Suite struct TurnOrderTests {
    /// Users whose takers stand in line again after each turn.
    private struct Line {
        var order = TurnOrder<(user: UInt32, cost: Int)>()
        var clock = 0
        var spent: [UInt32: Int] = [:]

        mutating func join(_ user: UInt32, cost: Int) { order.add((user, cost), for: user) }

        /// Takes one turn and says whose.
        mutating func step(again: Bool = true) -> UInt32? {
            guard let taker = order.next() else { return nil }
            clock += taker.cost
            spent[taker.user, default: 0] += taker.cost
            if again { order.add(taker, for: taker.user) }
            order.end(after: .microseconds(taker.cost))
            return taker.user
        }
    }

    @Test func `a user with a thousand takers gets no more than one with one`() {
        var line = Line()
        for _ in 0..<1000 { line.join(1, cost: 100) }
        line.join(2, cost: 100)
        for _ in 0..<1000 { _ = line.step() }
        #expect(line.spent == [1: 50_000, 2: 50_000])
    }

    @Test func `who comes is served after the turn that runs`() {
        var line = Line()
        for user in UInt32(1)...10 { for _ in 0..<100 { line.join(user, cost: 1000) } }
        for _ in 0..<777 { _ = line.step() }
        line.join(77, cost: 10)
        let next = (0..<2).map { _ in line.step() }
        #expect(next.contains(77), "\(next)")
    }

    @Test func `a turn that takes long is paid for by its user`() {
        var line = Line()
        line.join(1, cost: 5000)
        for _ in 0..<10 { line.join(2, cost: 50) }
        while line.clock < 1_000_000 { _ = line.step() }
        let (slow, quick) = (line.spent[1, default: 0], line.spent[2, default: 0])
        #expect(abs(slow - quick) <= 5000, "\(slow) µs and \(quick) µs")
    }

    @Test func `who waited for nothing has no credit`() {
        var line = Line()
        line.join(1, cost: 100)
        line.join(2, cost: 100)
        _ = (line.step(again: false), line.step(again: false))
        line.join(1, cost: 100)
        for _ in 0..<1000 { _ = line.step() }
        line.join(2, cost: 100)
        let before = line.spent
        for _ in 0..<100 { _ = line.step() }
        #expect(line.spent[1, default: 0] - before[1, default: 0] >= 4900, "\(line.spent), before \(before)")
    }

    @Test func `the takers of a user take turns in their order`() {
        var order = TurnOrder<Int>()
        for taker in 0..<3 { order.add(taker, for: 7) }
        var seen: [Int] = []
        for _ in 0..<7 {
            guard let taker = order.next() else { break }
            seen.append(taker)
            order.add(taker, for: 7)
            order.end(after: .zero)
        }
        #expect(seen == [0, 1, 2, 0, 1, 2, 0])
        #expect(!order.isEmpty)
    }

    @Test func `ten thousand users who came once are forgotten`() {
        var line = Line()
        line.join(0, cost: 1)
        for user in UInt32(1)...10_000 {
            line.join(user, cost: 1)
            _ = (line.step(again: false), line.step(again: false))
            if line.order.isEmpty { line.join(0, cost: 1) }
        }
        #expect(line.order.accountCount < 200, "\(line.order.accountCount)")
    }
}
