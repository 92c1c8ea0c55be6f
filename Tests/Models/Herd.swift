// SPDX-License-Identifier: Apache-2.0

package import DialtoneConnection
internal import DialtoneTestSupport

/// Many agents whose one server goes away: who dials when, by the back-off policy alone.
///
/// All flows end at zero, after having been stable. A server that is away refuses at once, which is the worst case: one
/// that is silent costs each attempt its connect timeout, and spreads them. One that is back accepts everybody, or so
/// many a second and refuses the others. Whoever is accepted stays.
package struct Herd: Sendable {
    /// How many agents.
    package var agents: Int
    /// How each backs off.
    package var policy: BackoffPolicy
    /// When the server is back.
    package var outage: Duration
    /// How many it accepts a second; `nil` for all.
    package var acceptsEachSecond: Int?
    /// When to look no further.
    package var horizon: Duration

    /// A herd.
    package init(
        agents: Int, policy: BackoffPolicy, outage: Duration, acceptsEachSecond: Int? = nil,
        horizon: Duration = .seconds(7200)
    ) {
        self.agents = agents
        self.policy = policy
        self.outage = outage
        self.acceptsEachSecond = acceptsEachSecond
        self.horizon = horizon
    }

    /// What became of it.
    package struct Outcome: Sendable {
        /// Attempts in each second.
        package var attempts: [Int]
        /// Attempts that were accepted in each second.
        package var accepted: [Int]

        /// The most attempts in any second.
        package var peak: Int { attempts.max() ?? 0 }

        /// The most attempts in any second from this one on.
        package func peak(from second: Int) -> Int { attempts.dropFirst(second).max() ?? 0 }

        /// The second in which so many were accepted in all; `nil` where they never were.
        package func second(ofAccepted count: Int) -> Int? {
            var sum = 0
            return accepted.firstIndex { number in
                sum += number
                return sum >= count
            }
        }
    }

    /// Attempts a second while the server stays away for good: each agent waits at its ceiling.
    package var steadyRate: Double {
        let range = policy.range(afterFailures: 1000)
        return Double(agents) / ((range.lowerBound + range.upperBound) / 2 / .seconds(1))
    }

    /// Lets the herd run.
    package func run(seed: UInt64) -> Outcome {
        var random = SplitMix64(seed: seed)
        let seconds = Int(horizon / .seconds(1))
        var outcome = Outcome(
            attempts: Array(repeating: 0, count: seconds), accepted: Array(repeating: 0, count: seconds))
        // Who dials in which second, when exactly (in seconds) and after how many failures.
        var dials: [[(at: Double, failures: Int)]] = Array(repeating: [], count: seconds)
        func plan(_ failures: Int, at now: Double) {
            let next = now + policy.delay(afterFailures: failures, using: &random) / .seconds(1)
            if Int(next) < seconds { dials[Int(next)].append((next, failures)) }
        }
        for _ in 0..<agents { plan(0, at: 0) }
        for second in 0..<seconds {
            var index = 0
            // A short wait ends in the second in which it began, and joins the end of the line.
            while index < dials[second].count {
                let (at, failures) = dials[second][index]
                index += 1
                outcome.attempts[second] += 1
                if at >= outage / .seconds(1), outcome.accepted[second] < acceptsEachSecond ?? .max {
                    outcome.accepted[second] += 1
                } else {
                    plan(failures + 1, at: at)
                }
            }
            dials[second] = []
        }
        return outcome
    }
}
