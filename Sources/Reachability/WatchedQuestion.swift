// SPDX-License-Identifier: Apache-2.0

internal import DialtoneNetlink
internal import DialtoneNetworkPath
internal import DialtonePlatform

/// One question that is observed, with its present answer.
@AgentQueue
final class WatchedQuestion {
    let question: Question
    /// The lookups that answer it, kept until what they were made of changes; `nil` until made, and for a name without
    /// addresses.
    var inquiry: Inquiry?
    /// Whether its name stands for others than ``inquiry`` was made of.
    var hasOtherAddresses = false
    /// `nil` until the first verdict.
    private(set) var path: Path?
    private var observers: [(key: UInt64, user: UInt32?, observation: PathObservation)] = []

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

    /// Whose questions to the name servers are counted for it; `nil` for nobody's.
    var users: [UInt32?] { observers.map(\.user) }

    /// The one who has waited for it longest; `nil` for nobody in particular.
    var user: UInt32? { observers.first?.user }

    func add(_ observation: PathObservation, for user: UInt32?, key: UInt64) {
        observers.append((key, user, observation))
    }

    func remove(key: UInt64) {
        observers.removeAll { $0.key == key }
    }

    /// Takes a new verdict. The observers are to be called unless it differs from the last in its generation alone.
    ///
    /// - Parameter isAwaited: whether the outcome of a question to the gateway is still to come. An observer that knows
    ///   nothing waits for it.
    func take(_ path: Path, isAwaited: Bool, calling calls: inout ObserverCalls) {
        let isNews = self.path == nil || self.path?.differsOnlyInGeneration(from: path) == false
        self.path = path
        for (key, _, observation) in observers where observation.path == nil ? !isAwaited : isNews {
            calls.add(observation, of: self, key: key)
        }
    }
}

/// The calls of observers that a round of verdicts makes, in the order in which the observers began.
@AgentQueue
struct ObserverCalls {
    private var calls: [(observation: PathObservation, watched: WatchedQuestion)] = []
    private var order: [(key: UInt64, position: Int)] = []

    /// Adds a call.
    mutating func add(_ observation: PathObservation, of watched: WatchedQuestion, key: UInt64) {
        order.append((key, calls.count))
        calls.append((observation, watched))
    }

    /// Makes them.
    func make() {
        for (_, position) in Self.sorted(order) {
            let (observation, watched) = calls[position]
            // Asked for now: one called before may have caused a newer verdict, which must not be overtaken by this.
            if let path = watched.path { observation.deliver(path) }
        }
    }

    // Outside of the actor, and of numbers alone: a comparison of the agent's queue asks each time whether it is there.
    private nonisolated static func sorted(_ order: [(key: UInt64, position: Int)]) -> [(key: UInt64, position: Int)] {
        order.sorted { $0.key < $1.key }
    }
}

/// One name, with the questions about it.
struct WatchedName {
    let tracker: NameTracker
    var questions: [WatchedQuestion] = []
}

extension KernelMonitor {
    /// These verdicts, of a generation of their own where one differs from its last and is of the same generation: two
    /// paths of one generation are equal (``NetworkPath/Path/generation``). So is counted what the kernel does not tell
    /// of: other name servers, their silence, another address of a name, and a change that only a second look shows.
    @AgentQueue
    func counted(_ verdicts: [(WatchedQuestion, Path)]) -> [(WatchedQuestion, Path)] {
        let isSilent = verdicts.contains { watched, path in
            watched.path.map { $0.generation == path.generation && $0 != path } ?? false
        }
        guard isSilent else { return verdicts }
        countChange()
        return verdicts.map { watched, path in
            var path = path
            path.generation = snapshot.generation
            return (watched, path)
        }
    }
}
