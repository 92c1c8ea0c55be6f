// SPDX-License-Identifier: Apache-2.0

package import Netlink
package import NetworkPath
package import Platform
package import Resolver

/// The engine behind the library: follows the kernel, and keeps the path of every observed question current.
///
/// The run-loop contract, all of it on the agent's queue:
/// 1. The kernel monitor reports a change; the pacer says whether it is evaluated in this turn or, in a storm, shortly.
/// 2. An evaluation asks the kernel, in one batch, about the questions that the change may concern, and derives each of
///    their paths anew. Nothing is carried over from the last verdict, so no event that the kernel kept to itself can
///    leave a wrong one standing.
/// 3. Observers whose path differs are called, in the order in which they began to observe, within the same turn.
/// 4. Only then are those called who wait for lost addresses: by that time the paths that used them are corrected.
@AgentQueue
package final class NetworkState {
    /// The engine for the process's own network namespace.
    package static let shared = NetworkState()

    /// Why the kernel cannot be followed; `nil` when it can. All paths are ``Path/Status/unknown`` then.
    package private(set) var failure: SystemError?

    private var kernel: KernelMonitor?
    /// The resolver, which is told of every change of the network.
    package let resolver = Resolver()
    private var facts: FactFinder?
    private var pacer = EvaluationPacer(now: BootClock.now())
    private var pending = KernelChange()
    let prober = GatewayProber()
    private var gateways: Set<NetworkSnapshot.Neighbour> = []

    private var watched: [Question: WatchedQuestion] = [:]
    private var names: [String: WatchedName] = [:]
    private var nextObserver: UInt64 = 0
    private var isIndexStale = true
    private var retry: Timers.Timer?
    private var lostAddressHandlers: [@AgentQueue (Set<IPAddress>) -> Void] = []
    private(set) var record: EngineRecord?

    /// An engine on given sockets, as for another network namespace.
    package init(_ sockets: borrowing KernelSockets) {
        start(sockets)
    }

    /// An engine for the process's own network namespace.
    ///
    /// - Parameter recorder: records what its verdicts rest on, and the verdicts.
    init(recorder: Recorder? = nil) {
        do throws(SystemError) {
            start(try KernelSockets(recorder: recorder))
        } catch {
            failure = error
        }
    }

    private func start(_ sockets: borrowing KernelSockets) {
        do throws(SystemError) {
            let kernel = try KernelMonitor(sockets)
            record = kernel.recorder.map { EngineRecord($0) }
            try kernel.start(on: AgentQueue.queue) { [weak self] change, _ in
                AgentQueue.assumeIsolated { self?.kernelChanged(change) }
            }
            // Only one that is followed: verdicts of another would stand for ever.
            self.kernel = kernel
            facts = FactFinder { [weak self] in self?.evaluate(.everything) }
            evaluate(.everything)
        } catch {
            failure = error
        }
    }

    /// What the kernel's network looks like now.
    package var snapshot: NetworkSnapshot { kernel?.snapshot ?? NetworkSnapshot(isCoherent: false) }

    /// Takes the user's word on what interfaces cost.
    package func setCosts(_ costs: CostPolicy) {
        guard let kernel, kernel.snapshot.costs != costs else { return }
        kernel.setCosts(costs)
        record?.costs(costs)
        evaluate(.everything)
    }

    /// Observes the path that answers `question`.
    ///
    /// - Parameter handler: is called on the agent's queue, in a later turn, with the path as it is; for a name that is
    ///   not resolved yet, once it is or cannot be. Then at each change, with the changes' names. A path that differs
    ///   in its generation only is no change.
    package func observe(
        _ question: Question, _ handler: @escaping @AgentQueue (Path, [PathChange]) -> Void
    ) -> PathObservation {
        let key = nextObserver
        nextObserver += 1
        let observation = PathObservation(handler) { [weak self] in self?.forget(key, of: question) }
        let watched = watched[question] ?? watch(question)
        watched.add(observation, key: key)
        AgentQueue.async {
            if observation.path == nil, let path = watched.path { observation.deliver(path) }
        }
        return observation
    }

    /// The addresses of a target's host in the order in which to try them: those that can be reached first, and among
    /// them as they were given. Where the kernel cannot be asked, as they were given.
    package func ordered(_ addresses: [IPAddress], for target: Target) -> [IPAddress] {
        guard addresses.count > 1, let kernel else { return addresses }
        let snapshot = kernel.snapshot
        var batch = LookupBatch()
        let slots = addresses.map { batch.add(Inquiry(target, at: [$0], in: snapshot)) }
        guard let watched = try? batch.run(on: kernel, alsoWatching: gateways) else { return addresses }
        gateways = watched
        let isReachable = slots.map { batch.path($0, in: kernel.snapshot).status == .satisfied }
        let ranked = zip(addresses, isReachable)
        return ranked.filter(\.1).map(\.0) + ranked.filter { !$0.1 }.map(\.0)
    }

    /// Calls `handler` with addresses that this machine has lost, after the paths were corrected.
    package func onLostAddresses(_ handler: @escaping @AgentQueue (Set<IPAddress>) -> Void) {
        lostAddressHandlers.append(handler)
    }

    // MARK: Changes

    private func kernelChanged(_ change: KernelChange) {
        pending.merge(change)
        if change.lostAddresses.isEmpty {
            pace()
        } else {
            // Flows bound to them must be closed now, and dialled again by the right path: no waiting for a token.
            resolver.networkChanged()
            evaluatePending()
            for handler in lostAddressHandlers { handler(change.lostAddresses) }
        }
    }

    private func pace() {
        switch pacer.changed(now: BootClock.now()) {
        case .now: evaluatePending()
        case .alreadyDue: break
        case .at(let instant):
            _ = Timers.shared.schedule(at: instant) { [weak self] in
                self?.pacer.evaluated(now: BootClock.now())
                self?.evaluatePending()
            }
        }
    }

    private func evaluatePending() {
        // Lost addresses were evaluated at once, and took what was due along.
        guard !pending.isEmpty else { return }
        let change = pending
        pending = KernelChange()
        evaluate(change)
    }

    // MARK: Evaluation

    /// Asks the kernel about everything observed that `change` may concern, and tells those whose path differs.
    private func evaluate(_ change: KernelChange) {
        guard let kernel, let facts else { return }
        let isRemade = !change.subjects.isDisjoint(with: [.interfaces, .addresses])
        var concerned: [WatchedQuestion] = []
        for watched in watched.values {
            if isRemade || watched.inquiry == nil { watched.inquiry = inquiry(for: watched, in: kernel.snapshot) }
            if watched.inquiry?.mayDiffer(after: change) ?? true { concerned.append(watched) }
        }
        if isRemade { forgetIndex() }
        indexDestinations()
        var batch = LookupBatch()
        let isNetworkConcerned = facts.destinations.contains(where: change.mayConcern)
        let factSlots = isNetworkConcerned ? facts.add(to: &batch) : nil
        let slots = concerned.map { watched in watched.inquiry.map { batch.add($0) } }
        do throws(SystemError) {
            // A change of routes leaves the gateways of other targets in use; they are dropped at the next full round.
            gateways = try batch.run(on: kernel, alsoWatching: isRemade ? [] : gateways)
            failure = nil
        } catch {
            return fail(with: error)
        }
        let snapshot = kernel.snapshot
        prober.probe(snapshot.failedNeighbours)
        let before = (facts.values, facts.network)
        if let factSlots { facts.take(factSlots, from: batch, in: snapshot) }
        networkChanged(from: before.1, to: facts.network)
        var verdicts: [(WatchedQuestion, Path)] = []
        for (watched, slot) in zip(concerned, slots) {
            let path = slot.map { batch.path($0, in: snapshot) } ?? unresolvedPath(for: watched)
            if let path { verdicts.append((watched, finished(path, for: watched))) }
        }
        if facts.values != before.0 {
            // They are part of every path.
            let others = Set(concerned.map(ObjectIdentifier.init))
            for watched in watched.values where !others.contains(ObjectIdentifier(watched)) {
                if let path = watched.path { verdicts.append((watched, finished(path, for: watched))) }
            }
        }
        deliver(verdicts)
    }

    /// Answers one question that was just added, or whose name's addresses changed; the others are as they were.
    private func evaluate(_ watched: WatchedQuestion) {
        guard let kernel else { return deliver([(watched, .unknown(generation: 0, destination: nil))]) }
        watched.inquiry = inquiry(for: watched, in: kernel.snapshot)
        forgetIndex()
        var path = unresolvedPath(for: watched)
        if let inquiry = watched.inquiry {
            var batch = LookupBatch()
            let slot = batch.add(inquiry)
            do throws(SystemError) {
                gateways = try batch.run(on: kernel, alsoWatching: gateways)
                prober.probe(kernel.snapshot.failedNeighbours)
                path = batch.path(slot, in: kernel.snapshot)
            } catch {
                path = .unknown(generation: kernel.snapshot.generation, destination: nil)
                tryAgain(after: error)
            }
        }
        if let path { deliver([(watched, finished(path, for: watched))]) }
    }

    private func fail(with error: SystemError) {
        tryAgain(after: error)
        let unknown = Path.unknown(generation: snapshot.generation, destination: nil)
        facts?.fail(with: unknown)
        deliver(watched.values.map { ($0, unknown) })
    }

    /// Whatever kept the kernel from answering (a full buffer, no memory), the verdicts must come back without another
    /// change: the next one may be hours away. One timer, however many questions failed.
    private func tryAgain(after error: SystemError) {
        failure = error
        guard retry == nil else { return }
        retry = Timers.shared.schedule(after: .seconds(1)) { [weak self] in
            self?.retry = nil
            self?.evaluate(.everything)
        }
    }

    private func networkChanged(from earlier: Path, to path: Path) {
        guard !Self.namesDependOn.isDisjoint(with: path.changes(from: earlier)) else { return }
        resolver.networkChanged()
        for name in names.values { name.tracker.networkChanged() }
    }

    /// The changes of the network after which a name may stand for other addresses, or for some at last.
    private static let namesDependOn: Set<PathChange> = [.status, .interface, .gateway, .source, .dns]

    /// What is common to all verdicts.
    private func finished(_ path: Path, for watched: WatchedQuestion) -> Path {
        var path = path.with(facts?.values ?? NetworkFacts())
        // "The network" has no destination; the address it was looked up with is nobody's concern.
        if case .network = watched.question { path.destination = nil }
        return path
    }

    /// The path to a name without addresses; `nil` while the first answer is still to come.
    private func unresolvedPath(for watched: WatchedQuestion) -> Path? {
        guard let name = watched.name, let facts else { return nil }
        if names[name]?.tracker.state == .pending, facts.network.status == .satisfied { return nil }
        return .unresolved(network: facts.network)
    }

    private func deliver(_ verdicts: [(WatchedQuestion, Path)]) {
        if let facts { record?.evaluated(verdicts, facts) }
        var calls: [(key: UInt64, observation: PathObservation, watched: WatchedQuestion)] = []
        for (watched, path) in verdicts {
            calls += watched.take(path).map { ($0.key, $0.observation, watched) }
        }
        for call in calls.sorted(by: { $0.key < $1.key }) {
            // Asked for now: one called before may have caused a newer verdict, which must not be overtaken by this.
            if let path = call.watched.path { call.observation.deliver(path) }
        }
    }

    // MARK: Watching

    private func watch(_ question: Question) -> WatchedQuestion {
        let watched = WatchedQuestion(question)
        self.watched[question] = watched
        record?.watched(question)
        // Where the kernel cannot be asked, the addresses of a name would be of no use.
        if kernel != nil, let name = watched.name {
            names[name, default: watch(name)].questions.append(watched)
        }
        evaluate(watched)
        return watched
    }

    private func watch(_ name: String) -> WatchedName {
        let tracker = NameTracker(name, by: resolver) { [weak self] in
            guard let self, let tracked = names[name] else { return }
            record?.name(name, is: tracked.tracker.state)
            for watched in tracked.questions { evaluate(watched) }
        }
        record?.name(name, is: tracker.state)
        return WatchedName(tracker: tracker)
    }

    private func forget(_ key: UInt64, of question: Question) {
        guard let watched = watched[question] else { return }
        watched.remove(key: key)
        guard watched.isAbandoned else { return }
        self.watched[question] = nil
        record?.forgot(question)
        forgetIndex()
        guard let name = watched.name else { return }
        names[name]?.questions.removeAll { $0 === watched }
        if names[name]?.questions.isEmpty == true { names.removeValue(forKey: name)?.tracker.stop() }
    }

    /// The lookups for a question; `nil` when it is about a name without addresses.
    private func inquiry(for watched: WatchedQuestion, in snapshot: NetworkSnapshot) -> Inquiry? {
        switch watched.question {
        case .network(let requirement):
            return Inquiry(network: requirement, in: snapshot)
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
    private func indexDestinations() {
        guard isIndexStale, let facts else { return }
        isIndexStale = false
        let watched = watched.values.compactMap(\.inquiry).flatMap(\.destinations)
        kernel?.watch(destinations: DestinationIndex(watched + facts.destinations))
    }

    /// All route changes count until the index is made anew.
    private func forgetIndex() {
        guard !isIndexStale else { return }
        isIndexStale = true
        kernel?.watch(destinations: nil)
    }
}
