// SPDX-License-Identifier: Apache-2.0

import Platform
import TestSupport
import Testing

@testable import Varlink

@Suite struct SharePoolTests {
    /// As much as each of `users` gets who all take as long as they can.
    private func taken(by users: Int, of pool: inout SharePool) -> [Int] {
        var counts = [Int](repeating: 0, count: users)
        var isGoing = true
        while isGoing {
            isGoing = false
            for user in 0..<users where pool.hasRoom(for: UInt32(user)) {
                pool.add(1, for: UInt32(user))
                counts[user] += 1
                isGoing = true
            }
        }
        return counts
    }

    @Test(arguments: [1, 2, 4, 10, 100, 1000])
    func howeverManyUsersTakeAllTheyCanTheNextOneGetsSome(users: Int) {
        var pool = SharePool(total: 4096, perUser: 1024)
        let counts = taken(by: users, of: &pool)
        let fair = min(1024, 4096 / (users + 1))
        #expect(counts.allSatisfy { abs($0 - fair) <= 1 }, "\(Set(counts)) where \(fair) would be fair")
        #expect(pool.hasRoom(for: 70_000))
    }

    @Test func whatIsGivenBackIsThereAgain() {
        var pool = SharePool(total: 4, perUser: 4)
        pool.add(1, for: 1)
        pool.add(1, for: 1)
        #expect(!pool.hasRoom(for: 1))
        pool.add(-1, for: 1)
        #expect(pool.hasRoom(for: 1))
        pool.add(-1, for: 1)
        #expect(pool.used == 0 && pool.held(by: 1) == 0)
    }
}

@Suite struct IncidentPacerTests {
    @Test func ofAKindAndAUserOneAMinuteIsToldWithTheNumberOfTheOthers() {
        var pacer = IncidentPacer()
        #expect(pacer.admit(kind: 0, user: 7, now: .zero) == 0)
        for second in 1...59 { #expect(pacer.admit(kind: 0, user: 7, now: .seconds(second)) == nil) }
        #expect(pacer.admit(kind: 1, user: 7, now: .seconds(30)) == 0)
        #expect(pacer.admit(kind: 0, user: 8, now: .seconds(30)) == 0)
        #expect(pacer.admit(kind: 0, user: 7, now: .seconds(60)) == 59)
        #expect(pacer.admit(kind: 0, user: 7, now: .seconds(61)) == nil)
    }

    @Test func aMillionUsersInAMinuteTakeNoMoreThanTheirPlaces() {
        var pacer = IncidentPacer()
        let told = (0..<10_000).count { pacer.admit(kind: 0, user: UInt32($0), now: .seconds(1)) != nil }
        #expect(told == IncidentPacer.mostRemembered)
        #expect(pacer.admit(kind: 0, user: 77_777, now: .seconds(61)) == 0)
    }
}
