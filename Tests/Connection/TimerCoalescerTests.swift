// SPDX-License-Identifier: Apache-2.0

import DialtoneCoalescing
import Testing

@testable import DialtoneConnection

@Suite struct TimerCoalescerTests {
    private let sip = Cadence(interval: .seconds(120), tolerance: .seconds(25))

    @Test func `there is no wake for nothing`() {
        var planner = TimerCoalescer()
        #expect(planner.nextWake == nil)
        let token = planner.add(sip, after: .zero)
        planner.remove(token)
        #expect(planner.nextWake == nil && planner.nextAlarm == nil)
        #expect(planner.take(at: .seconds(1000)).isEmpty)
    }

    @Test func `one keepalive alone goes at the last moment`() {
        var planner = TimerCoalescer()
        let token = planner.add(sip, after: .seconds(7))
        #expect(planner.nextWake == .seconds(127))
        #expect(planner.take(at: .seconds(101.999)).isEmpty)
        #expect(planner.take(at: .seconds(127)) == [token])
        #expect(planner.nextWake == .seconds(247))
    }

    @Test func `whoever is open goes along`() {
        var planner = TimerCoalescer()
        let first = planner.add(sip, after: .zero)
        let second = planner.add(sip, after: .seconds(25))
        let third = planner.add(sip, after: .milliseconds(25_001))
        #expect(planner.take(at: .seconds(120)) == [first, second])
        #expect(planner.window(of: third) == .milliseconds(120_001)...(.milliseconds(145_001)))
    }

    @Test func `traffic moves the window`() {
        var planner = TimerCoalescer()
        let token = planner.add(sip, after: .zero)
        planner.restart(token, at: .seconds(60))
        #expect(planner.nextWake == .seconds(180))
    }

    @Test func `a group that would stay apart goes earlier until it meets its pacer`() {
        var planner = TimerCoalescer()
        let pacer = planner.add(sip, after: .zero)
        let other = planner.add(sip, after: .seconds(60))
        var wakes: [(at: Duration, who: [TimerCoalescer.Token])] = []
        while wakes.count < 6, let next = planner.nextWake { wakes.append((next, planner.take(at: next))) }
        // Sixty seconds apart, then 35, then 25, within the tolerance: the next wake is one for both.
        #expect(wakes.map(\.at) == [120, 155, 240, 265, 360, 480].map { .seconds($0) })
        #expect(wakes.map(\.who) == [[pacer], [other], [pacer], [other], [pacer, other], [pacer, other]])
    }

    @Test func `a slow keepalive rides on a faster one`() {
        var planner = TimerCoalescer()
        _ = planner.add(Cadence(interval: .seconds(60), tolerance: .zero), after: .zero)
        _ = planner.add(Cadence(interval: .seconds(300), tolerance: .seconds(60)), after: .seconds(-30))
        var times: [Duration] = []
        while times.count < 10, let next = planner.nextWake {
            times.append(next)
            _ = planner.take(at: next)
        }
        #expect(times == (1...10).map { .seconds(60 * $0) })
    }

    @Test func `what may be neither early nor late has a wake of its own which others share`() {
        var planner = TimerCoalescer()
        let keepalive = planner.add(sip, after: .zero)
        let deadline = planner.add(once: .seconds(100)...(.seconds(100)))
        #expect(planner.nextWake == .seconds(100))
        #expect(Set(planner.take(at: .seconds(100))) == [keepalive, deadline])
        #expect(planner.count == 1)
    }

    @Test func `a token that happened once names nobody else`() {
        var planner = TimerCoalescer()
        let old = planner.add(once: .seconds(1)...(.seconds(2)))
        #expect(planner.take(at: .seconds(2)) == [old])
        let new = planner.add(once: .seconds(5)...(.seconds(6)))
        planner.move(old, to: .seconds(100)...(.seconds(100)))
        planner.remove(old)
        #expect(planner.window(of: old) == nil)
        #expect(planner.window(of: new) == .seconds(5)...(.seconds(6)))
    }

    @Test func `only those who asked wake a sleeping machine`() {
        var planner = TimerCoalescer()
        _ = planner.add(sip, after: .zero)
        #expect(planner.nextAlarm == nil)
        let alarm = planner.add(sip, after: .seconds(10), wakesMachine: true)
        #expect(planner.nextAlarm == .seconds(130))
        #expect(planner.nextWake == .seconds(120))
        planner.remove(alarm)
        #expect(planner.nextAlarm == nil)
    }

    @Test func `after a sleep everybody who is overdue goes at once`() {
        var planner = TimerCoalescer()
        let tokens = (0..<5).map { planner.add(sip, after: .seconds($0 * 20)) }
        #expect(Set(planner.take(at: .seconds(7200))) == Set(tokens))
        #expect(planner.nextWake == .seconds(7320))
    }

    @Test func `a cadence changes from its last time on`() {
        var planner = TimerCoalescer()
        let token = planner.add(sip, after: .zero)
        planner.change(token, to: Cadence(interval: .seconds(30), tolerance: .seconds(5)), after: .seconds(10))
        #expect(planner.window(of: token) == .seconds(35)...(.seconds(40)))
    }

    @Test func `an entry that may always go does not make the planner spin`() {
        var planner = TimerCoalescer()
        let greedy = planner.add(Cadence(interval: .seconds(60), tolerance: .seconds(90)), after: .zero)
        _ = planner.add(Cadence(interval: .zero, tolerance: .zero), after: .zero)
        #expect(planner.window(of: greedy) == .zero...(.seconds(60)))
        #expect(planner.nextWake == .milliseconds(1))
    }
}
