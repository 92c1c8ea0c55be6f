// SPDX-License-Identifier: Apache-2.0

internal import DialtoneConfiguration
internal import DialtoneConnection
internal import DialtoneConnectionIO
internal import DialtoneNetworkPath
internal import DialtonePersistence
internal import DialtonePlatform
internal import DialtoneSystemd
internal import DialtoneVarlink
internal import Glibc
internal import Logging
internal import Reachability

/// The running daemon: the parts, wired together. Everything happens on the agent's queue.
@AgentQueue
final class Agent {
    private let engine: NetworkState
    private let registry: ConnectionRegistry
    private let wakes: WakeContext
    private let network: NetworkService
    private let connections: ConnectionsService
    private let intervals: SavedIntervals
    private let history: History
    private let past: HistoryService
    private let networkCount: NetworkCount
    private let metrics: MetricsService
    private let server: VarlinkServer
    private let decisions: DecisionLog
    private let logger: Logger
    private let burstTrim = BurstTrim()
    private let boundary = NetworkBoundary()
    private let crashes: CrashGuard
    private var costs = CostPolicy()
    private var networkManager: NetworkManagerWatch?
    private var sleep: SleepWatch?
    private var hasResumed = false

    /// The parts under the limits of `configuration`, at work on nothing yet.
    ///
    /// - Parameters:
    ///   - state: where what is learned over days is kept.
    ///   - continuity: where the connections themselves outlive the process; `nil` where they end with it.
    ///   - crashes: who is refused for what became of the processes before.
    ///   - relayPath: where `dialtone-tls` listens, where it is a service of its own.
    ///   - memoryLimits: looked at before the first of the parameters was made that takes much.
    init(
        _ configuration: Configuration, engine: NetworkState, state: SavedState, continuity: Continuity?,
        crashes: CrashGuard, memory memoryLimits: MemoryLimits, relayPath: String?, logger: Logger
    ) {
        self.engine = engine
        self.crashes = crashes
        self.logger = logger
        let system = SystemNetwork(engine)
        intervals = SavedIntervals(state, logger)
        history = History(state, logger)
        let relay = Self.relay(through: RelayConnector(service: relayPath, logger), continuity)
        let context = DialerContext(paths: system, names: system, relay: relay, intervals: intervals.learners)
        engine.mayAsk = { [weak context] user in
            guard let context else { return true }
            // A name has two questions, for the addresses of each family.
            let (account, now) = (Account(of: user), BootClock.now())
            let mayAsk = context.budget.ask(for: account, isPartOfDial: false, now: now)
            return mayAsk && context.budget.ask(for: account, isPartOfDial: true, now: now)
        }
        let wakes = WakeContext()
        self.wakes = wakes
        let memory = MemoryGuard(of: memoryLimits, logger)
        var (limits, events) = (VarlinkServer.Limits(), EventJournal.Room.standard)
        if let memory = memoryLimits.beside {
            limits.fit(into: memory)
            events.fit(into: memory)
        }
        registry = ConnectionRegistry(
            context, wakes, connectionsPerUser: configuration.limits.connectionsPerUser, continuity: continuity,
            memory: memory, events: events)
        decisions = DecisionLog(engine, registry, logger)
        let subscriptions = configuration.limits.subscriptionsPerUser
        network = NetworkService(engine, subscriptionsPerUser: subscriptions, memory: memory)
        network.boundary = boundary
        connections = ConnectionsService(registry, boundary, subscriptionsPerUser: subscriptions, memory: memory)
        wakes.isWatched = { [unowned connections] in connections.isWatched($0, by: $1) }
        past = HistoryService(history, subscriptionsPerUser: subscriptions, memory: memory)
        networkCount = NetworkCount(of: engine, continuity)
        metrics = MetricsService(registry, networkCount, engine, memory: memory)
        let service = VarlinkService(
            vendor: "Dialtone", product: "dialtoned", version: Product.version, url: Product.homepage)
        service.refusal = { crashes.refusal(of: $0.account) }
        network.register(in: service)
        connections.register(in: service)
        past.register(in: service)
        metrics.register(in: service)
        // A user's own daemon is for that user.
        limits.privileged = [0, geteuid()]
        server = VarlinkServer(service, limits: limits)
        server.account = { [boundary] in boundary.subordinates.account(of: $0) }
        server.admission = { peer throws(VarlinkFailure) in try memory.admitOrFail(.client, for: peer.account) }
        memory.countClients(under: limits) { [unowned server] in server.connectionCount }
        server.onIncident = { [logger] incident, leftOut in
            logger.warning(
                "a client was turned away", metadata: ["incident": "\(incident)", "unreported before": "\(leftOut)"])
        }
        follow()
        context.onObjection = { [decisions] in decisions.log(objection: $0, of: $1) }
        context.onAlarmRefused { [logger] failure in
            logger.warning(
                "keepalives with wake_machine do not wake this machine: that takes CAP_WAKE_ALARM",
                metadata: ["error": "\(failure)"])
        }
        networkManager = NetworkManagerWatch { [weak self] metered in
            self?.costs.metered = metered.mapValues { Metering($0) }
            self?.applyCosts()
        }
        tellFailure()
    }

    /// Says so where nothing is known of the network.
    private func tellFailure() {
        guard let failure = engine.failure else { return }
        logger.error(
            "the kernel's network cannot be followed: paths are unknown, connections are dialled without one",
            metadata: ["error": "\(failure)"])
    }

    private static func relay(through connector: RelayConnector, _ continuity: Continuity?) -> RelayAccess {
        let relay = RelayAccess(counts: continuity?.takeCounts()) { () throws(SystemError) in try connector.connect() }
        relay.madeFile = { continuity?.keepCounts($0) }
        return relay
    }

    /// Has each part hear of what concerns it.
    private func follow() {
        history.follow(engine)
        registry.onEvent { [history, unowned registry] in history.heard($0, sequence: registry.journal.latest) }
        registry.onEvent { [burstTrim] _ in burstTrim.noteEvent() }
        engine.onLostAddresses { [registry] in registry.addressesLost($0) }
        engine.onResume { [registry, history, logger] slept in
            history.resumed(after: slept)
            registry.resumed()
            logger.notice(
                "the machine woke from suspend: everything is looked at anew", metadata: ["asleep": "\(slept)"])
        }
        sleep = SleepWatch { [logger] word in
            switch word {
            case .fallingAsleep:
                // Nothing is sent in the last moment: what it would prove is of no worth after the sleep.
                logger.notice("the machine goes to sleep")
                ResumeWatch.shared.sleepWasAnnounced()
            case .awake:
                ResumeWatch.shared.wakeWasAnnounced()
            }
        }
    }

    /// Serves on a socket file of the daemon's own making.
    func listen(at path: String, _ access: SocketAccess) throws(VarlinkSocketError) {
        try server.listen(at: path, mode: access.mode, group: access.group)
        wakes.socketPath = path
        logger.notice("listening", metadata: ["socket": "\(path)", "for": "\(access)"])
    }

    /// Serves on a listening socket that the service manager made.
    func listen(on socket: consuming OwnedDescriptor) throws(SystemError) {
        wakes.serves(on: socket)
        try server.listen(on: socket)
        logger.notice("listening on the service manager's socket")
    }

    /// Makes the configuration's word hold: at the start, and at each reload. What it does not change is not touched.
    ///
    /// - Parameter defaultOwner: to whom connections without an owner belong.
    func apply(_ configuration: Configuration, defaultOwner: UInt32) {
        registry.connectionsPerUser = configuration.limits.connectionsPerUser
        network.subscriptionsPerUser = configuration.limits.subscriptionsPerUser
        connections.subscriptionsPerUser = configuration.limits.subscriptionsPerUser
        past.subscriptionsPerUser = configuration.limits.subscriptionsPerUser
        boundary.admitted = configuration.clients.otherNamespaces
        boundary.subordinates = .ofMachine()
        costs.expensive = configuration.network.expensive
        costs.inexpensive = configuration.network.inexpensive
        costs.constrained = configuration.network.constrained
        applyCosts()
        let wanted = configuration.connections.compactMap { settings -> ConfiguredConnection? in
            let owner = settings.owner ?? defaultOwner
            // The load refused remotes that are none, and what no policy can be made of.
            guard let remote = try? Remote(settings.remote),
                let policy = SettingsCheck(settings.settings, to: remote, owner: owner, wake: settings.wake).policy
            else { return nil }
            return ConfiguredConnection(name: settings.name, policy: policy, owner: owner, wake: settings.wake)
        }
        let isStart = !hasResumed
        resume(wanted)
        for key in registry.reconcile(with: wanted) {
            logger.warning(
                "a client's connection had the name of a configured one of the same owner: it was closed",
                metadata: ["connection": "\(key.name)", "owner": "\(key.owner)"])
        }
        // In the same turn, before a byte of theirs is read.
        for (key, rest) in crashes.connectionsLeftAlone where isStart && registry.leaveAlone(key, for: rest) {
            logger.error(
                "a connection is left alone: what its server sent ended process after process",
                metadata: ["connection": "\(key.name)", "owner": "\(key.owner)", "for": "\(rest)"])
        }
    }

    /// Goes on with what an earlier process left.
    private func resume(_ wanted: [ConfiguredConnection]) {
        guard !hasResumed else { return }
        hasResumed = true
        let resumption = registry.resume(wanted)
        if resumption.connections > 0 {
            logger.notice(
                "going on with the connections of the process before",
                metadata: ["connections": "\(resumption.connections)", "flows": "\(resumption.flows)"])
        }
        if resumption.unclaimed > 0 {
            logger.notice(
                "descriptors that nobody knows were closed", metadata: ["descriptors": "\(resumption.unclaimed)"])
        }
        for key in resumption.lost {
            logger.warning(
                "a connection of the process before cannot be gone on with",
                metadata: ["connection": "\(key.name)", "owner": "\(key.owner)"])
        }
    }

    private func applyCosts() {
        logger.debug("what interfaces cost", metadata: ["costs": "\(costs)"])
        engine.setCosts(costs)
    }

    /// How long subscribers have to read the last events when not all of them went out in one turn. Those that read at
    /// all need a millisecond; the others are not waited for.
    private static let farewell = Duration.milliseconds(100)

    /// Ends everything: connections first, so that their last events reach the subscribers. Then calls `completion`.
    ///
    /// Where a service manager keeps the connections, they are left to it: it closes them when the service is stopped,
    /// and gives them to the next process when it is restarted, and this process cannot know which.
    func stop(_ completion: @escaping @AgentQueue () -> Void) {
        // What the next process goes by is written: nobody may be given anything more, nor have it taken back.
        server.stopAnswering()
        if !registry.stepDown() { registry.closeAll() }
        history.end()
        intervals.save()
        let finish: @AgentQueue () -> Void = { [server] in
            server.close()
            // Among it the ends of flows that clients have.
            UserThreads.awaitAll()
            completion()
        }
        guard connections.isBehind else { return finish() }
        _ = Timers.shared.schedule(after: Self.farewell, finish)
    }
}

extension Metering {
    /// What NetworkManager says, in the words of a path.
    init(_ metered: NetworkManagerWatch.Metered) {
        self =
            switch metered {
            case .yes: .yes
            case .no: .no
            case .guessYes: .guessedYes
            case .guessNo: .guessedNo
            }
    }
}
