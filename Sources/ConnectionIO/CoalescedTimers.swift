// SPDX-License-Identifier: Apache-2.0

internal import DialtoneCoalescing
internal import DialtoneConnection
internal import DialtonePlatform
internal import Glibc

/// The wakes that the keepalives of all connections share: a ``TimerCoalescer`` with its timer.
@AgentQueue
final class CoalescedTimers {
    private var planner = TimerCoalescer()
    private var handlers: [TimerCoalescer.Token: @AgentQueue () -> Void] = [:]
    private var timer: Timers.Timer?
    /// What wakes a sleeping machine; made when it is first to do so.
    private var alarm: AlarmTimer?
    private var isAlarmRefused = false
    /// Told once, when there is no such timer to be had.
    var onAlarmRefused: (@AgentQueue (SystemError) -> Void)?
    /// Whether handlers are being called, after which the timer is set anyway.
    private var isRinging = false

    nonisolated init() {}

    /// How many entries there are.
    var count: Int { planner.count }

    /// When the machine is woken if it sleeps; `nil` for not at all.
    var nextAlarm: Duration? { alarm?.deadline }

    /// Calls `handler` as often as `cadence` says, counted from now.
    ///
    /// - Parameter wakesMachine: whether a machine that sleeps is to be woken for it.
    func add(
        _ cadence: Cadence, wakesMachine: Bool = false, _ handler: @escaping @AgentQueue () -> Void
    ) -> TimerCoalescer.Token {
        let token = planner.add(cadence, after: BootClock.now(), wakesMachine: wakesMachine)
        handlers[token] = handler
        setTimer()
        return token
    }

    /// What the entry stands for happened now in another way.
    func restart(_ token: TimerCoalescer.Token) {
        planner.restart(token, at: BootClock.now())
        setTimer()
    }

    /// Gives an entry another cadence, counted from when it happened last. What is overdue by that happens at once.
    func change(_ token: TimerCoalescer.Token, to cadence: Cadence, after last: Duration) {
        planner.change(token, to: cadence, after: last)
        setTimer()
    }

    /// Forgets an entry. Its handler is not called any more.
    func remove(_ token: TimerCoalescer.Token) {
        planner.remove(token)
        handlers[token] = nil
        setTimer()
    }

    private func ring() {
        timer?.cancel()
        timer = nil
        isRinging = true
        for token in planner.take(at: BootClock.now()) { handlers[token]?() }
        isRinging = false
        setTimer()
    }

    private func setTimer() {
        guard !isRinging else { return }
        setAlarm()
        guard timer?.deadline != planner.nextWake else { return }
        timer?.cancel()
        timer = planner.nextWake.map { Timers.shared.schedule(at: $0) { [weak self] in self?.ring() } }
    }

    private func setAlarm() {
        let next = planner.nextAlarm
        if next != nil, alarm == nil { makeAlarm() }
        alarm?.set(to: next)
    }

    private func makeAlarm() {
        guard !isAlarmRefused else { return }
        do throws(SystemError) {
            alarm = try AlarmTimer { [weak self] in self?.ring() }
        } catch {
            // Out of descriptors, it is tried again with the next change.
            guard error.code == EPERM else { return }
            isAlarmRefused = true
            onAlarmRefused?(error)
        }
    }
}
