// SPDX-License-Identifier: Apache-2.0

internal import DialtoneAPI
internal import DialtoneBus
internal import DialtoneClient
internal import DialtoneConfiguration
internal import DialtoneDistributor
internal import DialtonePlatform
internal import DialtonePushAPI
internal import DialtonePushStore
internal import DialtoneSystemd
internal import DialtoneVarlink
internal import Logging

/// Push: the distributor with its store, its server's connection and its face on the session bus. It does what the
/// distributor says, in its order: what changes is saved first, and then the rest is done.
@AgentQueue
final class PushService {
    /// What is counted since the start.
    private(set) var counters = PushAPI.Counters(arrived: 0, taken: 0, givenUp: 0, failedTries: 0)
    /// How it stands with the distributor's name on the session bus; `nil` while there is no bus.
    private(set) var nameState: BusConnection.NameState?
    /// Why messages cannot be saved just now; `nil` while they can.
    private(set) var storageTrouble: String?
    /// Why the server refuses the account; `nil` while it does not.
    private(set) var refusal: String?
    private(set) var distributor: Distributor
    private(set) var link: PushLink?
    private(set) var settings: PushSettings?

    /// Told what happened, after it was logged.
    var onReport: (@AgentQueue (DistributorReport) -> Void)?

    private let logger: Logger
    private var store: PushStore
    /// What each server's value goes on from.
    private var memories: [ServerName: [UInt8]]
    private let client = DialtoneClient()
    private let inhibitor = SleepInhibitor()
    private var apps: AppBus?
    private var power: PowerWatch?
    private var sleep: SleepWatch?
    private var path: DialtoneClient.HangUp?
    private var pathRetry: Timers.Timer?
    private var pathPause = GrowingPause()
    private var conditions = PushConditions()
    private lazy var deadline = DeadlineTimer { [weak self] in self?.take(.timePassed) }
    private var nextCall: UInt64 = 1
    private var registrationCalls: [UInt64: @AgentQueue (RegistrationAnswer) -> Void] = [:]
    private var commandCalls: [UInt64: @AgentQueue (CommandResult) -> Void] = [:]

    /// Goes on from what is kept in a directory, and serves the session bus. Without ``apply(_:)`` there is no server.
    ///
    /// - Throws: why nothing can be kept there.
    init(in directory: String, _ logger: Logger) throws(PushServiceError) {
        self.logger = logger
        do throws(StoreError) {
            store = try PushStore(directory: directory)
            let state = try store.load()
            for notice in store.notices { logger.error("\(notice)") }
            if state.messages.isEmpty { Self.compact(&store, logger) }
            memories = state.memories
            distributor = Distributor(state: state, random: SystemRandomNumberGenerator())
        } catch {
            throw PushServiceError(description: "\(error)", mayPass: error.mayPass)
        }
        if let address = BusConnection.sessionAddress {
            apps = AppBus(address: address, owner: self)
        } else {
            logger.error("apps cannot register: there is neither DBUS_SESSION_BUS_ADDRESS nor XDG_RUNTIME_DIR")
        }
        take(.timePassed)
        power = PowerWatch { [weak self] power in
            guard let self else { return }
            (conditions.isOnBattery, conditions.batteryLevel) = (power.isOnBattery, power.level)
            let level = power.level.map { " at \($0) %" } ?? ""
            self.logger.debug("the machine runs on \(power.isOnBattery ? "its battery" : "mains")\(level)")
            take(.conditions(conditions))
        }
        sleep = SleepWatch { [weak self] word in
            self?.take(word == .fallingAsleep ? .suspending : .resumed)
        }
        followPath()
    }

    /// Gives back what is free. A disk on which there is no room for that has what was saved all the same.
    private static func compact(_ store: inout PushStore, _ logger: Logger) {
        do throws(StoreError) {
            try store.compact()
        } catch {
            logger.warning("the store stays as large as it is", metadata: ["error": "\(error)"])
        }
    }

    /// Makes the configuration's word hold: at the start, and at each reload. A server that stays keeps its connection.
    func apply(_ settings: PushSettings?) {
        guard settings != self.settings || link == nil else { return }
        self.settings = settings
        link?.close()
        link = nil
        refusal = nil
        guard let settings, let name = settings.name else { return command(.use(nil)) { _ in } }
        for other in distributor.servers where other != name {
            command(.forget(other)) { _ in }
        }
        command(.use(name)) { _ in }
        if memories[name] == nil, distributor.hasEndpoints(at: name) {
            take(.reported(name, .identityLost("what was kept of the server is lost")))
        }
        do throws(PushServiceError) {
            let link = PushLink(
                to: try settings.makeServer(memory: memories[name]), tls: settings.tls, through: client,
                logger)
            link.onTurn = { [weak self] turn in self?.save(turn, from: name) ?? false }
            link.onLoss = { [weak self] in
                guard let self else { return nil }
                return try? settings.makeServer(memory: memories[name])
            }
            link.onReport = { [weak self] report in self?.hear(report, from: name) }
            self.link = link
            link.start()
        } catch {
            refusal = error.description
            logger.error("there is no push", metadata: ["server": "\(settings.server)", "error": "\(error)"])
        }
    }

    /// Has the distributor do what the user wants, and calls back once.
    func command(_ command: DistributorCommand, _ completion: @escaping @AgentQueue (CommandResult) -> Void) {
        let call = nextCall
        nextCall += 1
        commandCalls[call] = completion
        take(.command(command, call: call))
    }

    // MARK: - The distributor

    /// Gives the distributor an input, and does what it says.
    ///
    /// - Returns: whether what it changes was saved.
    @discardableResult
    private func take(_ input: DistributorInput) -> Bool {
        let turn = distributor.take(input, at: .now())
        var isSaved = true
        if turn.changes.isEmpty {
            perform(turn.effects)
        } else {
            do throws(StoreError) {
                try store.save(turn.changes)
                // Only what was saved: with anything else, a server would count messages as had that are not.
                for case .memory(let server, let memory) in turn.changes {
                    memories[server] = memory.isEmpty ? nil : memory
                }
                perform(turn.effects)
            } catch {
                isSaved = false
                perform(distributor.saveFailed("\(error)", at: .now()).effects)
            }
            apps?.follow(distributor.awaitedApps)
        }
        deadline.follow(distributor.deadline)
        return isSaved
    }

    private func perform(_ effects: [DistributorEffect]) {
        for effect in effects {
            switch effect {
            case .server(let server, let input): if server == settings?.name { link?.tell(input) }
            case .tell(let telling):
                let answered: @AgentQueue (AppAnswer) -> Void = { [weak self] answer in
                    self?.take(.answered(attempt: telling.attempt, answer))
                }
                // That nobody could be called is no fault of the message's.
                guard let apps else {
                    AgentQueue.async { answered(.noBus) }
                    continue
                }
                apps.tell(telling, answered)
            case .answer(let call, let answer): registrationCalls.removeValue(forKey: call)?(answer)
            case .inhibitSleep(let isOn): inhibitor.set(isOn)
            case .done(let call, let result): commandCalls.removeValue(forKey: call)?(result)
            case .report(let report): note(report)
            }
        }
    }

    private func note(_ report: DistributorReport) {
        switch report {
        case .taken: counters.taken += 1
        case .givenUp: counters.givenUp += 1
        case .retried: counters.failedTries += 1
        case .storeFailed(let why): storageTrouble = why
        case .storeWorks:
            storageTrouble = nil
            link?.storeWorks()
        case .server(_, let why): refusal = why
        default: break
        }
        logger.log(level: report.level, "\(report.text)", metadata: report.metadata)
        onReport?(report)
    }

    // MARK: - The server

    private func save(_ turn: PushServerTurn, from server: ServerName) -> Bool {
        let loss = turn.reports.lazy.compactMap { if case .identityLost(let why) = $0 { why } else { nil } }.first
        guard turn.memory != nil || !turn.arrived.isEmpty || loss != nil else { return true }
        counters.arrived += turn.arrived.count
        return take(.arrived(server, turn.arrived, memory: turn.memory, identityLost: loss))
    }

    private func hear(_ report: PushServerReport, from server: ServerName) {
        // Heard with the turn that it came in.
        if case .identityLost = report { return }
        if report == .loggedIn { refusal = nil }
        take(.reported(server, report))
    }

    // MARK: - The network

    /// Follows what the network costs.
    private func followPath() {
        path = client.follow(NetworkAPI.MonitorPath.self, .init()) { [weak self] result in
            guard let self else { return }
            if case .success(let reply?) = result {
                conditions.isExpensive = reply.path.expensive
                conditions.isConstrained = reply.path.constrained
                take(.conditions(conditions))
                pathPause.reset()
            } else {
                // The agent is away. Its connection is dialled as soon as it is back; this may come a little later.
                pathRetry = Timers.shared.schedule(after: pathPause.next()) { [weak self] in self?.followPath() }
            }
        }
    }
}

extension PushService: AppBusOwner {
    func registerAsked(_ request: RegistrationRequest, answer: @escaping @AgentQueue (RegistrationAnswer) -> Void) {
        let call = nextCall
        nextCall += 1
        registrationCalls[call] = answer
        take(.register(request, call: call))
    }

    func isRegistered(_ request: RegistrationRequest) -> Bool { distributor.isRegistered(request) }

    func apps(registeredAs token: String) -> [AppIdentity] { distributor.apps(registeredAs: token) }

    func unregisterAsked(_ app: AppIdentity, token: String) { take(.unregister(app, token: token)) }

    func callerRefused(_ why: String) { logger.warning("a program was refused on the session bus: \(why)") }

    func appAppeared(_ name: String) { take(.appAppeared(name)) }

    // Each call of it is answered by the bus.
    func appVanished(_ name: String) {}

    func busConnected() { take(.busConnected) }

    func busLost() {
        nameState = nil
        registrationCalls = [:]
    }

    func nameChanged(_ state: BusConnection.NameState) {
        nameState = state
        switch state {
        case .owned: logger.notice("apps can register", metadata: ["name": "\(AppBus.name)"])
        case .waiting: logger.warning("another program has the name", metadata: ["name": "\(AppBus.name)"])
        case .refused(let failure):
            logger.error(
                "the session bus refuses the name", metadata: ["name": "\(AppBus.name)", "error": "\(failure)"])
        }
    }
}

extension PushSettings {
    /// What the distributor knows the server by.
    var name: ServerName? { ServerName(server.description) }
}
