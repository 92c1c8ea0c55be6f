// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import DialtoneAgent
@testable import DialtonePersistence

/// The journal of events.
@Suite struct EventJournalTests {
    private static let few = EventJournal.Room(fewest: 3, perConnection: 2, mostOwners: 2, most: 1000)

    /// What follows a number for a reader, as text: `5:e`, `up to date` or `gap`.
    private func follows(_ sequence: UInt64, in journal: EventJournal, for owner: UInt32? = nil) -> String {
        switch journal.continuation(after: sequence, for: owner) {
        case .next(let entry): "\(entry.sequence):\(entry.event.name)"
        case .upToDate: "up to date"
        case .gap: "gap"
        }
    }

    /// All that follows a number, as text, and a gap at its end where there is one.
    private func all(after sequence: UInt64, in journal: EventJournal, for owner: UInt32? = nil) -> String {
        var (cursor, text) = (sequence, "")
        while case .next(let entry) = journal.continuation(after: cursor, for: owner) {
            text += entry.event.name
            cursor = entry.sequence
        }
        return text + (follows(cursor, in: journal, for: owner) == "gap" ? "gap" : "")
    }

    /// A journal with the events `a`, `b`… numbered from 101: small letters are user 1's, capitals user 2's, digits
    /// user 3's.
    private func journal(_ events: String, _ room: EventJournal.Room = few) -> EventJournal {
        var journal = EventJournal(startingAfter: 100, room: room)
        append(events, to: &journal)
        #expect(journal.latest == 100 + UInt64(events.count))
        return journal
    }

    private func append(_ events: String, to journal: inout EventJournal) {
        for event in events {
            journal.append(.sample(String(event), owner: event.isLowercase ? 1 : event.isNumber ? 3 : 2))
        }
    }

    @Test func `events are numbered one after the other, from the start that was given`() {
        let journal = journal("abc")
        #expect((100...103).map { follows($0, in: journal) } == ["101:a", "102:b", "103:c", "up to date"])
    }

    @Test func `an empty journal has nothing after its start, and no other number`() {
        let journal = journal("")
        #expect(follows(100, in: journal) == "up to date")
        #expect(follows(99, in: journal) == "gap")
        #expect(follows(101, in: journal) == "gap")
    }

    @Test func `what was dropped is a gap, up to the event before the oldest`() {
        let journal = journal("abcdef")
        #expect(follows(100, in: journal) == "gap")
        #expect(follows(102, in: journal) == "gap")
        #expect(follows(103, in: journal) == "104:d", "the event after it is the oldest that is kept")
        #expect(follows(105, in: journal) == "106:f")
        #expect(follows(106, in: journal) == "up to date")
    }

    @Test(arguments: [0, 1, 99, 107, UInt64(Int.max), UInt64.max])
    func `a number of another life of the daemon is a gap, never an event`(number: UInt64) {
        let journal = journal("abB")
        #expect([nil, 1, 2, 3].map { follows(number, in: journal, for: $0) } == Array(repeating: "gap", count: 4))
    }

    @Test func `the events of one user push out none of another's, and are no gap for others`() {
        let journal = journal("abABCDEFGHc")
        #expect(all(after: 100, in: journal, for: 1) == "abc")
        #expect(all(after: 100, in: journal, for: 2) == "gap")
        #expect(all(after: 107, in: journal, for: 2) == "FGH")
        #expect(follows(102, in: journal, for: 1) == "111:c")
        #expect(all(after: 100, in: journal, for: 3) == "", "one without events has missed none")
    }

    @Test func `who sees everything gets all in order, and a gap where anybody's are lost`() {
        #expect(all(after: 100, in: journal("aAbBcC")) == "aAbBcC")
        let journal = journal("aABCDb")
        #expect(all(after: 101, in: journal) == "gap", "102, which was A, is not kept")
        #expect(all(after: 102, in: journal) == "BCDb")
    }

    @Test func `there is room for the connections of each user`() {
        var journal = journal("")
        for _ in 1...3 { journal.connectionCame(of: 1) }
        append("abcdefgABCD", to: &journal)
        #expect(all(after: 101, in: journal, for: 1) == "bcdefg", "six, two for each")
        #expect(all(after: 108, in: journal, for: 2) == "BCD")
        for _ in 1...3 { journal.connectionWent(of: 1) }
        #expect(all(after: 101, in: journal, for: 1) == "gap")
        #expect(all(after: 104, in: journal, for: 1) == "efg")
    }

    @Test func `a long event takes the places of several short ones`() {
        var journal = journal("ab")
        journal.append(.sample("long", owner: 1, String(repeating: "x", count: EventJournal.Room.place)))
        #expect(all(after: 101, in: journal, for: 1) == "blong", "two places of three")
        append("A", to: &journal)
        journal.append(.sample("longest", owner: 1, String(repeating: "x", count: 5 * EventJournal.Room.place)))
        #expect(all(after: 102, in: journal, for: 1) == "gap")
        #expect(all(after: 102, in: journal, for: 2) == "A")
        append("cde", to: &journal)
        #expect(all(after: 105, in: journal, for: 1) == "cde")
    }

    @Test func `with a ceiling, connections make no more room than there is memory for`() {
        var room = EventJournal.Room(fewest: 3, perConnection: 2, mostOwners: 9, most: 4)
        room.fit(into: UInt64(16 * 6 * EventJournal.Room.place))
        var journal = journal("", room)
        for _ in 1...100 { journal.connectionCame(of: 1) }
        append("abcdefghABC", to: &journal)
        #expect(all(after: 108, in: journal, for: 2) == "ABC")
        #expect(all(after: 105, in: journal, for: 1) == "fgh", "six of all, three of them another's")
        room.fit(into: 1)
        #expect(room.ceiling == 3, "and never less than one user's least")
    }

    @Test func `of too many users the one is forgotten who was quiet for the longest`() {
        var journal = journal("aA1")
        #expect(all(after: 100, in: journal, for: 1) == "gap")
        #expect(all(after: 100, in: journal, for: 2) == "A")
        #expect(all(after: 100, in: journal, for: 3) == "gap", "nobody knows that it was not this one")
        #expect(all(after: 101, in: journal, for: 3) == "1")
        journal.connectionCame(of: 2)
        append("b", to: &journal)
        #expect(all(after: 100, in: journal, for: 2) == "A", "one who has a connection is not forgotten")
        #expect(all(after: 102, in: journal, for: 3) == "gap")
        #expect(all(after: 103, in: journal, for: 1) == "b")
    }

    @Test func `where all take too much, who takes the most gives up the most`() {
        let journal = journal("abABCDEFGH", .init(fewest: 100, perConnection: 2, mostOwners: 9, most: 6))
        #expect(all(after: 100, in: journal, for: 1) == "ab")
        #expect(all(after: 100, in: journal, for: 2) == "gap")
        #expect(all(after: 106, in: journal, for: 2) == "EFGH")
    }

    @Test func `it goes on with what an earlier one kept and lost`() {
        let before = journal("abABCDEFGHc")
        var journal = EventJournal(before.all, without: before.losses, upTo: before.latest, room: Self.few)
        #expect(journal.all.map(\.event.name).joined() == "abFGHc")
        #expect(all(after: 100, in: journal, for: 1) == "abc")
        #expect(all(after: 106, in: journal, for: 2) == "gap")
        #expect(all(after: 107, in: journal, for: 2) == "FGH")
        append("d", to: &journal)
        #expect(follows(111, in: journal) == "112:d")
        let crowded = EventJournal(
            before.all, without: before.losses, upTo: before.latest, connections: [2: 1],
            room: .init(fewest: 1, perConnection: 2, mostOwners: 2, most: 1000))
        #expect(crowded.all.map(\.event.name).joined() == "GHc", "with room for the connections that come back")
    }
}

/// Quotas.
@Suite struct QuotaTests {
    /// Takes `count` times for one user, and says how often that was granted.
    private func take(_ count: Int, for user: UInt32, of quota: inout Quota) -> Int {
        (1...count).count { _ in quota.take(for: user) }
    }

    @Test func `each user may have so many, whatever the others have`() {
        var quota = Quota(limit: 2)
        let granted = [take(3, for: 1000, of: &quota), take(1, for: 1001, of: &quota)]
        #expect(granted == [2, 1])
        quota.giveBack(for: 1000)
        let again = take(2, for: 1000, of: &quota)
        #expect(again == 1, "a refusal took nothing")
    }

    @Test func `root has no limit`() {
        var quota = Quota(limit: 1)
        let granted = take(10, for: 0, of: &quota)
        #expect(granted == 10)
    }

    @Test func `a limit that was lowered takes nothing away and gives nothing more`() {
        var quota = Quota(limit: 3)
        _ = take(3, for: 1000, of: &quota)
        quota.limit = 1
        quota.giveBack(for: 1000)
        quota.giveBack(for: 1000)
        let atTheLimit = take(1, for: 1000, of: &quota)
        #expect(atTheLimit == 0)
        quota.giveBack(for: 1000)
        let below = take(1, for: 1000, of: &quota)
        #expect(below == 1)
    }

    @Test func `giving back what nobody took gives nobody more`() {
        var quota = Quota(limit: 1)
        quota.giveBack(for: 1000)
        let granted = take(2, for: 1000, of: &quota)
        #expect(granted == 1)
    }
}
