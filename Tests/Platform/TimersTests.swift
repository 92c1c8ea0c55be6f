// SPDX-License-Identifier: Apache-2.0

import DialtoneTestSupport
import Foundation
import Glibc
import Testing

@testable import DialtonePlatform

@AgentQueue
@Suite(.timeLimit(.minutes(1)))
struct TimersTests {
    /// Of its own, so that the state of its kernel timer is this test's doing alone.
    private let timers = Timers()

    @Test func `the earliest runs first and equals in the order of scheduling`() async throws {
        let log = Log<Int>()
        let base = BootClock.now() + .milliseconds(5)
        for (number, offset) in [30, 10, 20, 10, 0, 20, 10].enumerated() {
            _ = timers.schedule(at: base + .microseconds(offset)) { log.append(number) }
        }
        try await until(base + .microseconds(40))
        #expect(log.entries == [4, 1, 3, 6, 2, 5, 0])
    }

    @Test func `no timer runs before its deadline`() async throws {
        for delay in [0, 1, 3, 10] {
            let deadline = BootClock.now() + .milliseconds(delay)
            let ranAt: Duration = try await answer("the timer") { ran in
                _ = timers.schedule(at: deadline) { ran(BootClock.now()) }
            }
            #expect(ranAt >= deadline)
        }
    }

    @Test func `a delay is counted from now`() async throws {
        let before = BootClock.now()
        let timer = timers.schedule(after: .seconds(60)) {}
        let after = BootClock.now()
        #expect(before + .seconds(60) <= timer.deadline && timer.deadline <= after + .seconds(60))
        timer.cancel()
    }

    @Test(arguments: [Duration.zero, .nanoseconds(-1), .seconds(-1000), .nanoseconds(1)])
    func `a deadline long past runs too`(deadline: Duration) async throws {
        try await until(deadline)
    }

    @Test func `a cancelled timer does not run`() async throws {
        let log = Log<Int>()
        let deadline = BootClock.now() + .milliseconds(5)
        let scheduled = (0..<3).map { number in timers.schedule(at: deadline) { log.append(number) } }
        scheduled[1].cancel()
        try await until(deadline)
        #expect(log.entries == [0, 2])
    }

    @Test func `a timer that is due already can still be cancelled`() async throws {
        let log = Log<Int>()
        let past = BootClock.now() - .seconds(1)
        timers.schedule(at: past) { log.append(0) }.cancel()
        try await until(past)
        #expect(log.entries.isEmpty)
    }

    @Test func `a handler cancels others that are due with it`() async throws {
        let log = Log<Int>()
        let past = BootClock.now() - .seconds(1)
        var scheduled: [Timers.Timer] = []
        scheduled.append(
            timers.schedule(at: past) {
                log.append(0)
                scheduled[1].cancel()
                scheduled[0].cancel()
            })
        scheduled.append(timers.schedule(at: past) { log.append(1) })
        scheduled.append(timers.schedule(at: past) { log.append(2) })
        try await until(past)
        scheduled[2].cancel()
        #expect(log.entries == [0, 2])
        try await until(past)
        #expect(armedSeconds == nil, "the books on cancelled timers are right")
    }

    /// One that re-schedules itself for "now" must not keep the queue to itself.
    @Test func `what a handler schedules runs in a later turn even if due`() async throws {
        let log = Log<String>()
        let timers = timers
        let past = BootClock.now() - .seconds(1)
        try await answer("the timer", of: Void.self) { done in
            _ = timers.schedule(at: past) {
                AgentQueue.async { log.append("what was queued before") }
                _ = timers.schedule(at: .zero) {
                    log.append("the new timer")
                    done(())
                }
            }
            _ = timers.schedule(at: past + .nanoseconds(1)) { log.append("the other due one") }
        }
        #expect(log.entries == ["the other due one", "what was queued before", "the new timer"])
    }

    @Test func `a handler schedules for the very instant that it ran for`() async throws {
        let timers = timers
        let past = BootClock.now()
        try await answer("the timer", of: Void.self) { done in
            _ = timers.schedule(at: past) { _ = timers.schedule(at: past) { done(()) } }
        }
    }

    @Test func `a handler reschedules itself many times`() async throws {
        let log = Log<Int>()
        let timers = timers
        try await answer("the timer", of: Void.self) { done in
            @AgentQueue func hop(_ number: Int) {
                log.append(number)
                guard number < 200 else {
                    done(())
                    return
                }
                _ = timers.schedule(after: .microseconds(number % 3)) { hop(number + 1) }
            }
            hop(0)
        }
        #expect(log.entries == Array(0...200))
    }

    /// Enough that cancelled ones are swept out several times over.
    @Test func `of many timers exactly the live ones run in order`() async throws {
        let log = Log<Duration>()
        let base = BootClock.now() + .milliseconds(5)
        let deadlines = (0..<5000).map { base + .microseconds($0 * 7919 % 20_000) }
        let scheduled = deadlines.map { deadline in timers.schedule(at: deadline) { log.append(deadline) } }
        let isLive = { (number: Int) in number % 5 == 0 }
        for (number, timer) in scheduled.enumerated() where !isLive(number) { timer.cancel() }
        try await until(base + .milliseconds(21))
        let live = deadlines.enumerated().filter { isLive($0.offset) }.map(\.element)
        #expect(log.entries == live.sorted())
        #expect(armedSeconds == nil)
    }

    /// "Bounded": each success of a connection cancels a deadline, all day long.
    @Test func `cancelled timers do not pile up`() async {
        let live = (0..<100).map { _ in timers.schedule(after: .seconds(3600)) {} }
        for _ in 0..<10_000 {
            timers.schedule(after: .seconds(7200)) {}.cancel()
            #expect(timers.count <= 2 * live.count + 64)
        }
        for timer in live { timer.cancel() }
        #expect(timers.count == 0)
    }

    @Test func `cancelling twice or afterwards is harmless`() async throws {
        let past = BootClock.now()
        let timer = timers.schedule(at: past) {}
        try await until(past)
        timer.cancel()
        timer.cancel()
        let other = timers.schedule(after: .seconds(3600)) {}
        other.cancel()
        other.cancel()
        #expect(armedSeconds == nil)
        try await until(past)
    }

    /// "With nothing happening, the process makes no system call."
    @Test func `the kernel's timer is set only while one is live`() async throws {
        #expect(armedSeconds == nil)
        let far = timers.schedule(after: .seconds(36_000)) {}
        #expect(isArmed(forHours: 10))
        let near = timers.schedule(after: .seconds(3600)) {}
        #expect(isArmed(forHours: 1))
        near.cancel()
        #expect(isArmed(forHours: 10))
        far.cancel()
        #expect(armedSeconds == nil)
        try await until(BootClock.now() + .milliseconds(1))
        #expect(armedSeconds == nil)
    }

    @Test func `a deadline beyond the kernel's range is never`() async throws {
        let timer = timers.schedule(at: .seconds(Int64.max)) {}
        #expect(armedSeconds != nil)
        try await until(BootClock.now())
        timer.cancel()
        #expect(armedSeconds == nil)
    }

    /// Returns once everything scheduled until now for `deadline` or before has had its turn.
    private func until(_ deadline: Duration) async throws {
        let timers = timers
        try await answer("the timer", of: Void.self) { done in _ = timers.schedule(at: deadline) { done(()) } }
    }

    private func isArmed(forHours hours: Int) -> Bool {
        armedSeconds.map { ((hours - 1) * 3600 + 1...hours * 3600).contains($0) } ?? false
    }

    /// For how long the kernel's timer is set; `nil` when it is not. From proc_pid_fdinfo(5).
    private var armedSeconds: Int? {
        // It is made for the first that is scheduled.
        guard timers.descriptor >= 0 else { return nil }
        let file = "/proc/self/fdinfo/\(timers.descriptor)"
        guard let text = try? String(contentsOfFile: file, encoding: .utf8),
            let line = text.split(separator: "\n").first(where: { $0.hasPrefix("it_value:") })
        else {
            Issue.record("no it_value in \(file)")
            return nil
        }
        let parts = line.split(whereSeparator: { !$0.isNumber }).compactMap { Int($0) }
        return parts == [0, 0] ? nil : parts.first
    }
}
