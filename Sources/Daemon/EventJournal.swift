// SPDX-License-Identifier: Apache-2.0

internal import DequeModule

/// What happened to the connections, in order and numbered, as far back as there is room.
///
/// Subscriptions keep no events of their own, only the number of the last one they told: however many there are and
/// however slowly they read, this is all the memory they take. See docs/decisions/0005.
struct EventJournal<Event> {
    /// An event and its number.
    struct Entry {
        let sequence: UInt64
        let event: Event
    }

    /// What follows a given number.
    enum Continuation {
        /// This is the next event.
        case next(Entry)
        /// Nothing has happened since.
        case upToDate
        /// What followed is not kept any more, or the number is not one of this journal's.
        case gap
    }

    private var entries: Deque<Entry> = []
    private var capacity: Int

    /// The number of the newest event; before the first, the number that it will follow.
    private(set) var latest: UInt64

    /// An empty journal whose first event has the number after `sequence`.
    init(startingAfter sequence: UInt64, capacity: Int) {
        latest = sequence
        self.capacity = capacity
    }

    /// A journal that goes on with events of an earlier one, numbered without a hole up to `sequence`.
    init(_ events: [Event], upTo sequence: UInt64, capacity: Int) {
        self.init(startingAfter: sequence - UInt64(events.count), capacity: capacity)
        for event in events { _ = append(event) }
    }

    /// What there is, the oldest first.
    var all: some Collection<Entry> { entries }

    /// Makes room for `capacity` events, dropping the oldest where it is less than before.
    mutating func reserve(_ capacity: Int) {
        self.capacity = capacity
        trim()
    }

    /// Adds an event and returns its number.
    mutating func append(_ event: Event) -> UInt64 {
        latest += 1
        entries.append(Entry(sequence: latest, event: event))
        trim()
        return latest
    }

    /// What comes after the event with number `sequence`.
    func continuation(after sequence: UInt64) -> Continuation {
        if sequence == latest { return .upToDate }
        // Also a number from another life of the daemon: below where this one began, or not reached yet.
        guard sequence < latest, let oldest = entries.first?.sequence, sequence + 1 >= oldest else {
            return .gap
        }
        return .next(entries[Int(sequence + 1 - oldest)])
    }

    private mutating func trim() {
        if entries.count > capacity { entries.removeFirst(entries.count - capacity) }
    }
}
