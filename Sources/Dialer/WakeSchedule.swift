// SPDX-License-Identifier: Apache-2.0

internal import Platform
internal import Supervisor

/// The wakes that the keepalives of all connections share: a ``WakePlanner`` with its timer.
@AgentQueue
final class WakeSchedule {
    private var planner = WakePlanner()
    private var handlers: [WakePlanner.Token: @AgentQueue () -> Void] = [:]
    private var timer: Timers.Timer?
    /// Whether handlers are being called, after which the timer is set anyway.
    private var isRinging = false

    nonisolated init() {}

    /// How many entries there are.
    var count: Int { planner.count }

    /// Calls `handler` as often as `cadence` says, counted from now.
    func add(_ cadence: Cadence, _ handler: @escaping @AgentQueue () -> Void) -> WakePlanner.Token {
        let token = planner.add(cadence, after: BootClock.now())
        handlers[token] = handler
        setTimer()
        return token
    }

    /// What the entry stands for happened now in another way.
    func restart(_ token: WakePlanner.Token) {
        planner.restart(token, at: BootClock.now())
        setTimer()
    }

    /// Gives an entry another cadence, counted from now.
    func change(_ token: WakePlanner.Token, to cadence: Cadence) {
        planner.change(token, to: cadence, after: BootClock.now())
        setTimer()
    }

    /// Forgets an entry. Its handler is not called any more.
    func remove(_ token: WakePlanner.Token) {
        planner.remove(token)
        handlers[token] = nil
        setTimer()
    }

    private func ring() {
        timer = nil
        isRinging = true
        for token in planner.take(at: BootClock.now()) { handlers[token]?() }
        isRinging = false
        setTimer()
    }

    private func setTimer() {
        guard !isRinging, timer?.deadline != planner.nextWake else { return }
        timer?.cancel()
        timer = planner.nextWake.map { Timers.shared.schedule(at: $0) { [weak self] in self?.ring() } }
    }
}
