// SPDX-License-Identifier: Apache-2.0

import DialtoneLabSupport
import Foundation
import Testing

/// The product against the kernel itself. `make soak STEPS=n` says how long, `SEED=n` repeats a run.
@Suite(
    "Soak", .serialized,
    .enabled(if: LabSandbox.isInside, Comment(rawValue: LabSandbox.obstacle ?? "inside of the sandbox")))
struct SoakTests {
    @Test(arguments: Run.all) func `every verdict is what the kernel would do with the packet`(run: Run) async throws {
        print("soak: SEED=\(run.seed) STEPS=\(run.steps)")
        var soak = Soak(seed: run.seed, steps: run.steps)
        let failure = try await soak.run { print("soak: \($0)") }
        print("soak: SEED=\(run.seed): \(soak.tally)")
        // A run in which nothing was lost proves nothing of the way back.
        if run.steps >= 2 * Soak.stepsPerEpisode, failure == nil { #expect(soak.tally.overrunSteps > 0) }
        if let failure { Issue.record(Comment(rawValue: try await failure.account())) }
    }

    /// How a run begins and how long it is.
    struct Run: Sendable, CustomTestStringConvertible {
        let seed: UInt64
        let steps: Int

        /// What the environment asks for; else a short one that is the same every time, and one that is not: the suite
        /// waits for these two last.
        static let all: [Run] = {
            let environment = ProcessInfo.processInfo.environment
            let seed = environment["SOAK_SEED"].flatMap(UInt64.init)
            let steps = environment["SOAK_STEPS"].flatMap(Int.init)
            // Short enough to be typed.
            let random = UInt64.random(in: 0..<1_000_000)
            if seed != nil || steps != nil { return [Run(seed: seed ?? random, steps: steps ?? 300)] }
            return [Run(seed: 1, steps: Soak.stepsPerEpisode), Run(seed: random, steps: 300)]
        }()

        var testDescription: String { "SEED=\(seed) STEPS=\(steps)" }
    }
}
