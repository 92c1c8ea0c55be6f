// SPDX-License-Identifier: Apache-2.0

import Foundation
import Supervisor
import Testing

/// Many short lives in bad networks. `SIM_SEED=n` replays one with its trace; `SIM_SEQUENCES=n` says how many are run,
/// `SIM_FIRST=n` from which seed on.
@Suite struct SimulationTests {
    /// Where the seeds of a run begin; the same in every run, so that a failure in one place is a failure everywhere.
    private static let usualSeed: UInt64 = 1

    @Test func noSequenceOfFaultsBreaksAnInvariant() async throws {
        let environment = ProcessInfo.processInfo.environment
        if let seed = environment["SIM_SEED"].flatMap(UInt64.init) { return try Self.replay(seed) }
        let count = environment["SIM_SEQUENCES"].flatMap(UInt64.init) ?? 20_000

        let first = environment["SIM_FIRST"].flatMap(UInt64.init) ?? Self.usualSeed
        let workers = UInt64(ProcessInfo.processInfo.activeProcessorCount)
        let outcomes = await withTaskGroup(of: Outcome.self) { group in
            for worker in 0..<workers {
                group.addTask {
                    Self.run(stride(from: first + worker, to: first + count, by: Int(workers)))
                }
            }
            return await group.reduce(into: []) { $0.append($1) }
        }

        for failure in outcomes.compactMap(\.failure) { Issue.record("\(failure)") }
        let seen = outcomes.reduce(into: Coverage()) { $0.formUnion($1.seen) }
        // A world that never brings a state or a cause about proves nothing of it.
        if count >= 10_000 {
            #expect(seen.states == Set(ConnectionStatus.State.allCases))
            #expect(seen.closings == Set(CloseReason.allCases))
            // Of wakes it is not the machine that tells.
            #expect(seen.kinds == Set(ConnectionEvent.Kind.allCases).subtracting([.wake]))
        }
        let steps = outcomes.reduce(0) { $0 + $1.steps }
        print("\(count) sequences from seed \(first), \(steps) steps")
    }

    /// The same of clients, programs and restarts of the agent (``ClientSimulation``).
    @Test func noSequenceOfClientsAndRestartsBreaksAnInvariant() async throws {
        let environment = ProcessInfo.processInfo.environment
        if let seed = environment["SIM_SEED"].flatMap(UInt64.init) {
            var simulation = ClientSimulation(seed: seed, traced: true)
            defer { print(simulation.trace?.joined(separator: "\n") ?? "") }
            return try simulation.live()
        }
        let count = environment["SIM_SEQUENCES"].flatMap(UInt64.init) ?? 20_000
        let first = environment["SIM_FIRST"].flatMap(UInt64.init) ?? Self.usualSeed
        let workers = UInt64(ProcessInfo.processInfo.activeProcessorCount)
        let outcomes = await withTaskGroup(of: Outcome.self) { group in
            for worker in 0..<workers {
                group.addTask { Self.runClients(stride(from: first + worker, to: first + count, by: Int(workers))) }
            }
            return await group.reduce(into: []) { $0.append($1) }
        }
        for failure in outcomes.compactMap(\.failure) { Issue.record("\(failure)") }
        let deeds = outcomes.reduce(into: [:]) { $0.merge($1.deeds, uniquingKeysWith: +) }
        if count >= 10_000 { #expect(Set(deeds.keys) == Set(ClientDeed.allCases)) }
        let steps = outcomes.reduce(0) { $0 + $1.steps }
        print(
            "\(count) sequences of clients from seed \(first), \(steps) steps: \(deeds[.given] ?? 0) takes, "
                + "\(deeds[.launched] ?? 0) launches, \(deeds[.killAgent] ?? 0) kills")
    }

    private static func runClients(_ seeds: StrideTo<UInt64>) -> Outcome {
        var outcome = Outcome()
        for seed in seeds {
            var simulation = ClientSimulation(seed: seed)
            do {
                try simulation.live()
            } catch {
                outcome.failure = "SIM_SEED=\(seed) breaks \(error), after \(outcome.steps + simulation.steps) steps"
                return outcome
            }
            outcome.steps += simulation.steps
            outcome.deeds.merge(simulation.deeds, uniquingKeysWith: +)
        }
        return outcome
    }

    private struct Outcome: Sendable {
        var deeds: [ClientDeed: Int] = [:]
        var steps = 0
        var seen = Coverage()
        var failure: String?
    }

    /// Runs the seeds up to the first that breaks an invariant.
    private static func run(_ seeds: StrideTo<UInt64>) -> Outcome {
        var outcome = Outcome()
        for seed in seeds {
            var simulation = Simulation(seed: seed)
            do {
                try simulation.live()
            } catch {
                outcome.failure = "SIM_SEED=\(seed) breaks \(error)"
                return outcome
            }
            outcome.steps += simulation.steps
            outcome.seen.formUnion(simulation.checker.seen)
        }
        return outcome
    }

    private static func replay(_ seed: UInt64) throws {
        var simulation = Simulation(seed: seed, traced: true)
        defer { print(simulation.trace?.joined(separator: "\n") ?? "") }
        try simulation.live()
    }
}
