// SPDX-License-Identifier: Apache-2.0

import Foundation
import LabSupport
import Testing

/// The product against the kernel itself. `SOAK_STEPS=n` says how long, `SOAK_SEED=n` replays a run.
@Suite(
    "Soak",
    .enabled(if: LabSandbox.isInside, Comment(rawValue: LabSandbox.obstacle ?? "inside of the sandbox")))
struct SoakTests {
    @Test func `every verdict is what the kernel would do with the packet`() async throws {
        let environment = ProcessInfo.processInfo.environment
        let seed = environment["SOAK_SEED"].flatMap(UInt64.init) ?? UInt64.random(in: 0...UInt64(UInt32.max))
        let steps = environment["SOAK_STEPS"].flatMap(Int.init) ?? 450
        print("soak: SOAK_SEED=\(seed) SOAK_STEPS=\(steps)")
        var soak = Soak(seed: seed, steps: steps)
        let failure = try await soak.run()
        print("soak: \(soak.tally)")
        // A run in which nothing was lost proves nothing of the way back.
        if steps > 2 * Soak.stepsPerEpisode { #expect(soak.tally.overrunSteps > 0) }
        if let failure { Issue.record(Comment(rawValue: try await failure.account())) }
    }
}
