// SPDX-License-Identifier: Apache-2.0

internal import DialtoneNetworkPath
internal import DialtonePlatform

/// Has a change evaluated again a little later, because the kernel tells of some before it makes them.
///
/// IPv4 routes, addresses, next-hop objects and links that go down are announced first and taken out of the routes
/// after; an IPv4 address that comes is announced before routes have it as their source. Who is woken by the
/// announcement and asks at once may still be given what is about to go, and nothing more is said when it is gone.
/// Nothing tells when the kernel is done either (its lock could be waited for, but a driver may hold it for seconds),
/// so the time has to.
@AgentQueue
final class SecondLook {
    /// The kernel's work takes microseconds, unless what it works for loses the processor in between: to us, who were
    /// woken, or on a machine with more to do than processors for some slices of the scheduler, or for longer under a
    /// limit. A verdict that was right is not told again, so a look costs only its lookups.
    static let delays: [Duration] = [.milliseconds(20), .milliseconds(200)]

    private var stages: [Stage]
    private let look: @AgentQueue (KernelChange) -> Void

    private struct Stage {
        /// What is looked at when the timer fires.
        var awaited: KernelChange?
        /// What came since the timer was set; it is to have its full delay.
        var next: KernelChange?
    }

    /// Calls `look` with each change given to ``follow(_:)``, several at once in a storm.
    init(_ look: @escaping @AgentQueue (KernelChange) -> Void) {
        self.look = look
        stages = Self.delays.map { _ in Stage() }
    }

    /// Whether nothing waits for a look.
    var isIdle: Bool { stages.allSatisfy { $0.awaited == nil } }

    /// Has `change` looked at again if it is of a kind that needs it.
    func follow(_ change: KernelChange) {
        guard change.isForetold else { return }
        var change = change
        // By the time of a look it is done.
        change.isForetold = false
        enter(change, stage: 0)
    }

    private func enter(_ change: KernelChange, stage: Int) {
        guard stages[stage].awaited != nil else {
            stages[stage].awaited = change
            return schedule(stage)
        }
        var next = stages[stage].next ?? KernelChange()
        next.merge(change)
        stages[stage].next = next
    }

    private func schedule(_ stage: Int) {
        _ = Timers.shared.schedule(after: Self.delays[stage]) { [weak self] in self?.fire(stage) }
    }

    private func fire(_ stage: Int) {
        guard let change = stages[stage].awaited else { return }
        stages[stage].awaited = stages[stage].next
        stages[stage].next = nil
        if stages[stage].awaited != nil { schedule(stage) }
        if stage + 1 < stages.count { enter(change, stage: stage + 1) }
        look(change)
    }
}
