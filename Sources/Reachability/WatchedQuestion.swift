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

    /// Takes a new verdict, and returns whom to tell: nobody when it differs from the last in its generation alone.
    func take(_ path: Path) -> [(key: UInt64, observation: PathObservation)] {
        let earlier = self.path
        self.path = path
        return earlier?.differsOnlyInGeneration(from: path) == true ? [] : observers
    }
}

/// One name, with the questions about it.
struct WatchedName {
    let tracker: NameTracker
    var questions: [WatchedQuestion] = []
}

extension Path {
    /// Whether nothing changed by the verdict of this path; without the list of names that ``changes(from:)`` makes.
    func differsOnlyInGeneration(from other: Path) -> Bool {
        var other = other
        other.generation = generation
        return self == other
    }
}
