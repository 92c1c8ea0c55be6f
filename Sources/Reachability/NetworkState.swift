// SPDX-License-Identifier: Apache-2.0

package import DialtoneNetlink
package import DialtoneNetworkPath
package import DialtonePlatform
package import DialtoneResolver

/// The engine behind the library: follows the kernel, and keeps the path of every observed question current.
///
/// The run-loop contract, all of it on the agent's queue:
/// 1. The kernel monitor reports a change; the pacer says whether it is evaluated in this turn or, in a storm, shortly.
/// 2. An evaluation asks the kernel, in one batch, about the questions that the change may concern by what their
///    verdicts rest on (``VerdictBasis``), and derives each of their paths anew. Nothing is carried over from the last
///    verdict. What the kernel tells of before it does it is looked at again a little later.
/// 3. Observers whose path differs are called, in the order in which they began to observe, within the same turn.
/// 4. Only then are those called who wait for lost addresses: by that time the paths that used them are corrected.
///
/// Where a change concerns more than a turn may take, users take turns, and the rest follows in turns of the queue of
/// its own (``DueQuestions``); so do those of 4.
@AgentQueue
package final class NetworkState {
    /// The engine for the process's own network namespace.
    package static let shared = NetworkState()

    /// Why the kernel cannot be followed; `nil` when it can. All paths are ``Path/Status/unknown`` then.
    package private(set) var failure: SystemError?

    private(set) var kernel: KernelMonitor?

    /// How often the kernel dropped notices since the start; 0 while it cannot be followed.
    package var overruns: Int { kernel?.overruns ?? 0 }
    private let open: () throws(SystemError) -> KernelSockets
    private var startDelay = Duration.seconds(1)
    /// The resolver, which is told of every change of the network.
    package let resolver: Resolver
    let nameFiles: NameFiles
    private(set) var facts: FactFinder?
    private var pacer = EvaluationPacer(now: BootClock.now())
    private(set) var pending = KernelChange()
    var gateways: Set<NetworkSnapshot.Neighbour> = []
    /// How many gateways may be watched before those that no path leads over any more are dropped.
    var toleratedGateways = mostIdleGateways
    private(set) lazy var prober = makeProber()
    /// The gateways of which it is not known yet whether they answer, with the end of the wait.
    var awaited: [NetworkSnapshot.Neighbour: Timers.Timer] = [:]
    /// What waits for the outcome of some of them.
    var awaiting: [(gateways: Set<NetworkSnapshot.Neighbour>, body: @AgentQueue () -> Void)] = []
    /// How many observers want to know how the network is, and not only what becomes of it while somebody else does.
    var askers = 0
    private(set) lazy var secondLook = SecondLook { [weak self] change in
        // What is told by now comes first: the kernel must not be ahead of the snapshot that its answer is held to.
        self?.kernel?.catchUp()
        self?.evaluate(change)
    }

    var watched: [Question: WatchedQuestion] = [:]
    var names: [String: WatchedName] = [:]
    /// The questions that are to be evaluated, of the changes so far.
    var due = DueQuestions()
    /// What waits until all questions up to the one of that number are evaluated.
    private var afterDue: [(number: UInt64, body: @AgentQueue () -> Void)] = []
    /// The names that are to be asked for again.
    private var namesDue: [String] = []
    private var nextObserver: UInt64 = 0
    var isIndexStale = true
    private var retry: Timers.Timer?
    /// Whether a name may be asked for on the account of a user. A question that is nobody's is not counted.
    package var mayAsk: @AgentQueue (_ user: UInt32) -> Bool = { _ in true }
    private var lostAddressHandlers: [@AgentQueue (Set<IPAddress>) -> Void] = []
    private(set) var record: EngineRecord?
    /// The user's word, also while there is no kernel to lay it over.
    private var costs = CostPolicy()
    private var isResuming = false
    private var resumeHandlers: [@AgentQueue (Duration) -> Void] = []

    /// An engine on given sockets, as for another network namespace, with that one's configuration of names.
    ///
    /// - Parameters:
    ///   - nameServerPort: the port of the name servers.
    ///   - resumes: tells of the machine's resumes from suspend.
    package convenience init(
        _ sockets: borrowing KernelSockets, nameFiles: NameFiles = NameFiles(), nameServerPort: UInt16 = 53,
        resumes: ResumeWatch = .shared
    ) {
        let kept = KernelSockets(sharing: sockets)
        self.init(
            opening: { KernelSockets(sharing: kept) }, nameFiles: nameFiles, nameServerPort: nameServerPort,
            resumes: resumes)
    }

    /// An engine for the process's own network namespace.
    ///
    /// - Parameter recorder: records what its verdicts rest on, and the verdicts.
    convenience init(recorder: Recorder? = nil) {
        self.init(opening: { () throws(SystemError) in try KernelSockets(recorder: recorder) })
    }

    /// An engine on sockets that `open` makes, again and again until it can.
    init(
        opening open: @escaping () throws(SystemError) -> KernelSockets, nameFiles: NameFiles = NameFiles(),
        nameServerPort: UInt16 = 53, resumes: ResumeWatch = .shared
    ) {
        self.open = open
        self.nameFiles = nameFiles
        resolver = Resolver(files: nameFiles, port: nameServerPort)
        start()
        resumes.onResume { [weak self] slept in self?.resumed(after: slept) }
    }

    private func start() {
        do throws(SystemError) {
            let kernel = try KernelMonitor(try open())
            record = kernel.recorder.map { EngineRecord($0) }
            kernel.setCosts(costs)
            record?.costs(costs)
            try kernel.start { [weak self] change in self?.kernelChanged(change) }
            // By far most of the routes that expire are the default routes of routers' advertisements.
            kernel.followLifetime(of: RouteQuery(Internet.v6))
            // Only one that is followed: verdicts of another would stand for ever.
            self.kernel = kernel
            facts = FactFinder(nameFiles, resolver) { [weak self] in self?.factsChanged($0) }
            resolver.onAnswer = { [weak self] name, family, answer in
                self?.names[name]?.tracker.overheard(answer, for: family)
            }
            failure = nil
            for watched in watched.values {
                record?.watched(watched.question)
                track(watched, for: watched.users.first ?? nil)
            }
            evaluate(.everything)
        } catch {
            failure = error
            startLater()
        }
    }

    /// No descriptor left, no memory, a security module that is still to be told of this program: most of what refuses
    /// at the start passes. What does not costs a few system calls in five minutes.
    private func startLater() {
        let delay = startDelay
        startDelay = min(delay * 2, Self.longestStartDelay)
        _ = Timers.shared.schedule(after: delay) { [weak self] in self?.start() }
    }

    private static let longestStartDelay = Duration.seconds(300)

    /// What the kernel's network looks like now.
    package var snapshot: NetworkSnapshot { kernel?.snapshot ?? NetworkSnapshot(isCoherent: false) }

    /// Takes the user's word on what interfaces cost.
    package func setCosts(_ costs: CostPolicy) {
        guard costs != self.costs else { return }
        self.costs = costs
        guard let kernel else { return }
        kernel.setCosts(costs)
        record?.costs(costs)
        evaluate(.everything)
    }

    /// Observes the path that answers `question`.
    ///
    /// - Parameters:
    ///   - user: whose questions to the name servers are counted for it (``mayAsk``); `nil` for nobody's.
    ///   - isPassive: whether dead gateways are probed for somebody else's sake only. An observer that writes down what
    ///     it hears keeps nobody awake.
    ///   - handler: is called on the agent's queue, in a later turn, with the path as it is; for a name that is not
    ///     resolved yet, once it is or cannot be, and for one by a gateway that the kernel is asking for, once that
    ///     answers or has failed. Then at each change, with the changes' names. A path that differs in its generation
    ///     only is no change.
    package func observe(
        _ question: Question, for user: UInt32? = nil, isPassive: Bool = false,
        _ handler: @escaping @AgentQueue (Path, [PathChange]) -> Void
    ) -> PathObservation {
        let key = nextObserver
        nextObserver += 1
        let observation = PathObservation(handler) { [weak self] in
            self?.forget(key, of: question)
            if !isPassive { self?.addAskers(-1) }
        }
        if !isPassive { addAskers(1) }
        let watched = watched[question] ?? watch(question, for: user)
        watched.add(observation, for: user, key: key)
        if let name = watched.name { names[name]?.tracker.askIfHeldBack() }
        AgentQueue.async { [weak self] in
            guard let self, observation.path == nil, var path = watched.path, !isAwaited(path, of: watched) else {
                return
            }
            // Somebody else's, who was not allowed to ask for the name. Without a kernel to ask no name is looked up.
            if kernel != nil, watched.name != nil, watched.inquiry == nil, unresolvedPath(for: watched) == nil {
                return
            }
            // What happened since the verdict did not concern it: it is that of the present network.
            if let kernel { path.generation = kernel.snapshot.generation }
            observation.deliver(path)
        }
        return observation
    }

    /// Calls `handler` with addresses that this machine has lost, after the paths were corrected.
    package func onLostAddresses(_ handler: @escaping @AgentQueue (Set<IPAddress>) -> Void) {
        lostAddressHandlers.append(handler)
    }

    /// Calls `handler` after the machine woke from suspend, with how long it slept at least. By then the kernel's state
    /// was read anew, the paths are corrected, and the names are being asked for again.
    package func onResume(_ handler: @escaping @AgentQueue (Duration) -> Void) {
        resumeHandlers.append(handler)
    }

    // MARK: Changes

    /// Whatever was known is from before: another network may have been there for hours.
    private func resumed(after slept: Duration) {
        // Once, and not again for each of the changes that come to light now.
        askForNamesAgain()
        isResuming = true
        kernel?.refresh()
        facts?.startOver()
        evaluate(.everything)
        isResuming = false
        for handler in resumeHandlers { handler(slept) }
    }

    func kernelChanged(_ change: KernelChange) {
        for gateway in change.forgotten { prober.probeNow(gateway, isWanted: askers > 0) }
        guard !change.subjects.isEmpty else { return }
        // A gateway that is waited for goes with its link, too.
        defer { if change.subjects.contains(.neighbours) || !awaiting.isEmpty { endWaits() } }
        pending.merge(change)
        if change.lostAddresses.isEmpty {
            pace()
        } else {
            // The servers' answers may be on their way to one of them. Those of a container's link are nobody's.
            if let kernel, let facts,
                facts.isConcerned(by: ChangeScope(change, in: kernel.snapshot), in: kernel.snapshot)
            {
                resolver.networkChanged()
            }
            // What was bound to them must be dialled again now, and by the right path: no waiting for a token.
            evaluatePending()
            whenEvaluated { [self] in
                // The evaluation may have read that one is back.
                let lost = change.lostAddresses.filter { !snapshot.hasUsable($0) }
                guard !lost.isEmpty else { return }
                for handler in lostAddressHandlers { handler(lost) }
            }
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
        let scope = ChangeScope(change, in: kernel.snapshot)
        due.add(questions(concernedBy: scope, in: kernel.snapshot))
        let isNetworkConcerned = facts.isConcerned(by: scope, in: kernel.snapshot)
        indexDestinations()
        guard isNetworkConcerned || !due.isEmpty else { return }
        // After the verdicts are out, which are waited for.
        defer { secondLook.follow(change) }
        evaluateDue(withNetwork: isNetworkConcerned)
    }

    /// Asks the kernel about the questions whose turn it is, and has the others follow.
    func evaluateDue(withNetwork isNetworkConcerned: Bool = false) {
        guard let kernel, let facts else { return }
        var batch = LookupBatch()
        let factSlots = isNetworkConcerned ? facts.add(to: &batch) : nil
        var portion: [(watched: WatchedQuestion, slot: LookupBatch.Slot?)] = []
        var load = 0
        while load < DueQuestions.lookupsPerTurn, let watched = due.next() {
            if watched.hasOtherAddresses { renewInquiry(of: watched) }
            portion.append((watched, watched.inquiry.map { batch.add($0) }))
            load += max(watched.inquiry?.queries.count ?? 0, 1)
        }
        do throws(SystemError) {
            try batch.run(on: kernel, alsoWatching: &gateways)
            failure = nil
        } catch {
            return fail(with: error)
        }
        let snapshot = kernel.snapshot
        let before = (values: facts.values, network: facts.network)
        if let factSlots { facts.take(factSlots, from: batch, in: snapshot) }
        var verdicts: [(WatchedQuestion, Path)] = []
        verdicts.reserveCapacity(portion.count)
        for (watched, slot) in portion {
            guard let path = slot.map({ batch.path($0, in: snapshot) }) ?? unresolvedPath(for: watched) else {
                continue
            }
            verdicts.append((watched, finished(path, for: watched)))
        }
        if factSlots != nil { verdicts += verdictsOnTheRest(after: before, but: portion.map(\.watched)) }
        tendGateways()
        networkChanged(from: before.network, to: facts.network)
        deliver(verdicts)
        dueWereEvaluated()
    }

    private func dueWereEvaluated() {
        if !due.isEmpty, !due.isScheduled {
            due.isScheduled = true
            AgentQueue.async { [weak self] in
                self?.due.isScheduled = false
                self?.evaluateDue()
            }
        }
        let ready = afterDue.prefix { due.isPast($0.number) }
        afterDue.removeFirst(ready.count)
        for (_, body) in ready { body() }
    }

    /// Calls `body` when the questions that are due now are evaluated; at once where none is.
    private func whenEvaluated(_ body: @escaping @AgentQueue () -> Void) {
        if due.isEmpty { body() } else { afterDue.append((due.newest, body)) }
    }

    private func renewInquiry(of watched: WatchedQuestion) {
        watched.inquiry = inquiry(for: watched, in: snapshot)
        watched.hasOtherAddresses = false
        forgetIndex()
    }

    /// The questions whose verdicts may be altered by a change.
    private func questions(concernedBy scope: ChangeScope, in snapshot: NetworkSnapshot) -> [WatchedQuestion] {
        var concerned: [WatchedQuestion] = []
        // Loops and not closures, here and wherever every question has its turn: a closure of the agent's queue that is
        // given to the standard library asks at each call whether it is on the queue.
        for watched in watched.values {
            guard let inquiry = watched.inquiry, !inquiry.isOutdated(by: scope.change, in: snapshot) else {
                watched.inquiry = inquiry(for: watched, in: snapshot)
                // One without an inquiry is about a name without addresses, and has its verdict from the network's.
                guard watched.inquiry != nil else { continue }
                forgetIndex()
                concerned.append(watched)
                continue
            }
            if inquiry.isConcerned(by: scope) { concerned.append(watched) }
        }
        return concerned
    }

    /// The verdicts that differ with what holds of the network as a whole.
    private func verdictsOnTheRest(
        after before: (values: NetworkFacts, network: Path), but concerned: [WatchedQuestion]
    ) -> [(WatchedQuestion, Path)] {
        guard let facts,
            facts.values != before.values || !facts.network.differsOnlyInGeneration(from: before.network)
        else { return [] }
        let done = Set(concerned.map(ObjectIdentifier.init))
        return watched.values.compactMap { watched in
            guard !done.contains(ObjectIdentifier(watched)), !due.contains(watched) else { return nil }
            let path = watched.inquiry == nil ? unresolvedPath(for: watched) : watched.path
            return path.map { (watched, finished($0, for: watched)) }
        }
    }

    /// Answers one question that was just added; the others are as they were.
    func evaluate(_ watched: WatchedQuestion) {
        guard let kernel else { return deliver([(watched, .unknown(generation: 0, destination: nil))]) }
        renewInquiry(of: watched)
        var path = unresolvedPath(for: watched)
        if let inquiry = watched.inquiry {
            var batch = LookupBatch()
            let slot = batch.add(inquiry)
            do throws(SystemError) {
                try batch.run(on: kernel, alsoWatching: &gateways)
                path = batch.path(slot, in: kernel.snapshot)
                tendGateways()
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
        due.removeAll()
        deliver(watched.values.map { ($0, unknown) })
        dueWereEvaluated()
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
        let isDNSBack = path.supportsDNS && !earlier.supportsDNS
        guard isDNSBack || !Self.namesDependOn.isDisjoint(with: path.changes(from: earlier)) else { return }
        askForNamesAgain()
    }

    /// The changes of the network after which a name may stand for other addresses, or for some at last.
    private static let namesDependOn: Set<PathChange> = [.status, .interface, .gateway, .source]

    private func askForNamesAgain() {
        guard !isResuming else { return }
        resolver.networkChanged()
        let waiting = Set(namesDue)
        namesDue += names.keys.filter { !waiting.contains($0) }
        if waiting.isEmpty { askForNamesDue() }
    }

    /// How many names are asked for in one turn: two packets each, some 50 µs in all.
    private static let namesPerTurn = 64

    private func askForNamesDue() {
        let portion = namesDue.prefix(Self.namesPerTurn)
        namesDue.removeFirst(portion.count)
        for name in portion { names[name]?.tracker.networkChanged() }
        if !namesDue.isEmpty { AgentQueue.async { [weak self] in self?.askForNamesDue() } }
    }

    private func factsChanged(_ change: FactFinder.Change) {
        switch change {
        case .facts:
            evaluate(.everything)
        case .names:
            // The servers are other destinations.
            forgetIndex()
            askForNamesAgain()
            evaluate(.everything)
        case .hostsFile:
            for name in names.values { name.tracker.hostsFileChanged() }
        }
    }

    /// What is common to all verdicts.
    func finished(_ path: Path, for watched: WatchedQuestion) -> Path {
        var path = path.with(facts?.values ?? NetworkFacts(), for: watched.question)
        if let kernel { path.generation = kernel.snapshot.generation }
        return path
    }

    /// The path to a name without addresses; `nil` while the first answer is still to come.
    private func unresolvedPath(for watched: WatchedQuestion) -> Path? {
        guard let name = watched.name, let facts else { return nil }
        switch names[name]?.tracker.state {
        case .unresolved(let isFinal): return .unresolved(network: facts.network, isFinal: isFinal)
        // A network without a default route may have a name server, and the host. Where nobody can be asked there is
        // nothing to wait for.
        case .pending where facts.canAskForNames || resolver.isInHostsFile(name): return nil
        case .pending, .resolved, nil: return .unresolved(network: facts.network)
        }
    }

    private func deliver(_ verdicts: [(WatchedQuestion, Path)]) {
        let verdicts = kernel?.counted(verdicts) ?? verdicts
        if let facts { record?.evaluated(verdicts, facts) }
        var calls = ObserverCalls()
        for (watched, path) in verdicts {
            watched.take(path, isAwaited: isAwaited(path, of: watched), calling: &calls)
        }
        limitWaits()
        calls.make()
    }
}
