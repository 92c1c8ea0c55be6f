// SPDX-License-Identifier: Apache-2.0

import DialtoneConnection
import DialtoneModels
import DialtoneTestSupport
import Testing

/// Agents that lose their one server together; `docs/herd.md` has the figures of 100,000.
@Suite struct HerdTests {
    private static let policies: [BackoffPolicy] = [.general, .sip]
    private static let outages: [Duration] = [.zero, .seconds(30), .seconds(600)]

    @Test(arguments: policies, outages) func `no second sees all of a herd`(policy: BackoffPolicy, outage: Duration) {
        for seed in [1] + seeds(1) {
            let herd = Herd(agents: 10_000, policy: policy, outage: outage)
            let outcome = herd.run(seed: seed)
            // What the first second would see if everybody retried within a second: more than all of them.
            #expect(outcome.peak < herd.agents * 55 / 100, "seed \(seed)")
            #expect(outcome.accepted.reduce(0, +) == herd.agents, "seed \(seed)")
            // A server that is back is not run over by more than came at once when it went.
            #expect(outcome.peak(from: Int(outage / .seconds(1)) + 1) <= herd.agents / 5, "seed \(seed)")
        }
    }

    @Test(arguments: policies) func `a long outage is dialled at the steady rate`(policy: BackoffPolicy) {
        let herd = Herd(agents: 3000, policy: policy, outage: .seconds(100_000), horizon: .seconds(14_400))
        let late = herd.run(seed: 1).attempts.suffix(3600)
        #expect((0.9...1.1).contains(Double(late.reduce(0, +)) / 3600 / herd.steadyRate))
    }

    @Test(arguments: policies) func `a server that accepts few gets everybody in the end`(policy: BackoffPolicy) {
        let herd = Herd(agents: 10_000, policy: policy, outage: .seconds(30), acceptsEachSecond: 50)
        let outcome = herd.run(seed: 1)
        #expect(outcome.accepted.max() ?? 0 <= 50)
        #expect(outcome.accepted.reduce(0, +) == herd.agents)
    }
}
