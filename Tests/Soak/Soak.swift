// SPDX-License-Identifier: Apache-2.0

import DialtonePlatform
import DialtoneTestSupport

/// A run: one network after the other is churned, until so many steps are done or one disagrees.
struct Soak {
    /// Steps in the life of one network. A failure is replayed from the birth of its network, so a short life makes a
    /// short replay; a long one grows stranger.
    static let stepsPerEpisode = 150

    /// Bytes that the kernel may queue for the product, one network after the other: as in earnest; the least there is,
    /// which a handful of notices overruns; so little that a burst is too much.
    static let receiveBuffers = [8 << 20, 1, 16 << 10]

    /// A program is started for a verdict after so many steps, by root and by another user in turn.
    static let stepsPerCheck = 10

    let seed: UInt64
    let steps: Int

    private(set) var tally = Tally()

    init(seed: UInt64, steps: Int) {
        self.seed = seed
        self.steps = steps
    }

    /// Runs to the end or to the first step that disagrees. A long run tells now and then how far it is.
    mutating func run(progress: (Tally) -> Void) async throws -> Failure? {
        var number = 0
        while tally.steps < steps {
            if let failure = try await runEpisode(number) { return failure }
            number += 1
            if number.isMultiple(of: 10), tally.steps < steps { progress(tally) }
        }
        return nil
    }

    /// The seed of one network's changes, and the buffer it is watched with.
    private func plan(of number: Int) -> (seed: UInt64, receiveBuffer: Int) {
        var random = SplitMix64(seed: seed &+ UInt64(number))
        return (random.next(), Self.receiveBuffers[number % Self.receiveBuffers.count])
    }

    private mutating func runEpisode(_ number: Int) async throws -> Failure? {
        let plan = plan(of: number)
        var generator = ChangeGenerator(seed: plan.seed)
        let episode = try await Episode.begin(receiveBuffer: plan.receiveBuffer)
        var past: [Step] = []
        var failure: Failure?
        var dropped = 0
        for _ in 0..<min(Self.stepsPerEpisode, steps - tally.steps) where failure == nil {
            let step = generator.step()
            past.append(step)
            tally.steps += 1
            tally.changes += step.changes.count
            var outcome = try await episode.perform(step)
            if case .agreed = outcome, tally.steps.isMultiple(of: Self.stepsPerCheck) {
                outcome = try await check(in: episode)
            }
            switch outcome {
            case .agreed: break
            case .unsettled: tally.unsettled += 1
            case .disagreed(let found):
                failure = Failure(
                    seed: seed, step: tally.steps, episode: number, receiveBuffer: plan.receiveBuffer, past: past,
                    disagreements: found, secondOpinion: try await episode.secondOpinion(),
                    state: try await episode.state())
            }
            let now = try await episode.dropped()
            if now > dropped { tally.overrunSteps += 1 }
            dropped = now
        }
        tally.comparisons += episode.comparisons
        tally.verdicts.merge(episode.verdicts) { $0 + $1 }
        tally.delays += episode.delays
        tally.dropped += dropped
        await episode.end()
        return failure
    }

    private mutating func check(in episode: Episode) async throws -> Episode.Outcome {
        let number = tally.checks
        tally.checks += 1
        let subject = Subject.checked[number % Subject.checked.count]
        let found = try await episode.check(subject, isPrivileged: number.isMultiple(of: 2))
        return found.isEmpty ? .agreed : .disagreed(found)
    }
}

/// What a run amounts to.
struct Tally: Sendable, CustomStringConvertible {
    var steps = 0
    var changes = 0
    var comparisons = 0
    /// How often a program was started for a verdict.
    var checks = 0
    /// The verdicts that were agreed on, by what they say.
    var verdicts: [String: Int] = [:]
    /// Messages that the kernel could not deliver, and the steps in which that happened.
    var dropped = 0
    var overrunSteps = 0
    /// Steps in which the kernel would not hold still.
    var unsettled = 0
    /// For each step in which the product was wrong at first, how long.
    var delays: [Duration] = []

    var description: String {
        """
        \(steps) steps, \(changes) changes, \(comparisons) verdicts compared, \(checks) checks; \
        overruns in \(overrunSteps) steps, \(dropped) messages lost; \
        right late in \(delays.count) steps\(delays.max().map { ", after \($0.milliseconds) ms at most" } ?? ""); \
        \(unsettled) steps never settled
        agreed on: \(verdicts.sorted { $0.value > $1.value }.map { "\($0.key) \($0.value)" }.joined(separator: ", "))
        """
    }
}
