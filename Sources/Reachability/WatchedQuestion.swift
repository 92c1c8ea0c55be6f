// SPDX-License-Identifier: Apache-2.0

internal import NetworkPath
internal import Platform

/// One question that is observed, with its present answer.
@AgentQueue
final class WatchedQuestion {
    let question: Question
    /// The lookups that answer it, kept until what they were made of changes; `nil` until made, and for a name without
    /// addresses.
    var inquiry: Inquiry?
    /// `nil` until the first verdict.
    private(set) var path: Path?
    private var observers: [(key: UInt64, observation: PathObservation)] = []

    init(_ question: Question) {
        self.question = question
    }

    /// The name that it is about, if it is about a name.
    var name: String? {
        guard case .host(let target) = question, case .name(let name) = target.host else { return nil }
        return name
    }

    /// Whether nobody observes it any more.
    var isAbandoned: Bool { observers.isEmpty }

    func add(_ observation: PathObservation, key: UInt64) {
        observers.append((key, observation))
    }

    func remove(key: UInt64) {
        observers.removeAll { $0.key == key }
    }

    /// Takes a new verdict, and returns whom to tell: nobody when no one's knowledge differs from it.
    func take(_ path: Path) -> [(key: UInt64, observation: PathObservation)] {
        self.path = path
        return observers
    }
}
