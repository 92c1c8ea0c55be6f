// SPDX-License-Identifier: Apache-2.0

import DialtoneNetworkPath
import Testing

@testable import DialtoneConnection

/// What users may cause on the network, in virtual time.
@Suite struct NetworkBudgetTests {
    private let start = Duration.seconds(1000)
    private let mallory = Account(user: 1000, isLimited: true)
    private let alice = Account(user: 1001, isLimited: true)

    private func server(_ number: Int) -> Endpoint {
        Endpoint(address: IPAddress(v4: 0x0A00_0000 + UInt32(number)), port: 5060)
    }

    /// What a user with so many connections does in a time who dials whenever that is allowed, opens each connection
    /// again at once, and owns the zones that they lead to.
    private func attack(
        with connections: Int, for time: Duration, in budget: inout NetworkBudget
    ) -> (questions: Int, dials: Int) {
        var (questions, dials, number) = (0, 0, 0)
        var now = start
        while now < start + time {
            for _ in 0..<connections where budget.nextTurn(of: mallory, now: now).at <= now {
                // Opening it asks for the addresses of the name. NAPTR, SRV, and four hosts with two addresses each.
                for _ in 0..<2 where budget.ask(for: mallory, isPartOfDial: false, now: now) { questions += 1 }
                for _ in 0..<10 where budget.ask(for: mallory, isPartOfDial: true, now: now) { questions += 1 }
                for _ in 0..<8 {
                    number += 1
                    let refusal = budget.attempt(at: server(number), for: mallory, isPaid: false, now: now)
                    if refusal == nil { dials += 1 }
                }
            }
            now += .milliseconds(10)
        }
        return (questions, dials)
    }

    @Test(arguments: [1, 100, 1024]) func `a hundred connections cause no more than one`(connections: Int) {
        var budget = NetworkBudget()
        let caused = attack(with: connections, for: .seconds(15), in: &budget)
        #expect(caused.questions <= 1024 + 256 + 15 * 20 + 2, "\(caused)")
        #expect(caused.dials <= 512 + 128 + 15 * 20 + 2, "\(caused)")
        // And the minutes after it bring what the refill allows.
        #expect(budget.nextTurn(of: mallory, now: start + .seconds(15)).at > start + .seconds(15))
    }

    @Test func `what one user causes is nobody else's debt`() {
        var budget = NetworkBudget()
        _ = attack(with: 100, for: .seconds(15), in: &budget)
        let now = start + .seconds(15)
        #expect(budget.nextTurn(of: alice, now: now).at <= now)
        #expect(budget.ask(for: alice, isPartOfDial: false, now: now) == true)
        #expect(budget.attempt(at: server(1), for: alice, isPaid: false, now: now) == nil)
    }

    @Test func `those who wait wake one after the other`() {
        var budget = NetworkBudget()
        var turns: [Duration] = []
        var atOnce = 0
        for number in 0..<600 {
            let turn = budget.nextTurn(of: alice, now: start)
            if turn.at <= start {
                atOnce += 1
                #expect(budget.attempt(at: server(number), for: alice, isPaid: false, now: start) == nil)
            } else {
                #expect(turn.isPaid)
                budget.take(turn, for: alice, now: start)
                turns.append(turn.at - start)
            }
        }
        #expect(atOnce == 512)
        #expect(turns == (1...88).map { .milliseconds(50 * $0) })
        // A turn is a dial that may be made, whatever the bucket says by then.
        #expect(budget.attempt(at: server(1), for: alice, isPaid: true, now: start + turns[0]) == nil)
    }

    @Test func `who takes turns and leaves them pushes nobody off for hours`() {
        var budget = NetworkBudget()
        for _ in 0..<100_000 {
            let turn = budget.nextTurn(of: mallory, now: start)
            budget.take(turn, for: mallory, now: start)
        }
        let turn = budget.nextTurn(of: mallory, now: start)
        #expect(turn == NetworkBudget.WaitingTurn(at: start + .seconds(60), isPaid: false))
        #expect(budget.nextTurn(of: mallory, now: start + .seconds(60)).at <= start + .seconds(61))
    }

    @Test func `users together do not storm one server`() {
        var budget = NetworkBudget()
        var refusals: [HeldBack: Int] = [:]
        for user in 2000..<2003 {
            for _ in 0..<200 {
                let account = Account(user: UInt32(user), isLimited: true)
                if let held = budget.attempt(at: server(1), for: account, isPaid: false, now: start) {
                    refusals[held, default: 0] += 1
                }
            }
        }
        // The first was alone with it; the second had half of what a server bears, the third a third.
        #expect(refusals == [.byServer: 600 - 200 - 128 - 85])
        // From then on each has a third of fifty a second.
        var dials: [UInt32: Int] = [:]
        for tick in 0..<1000 {
            for user in UInt32(2000)..<2003 {
                let account = Account(user: user, isLimited: true)
                let now = start + .seconds(10) + .milliseconds(10 * tick)
                if budget.attempt(at: server(1), for: account, isPaid: true, now: now) == nil {
                    dials[user, default: 0] += 1
                }
            }
        }
        #expect(dials.values.allSatisfy { (85 + 160...85 + 170).contains($0) }, "\(dials)")
    }

    @Test func `nobody who dials a server for the first time waits for others`() {
        var budget = NetworkBudget()
        var now = start
        for round in 0..<60 {
            // Four users dial it whenever they may.
            for user in UInt32(3000)..<3004 {
                let greedy = Account(user: user, isLimited: true)
                while budget.attempt(at: server(1), for: greedy, isPaid: true, now: now) == nil {}
            }
            let newcomer = Account(user: UInt32(4000 + round), isLimited: true)
            #expect(budget.attempt(at: server(1), for: newcomer, isPaid: false, now: now) == nil, "round \(round)")
            now += .seconds(1)
        }
        // One who dials it again and again has a share like theirs.
        var own = 0
        for tick in 0..<1000 {
            let instant = now + .milliseconds(10 * tick)
            for user in UInt32(3000)..<3004 {
                _ = budget.attempt(at: server(1), for: Account(user: user, isLimited: true), isPaid: true, now: instant)
            }
            if budget.attempt(at: server(1), for: alice, isPaid: true, now: instant) == nil { own += 1 }
        }
        #expect(own >= 100, "\(own)")
    }

    @Test func `the users at one server are counted within a limit`() {
        var budget = NetworkBudget()
        for user in 0..<10_000 {
            let account = Account(user: UInt32(10_000 + user), isLimited: true)
            #expect(budget.attempt(at: server(1), for: account, isPaid: false, now: start) == nil)
        }
        #expect(budget.sharers(of: server(1)) == NetworkBudget.mostSharers)
    }

    @Test func `the administrators connections all return at once and count for nobody`() {
        var budget = NetworkBudget()
        let configured = Account(user: 1000, isLimited: false)
        for _ in 0..<10_000 {
            #expect(budget.nextTurn(of: configured, now: start).at <= start)
            #expect(budget.ask(for: configured, isPartOfDial: true, now: start) == true)
            #expect(budget.attempt(at: server(1), for: configured, isPaid: false, now: start) == nil)
        }
        #expect(budget.size.users == 0)
        #expect(budget.size.servers == 0)
        #expect(budget.attempt(at: server(1), for: mallory, isPaid: false, now: start) == nil)
    }

    @Test func `a dial that has begun is finished on credit`() {
        var budget = NetworkBudget()
        while budget.ask(for: alice, isPartOfDial: false, now: start) {}
        var owed = 0
        while owed < 1000, budget.ask(for: alice, isPartOfDial: true, now: start) { owed += 1 }
        #expect((256...257).contains(owed), "\(owed)")
        // What is owed is paid back before another begins.
        #expect(budget.nextTurn(of: alice, now: start).at == start + .milliseconds(50 * (owed + 1)))
    }

    @Test func `the tables have a limit and forget`() {
        var budget = NetworkBudget()
        for number in 0..<50_000 {
            let account = Account(user: UInt32(1 + number % 500), isLimited: true)
            _ = budget.attempt(at: server(number), for: account, isPaid: false, now: start)
        }
        #expect(budget.size.servers == NetworkBudget.mostServers)
        #expect(budget.size.users == 500)
        _ = budget.attempt(at: server(1), for: alice, isPaid: false, now: start + .seconds(3600))
        #expect(budget.size.users == 1)
        #expect(budget.size.servers == 1)
    }
}
