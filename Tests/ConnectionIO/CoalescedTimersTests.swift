// SPDX-License-Identifier: Apache-2.0

import DialtoneCoalescing
import DialtoneConnection
import DialtoneExpectations
import DialtonePlatform
import Glibc
import Testing

@testable import DialtoneConnectionIO

@AgentQueue
@Suite(.timeLimit(.minutes(1))) struct CoalescedTimersTests {
    private static let cadence = Cadence(interval: .seconds(3600), tolerance: .zero)

    @Test(.mayWakeTheMachine) func `the machine is woken for those that ask for it, at their last moment`() {
        let schedule = CoalescedTimers()
        _ = schedule.add(Cadence(interval: .seconds(60), tolerance: .zero)) {}
        #expect(schedule.nextAlarm == nil)
        let before = BootClock.now()
        let late = schedule.add(Self.cadence, wakesMachine: true) {}
        let early = schedule.add(Cadence(interval: .seconds(1800), tolerance: .zero), wakesMachine: true) {}
        let after = BootClock.now()
        #expect((before + .seconds(1800)...after + .seconds(1800)).contains(schedule.nextAlarm ?? .zero))
        schedule.remove(early)
        #expect((before + .seconds(3600)...after + .seconds(3600)).contains(schedule.nextAlarm ?? .zero))
        schedule.remove(late)
        #expect(schedule.nextAlarm == nil)
    }

    @Test(.mayWakeTheMachine) func `an alarm that rings has the keepalive sent`() async throws {
        let rings = Inbox<Int>()
        let alarm = try AlarmTimer { rings.put(1) }
        alarm.set(to: BootClock.now() + .seconds(3600))
        alarm.set(to: BootClock.now())
        expect(await rings.next(), is: 1)
        #expect(alarm.deadline == nil)
        alarm.set(to: BootClock.now())
        expect(await rings.next(), is: 1)
    }

    @Test(.mayNotWakeTheMachine)
    func `without the capability it is told once, and the keepalives go on`() async {
        let schedule = CoalescedTimers()
        let refusals = Inbox<CInt>()
        schedule.onAlarmRefused = { refusals.put($0.code) }
        _ = schedule.add(Self.cadence, wakesMachine: true) {}
        expect(await refusals.next(), is: EPERM)
        schedule.onAlarmRefused = { _ in Issue.record("told twice") }
        let beats = Inbox<Int>()
        _ = schedule.add(Cadence(interval: .milliseconds(1), tolerance: .zero), wakesMachine: true) { beats.put(1) }
        expect(await beats.next(), is: 1)
    }
}

/// Whether this process has `CAP_WAKE_ALARM`.
@AgentQueue
private func hasCapability() -> Bool {
    (try? AlarmTimer {}) != nil
}

extension Trait where Self == ConditionTrait {
    fileprivate static var mayWakeTheMachine: Self {
        .enabled("waking the machine takes CAP_WAKE_ALARM") { await hasCapability() }
    }

    fileprivate static var mayNotWakeTheMachine: Self {
        .disabled("this process has CAP_WAKE_ALARM") { await hasCapability() }
    }
}
