// SPDX-License-Identifier: Apache-2.0

package import DialtoneConnection
internal import DialtoneTestSupport

/// Connections behind a translator of addresses that forgets idle flows after a time nobody tells, and what the
/// adaptive interval makes of it.
package struct NATLife: Sendable {
    /// After how much silence a flow is forgotten; `nil`: never.
    package var holds: Duration?
    /// How many flows there are.
    package var flows = 1
    /// Keepalives in a hundred that go early, by up to the tolerance, for the sake of a shared wake.
    package var earlyPercent = 30
    /// Flows in a thousand keepalives that the server resets.
    package var resetPerMille = 10
    /// Flows in ten thousand keepalives that die in silence of something else.
    package var chancePer10000 = 5

    /// A life.
    package init(holds: Duration?) { self.holds = holds }

    /// What became of it.
    package struct Outcome: Sendable {
        /// Flows that the translator forgot.
        package var lost = 0
        /// Keepalives sent.
        package var keepalives = 0
        /// When the last flow was forgotten, from the beginning.
        package var lastLoss = Duration.zero
        /// The interval in the end.
        package var interval = Duration.zero
    }

    /// Lives for a while by one protocol's figures, on this network.
    package func run(
        _ learner: inout AdaptiveInterval, on network: NetworkIdentity, _ figures: KeepaliveFigures,
        from start: Duration = .zero, for time: Duration, seed: UInt64
    ) -> Outcome {
        var random = SplitMix64(seed: seed)
        var outcome = Outcome()
        // The next keepalive of each flow, and the silence before it. Flow 0 is the one that tries.
        var next = (0..<flows).map { _ in (at: start, silence: Duration.zero) }
        for flow in next.indices { plan(flow, &next, learner, network, figures, &random) }
        while let flow = next.indices.min(by: { next[$0].at < next[$1].at }), next[flow].at < start + time {
            let (now, silence) = next[flow]
            outcome.keepalives += 1
            if let holds, silence > holds {
                outcome.lost += 1
                outcome.lastLoss = now - start
                learner.died(after: silence, sentAt: now, on: network, figures)
            } else if random.below(10_000) < chancePer10000 {
                learner.died(after: silence, sentAt: now, on: network, figures)
            } else {
                // A reset flow is followed by another, of which nothing is learned.
                if random.below(1000) >= resetPerMille { learner.survived(silence, on: network, figures) }
            }
            plan(flow, &next, learner, network, figures, &random)
        }
        outcome.interval = learner.interval(on: network, figures)
        return outcome
    }

    private func plan(
        _ flow: Int, _ next: inout [(at: Duration, silence: Duration)], _ learner: AdaptiveInterval,
        _ network: NetworkIdentity, _ figures: KeepaliveFigures, _ random: inout SplitMix64
    ) {
        var silence = learner.interval(on: network, figures)
        if flow == 0, let trial = learner.trial(on: network, figures) {
            silence = trial
        } else if random.chance(earlyPercent) {
            silence = silence * (1 - Double(random.next() >> 11) * 0x1p-53 * 0.2)
        }
        next[flow] = (next[flow].at + silence, silence)
    }
}
