// SPDX-License-Identifier: Apache-2.0

import DialtonePlatform
import DialtoneTestSupport
import Testing

@testable import DialtoneVarlink

@Suite struct SharePoolTests {
    /// As much as each of `users` has in the end who all take as long as they can, one after the other.
    private func taken(by users: Int, of pool: inout SharePool) -> [Int] {
        for user in (0..<users).map(UInt32.init) {
            while true {
                let giver = pool.whoGivesWay(to: user)
                if giver == user { break }
                if let giver { pool.add(-1, for: giver) }
                pool.add(1, for: user)
            }
        }
        return (0..<users).map { pool.held(by: UInt32($0)) }
    }

    @Test(arguments: [1, 2, 4, 10, 13, 16, 100, 1000, 4096])
    func `however many users take all they can each has as much as the others`(users: Int) {
        var pool = SharePool(total: 4096, perUser: 1024)
        let counts = taken(by: users, of: &pool)
        let fair = min(1024, 4096 / users)
        print("\(users) users have \(counts.min() ?? 0) to \(counts.max() ?? 0)")
        #expect(counts.allSatisfy { abs($0 - fair) <= 1 }, "\(Set(counts)) where \(fair) would be fair")
        #expect(pool.used <= 4096)
    }

    @Test func `what is given back is there again`() {
        var pool = SharePool(total: 4, perUser: 2)
        pool.add(1, for: 1)
        pool.add(1, for: 1)
        #expect(pool.whoGivesWay(to: 1) == 1)
        pool.add(-1, for: 1)
        #expect(pool.whoGivesWay(to: 1) == nil)
        pool.add(-1, for: 1)
        #expect(pool.used == 0 && pool.held(by: 1) == 0)
    }
}

@Suite struct IncidentPacerTests {
    @Test func `of a kind and a user one a minute is told with the number of the others`() {
        var pacer = IncidentPacer()
        #expect(pacer.admit(kind: 0, user: 7, now: .zero) == 0)
        for second in 1...59 { #expect(pacer.admit(kind: 0, user: 7, now: .seconds(second)) == nil) }
        #expect(pacer.admit(kind: 1, user: 7, now: .seconds(30)) == 0)
        #expect(pacer.admit(kind: 0, user: 8, now: .seconds(30)) == 0)
        #expect(pacer.admit(kind: 0, user: 7, now: .seconds(60)) == 59)
        #expect(pacer.admit(kind: 0, user: 7, now: .seconds(61)) == nil)
    }

    @Test func `a million users in a minute take no more than their places`() {
        var pacer = IncidentPacer()
        let told = (0..<10_000).count { pacer.admit(kind: 0, user: UInt32($0), now: .seconds(1)) != nil }
        #expect(told == IncidentPacer.mostRemembered)
        #expect(pacer.admit(kind: 0, user: 77_777, now: .seconds(61)) == 0)
    }
}

@Suite struct ConnectPaceTests {
    @Test func `each user connects so often in a second and no more`() {
        var pace = ConnectPace(limit: 3)
        for number in 0..<5 {
            let isAdmitted = pace.admits(7, now: .seconds(10))
            #expect(isAdmitted == (number < 3), "connect \(number)")
        }
        let (other, late) = (pace.admits(8, now: .milliseconds(10_500)), pace.admits(7, now: .milliseconds(10_999)))
        #expect(other, "another user's connects are not its own")
        #expect(!late)
        let next = pace.admits(7, now: .seconds(11))
        #expect(next)
    }

    @Test(arguments: [
        (512, 4096, 14, 1024, 32, 32), (48, 768, 4, 768, 3, 3), (16, 256, 4, 256, 1, 1), (0, 16, 4, 16, 0, 0),
        (1 << 40, 4096, 32, 1024, 128, 32),
    ])
    func `what clients may take fits into the memory`(
        mebibytes: Int, all: Int, buffer: Int, ofUser: Int, held: Int, heldByUser: Int
    ) {
        var limits = VarlinkServer.Limits()
        limits.fit(into: UInt64(mebibytes) << 20)
        #expect(limits.connections == all)
        #expect(limits.sendBufferBytes >> 10 == buffer)
        #expect(limits.connectionsPerUser == ofUser)
        #expect(limits.heldBytes >> 20 == held)
        #expect(limits.heldBytesPerUser >> 20 == heldByUser)
        #expect(limits.heldBytesPerUser >= limits.messageBytes)
    }
}
