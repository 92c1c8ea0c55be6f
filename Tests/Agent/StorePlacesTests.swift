// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import DialtoneAgent
@testable import DialtonePersistence

/// Places in the service manager's store.
@Suite struct StorePlacesTests {
    /// How many places `holder` gets before it is refused.
    private func taken(_ places: inout StorePlaces, by holder: StorePlaces.Holder) -> Int {
        (0..<10_000).first { _ in !places.take(for: holder) } ?? 10_000
    }

    @Test func `one user alone gets two thirds, and each further one finds some`() {
        var places = StorePlaces(limit: 4094)
        let counts = (1000..<1006).map { taken(&places, by: .user($0)) }
        #expect(counts == [2389, 796, 266, 88, 30, 10])
        let count1 = taken(&places, by: .root)
        #expect(count1 == 4094 - counts.reduce(0, +), "root finds what is left, and what is kept")
    }

    @Test func `two users who take in turn have as many`() {
        var places = StorePlaces(limit: 80)
        var counts = [0, 0]
        for turn in 0..<200 where places.take(for: .user(UInt32(turn % 2))) { counts[turn % 2] += 1 }
        #expect(counts == [28, 28])
    }

    @Test func `what is given back can be taken again, also by another`() {
        var places = StorePlaces(limit: 16)
        let first = taken(&places, by: .user(1))
        let count2 = taken(&places, by: .user(1))
        #expect(count2 == 0)
        for _ in 0..<first { places.giveBack(for: .user(1)) }
        let count3 = taken(&places, by: .user(2))
        #expect(count3 == first)
    }

    @Test func `places that an earlier process left count, and are their holders' once they are claimed`() {
        var places = StorePlaces(limit: 16, left: 11)
        for _ in 0..<10 { places.claim(for: .user(1)) }
        let count4 = taken(&places, by: .user(1))
        #expect(count4 == 0)
        let isTaken = places.take(for: .user(2))
        #expect(isTaken)
        places.giveBack(for: nil)
        let count5 = taken(&places, by: .root)
        #expect(count5 == 5)
    }
}
