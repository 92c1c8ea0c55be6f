// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import Reachability

/// What an expectation may change: the macro takes no mutating call.
private final class Health {
    private var health = NameServerHealth()

    var isAnswering: Bool { health.isAnswering }

    func answered() -> Bool { health.answered() }
    func silent() -> (isNews: Bool, recheck: Duration?) { health.silent() }
}

struct NameServerHealthTests {
    @Test func `the first silence is news and the first answer after it`() {
        let health = Health()
        #expect(health.isAnswering)
        #expect(!health.answered())
        #expect(health.silent().isNews)
        #expect(!health.isAnswering)
        #expect(!health.silent().isNews)
        #expect(health.answered())
        #expect(health.isAnswering)
        #expect(!health.answered())
        #expect(health.silent().isNews)
    }

    @Test func `the questions of our own end`() {
        let health = Health()
        let waits = (0..<12).compactMap { _ in health.silent().recheck }
        #expect(waits == [1, 2, 4, 8, 16, 32, 64, 128, 256].map { .seconds($0) })
        _ = health.answered()
        #expect(health.silent().recheck == .seconds(1))
    }
}
