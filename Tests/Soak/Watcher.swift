// SPDX-License-Identifier: Apache-2.0

import DialtoneLabSupport
import DialtoneNetlink
import DialtoneNetworkPath
import DialtonePlatform
import Reachability

/// The product: its engine, everything that is watched, and what it was told last of each.
@AgentQueue
final class Watcher {
    /// The destination of a route of its own, in the table that no rule can shadow. Its refusal is turned from one kind
    /// to the other after each step; the kernel tells of its changes in order, so when this one is known, so are all
    /// those before it.
    nonisolated static let marker = "198.19.255.1"

    /// The kinds of refusal that the marker takes in turns.
    nonisolated static func markerCommand(_ isOdd: Bool) -> String {
        "route replace \(isOdd ? "unreachable" : "prohibit") \(marker)/32 table local"
    }

    private let engine: NetworkState
    private var observations: [PathObservation] = []
    /// What was told last.
    private(set) var said: [Comparison.Question: Path] = [:]
    private nonisolated let signal = ChangeSignal()

    init(_ sockets: borrowing KernelSockets, _ names: NameConfiguration) {
        engine = NetworkState(sockets, nameFiles: names.files)
        observe(.network, as: .network(.any))
        observe(.bridges, as: .network(.requires(.bridge)))
        observe(.virtual, as: .network(.requires(.virtual)))
        observe(.others, as: .network(.prohibits([.bridge])))
        for subject in Subject.all { observe(.subject(subject), as: .host(subject.target)) }
        // Last, so that when it is told for the first time, so is everything else.
        observe(.marker, as: .host(Target(.init(Self.marker))))
    }

    private func observe(_ question: Comparison.Question, as asked: Reachability.Question) {
        observations.append(
            engine.observe(asked) { [weak self] path, _ in
                self?.said[question] = path
                if question == .marker { self?.signal.notify() }
            })
    }

    /// Ends all observation.
    func stop() {
        for observation in observations { observation.cancel() }
        observations = []
    }

    /// Waits until the marker's present refusal is known and the state is whole, and returns what was told by then.
    nonisolated func settled(_ isOdd: Bool) async throws -> [Comparison.Question: Path] {
        let reason: Path.Reason = isOdd ? .unreachable : .prohibited
        return try await signal.wait(for: "the marker to be \(reason)") {
            let said = await said
            guard let path = said[.marker], path.reason == reason, path.isCoherent else { return nil }
            return said
        }
    }
}
