// SPDX-License-Identifier: Apache-2.0

import DialtoneCoalescing
import DialtoneConnection
import DialtoneModels
import DialtoneTestSupport
import Testing

/// The planner against brute force and against a bound, on loads drawn from seeds.
@Suite struct TimerCoalescerProperties {
    /// Steps of a second, intervals of a few: small enough to try everything.
    private static func smallLoad(_ random: inout SplitMix64, items: Int) -> KeepaliveLoad {
        KeepaliveLoad(
            (0..<items).map { _ in
                let interval = 3 + random.below(8)
                let tolerance = random.below(3)
                return KeepaliveLoad.Item(
                    Cadence(interval: .seconds(interval), tolerance: .seconds(tolerance)),
                    last: .seconds(-1 - random.below(interval - 1)))
            })
    }

    @Test(arguments: [1, 2, 3] + seeds(2)) func `a round takes the fewest wakes`(seed: UInt64) throws {
        var random = SplitMix64(seed: seed)
        for _ in 0..<500 {
            let windows = (0..<(1 + random.below(8))).map { _ in
                let open = random.below(30)
                return Duration.seconds(open)...(.seconds(open + random.below(12)))
            }
            var planner = TimerCoalescer()
            for window in windows { _ = planner.add(once: window) }
            var wakes = 0
            while let next = planner.nextWake {
                wakes += 1
                try #require(!planner.take(at: next).isEmpty)
            }
            #expect(wakes == Self.fewestPoints(in: windows), "of \(windows)")
        }
    }

    @Test(arguments: [1, 2, 3] + seeds(2)) func `a round of what recurs takes the fewest wakes too`(seed: UInt64) throws
    {
        var random = SplitMix64(seed: seed)
        for _ in 0..<500 {
            var planner = TimerCoalescer()
            var windows: [TimerCoalescer.Token: ClosedRange<Duration>] = [:]
            for _ in 0..<(1 + random.below(8)) {
                // The second round opens at 100 s at the earliest, when the first is over.
                let cadence = Cadence(
                    interval: .seconds(100 + random.below(12)), tolerance: .seconds(random.below(12)))
                let token = planner.add(cadence, after: .seconds(-90 + random.below(30)))
                windows[token] = planner.window(of: token)
            }
            let fewest = Self.fewestPoints(in: Array(windows.values))
            var (wakes, now) = (0, Duration.zero)
            while !windows.isEmpty, let next = planner.nextWake {
                (wakes, now) = (wakes + 1, max(now, next))
                let taken = planner.take(at: now)
                try #require(!taken.isEmpty)
                for token in taken {
                    #expect(windows.removeValue(forKey: token)?.contains(now) == true)
                }
            }
            #expect(wakes == fewest)
        }
    }

    /// By trying every choice of ends: a point that is none can be moved to the next end without losing a window.
    private static func fewestPoints(in windows: [ClosedRange<Duration>]) -> Int {
        let ends = Array(Set(windows.map(\.upperBound)))
        return (0..<(1 << ends.count)).filter { chosen in
            windows.allSatisfy { window in
                ends.indices.contains { chosen >> $0 & 1 == 1 && window.contains(ends[$0]) }
            }
        }.map(\.nonzeroBitCount).min() ?? 0
    }

    @Test(arguments: [1, 2, 3] + seeds(2)) func `no keepalive is late or early and no plan beats brute force`(
        seed: UInt64
    ) throws {
        var random = SplitMix64(seed: seed)
        for _ in 0..<40 {
            let load = Self.smallLoad(&random, items: 1 + random.below(3))
            let planned = try load.planned(until: .seconds(40))
            let fewest = load.fewest(until: 40, step: .seconds(1))
            #expect(load.lowerBound(until: .seconds(40)) <= fewest, "\(load)")
            // All windows lie on whole seconds, so steps of a second are all that brute force needs.
            #expect(fewest <= planned.wakes, "\(load)")
        }
    }

    @Test func `over a bounded horizon the plan is near the optimum`() throws {
        var (fewest, planned, atTheLastMoment) = (0, 0, 0)
        for seed in 1...200 {
            var random = SplitMix64(seed: UInt64(seed))
            let load = Self.smallLoad(&random, items: 3)
            fewest += load.fewest(until: 60, step: .seconds(1))
            planned += try load.planned(until: .seconds(60)).wakes
            atTheLastMoment += load.atTheLastMoment(until: .seconds(60))
        }
        print("wakes of 200 small loads: \(fewest) at best, \(planned) planned, \(atTheLastMoment) at the last moment")
        #expect(planned < atTheLastMoment)
        #expect(Double(planned) <= 1.15 * Double(fewest))
    }

    @Test(arguments: [1, 2, 3] + seeds(2)) func `keepalives of one cadence end up in one wake an interval`(seed: UInt64)
        throws
    {
        var random = SplitMix64(seed: seed)
        let interval = 10 + random.below(600)
        let tolerance = 1 + random.below(interval / 2)
        let cadence = Cadence(interval: .seconds(interval), tolerance: .seconds(tolerance))
        let load = KeepaliveLoad(50, of: [cadence], using: &random)
        // A group that has furthest to go is there after so many rounds.
        let settled = Duration.seconds((interval / tolerance + 3) * interval)
        let before = try load.planned(until: settled).wakes
        let after = try load.planned(until: settled + cadence.interval * 100).wakes
        #expect((100...101).contains(after - before), "\(cadence)")
    }

    @Test(arguments: [1, 2] + seeds(1)) func `whatever is added moved and removed the planner keeps its promises`(
        seed: UInt64
    ) {
        var random = SplitMix64(seed: seed)
        var world = PlannerWorld()
        for _ in 0..<1000 { world.step(&random) }
    }
}

/// A planner and a list of what it must know, kept the dull way.
private struct PlannerWorld {
    private struct Entry {
        var window: ClosedRange<Duration>
        var cadence: Cadence?
        var wakesMachine: Bool
    }

    private var planner = TimerCoalescer()
    private var entries: [TimerCoalescer.Token: Entry] = [:]
    private var gone: [TimerCoalescer.Token] = []
    private var now = Duration.zero

    mutating func step(_ random: inout SplitMix64) {
        switch random.below(8) {
        case 0, 1: add(&random)
        case 2: pick(&random).map { remove($0) }
        case 3:
            guard let token = pick(&random), let cadence = entries[token]?.cadence else { break }
            planner.restart(token, at: now)
            entries[token]?.window = cadence.window(after: now)
        case 4:
            guard let token = pick(&random) else { break }
            let cadence = Self.cadence(&random)
            planner.change(token, to: cadence, after: now)
            entries[token]?.cadence = cadence
            entries[token]?.window = cadence.window(after: now)
        case 5:
            guard let token = pick(&random) else { break }
            let window = window(&random)
            planner.move(token, to: window)
            entries[token]?.window = window
        case 6:
            // Whoever is gone stays gone, even if its slot is another's now.
            if let token = gone.last { planner.restart(token, at: now) }
            now += .milliseconds(random.below(3000))
            take()
        default:
            guard let next = planner.nextWake else { break }
            now = max(now, next)
            take()
        }
        check()
    }

    private mutating func add(_ random: inout SplitMix64) {
        let alarm = random.chance(30)
        if random.chance(50) {
            let window = window(&random)
            entries[planner.add(once: window, wakesMachine: alarm)] = Entry(window: window, wakesMachine: alarm)
        } else {
            let cadence = Self.cadence(&random)
            entries[planner.add(cadence, after: now, wakesMachine: alarm)] = Entry(
                window: cadence.window(after: now), cadence: cadence, wakesMachine: alarm)
        }
    }

    private mutating func remove(_ token: TimerCoalescer.Token) {
        planner.remove(token)
        entries[token] = nil
        gone.append(token)
    }

    private mutating func take() {
        let open = entries.filter { $0.value.window.lowerBound <= now }
        #expect(Set(planner.take(at: now)) == Set(open.keys))
        for (token, entry) in open {
            entries[token] = nil
            guard let cadence = entry.cadence else { continue }
            entries[token] = Entry(
                window: cadence.window(after: now), cadence: cadence, wakesMachine: entry.wakesMachine)
        }
    }

    private func check() {
        #expect(planner.count == entries.count)
        let first = entries.values.map(\.window.upperBound).min()
        #expect(planner.nextAlarm == entries.values.filter(\.wakesMachine).map(\.window.upperBound).min())
        guard let first, let next = planner.nextWake else {
            #expect(first == nil && planner.nextWake == nil)
            return
        }
        #expect(next <= first)
        // Whoever is open at the end of the first window is open at the wake as well: nobody misses the ride.
        #expect(!entries.values.contains { $0.window.lowerBound <= first && $0.window.lowerBound > next })
    }

    private func pick(_ random: inout SplitMix64) -> TimerCoalescer.Token? {
        let tokens = entries.keys.sorted { "\($0)" < "\($1)" }
        return tokens.isEmpty ? nil : tokens[random.below(tokens.count)]
    }

    private func window(_ random: inout SplitMix64) -> ClosedRange<Duration> {
        let open = now + .milliseconds(random.below(20_000))
        return open...open + .milliseconds(random.below(5000))
    }

    private static func cadence(_ random: inout SplitMix64) -> Cadence {
        Cadence(interval: .milliseconds(1 + random.below(20_000)), tolerance: .milliseconds(random.below(8000)))
    }
}
