// SPDX-License-Identifier: Apache-2.0

import DialtoneConnection
import Foundation
import Testing

/// Many short lives in bad networks, with clients, programs and restarts of the agent. `SIM_SEED=n` replays one with
/// its trace; `SIM_SEQUENCES=n` says how many are run, `SIM_FIRST=n` from which seed on.
@Suite struct SimulationTests {
    /// Where the seeds of a run begin; the same in every run, so that a failure in one place is a failure everywhere.
    private static let usualSeed: UInt64 = 1

    @Test func `no sequence breaks an invariant`() async throws {
        guard let run = try await Self.run() else { return }
        // A world that never brings a state or a cause about proves nothing of it.
        if run.count >= 10_000 {
            let seen = run.total.seen
            #expect(seen.states == Set(ConnectionStatus.State.allCases))
            #expect(seen.closings == Set(CloseReason.allCases))
            // Of wakes it is not the line that tells.
            #expect(seen.kinds == Set(ConnectionEvent.Kind.allCases).subtracting([.wake]))
            #expect(seen.deeds == Set(Deed.allCases))
            #expect(seen.takes > 0 && seen.launches > 0 && seen.kills > 0, "\(seen)")
        }
        let seen = run.total.seen
        print(
            "\(run.count) sequences from seed \(run.first), \(run.total.steps) steps: "
                + "\(seen.takes) takes, \(seen.launches) launches, \(seen.kills) kills of the agent")
    }

    /// What came of one sequence, or of several.
    private struct Life: Sendable {
        var steps = 0
        var failure: (any Error)?
        var trace: [String]?
        var seen = Coverage()

        init() {}

        init(seed: UInt64, isTraced: Bool = false) {
            var simulation = Simulation(seed: seed, traced: isTraced)
            failure = Result { try simulation.live() }.error
            (steps, trace, seen) = (simulation.steps, simulation.trace, simulation.coverage)
        }

        mutating func add(_ other: Life) {
            steps += other.steps
            seen.formUnion(other.seen)
        }
    }

    /// Runs the seeds that the environment asks for on every processor, each of them up to the first that breaks an
    /// invariant; `nil` where one was replayed instead.
    private static func run() async throws -> (count: UInt64, first: UInt64, total: Life)? {
        let environment = ProcessInfo.processInfo.environment
        if let seed = environment["SIM_SEED"].flatMap(UInt64.init) {
            let life = Life(seed: seed, isTraced: true)
            print(life.trace?.joined(separator: "\n") ?? "")
            if let failure = life.failure { throw failure }
            return nil
        }
        let count = environment["SIM_SEQUENCES"].flatMap(UInt64.init) ?? 20_000
        let first = environment["SIM_FIRST"].flatMap(UInt64.init) ?? usualSeed
        let workers = UInt64(ProcessInfo.processInfo.activeProcessorCount)
        let total = await withTaskGroup(of: Life.self) { group in
            for worker in 0..<workers {
                group.addTask {
                    var all = Life()
                    for seed in stride(from: first + worker, to: first + count, by: Int(workers)) {
                        let life = Life(seed: seed)
                        all.add(life)
                        guard let failure = life.failure else { continue }
                        Issue.record("SIM_SEED=\(seed) breaks \(failure), after \(all.steps) steps")
                        break
                    }
                    return all
                }
            }
            return await group.reduce(into: Life()) { $0.add($1) }
        }
        return (count, first, total)
    }
}

extension Result {
    fileprivate var error: Failure? { if case .failure(let error) = self { error } else { nil } }
}
