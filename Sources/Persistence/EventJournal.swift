// SPDX-License-Identifier: Apache-2.0

internal import DequeModule

/// What happened to the connections, in order and numbered, as far back as there is room.
///
/// Each user has room of their own: what one user does pushes out no event of another's. The numbers are one sequence
/// over all users. Subscriptions keep no events of their own, only the number of the last one they told: however many
/// there are and however slowly they read, this is all the memory they take. See docs/decisions/0005.
package struct EventJournal {
    /// What follows a given number.
    package enum Continuation {
        /// This is the next event.
        case next(NumberedEvent)
        /// Nothing that the reader may see has happened since.
        case upToDate
        /// Some of what followed is not kept any more, or the number is not one of this journal's.
        case gap
    }

    /// What is not kept: all up to a number, and of some users more.
    package struct Losses: Hashable {
        /// Nothing is known of events up to this number, whoever's they were.
        var beginning: UInt64
        /// Up to which number events were dropped of each user of whom something is kept.
        var byOwner: [UInt32: UInt64] = [:]
        /// The same of all other users.
        var ofOthers: UInt64 = 0

        /// Up to which number a reader may have missed something; of all users where there is no `owner`.
        func seen(by owner: UInt32?) -> UInt64 {
            guard let owner else { return max(beginning, ofOthers, byOwner.values.max() ?? 0) }
            return max(beginning, byOwner[owner] ?? ofOthers)
        }
    }

    /// The limits, in places: an event takes one, and one more for each ``place`` bytes.
    package struct Room {
        /// How long an event is in one place. One of a connection with a name and a host takes some 300 bytes, one with
        /// a long token in its URL thousands.
        package static var place: Int { 512 }

        /// That of a daemon on a machine with memory enough.
        package static var standard: Room { Room() }

        /// The fewest places for a user. A subscriber that reconnects after a second of a busy network resumes without
        /// a gap.
        var fewest = 1024
        /// Places for each of a user's connections. When the network goes and returns, each makes four events within
        /// one turn of the queue (waiting, resolving, connecting, ready), and a subscriber that reads at its own pace
        /// must find them all.
        var perConnection = 8
        /// Users whose events are kept though they have no connection any more: more than use a machine in a day.
        var mostOwners = 256
        /// Places of all users together, sixteen megabytes; beyond them ``perConnection`` counts.
        package var most = 32_768
        /// Places of all users together, however many connections there are.
        package var ceiling = Int.max

        /// Lowers the ceiling for a process that may have no more than so many bytes: events get a sixteenth of them.
        /// The state holds the events as well, and holds them twice while it is rewritten.
        package mutating func fit(into memory: UInt64) {
            ceiling = max(Int(clamping: memory / 16) / Self.place, fewest)
        }
    }

    private struct Ring {
        private(set) var entries: Deque<NumberedEvent> = []
        /// What the entries take.
        private(set) var places = 0
        var connections = 0
        /// How many connections an earlier process had, which come back one after the other.
        var expected = 0

        mutating func append(_ entry: NumberedEvent) {
            entries.append(entry)
            places += entry.places
        }

        /// Drops the oldest, until so many places are free, and gives the number of the last of them.
        mutating func drop(_ excess: Int) -> UInt64? {
            var (freed, last) = (0, UInt64?.none)
            while freed < excess, let oldest = entries.popFirst() {
                freed += oldest.places
                last = oldest.sequence
            }
            places -= freed
            return last
        }

        /// The first entry after a number.
        func first(after sequence: UInt64) -> NumberedEvent? {
            var (low, high) = (0, entries.count)
            while low < high {
                let middle = (low + high) / 2
                if entries[middle].sequence > sequence { high = middle } else { low = middle + 1 }
            }
            return low < entries.count ? entries[low] : nil
        }
    }

    private let room: Room
    private var rings: [UInt32: Ring] = [:]
    /// What the entries of all users take.
    private var places = 0
    private var connections = 0
    private let expected: Int
    private var newest: NumberedEvent?

    /// The number of the newest event; before the first, the number that it will follow.
    package private(set) var latest: UInt64

    /// What is not kept any more.
    package private(set) var losses: Losses

    /// An empty journal whose first event has the number after `sequence`.
    package init(startingAfter sequence: UInt64, room: Room = Room()) {
        self.init([], without: Losses(beginning: sequence), upTo: sequence, room: room)
    }

    /// A journal that goes on with what an earlier one kept.
    ///
    /// - Parameters:
    ///   - entries: in the order of their numbers, which may have holes.
    ///   - latest: the number of the newest event, kept or not.
    ///   - connections: how many each user had, for whose events there is to be room.
    package init(
        _ entries: [NumberedEvent], without losses: Losses, upTo latest: UInt64, connections: [UInt32: Int] = [:],
        room: Room = Room()
    ) {
        self.latest = latest
        self.losses = losses
        self.room = room
        expected = connections.values.reduce(0, +)
        for owner in losses.byOwner.keys { rings[owner] = Ring() }
        for (owner, count) in connections {
            enter(owner)
            rings[owner]?.expected = count
        }
        for entry in entries { add(entry) }
    }

    /// What there is, the oldest first.
    package var all: [NumberedEvent] { rings.values.flatMap(\.entries).sorted { $0.sequence < $1.sequence } }

    /// A user has one more connection.
    package mutating func connectionCame(of owner: UInt32) {
        enter(owner)
        rings[owner]?.connections += 1
        connections += 1
    }

    /// A user has one connection less.
    package mutating func connectionWent(of owner: UInt32) {
        rings[owner]?.connections -= 1
        connections -= 1
        if let excess = excess(of: owner) { drop(excess, of: owner) }
    }

    /// Adds an event, under the next number.
    package mutating func append(_ event: SavedEvent) {
        latest += 1
        let entry = NumberedEvent(sequence: latest, event: event)
        add(entry)
        newest = entry
    }

    /// What comes after the event with number `sequence`, for a reader who may see what is `owner`'s; who may see
    /// everything, where there is no owner.
    package func continuation(after sequence: UInt64, for owner: UInt32?) -> Continuation {
        if sequence == latest { return .upToDate }
        // Also a number from another life of the daemon: below where this one began, or not reached yet.
        guard sequence < latest, sequence >= losses.seen(by: owner) else { return .gap }
        if sequence == latest - 1, let newest {
            return owner == nil || owner == newest.event.owner ? .next(newest) : .upToDate
        }
        let next =
            if let owner {
                rings[owner]?.first(after: sequence)
            } else {
                rings.values.compactMap { $0.first(after: sequence) }.min { $0.sequence < $1.sequence }
            }
        return next.map { .next($0) } ?? .upToDate
    }

    // MARK: - Room

    private mutating func add(_ entry: NumberedEvent) {
        let owner = entry.event.owner
        enter(owner)
        rings[owner]?.append(entry)
        places += entry.places
        if let excess = excess(of: owner) { drop(excess, of: owner) }
        let most = min(max(room.most, room.perConnection * max(connections, expected)), room.ceiling)
        guard places > most else { return }
        // Who has the most has it by events of their own. An eighth at a time, so that looking for them is seldom.
        let largest = rings.mapValues(\.places).max { $0.value < $1.value }
        if let (owner, places) = largest { drop(places / 8 + 1, of: owner) }
    }

    private func excess(of owner: UInt32) -> Int? {
        guard let ring = rings[owner] else { return nil }
        let excess = ring.places - max(room.fewest, room.perConnection * max(ring.connections, ring.expected))
        return excess > 0 ? excess : nil
    }

    private mutating func drop(_ excess: Int, of owner: UInt32) {
        let before = rings[owner]?.places ?? 0
        // In its place: with a second reference to the ring, each event would copy all that is in it.
        guard let last = rings[owner]?.drop(excess) else { return }
        places -= before - (rings[owner]?.places ?? 0)
        losses.byOwner[owner] = last
    }

    /// Gives a user a ring; the one who has been quiet for the longest may be forgotten for it.
    private mutating func enter(_ owner: UInt32) {
        guard rings[owner] == nil else { return }
        if rings.count >= room.mostOwners { forgetOwner() }
        rings[owner] = Ring()
        losses.byOwner[owner] = losses.ofOthers
    }

    private mutating func forgetOwner() {
        let quiet = rings.filter { $0.value.connections == 0 }
        func newest(_ ring: Ring) -> UInt64 { ring.entries.last?.sequence ?? 0 }
        guard let (owner, ring) = quiet.min(by: { newest($0.value) < newest($1.value) }) else { return }
        places -= ring.places
        rings[owner] = nil
        losses.ofOthers = max(losses.ofOthers, newest(ring), losses.byOwner.removeValue(forKey: owner) ?? 0)
    }
}

extension NumberedEvent {
    /// How many places of the journal it takes: one, and one more for each ``EventJournal/Room/place`` bytes of it.
    fileprivate var places: Int { 1 + event.bytes.count / EventJournal.Room.place }
}
