// SPDX-License-Identifier: Apache-2.0

package import DialtoneCoalescing
internal import DialtoneConnection

/// Keepalives that run side by side: what a planner makes of them, and what no planner can do with less.
package struct KeepaliveLoad: Sendable {
    /// One keepalive: how often, and when it happened last before the load begins at zero.
    package struct Item: Hashable, Sendable {
        /// How often.
        package let cadence: Cadence
        /// At zero or before, and less than an interval before.
        package let last: Duration

        /// A keepalive.
        package init(_ cadence: Cadence, last: Duration) {
            self.cadence = cadence
            self.last = last
        }
    }

    /// The keepalives.
    package let items: [Item]

    /// These keepalives.
    package init(_ items: [Item]) {
        self.items = items
    }

    /// So many keepalives, each of one of the cadences, which happened last at any time within their interval.
    package init(_ count: Int, of cadences: [Cadence], using random: inout some RandomNumberGenerator) {
        items = (0..<count).map { index in
            let cadence = cadences[index % cadences.count]
            let fraction = Double(random.next() >> 11) * 0x1p-53
            return Item(cadence, last: .zero - cadence.interval * fraction)
        }
    }

    /// A promise of the planner that it broke.
    package struct BrokenPromise: Error, CustomStringConvertible {
        /// Which, when.
        package let description: String
    }

    /// How often ``TimerCoalescer`` wakes the process up to the horizon, and how many keepalives it sends.
    ///
    /// - Throws: where a keepalive comes late or before its window.
    package func planned(until horizon: Duration) throws(BrokenPromise) -> (wakes: Int, keepalives: Int) {
        var planner = TimerCoalescer()
        var last: [TimerCoalescer.Token: Item] = [:]
        for item in items { last[planner.add(item.cadence, after: item.last)] = item }
        var (wakes, keepalives, now) = (0, 0, Duration.zero)
        while let next = planner.nextWake, max(next, now) <= horizon {
            now = max(next, now)
            let taken = planner.take(at: now)
            if taken.isEmpty { throw BrokenPromise(description: "a wake for nobody at \(now)") }
            wakes += 1
            keepalives += taken.count
            for token in taken {
                guard let item = last[token] else { throw BrokenPromise(description: "an unknown token at \(now)") }
                guard item.cadence.window(after: item.last).contains(now) else {
                    throw BrokenPromise(description: "\(item) happens at \(now)")
                }
                last[token] = Item(item.cadence, last: now)
            }
        }
        if let late = last.values.first(where: { $0.last + $0.cadence.interval <= horizon }) {
            throw BrokenPromise(description: "\(late) does not happen until \(horizon)")
        }
        return (wakes, keepalives)
    }

    /// How often the process wakes up to the horizon if each wake comes at the last moment (the rule that is optimal
    /// for one round) and takes everybody along who is open.
    package func atTheLastMoment(until horizon: Duration) -> Int {
        var windows = items.map { $0.cadence.window(after: $0.last) }
        var wakes = 0
        while let now = windows.lazy.map(\.upperBound).min(), now <= horizon {
            wakes += 1
            for index in items.indices where windows[index].lowerBound <= now {
                windows[index] = items[index].cadence.window(after: now)
            }
        }
        return wakes
    }

    /// A number of wakes up to the horizon below which no plan can stay.
    ///
    /// The greater of two bounds. Whatever the plan, the n-th keepalive of an item cannot come before n of its shortest
    /// steps nor after n of its longest: a plan stabs all of these windows, and the fewest points that do are found
    /// greedily. And the item with the shortest interval alone needs a wake each interval.
    package func lowerBound(until horizon: Duration) -> Int {
        var windows: [(open: Duration, due: Duration)] = []
        var mostOfOne = 0
        for item in items {
            let shortest = item.cadence.interval - item.cadence.tolerance
            var (open, due) = (item.last + shortest, item.last + item.cadence.interval)
            var count = 0
            while due <= horizon {
                windows.append((open, due))
                (open, due, count) = (open + shortest, due + item.cadence.interval, count + 1)
            }
            mostOfOne = max(mostOfOne, count)
        }
        windows.sort { $0.due < $1.due }
        var stabs = 0
        var last: Duration?
        for window in windows where last.map({ window.open > $0 }) ?? true {
            stabs += 1
            last = window.due
        }
        return max(stabs, mostOfOne)
    }

    /// The fewest wakes up to the horizon, by trying everything: which of the open keepalives happen at each step of
    /// time, from zero to the horizon. For a few items with intervals of less than sixteen steps, which happened last a
    /// step or more before zero.
    package func fewest(until horizon: Int, step: Duration) -> Int {
        let intervals = items.map { Int(($0.cadence.interval / step).rounded()) }
        let shortest = items.map { Int((($0.cadence.interval - $0.cadence.tolerance) / step).rounded()) }
        // How long ago each happened, four bits an item, and the fewest wakes that lead there: at first, a step before
        // zero.
        var reached = [
            items.reversed().reduce(0) { $0 << 4 | (Int((.zero - $1.last) / step) - 1) }: 0
        ]
        for _ in 0...horizon {
            var next: [Int: Int] = [:]
            for (ages, wakes) in reached {
                choices: for chosen in 0..<(1 << items.count) {
                    var later = 0
                    for index in items.indices {
                        let age = (ages >> (4 * index) & 15) + 1
                        if chosen >> index & 1 == 1 {
                            if age < shortest[index] { continue choices }
                        } else {
                            if age >= intervals[index] { continue choices }
                            later |= age << (4 * index)
                        }
                    }
                    next[later] = min(next[later] ?? .max, wakes + (chosen == 0 ? 0 : 1))
                }
            }
            reached = next
        }
        return reached.values.min() ?? 0
    }
}
