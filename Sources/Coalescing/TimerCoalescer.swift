// SPDX-License-Identifier: Apache-2.0

/// Places the wakes of the process so that everything that must happen in time shares the fewest of them.
///
/// Each entry has a window of time in which it must happen: early is fine, late never. An entry is *recurring* (a
/// keepalive: the next window follows from when it happened last, see ``Cadence``) or happens *once* (a retry, the
/// deadline of a proof; where nothing may be early, the window is a single instant).
///
/// ## Run loop
///
/// The driver arms one timer for ``nextWake`` and, where some entries may wake a sleeping machine, one alarm timer for
/// ``nextAlarm``. When either fires it calls ``take(at:)``, does what is to be done for each entry it gets, and arms
/// again. Any other moment at which the process runs may be used the same way. Traffic that makes a keepalive
/// unnecessary is told by ``restart(_:at:)``; the answer to a keepalive is none, since the entry counts from when the
/// keepalive was sent.
///
/// ## What is promised
///
/// - Never late: ``nextWake`` is not after the end of any window.
/// - Never early: ``take(at:)`` gives nobody whose window is not open.
/// - For the windows as they are, the number of wakes is the smallest there is: a wake takes everybody along who is
///   open at the earliest end of any window, which is the optimal way of stabbing intervals with points.
/// - For entries that recur without end the smallest number depends on where their next windows come to lie, and the
///   rule above, with every wake at the last moment, never lets two groups meet that are further apart than their
///   tolerances: 1,000 keepalives of 120 s with 25 s of tolerance would settle in four groups. Between the opening of
///   its last window and the end of its first, a group's wake may lie anywhere without a wake more in this round. So a
///   group that will not share its next wake with its *pacer* (see ``PacerTable``) goes as much earlier as it takes to
///   meet it, or as it can, and again in the next round. Each merger costs at most one wake more than staying apart,
///   once, and saves one in each interval from then on. Entries of one cadence with some tolerance end up with one wake
///   an interval, which is optimal. For mixed intervals that are no multiples of each other no cheap optimum is known;
///   `docs/keepalive.md` has the figures against a lower bound.
///
/// All operations cost O(log n); ``take(at:)`` O(log n) for each entry that it gives.
package struct TimerCoalescer: Sendable {
    /// Names an entry. A token of an entry that was removed, or that happened once, names nothing and is ignored.
    package struct Token: Hashable, Sendable {
        fileprivate let slot: Int32
        fileprivate let generation: UInt32
    }

    private struct Entry: Sendable {
        var window: ClosedRange<Duration>
        /// `nil` for an entry that happens once.
        var cadence: Cadence?
        var wakesMachine: Bool
    }

    private struct Slot: Sendable {
        var generation: UInt32 = 0
        var entry: Entry?
    }

    private var slots: [Slot] = []
    private var freeSlots: [Int32] = []
    private var tree = WindowTree()
    private var pacers = PacerTable()

    /// A planner of nothing.
    package init() {}

    /// How many entries there are.
    package var count: Int { slots.count - freeSlots.count }

    // MARK: When

    /// When to wake next; `nil` where there is nothing to wake for.
    ///
    /// It may lie in the past of whoever asks late: then wake now.
    package var nextWake: Duration? {
        guard let first = tree.first, let entry = slots[first].entry else { return nil }
        return entry.window.upperBound - advance(of: entry)
    }

    /// The last moment at which even a sleeping machine must be woken (`CLOCK_BOOTTIME_ALARM`); `nil` where no entry
    /// asks for that. Never before ``nextWake``, so an alarm timer armed for it rings only if the machine slept through
    /// that one.
    package var nextAlarm: Duration? {
        tree.firstAlarm.flatMap { slots[$0].entry?.window.upperBound }
    }

    /// How much before its end the first window's wake does best to lie.
    private func advance(of entry: Entry) -> Duration {
        let due = entry.window.upperBound
        guard let cadence = entry.cadence, let (number, period) = pacers.pacer(for: cadence),
            let pacer = slots[number].entry, pacer.window.lowerBound > due,
            let opening = tree.lastOpening(notAfter: due)
        else { return .zero }
        // The pacer's wakes are taken to come each period from its next one on. The next window of `entry`, if it
        // happened when due, would end this long after the last of them:
        let excess = (due + cadence.interval - pacer.window.upperBound).remainder(in: period)
        return min(max(excess - cadence.tolerance, .zero), due - opening)
    }

    // MARK: What

    /// Adds an entry that recurs, and happened last at `last`.
    package mutating func add(_ cadence: Cadence, after last: Duration, wakesMachine: Bool = false) -> Token {
        add(Entry(window: cadence.window(after: last), cadence: cadence, wakesMachine: wakesMachine))
    }

    /// Adds an entry that happens once, in this window.
    package mutating func add(once window: ClosedRange<Duration>, wakesMachine: Bool = false) -> Token {
        add(Entry(window: window, cadence: nil, wakesMachine: wakesMachine))
    }

    /// Takes note that what the entry stands for happened at `now` in another way: its window begins anew. Nothing
    /// happens to an entry that happens once.
    package mutating func restart(_ token: Token, at now: Duration) {
        guard var entry = entry(token), let cadence = entry.cadence else { return }
        entry.window = cadence.window(after: now)
        replace(token, with: entry)
    }

    /// Gives an entry another cadence, counted from when it happened last; from then on it recurs.
    package mutating func change(_ token: Token, to cadence: Cadence, after last: Duration) {
        guard var entry = entry(token) else { return }
        (entry.cadence, entry.window) = (cadence, cadence.window(after: last))
        replace(token, with: entry)
    }

    /// Gives an entry another window. A recurring one goes on from there.
    package mutating func move(_ token: Token, to window: ClosedRange<Duration>) {
        guard var entry = entry(token) else { return }
        entry.window = window
        replace(token, with: entry)
    }

    /// Removes an entry.
    package mutating func remove(_ token: Token) {
        guard let entry = entry(token) else { return }
        tree.remove(Int(token.slot))
        if let cadence = entry.cadence { pacers.remove(Int(token.slot), cadence.interval) }
        slots[Int(token.slot)].entry = nil
        slots[Int(token.slot)].generation &+= 1
        freeSlots.append(token.slot)
    }

    /// The window of an entry as it is now.
    package func window(of token: Token) -> ClosedRange<Duration>? { entry(token)?.window }

    /// Everyone whose window is open at `now`, those whose end has passed included. They count as having happened: what
    /// recurs begins its next window, the others are gone.
    package mutating func take(at now: Duration) -> [Token] {
        tree.opened(by: now).map { number in
            let token = Token(slot: Int32(number), generation: slots[number].generation)
            if slots[number].entry?.cadence == nil { remove(token) } else { restart(token, at: now) }
            return token
        }
    }

    private func entry(_ token: Token) -> Entry? {
        guard slots.indices.contains(Int(token.slot)), slots[Int(token.slot)].generation == token.generation else {
            return nil
        }
        return slots[Int(token.slot)].entry
    }

    private mutating func add(_ entry: Entry) -> Token {
        let slot = freeSlots.popLast() ?? Int32(slots.count)
        if Int(slot) == slots.count { slots.append(Slot()) }
        slots[Int(slot)].entry = entry
        tree.insert(Int(slot), entry.window, wakesMachine: entry.wakesMachine)
        if let cadence = entry.cadence { pacers.insert(Int(slot), cadence.interval) }
        return Token(slot: slot, generation: slots[Int(slot)].generation)
    }

    private mutating func replace(_ token: Token, with entry: Entry) {
        let number = Int(token.slot)
        let old = slots[number].entry?.cadence?.interval
        slots[number].entry = entry
        tree.remove(number)
        tree.insert(number, entry.window, wakesMachine: entry.wakesMachine)
        guard old != entry.cadence?.interval else { return }
        if let old { pacers.remove(number, old) }
        if let cadence = entry.cadence { pacers.insert(number, cadence.interval) }
    }
}

extension Duration {
    /// What is left of it after as many whole periods as fit; never negative.
    fileprivate func remainder(in period: Duration) -> Duration {
        let left = self - period * (self / period).rounded(.down)
        // The quotient is a rounded one: it may be a period too many or too few.
        return left < .zero ? left + period : left >= period ? left - period : left
    }
}
