// SPDX-License-Identifier: Apache-2.0

package import NetworkPath
package import Netlink
package import Platform
internal import Resolver

/// The engine behind the library: follows the kernel, and keeps the path of every observed question current.
///
/// The run-loop contract, all of it on the agent's queue:
/// 1. The kernel monitor reports a change; the pacer says whether it is evaluated in this turn or, in a storm, shortly.
/// 2. An evaluation asks the kernel about all questions in one batch and derives each path anew. Nothing is carried over
///    from the last verdict, so no event that the kernel kept to itself can leave a wrong one standing.
/// 3. Observers whose path differs are called, in the order in which they began to observe, within the same turn.
/// 4. Only then are those called who wait for lost addresses: by that time the paths that used them are corrected.
@AgentQueue
package final class NetworkState {
    /// The engine for the process's own network namespace.
    package static let shared = NetworkState()

    /// Why the kernel cannot be followed; `nil` when it can. All paths are ``Path/Status/unknown`` then.
    package private(set) var failure: SystemError?

    private var kernel: KernelMonitor?
    private let resolver = Resolver()
    private var nameServerWatch: NameServerWatch?
    private var nameServers: [IPAddress] = []
    private var pacer = EvaluationPacer(now: BootClock.now())
    private var pacerTimer: Timers.Timer?
    private let prober = GatewayProber()

    private var watched: [Question: WatchedQuestion] = [:]
    private var names: [String: NameTracker] = [:]
    private var nextObserver: UInt64 = 0
    private var lostAddressHandlers: [@AgentQueue (Set<IPAddress>) -> Void] = []
    private var gateways: Set<NetworkSnapshot.Neighbour> = []
    private var network = Path(status: .unknown)
    private var facts = NetworkFacts()

    /// An engine on given sockets, as for another network namespace.
    package init(_ sockets: borrowing KernelSockets) {
        start(sockets)
    }

    private init() {
        do throws(SystemError) {
            start(try KernelSockets())
        } catch {
            failure = error
        }
    }

    private func start(_ sockets: borrowing KernelSockets) {
        do throws(SystemError) {
            let kernel = try KernelMonitor(sockets)
            self.kernel = kernel
            try kernel.start(on: AgentQueue.queue) { [weak self] change, _ in
                AgentQueue.assumeIsolated { self?.kernelChanged(change) }
            }
            // Without inotify (a user's instances are limited) the servers stay those of the start: the verdicts on hosts
            // do not depend on them, so this is no reason to have none.
            nameServerWatch = try? NameServerWatch { [weak self] servers in
                self?.nameServers = servers
                self?.evaluate()
            }
            nameServers = nameServerWatch?.servers ?? []
            evaluate()
        } catch {
            failure = error
        }
    }

    /// What the kernel's network looks like now.
    package var snapshot: NetworkSnapshot { kernel?.snapshot ?? NetworkSnapshot(isCoherent: false) }

    /// What the user says of the cost of interfaces.
    package func setCosts(_ costs: CostPolicy) {
        guard let kernel, kernel.snapshot.costs != costs else { return }
        kernel.setCosts(costs)
        evaluate()
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
        if watched[question] == nil { watch(question) }
        watched[question]?.observers.append((key, observation))
        AgentQueue.async { [weak self] in
            if observation.path == nil, let path = self?.watched[question]?.path { observation.deliver(path) }
        }
        return observation
    }

    /// Calls `handler` with addresses that this machine has lost, after the paths were corrected.
    package func onLostAddresses(_ handler: @escaping @AgentQueue (Set<IPAddress>) -> Void) {
        lostAddressHandlers.append(handler)
    }

    // MARK: Changes

    private func kernelChanged(_ change: KernelChange) {
        if change.lostAddresses.isEmpty {
            pace()
        } else {
            // Flows bound to them must be closed now, and dialled again by the right path: no waiting for a token.
            resolver.networkChanged()
            evaluate()
            for handler in lostAddressHandlers { handler(change.lostAddresses) }
        }
    }

    private func pace() {
        switch pacer.changed(now: BootClock.now()) {
        case .now: evaluate()
        case .alreadyDue: break
        case .at(let instant):
            pacerTimer = Timers.shared.schedule(at: instant) { [weak self] in
                self?.pacer.evaluated(now: BootClock.now())
                self?.evaluate()
            }
        }
    }

    // MARK: Evaluation

    /// Asks the kernel about everything that is observed and tells those whose path differs.
    private func evaluate() {
        guard let kernel else { return }
        let before = kernel.snapshot
        var batch = LookupBatch()
        let internet = batch.add(Inquiry(network: .any, in: before))
        let servers = nameServers.map { server in
            (server, batch.add(Inquiry(Target(.address(server), port: 53, transport: .udp), at: [server], in: before)))
        }
        var slots: [Question: LookupBatch.Slot] = [:]
        for question in watched.keys { slots[question] = inquiry(for: question, in: before).map { batch.add($0) } }
        do throws(SystemError) {
            gateways = try batch.run(on: kernel)
            failure = nil
        } catch {
            return fail(with: error, generation: before.generation)
        }
        let snapshot = kernel.snapshot
        prober.probe(snapshot.failedNeighbours)
        facts.supportsIPv4 = batch.reaches(.v4, by: internet, in: snapshot)
        facts.supportsIPv6 = batch.reaches(.v6, by: internet, in: snapshot)
        facts.supportsDNS = servers.contains { server, slot in
            // A stub on this machine (systemd-resolved, dnsmasq) is as good as what lies behind it.
            batch.path(slot, in: snapshot).status == .satisfied
                && (!server.isLoopback || facts.supportsIPv4 || facts.supportsIPv6)
        }
        update(network: batch.path(internet, in: snapshot).with(facts))
        deliver(
            watched.keys.compactMap { question in
                let path = slots[question].map { batch.path($0, in: snapshot) } ?? unresolvedPath(for: question)
                return path.map { (question, finished($0, for: question)) }
            })
    }

    /// Answers one question that was just added; the others are as they were.
    private func evaluate(_ question: Question) {
        guard let kernel else { return deliver([(question, .unknown(generation: 0, destination: nil))]) }
        var path = unresolvedPath(for: question)
        if let inquiry = inquiry(for: question, in: kernel.snapshot) {
            var batch = LookupBatch()
            let slot = batch.add(inquiry)
            do throws(SystemError) {
                gateways = try batch.run(on: kernel, alsoWatching: gateways)
                prober.probe(kernel.snapshot.failedNeighbours)
                path = batch.path(slot, in: kernel.snapshot)
            } catch {
                failure = error
                path = .unknown(generation: kernel.snapshot.generation, destination: nil)
            }
        }
        if let path { deliver([(question, finished(path, for: question))]) }
    }

    private func fail(with error: SystemError, generation: UInt64) {
        failure = error
        facts = NetworkFacts()
        let unknown = Path.unknown(generation: generation, destination: nil)
        update(network: unknown)
        deliver(watched.keys.map { ($0, unknown) })
    }

    private func update(network path: Path) {
        let changes = path.changes(from: network)
        network = path
        guard !Self.namesDependOn.isDisjoint(with: changes) else { return }
        resolver.networkChanged()
        for tracker in names.values { tracker.networkChanged() }
    }

    /// The changes of the network after which a name may stand for other addresses, or for some at last.
    private static let namesDependOn: Set<PathChange> = [.status, .interface, .gateway, .source, .dns]

    /// What is common to all verdicts.
    private func finished(_ path: Path, for question: Question) -> Path {
        var path = path.with(facts)
        // "The network" has no destination; the address it was looked up with is nobody's concern.
        if case .network = question { path.destination = nil }
        return path
    }

    /// The path to a name without addresses; `nil` while the first answer is still to come.
    private func unresolvedPath(for question: Question) -> Path? {
        guard case .host(let target) = question, case .name(let name) = target.host else { return nil }
        if names[name]?.state == .pending, network.status == .satisfied { return nil }
        return .unresolved(network: network)
    }

    private func deliver(_ paths: [(Question, Path)]) {
        var calls: [(key: UInt64, observation: PathObservation, path: Path)] = []
        for (question, path) in paths {
            guard let watched = watched[question] else { continue }
            watched.path = path
            calls += watched.observers.map { ($0.key, $0.observation, path) }
        }
        for call in calls.sorted(by: { $0.key < $1.key }) { call.observation.deliver(call.path) }
    }

    /// The lookups for `question`; `nil` when it is about a name without addresses.
    private func inquiry(for question: Question, in snapshot: NetworkSnapshot) -> Inquiry? {
        switch question {
        case .network(let requirement):
            return Inquiry(network: requirement, in: snapshot)
        case .host(let target):
            switch target.host {
            case .address(let address): return Inquiry(target, at: [address], in: snapshot)
            case .name(let name):
                guard case .resolved(let addresses)? = names[name]?.state else { return nil }
                return Inquiry(target, at: addresses, in: snapshot)
            }
        }
    }

    // MARK: Watching

    private func watch(_ question: Question) {
        watched[question] = WatchedQuestion()
        if case .host(let target) = question, case .name(let name) = target.host, names[name] == nil {
            names[name] = NameTracker(name, by: resolver) { [weak self] in self?.evaluate() }
        }
        evaluate(question)
    }

    private func forget(_ key: UInt64, of question: Question) {
        guard let watched = watched[question] else { return }
        watched.observers.removeAll { $0.key == key }
        guard watched.observers.isEmpty else { return }
        self.watched[question] = nil
        guard case .host(let target) = question, case .name(let name) = target.host else { return }
        let isStillWatched = self.watched.keys.contains { other in
            if case .host(let target) = other { target.host == .name(name) } else { false }
        }
        if !isStillWatched { names.removeValue(forKey: name)?.stop() }
    }
}

/// One question that is observed, with its present answer.
@AgentQueue
private final class WatchedQuestion {
    var path: Path?
    var observers: [(key: UInt64, observation: PathObservation)] = []
}
