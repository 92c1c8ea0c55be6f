// SPDX-License-Identifier: Apache-2.0

import DialtoneConnection
import DialtoneNetworkPath
import DialtonePlatform
import DialtoneTestSupport
import Testing

@testable import DialtoneConnectionIO

/// What drivers ask the budgets of their user for, which outlive every connection.
@AgentQueue
@Suite(.timeLimit(.minutes(1))) struct BudgetTests {
    private let mallory = Account(user: 1000, isLimited: true)

    /// Opens and closes connections to as many servers, and counts why they are where they are.
    private func openAndClose(
        _ account: Account, count: Int = 700, in surroundings: Surroundings
    ) throws -> [String: Int] {
        var reasons: [String: Int] = [:]
        for number in 0..<count {
            let remote = "tcp://127.1.\(number / 250).\(number % 250 + 1):9"
            let connection = try surroundings.connection(to: remote, account: account)
            let waits = connection.status.reason == .awaitsTurn
            reasons[waits ? "waits" : "dialled", default: 0] += 1
            connection.close()
        }
        return reasons
    }

    @Test func `closing and opening again is no way round the budget`() throws {
        let surroundings = Surroundings(.loopback())
        let begin = BootClock.now()
        let reasons = try openAndClose(mallory, in: surroundings)
        // Twenty come back each second.
        let refilled = Int((BootClock.now() - begin) / .milliseconds(50)) + 1
        #expect((512...512 + refilled).contains(reasons["dialled"] ?? 0), "\(reasons), \(refilled) refilled")
        let alice = try surroundings.connection(to: "tcp://127.0.0.1:9", account: Account(user: 1001, isLimited: true))
        #expect(alice.status.reason != .awaitsTurn)
        alice.close()
    }

    @Test func `the administrators are dialled at once`() throws {
        #expect(try openAndClose(.administrator, in: Surroundings(.loopback())) == ["dialled": 700])
    }

    @Test func `a turn that came is a dial`() async throws {
        let surroundings = Surroundings(.loopback())
        // What takes no time, so that nothing comes back meanwhile.
        surroundings.useUpBudget(of: mallory, owing: 40)
        let server = try LoopbackServer()
        let connection = try surroundings.connection(to: "tcp://\(server.endpoint)", account: mallory)
        #expect(connection.status.reason == .awaitsTurn)
        let turn = try #require(connection.status.nextAttempt)
        connection.redial()
        #expect(connection.status.nextAttempt == turn, "a redial changes nothing about it")
        _ = await surroundings.entered(.ready)
        #expect(connection.status.state == .ready)
        connection.close()
    }

    @Test func `questions are counted and refused as questions`() async throws {
        let surroundings = Surroundings(.loopback())
        surroundings.answer = nil
        for _ in 0..<1500 {
            let connection = try surroundings.connection(to: "tcp://sip.example.com:9", account: mallory)
            connection.close()
        }
        #expect((512...1500).contains(surroundings.questions.count), "\(surroundings.questions.count)")
    }
}
