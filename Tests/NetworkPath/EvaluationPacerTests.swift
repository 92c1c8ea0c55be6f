// SPDX-License-Identifier: Apache-2.0

import DialtoneNetworkPath
import DialtoneTestSupport
import Testing

struct EvaluationPacerTests {
    private static let start = Duration.seconds(1000)

    @Test func `a burst is evaluated at once`() {
        var pacer = EvaluationPacer(now: Self.start)
        for _ in 0..<EvaluationPacer.burst {
            #expect(pacer.changed(now: Self.start) == .now)
        }
        #expect(pacer.changed(now: Self.start) == .at(Self.start + EvaluationPacer.refill))
    }

    /// netwatch restarts its timer on every event, and under a steady stream never looks.
    @Test func `further events do not restart the wait`() {
        var pacer = exhausted()
        #expect(pacer.changed(now: Self.start) == .at(Self.start + EvaluationPacer.refill))
        for elapsed in 1..<10 {
            #expect(pacer.changed(now: Self.start + .milliseconds(elapsed)) == .alreadyDue)
        }
    }

    @Test func `the wait is counted from the last token not from the event`() {
        var pacer = exhausted()
        let due = Self.start + EvaluationPacer.refill
        #expect(pacer.changed(now: Self.start + .milliseconds(9)) == .at(due))
        pacer.evaluated(now: due)
        #expect(pacer.changed(now: due + .milliseconds(1)) == .at(due + EvaluationPacer.refill))
    }

    @Test func `an evaluation that comes late still counts`() {
        var pacer = exhausted()
        _ = pacer.changed(now: Self.start)
        pacer.evaluated(now: Self.start + .milliseconds(35))
        // Three tokens came back and the evaluation took one.
        #expect(pacer.changed(now: Self.start + .milliseconds(35)) == .now)
        #expect(pacer.changed(now: Self.start + .milliseconds(35)) == .now)
        #expect(pacer.changed(now: Self.start + .milliseconds(35)) == .at(Self.start + .milliseconds(40)))
    }

    @Test func `a quiet hour fills the bucket and no more`() {
        var pacer = exhausted()
        let later = Self.start + .seconds(3600)
        for _ in 0..<EvaluationPacer.burst { #expect(pacer.changed(now: later) == .now) }
        #expect(pacer.changed(now: later) == .at(later + EvaluationPacer.refill))
    }

    /// A storm of events at random instants, as the monitor drives the pacer: every event is covered by an evaluation
    /// that comes no later than ``EvaluationPacer/refill`` after it, and there are never more of them than the burst
    /// and one a refill.
    @Test(arguments: seeds(20))
    func `a storm is capped and no verdict grows stale`(seed: UInt64) {
        var random = SplitMix64(seed: seed)
        var pacer = EvaluationPacer(now: Self.start)
        var now = Self.start
        var due: Duration?
        var waitingSince: Duration?
        var evaluations: [Duration] = []
        for _ in 0..<5000 {
            // Mostly a storm, at times a pause that refills some or all of the bucket.
            let widest = random.chance(2) ? 500_000 : random.chance(50) ? 200 : 20_000
            let next = now + .microseconds(Int.random(in: 0...widest, using: &random))
            if let instant = due, instant <= next {
                pacer.evaluated(now: instant)
                evaluations.append(instant)
                #expect(instant - (waitingSince ?? instant) <= EvaluationPacer.refill)
                (due, waitingSince) = (nil, nil)
            }
            now = next
            switch pacer.changed(now: now) {
            case .now:
                #expect(due == nil)
                evaluations.append(now)
            case .at(let instant):
                #expect(due == nil)
                #expect(instant > now && instant <= now + EvaluationPacer.refill)
                (due, waitingSince) = (instant, now)
            case .alreadyDue:
                #expect(due != nil)
            }
        }
        expectCapped(evaluations)
    }

    /// In any stretch of time, at most a burst and one evaluation a refill.
    private func expectCapped(_ evaluations: [Duration]) {
        for (position, end) in evaluations.enumerated() {
            let first = max(0, position - 3 * EvaluationPacer.burst)
            for start in first..<position {
                let refills = Int((end - evaluations[start]) / EvaluationPacer.refill)
                #expect(position - start + 1 <= EvaluationPacer.burst + refills + 1)
            }
        }
    }

    private func exhausted() -> EvaluationPacer {
        var pacer = EvaluationPacer(now: Self.start)
        for _ in 0..<EvaluationPacer.burst { _ = pacer.changed(now: Self.start) }
        return pacer
    }
}
