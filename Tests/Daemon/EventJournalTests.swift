// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import Daemon

@Suite("The journal of events")
struct EventJournalTests {
    /// What follows a number, as text: `5:e`, `up to date` or `gap`.
    private func follows(_ sequence: UInt64, in journal: EventJournal<String>) -> String {
        switch journal.continuation(after: sequence) {
        case .next(let entry): "\(entry.sequence):\(entry.event)"
        case .upToDate: "up to date"
        case .gap: "gap"
        }
    }

    /// A journal of this capacity with the events `a`, `b`… numbered from 101.
    private func journal(_ events: String, capacity: Int) -> EventJournal<String> {
        var journal = EventJournal<String>(startingAfter: 100, capacity: capacity)
        let numbers = events.map { journal.append(String($0)) }
        #expect(numbers == Array(101..<101 + UInt64(events.count)))
        return journal
    }

    @Test func `events are numbered one after the other, from the start that was given`() {
        let journal = journal("abc", capacity: 8)
        #expect(journal.latest == 103)
        #expect((100...103).map { follows($0, in: journal) } == ["101:a", "102:b", "103:c", "up to date"])
    }

    @Test func `an empty journal has nothing after its start, and no other number`() {
        let journal = journal("", capacity: 8)
        #expect(journal.latest == 100)
        #expect(follows(100, in: journal) == "up to date")
        #expect(follows(99, in: journal) == "gap")
        #expect(follows(101, in: journal) == "gap")
    }

    @Test func `what was dropped is a gap, up to the event before the oldest`() {
        let journal = journal("abcdef", capacity: 3)
        #expect(follows(100, in: journal) == "gap")
        #expect(follows(102, in: journal) == "gap")
        #expect(follows(103, in: journal) == "104:d", "the event after it is the oldest that is kept")
        #expect(follows(105, in: journal) == "106:f")
        #expect(follows(106, in: journal) == "up to date")
    }

    @Test(arguments: [0, 1, 99, 107, UInt64(Int.max), UInt64.max])
    func `a number of another life of the daemon is a gap, never an event`(number: UInt64) {
        #expect(follows(number, in: journal("abcdef", capacity: 8)) == "gap")
    }

    @Test func `a journal that shrinks drops the oldest, and one that grows keeps what it has`() {
        var journal = journal("abcdef", capacity: 8)
        journal.reserve(2)
        #expect(follows(103, in: journal) == "gap")
        #expect(follows(104, in: journal) == "105:e")
        journal.reserve(4)
        #expect(follows(103, in: journal) == "gap", "what was dropped does not come back")
        for event in ["g", "h", "i"] { _ = journal.append(event) }
        #expect(follows(104, in: journal) == "gap")
        #expect(follows(105, in: journal) == "106:f", "four are kept now")
    }
}

@Suite("Quotas")
struct QuotaTests {
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
