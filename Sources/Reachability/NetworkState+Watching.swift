// SPDX-License-Identifier: Apache-2.0

internal import DialtoneNetlink
internal import DialtoneNetworkPath
internal import DialtonePlatform

/// What is observed: the questions, the names that they mention, and the lookups that answer them.
extension NetworkState {
    func watch(_ question: Question, for user: UInt32?) -> WatchedQuestion {
        let watched = WatchedQuestion(question)
        self.watched[question] = watched
        record?.watched(question)
        track(watched, for: user)
        evaluate(watched)
        return watched
    }

    /// Follows the addresses of the question's name, if it is about one.
    func track(_ watched: WatchedQuestion, for user: UInt32?) {
        // Where the kernel cannot be asked, they would be of no use.
        guard kernel != nil, let name = watched.name else { return }
        // Not as a default of the subscript: the first question looks at `names` itself, for who may ask.
        if names[name] == nil { names[name] = watch(name, for: user) }
        names[name]?.questions.append(watched)
    }

    private func watch(_ name: String, for user: UInt32?) -> WatchedName {
        let mayAsk: @AgentQueue () -> Bool = { [weak self] in self?.mayAsk(about: name, orFor: user) ?? false }
        let tracker = NameTracker(name, by: resolver, mayAsk: mayAsk) { [weak self] in
            guard let self, let tracked = names[name] else { return }
            record?.name(name, is: tracked.tracker.state)
            for watched in tracked.questions { watched.hasOtherAddresses = true }
            due.add(tracked.questions)
            if !due.isScheduled { evaluateDue() }
        }
        record?.name(name, is: tracker.state)
        return WatchedName(tracker: tracker)
    }

    /// Any of those who watch a name, or the newcomer, may pay: one whose budget is used up costs the others nothing.
    private func mayAsk(about name: String, orFor newcomer: UInt32?) -> Bool {
        let users = Set(names[name]?.questions.flatMap(\.users) ?? [])
        return (users.isEmpty ? [newcomer] : users).contains { user in
            if let user { mayAsk(user) } else { true }
        }
    }

    func forget(_ key: UInt64, of question: Question) {
        guard let watched = watched[question] else { return }
        watched.remove(key: key)
        guard watched.isAbandoned else { return }
        due.remove(watched)
        self.watched[question] = nil
        record?.forgot(question)
        forgetIndex()
        guard let name = watched.name else { return }
        names[name]?.questions.removeAll { $0 === watched }
        if names[name]?.questions.isEmpty == true { names.removeValue(forKey: name)?.tracker.stop() }
    }

    /// The lookups for a question; `nil` when it is about a name without addresses.
    func inquiry(for watched: WatchedQuestion, in snapshot: NetworkSnapshot) -> Inquiry? {
        switch watched.question {
        case .network(let requirement, let user):
            return Inquiry(network: requirement, user: user, in: snapshot)
        case .host(let target):
            switch target.host {
            case .address(let address): return Inquiry(target, at: [address], in: snapshot)
            case .name(let name):
                guard case .resolved(let addresses)? = names[name]?.tracker.state else { return nil }
                return Inquiry(target, at: addresses, in: snapshot)
            }
        }
    }

    /// Has the kernel monitor drop the route changes that concern nobody. Made within a round, which looks at every
    /// question anyway, and not as each comes or goes: a thousand connections are opened one by one.
    func indexDestinations() {
        guard isIndexStale, let facts else { return }
        isIndexStale = false
        let watched = watched.values.compactMap(\.inquiry).flatMap(\.destinations)
        kernel?.watch(destinations: DestinationIndex(watched + facts.destinations))
    }

    /// All route changes count until the index is made anew.
    func forgetIndex() {
        guard !isIndexStale else { return }
        isIndexStale = true
        kernel?.watch(destinations: nil)
    }
}
