// SPDX-License-Identifier: Apache-2.0

package import DialtoneConnection
package import DialtoneProcesses

extension WakeSettings {
    /// What the client is woken for where nothing else is said: all that it has to do something about. That its flow is
    /// gone is not: the next one wakes it.
    private static let standardReasons = Set(WakeReason.allCases).subtracting([.lost])

    /// What the client is woken for. It asked for its own keepalive, and what was said to be launched always starts,
    /// whatever is chosen.
    package var wantedReasons: Set<WakeReason> { (reasons ?? Self.standardReasons).union([.keepAlive, .start]) }

    /// The rules of these settings.
    package func rules(isTended: Bool, budget: Duration) -> Wakes.Settings {
        Wakes.Settings(policy: policy, reasons: wantedReasons, isTended: isTended, budget: budget)
    }

    /// By what the client is woken.
    package var targets: WakeTargets {
        var targets = WakeTargets(signal: signal, thaw: thaw, unit: unit)
        if let command, let identity {
            targets.program = .init(
                command: command, streams: usesStandardStreams == true ? .standard : .passed, identity: identity)
        }
        return targets
    }

    /// When it is, and how often.
    package var policy: WakePolicy {
        var policy = WakePolicy(means: targets.means)
        if let answerTime { policy.answerTime = answerTime }
        if let startTime { policy.startTime = startTime }
        if let rounds { policy.rounds = rounds }
        if let launch { policy.launch = launch }
        if let relaunches { policy.relaunches = relaunches }
        if let pause {
            policy.pauses.base = pause
            policy.relaunchPauses.base = pause
        }
        if let longestPause {
            policy.pauses.ceiling = longestPause
            policy.relaunchPauses.ceiling = longestPause
        }
        return policy
    }
}
