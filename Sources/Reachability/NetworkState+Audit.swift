// SPDX-License-Identifier: Apache-2.0

internal import DialtoneNetlink
package import DialtoneNetworkPath
internal import DialtonePlatform

extension NetworkState {
    /// A verdict that stands and is not the one that the kernel's state makes now.
    package struct Discrepancy: Sendable, CustomStringConvertible {
        /// What was asked.
        package let question: Question
        /// The verdict that stands.
        package let held: Path?
        /// The one that an evaluation of everything would come to.
        package let due: Path

        /// Both, for a failed test.
        package var description: String { "\(question)\n  held \(held.map { "\($0)" } ?? "none")\n  due  \(due)" }
    }

    /// Evaluates every question anew, changes nothing, and returns those whose verdicts should be others. None where
    /// all changes told so far have been evaluated; for tests of what ``VerdictBasis`` leaves out.
    package func audit() -> [Discrepancy] {
        guard let kernel, failure == nil else { return [] }
        var batch = LookupBatch()
        let questions = watched.values.filter { $0.inquiry != nil }
        let slots = questions.map { watched in inquiry(for: watched, in: kernel.snapshot).map { batch.add($0) } }
        guard (try? batch.run(on: kernel, alsoWatching: &gateways)) != nil else { return [] }
        return zip(questions, slots).compactMap { watched, slot in
            guard let slot else { return nil }
            let due = finished(batch.path(slot, in: kernel.snapshot), for: watched)
            if let held = watched.path, held.differsOnlyInGeneration(from: due) { return nil }
            return Discrepancy(question: watched.question, held: watched.path, due: due)
        }
    }

    /// Whether every change told so far is evaluated, and for the last time.
    package var isAtRest: Bool { pending.isEmpty && due.isEmpty && secondLook.isIdle }

    /// The dead gateways that the kernel is had to ask for from time to time.
    package var probedGateways: Set<NetworkSnapshot.Neighbour> { prober.gateways }

    /// How many routes the kernel was asked for since the start.
    package var lookupCount: Int { kernel?.lookupCount ?? 0 }

    /// How often the kernel's notices were read since the start.
    package var readCount: Int { kernel?.readCount ?? 0 }
}
