// SPDX-License-Identifier: Apache-2.0

internal import DialtoneAPI
internal import DialtoneConfiguration
internal import DialtoneConnection
internal import DialtoneConnectionIO
internal import DialtoneNetworkPath
internal import DialtonePersistence
internal import DialtonePlatform
internal import DialtoneProcesses
internal import DialtoneVarlink
internal import Glibc

/// A connection with its name and owner.
@AgentQueue
final class RegisteredConnection {
    /// Who brought it.
    enum Origin: Hashable {
        /// A configuration file; a reload without it closes it.
        case configuration
        /// A client's `Open`.
        case client
    }

    nonisolated let name: String
    nonisolated let owner: UInt32
    nonisolated let origin: Origin
    nonisolated var key: ConnectionKey { ConnectionKey(name, of: owner) }
    private let record: @AgentQueue (RecordedEvent) -> Void
    /// Writes down what changed without an event.
    private let writeDown: @AgentQueue (RegisteredConnection) -> Void
    /// The parameters that a client gave, in JSON.
    let parameters: [UInt8]
    let store: StorePart?
    var driver: ConnectionDriver?
    private var subject: RecordedEvent.Subject?
    /// Called when it may be over without an event of its own.
    var mayBeOver: @AgentQueue () -> Void = {}
    /// Called when a message of its server's was answered while its client slept.
    var answered: @AgentQueue () -> Void = {}
    /// Whether a user, or the configuration, has no use for it any more.
    private var isBeingClosed: Bool { closing != nil }
    /// Why it is being closed.
    private var closing: StatusReason?
    /// The opening exchange that its client left when it parked, and the messages to be answered.
    var leftOpening: LeftOpening?
    var leftAnswers: LeftAnswers?
    /// How many bytes that is.
    var leftBytes: Int { leftBytes(leaving: nil, answering: nil) }
    /// How many it is once these take the place of those.
    func leftBytes(leaving opening: LeftOpening?, answering answers: LeftAnswers?) -> Int {
        ((opening ?? leftOpening)?.given.count ?? 0) + ((answers ?? leftAnswers)?.given.count ?? 0)
    }
    /// The processes that have, or had, its flows.
    let processes: ClientProcesses
    /// What was last written down of it.
    var written: Written?
    /// What is counted of it.
    var totals = SavedTotals(since: .now())
    /// Whether something was counted that is not written down.
    private(set) var hasNewTotals = false
    /// How its client is woken, as its file says.
    private var wake: WakeSettings? {
        get { boxedWake?.value }
        set { boxedWake = newValue.map { .value($0) } }
    }
    // Out of line: most connections have none.
    private var boxedWake: Boxed<WakeSettings>?
    let wakes: WakeContext
    /// Calls its client to keep it alive itself.
    private var calls: ClientCalls?
    /// Who asked for these calls.
    private var caller: (any KeepaliveCaller)?

    /// A connection that is not at work yet.
    ///
    /// - Parameters:
    ///   - parameters: those of `Open`, in JSON, where a client opened it.
    ///   - store: where what belongs to it outlives this process; `nil` for nowhere.
    init(
        name: String, owner: UInt32, origin: Origin, given parameters: [UInt8], wake: WakeSettings?,
        _ wakes: WakeContext, store: DescriptorStore?, record: @escaping @AgentQueue (RecordedEvent) -> Void,
        writeDown: @escaping @AgentQueue (RegisteredConnection) -> Void
    ) {
        self.name = name
        self.owner = owner
        self.origin = origin
        self.parameters = parameters
        // What a file names is root's word, and a daemon of a user's own is that user's.
        let isRoots = origin == .configuration || owner == 0 || owner == geteuid()
        self.store = store?.part(of: isRoots ? .root : .user(owner))
        boxedWake = wake.map { .value($0) }
        self.wakes = wakes
        self.record = record
        self.writeDown = writeDown
        processes = ClientProcesses(self.store)
        processes.ended = { [weak self] in self?.ended($0, .unseen) }
    }

    /// Whether it takes the launcher to wake the process that has its flow.
    var isWokenByLauncher: Bool {
        geteuid() != 0 && owner != geteuid() && (wake?.signal != nil || wake?.thaw == .ownGroup)
    }

    /// Whether `user` may see it and act on it.
    func isVisible(to user: UInt32) -> Bool { Self.isVisible(ownedBy: owner, to: user) }

    /// The rule, where the owner is known and not the connection: a connection is its owner's and root's to see.
    nonisolated static func isVisible(ownedBy owner: UInt32, to user: UInt32) -> Bool {
        ownerVisible(to: user).map { $0 == owner } ?? true
    }

    /// The one owner whose connections `user` may see; `nil` for all.
    nonisolated static func ownerVisible(to user: UInt32) -> UInt32? { user == 0 ? nil : user }

    /// The connection as the socket shows it now; `nil` before it is at work.
    var wire: ConnectionsAPI.Connection? {
        driver.map { driver in
            .init(
                name, owner: owner, remote: subject(of: driver).remoteText, driver.status,
                unreadBytes: driver.unreadBytes, keepaliveInterval: driver.keepaliveInterval,
                wake: driver.standingWake,
                endsWithAgent: driver.lacksPlace, at: .now())
        }
    }

    func start(_ policy: ConnectionPolicy, in context: DialerContext) {
        prepareCalls(policy, context)
        let driver = makeDriver(policy, context)
        driver.open()
    }

    /// Makes its driver, which is not at work yet.
    func makeDriver(_ policy: ConnectionPolicy, _ context: DialerContext) -> ConnectionDriver {
        let driver = ConnectionDriver(
            policy: policy, wakes: wakeRules, account: account, context: context, store: store, observer: self)
        driver.label = ConnectionLabel(name: name, user: owner)
        self.driver = driver
        return driver
    }

    /// Whether it has ended and nothing of it is left for a client.
    var isOver: Bool {
        driver.map { $0.status.state == .closed && (isBeingClosed || !$0.hasUnreadEnds) } ?? false
    }

    /// Whether bytes wait to be read, on its flow or on one that has ended.
    var hasInput: Bool { driver.map { $0.hasUnreadEnds || $0.unreadBytes ?? 0 > 0 } ?? false }

    /// Begins with a flow that a client brought.
    func adopt(
        _ descriptor: consuming OwnedDescriptor, _ adoption: Adoption, _ policy: ConnectionPolicy,
        by process: ProcessHandle?, in context: DialerContext
    ) throws(SystemError) {
        prepareCalls(policy, context)
        let driver = makeDriver(policy, context)
        do throws(SystemError) {
            try driver.adopt(descriptor, adoption, from: process.map { processes.number(of: $0) })
        } catch {
            // Nothing has begun that is to be closed.
            self.driver = nil
            throw error
        }
    }

    /// Gives a client what it is to read next.
    ///
    /// - Parameter process: the client, whose end gives the flow back; `nil` where it cannot be watched.
    func take(by process: ProcessHandle?) throws(RegistryError) -> HandedFlow {
        guard let driver else { throw .notReady(.waiting) }
        // Who had it may have ended in this moment, and nobody may read on where it stopped.
        processes.tellEnds()
        defer { keepProcesses() }
        do throws(TakeFailure) {
            return try driver.take(by: process.map { processes.number(of: $0) })
        } catch {
            switch error {
            case .refused(.notReady(let state)): throw .notReady(state)
            case .refused(.heldByClient(let holder)):
                throw .heldByClient(holder.flatMap { processes[$0]?.number } ?? 0)
            case .system(let failure): throw .system(failure)
            }
        }
    }

    /// A process ended that had a flow, or was launched.
    func ended(_ process: KnownProcess, _ end: ProgramEnd) {
        processes.forget(process)
        driver?.process(.processEnded(process, end))
        mayBeOver()
    }

    /// Takes the flow back from a client that leaves a session on it, and maybe an opening for the next ones and
    /// messages to be answered.
    func park(
        _ epoch: UInt64, leaving opening: LeftOpening?, answering answers: LeftAnswers?
    ) throws(RegistryError) {
        guard let driver else { throw .staleEpoch(current: 0) }
        // Before the event with which it is written down.
        let before = (leftOpening, leftAnswers)
        (leftOpening, leftAnswers) = (opening ?? before.0, answers ?? before.1)
        do throws(ParkRefusal) {
            try driver.park(epoch, leaving: opening?.value, answering: answers?.value)
        } catch {
            (leftOpening, leftAnswers) = before
            switch error {
            case .staleEpoch(let current): throw .staleEpoch(current: current)
            case .notTaken: throw .notTaken
            }
        }
    }

    /// A client sees to what it was woken for: the process of this number, where it has one here.
    func acknowledge(_ wake: UInt64, by number: Int32?) {
        driver?.process(.acknowledged(wake: wake, by: number.flatMap { processes.known(numbered: $0) }))
    }

    func prepareCalls(_ policy: ConnectionPolicy, _ context: DialerContext) {
        calls = ClientCalls(context) { [weak self] in self?.callClient() }
        calls?.handler = policy.handler
    }

    /// Nobody is called any more to keep it alive.
    func endCalls() { calls = nil }

    /// The wake that its client has not acknowledged.
    var standingWake: UInt64? { driver?.standingWake?.number }

    /// Its client's keepalive is due.
    func callClient() {
        driver?.process(.keepaliveDue(isCalled: caller != nil))
        if let wake = standingWake { caller?.called(wake) }
    }

    /// Has `caller` called to keep the connection alive, in place of whoever was before.
    func keepAlive(
        timeout: Duration, wakesMachine: Bool, _ caller: any KeepaliveCaller
    ) throws(RegistryError) {
        guard let driver, let calls else { throw .notReady(.waiting) }
        let handler: ClientHandler
        do throws(PolicyError) {
            handler = try ClientHandler(timeout: timeout, wakesMachine: wakesMachine, for: driver.policy.remote)
        } catch {
            throw .invalidTimeout(error.reason)
        }
        let before = self.caller
        self.caller = caller
        before?.superseded()
        calls.handler = handler
        calls.ownershipChanged(to: driver.status.ownership)
    }

    /// `caller` is gone, and what the policy says holds again.
    func endKeepAlive(_ caller: any KeepaliveCaller) {
        guard self.caller === caller else { return }
        self.caller = nil
        calls?.handler = driver?.policy.handler
    }

    /// Whether it matters to it who watches it: a wake stands, or nobody has come yet for what waits.
    var concernsWatchers: Bool { standingWake != nil || driver?.hasUnclaimedBytes == true }

    /// Somebody watches it who did not, or no longer does.
    func subscriptionsChanged() { driver?.process(.watchersChanged) }

    /// How its client is woken, and for what.
    private var wakeRules: Wakes.Settings {
        guard let wake else { return wakes.rules(for: owner) }
        return wake.rules(isTended: wake.policy.steps != [.event], budget: wakes.budget)
    }

    private var effectiveWake: WakeSettings { wake ?? wakes.settings(for: owner) }

    func redial(after pause: Duration?) { driver?.redial(after: pause) }

    func close(because reason: StatusReason) {
        closing = reason
        driver?.close()
        processes.close()
    }

    func addressRemoved(_ address: IPAddress) { driver?.localAddressRemoved(address) }

    func resumed() { driver?.resumed() }

    func change(to policy: ConnectionPolicy, wake: WakeSettings?) {
        if wake != self.wake {
            self.wake = wake
            driver?.process(.wakesChanged(wakeRules))
        }
        guard let driver, driver.policy != policy else { return }
        driver.change(to: policy)
        // They hold secrets, and what the connection has forgotten is of no use here.
        let left = driver.left
        if left.opening == nil { leftOpening = nil }
        if left.answers == nil { leftAnswers = nil }
    }
}

extension RegisteredConnection: ConnectionObserver {
    func connection(
        _ connection: ConnectionDriver, did event: ConnectionEvent, wake: StandingWake?, _ report: WakeReport?
    ) {
        count(event, report)
        var event = event
        if let closing, event.status.state == .closed { (event.reason, event.status.reason) = (closing, closing) }
        let clocks = ClockReading.now()
        record(
            RecordedEvent(
                clocks: clocks, subject: subject(of: connection), event: event,
                wake: report == nil && wake == nil ? nil : RecordedWake(standing: wake, report),
                endsWithAgent: connection.lacksPlace, outages: report == nil ? totals.outages(at: clocks.boot) : nil))
        if event.kind == .policyChanged, caller == nil { calls?.handler = connection.policy.handler }
        calls?.ownershipChanged(to: event.status.ownership)
    }

    private func count(_ event: ConnectionEvent, _ report: WakeReport?) {
        if report.map({ totals.totals.heard($0) }) ?? totals.totals.heard(event) { hasNewTotals = true }
    }

    func connectionAnswered(_ connection: ConnectionDriver) {
        totals.totals.answeredMessages += 1
        hasNewTotals = true
        answered()
    }

    /// What was counted is written down.
    func totalsAreWritten() { hasNewTotals = false }

    /// Made once for as long as the remote stays.
    func subject(of connection: ConnectionDriver) -> RecordedEvent.Subject {
        let remote = connection.policy.remote
        if let subject, subject.remote == remote { return subject }
        let subject = RecordedEvent.Subject(name: name, owner: owner, remote: remote)
        self.subject = subject
        return subject
    }

    func presence(of process: KnownProcess) -> ClientPresence { processes[process]?.presence ?? [] }

    func isWatched(by process: KnownProcess?) -> Bool { wakes.isWatched(self, process.flatMap { processes[$0] }) }

    func connection(_ connection: ConnectionDriver, attempts attempt: WakeAttempt, _ process: KnownProcess?) {
        let order = order(attempt, connection.status.epoch)
        wakes.perform(order, process: process.flatMap { processes[$0] }, socket: nil, ended: { _ in }) {
            [weak connection] in connection?.process(.attempted(attempt.id, $0.word))
        }
    }

    func connection(
        _ connection: ConnectionDriver, launches attempt: WakeAttempt, with flow: consuming HandedFlow?
    ) {
        let launch = Launch(flow)
        // In a turn of its own: what comes of it concerns a connection that is in the middle of an event.
        AgentQueue.async { [weak self] in
            guard let self, !isBeingClosed, let driver, !driver.hasSteppedDown else { return }
            self.launch(attempt, launch, driver.status.epoch)
        }
    }

    private func launch(_ attempt: WakeAttempt, _ launch: Launch, _ standing: UInt64) {
        wakes.perform(
            order(attempt, launch.epoch ?? standing), process: nil, socket: launch.socket,
            began: { [weak self] in self?.launchBegan(attempt, launch, $0) },
            ended: told(of: launch),
            { [weak self] in self?.launchEnded(attempt, launch, $0) })
    }

    func connection(_ connection: ConnectionDriver, finds attempt: WakeAttempt.ID) {
        let attempt = WakeAttempt(wake: attempt.wake, attempt: attempt.attempt, means: .exec, reasons: [])
        let launch = Launch(nil)
        AgentQueue.async { [weak self] in
            guard let self, !isBeingClosed, let driver, !driver.hasSteppedDown else { return }
            wakes.find(order(attempt, driver.status.epoch), ended: told(of: launch)) { [weak self] in
                self?.launchEnded(attempt, launch, $0)
            }
        }
    }

    /// Hears of the end of a program.
    private func told(of launch: Launch) -> @AgentQueue (ProgramEnd) -> Void {
        { [weak self] end in
            guard let self, let process = launch.process else { return }
            ended(process, end)
        }
    }

    private func order(_ attempt: WakeAttempt, _ epoch: UInt64) -> WakeOrder {
        WakeOrder(
            attempt, effectiveWake.targets, connection: name, owner: owner, epoch: epoch, socketPath: wakes.socketPath)
    }

    /// There is a process that is to become the program. Should this one end now, the next one holds on to that.
    private func launchBegan(_ attempt: WakeAttempt, _ launch: Launch, _ handle: ProcessHandle) {
        let process = processes.number(of: handle, isLaunched: true)
        launch.process = process
        driver?.process(.launchBegan(attempt.id, process))
        writeDown(self)
    }

    private func launchEnded(_ attempt: WakeAttempt, _ launch: Launch, _ outcome: Activator.Outcome) {
        // Who runs has a descriptor of its own.
        launch.flow = nil
        switch outcome {
        case .launched(let handle):
            let process = processes.number(of: handle, isLaunched: true)
            launch.process = process
            driver?.process(.launched(attempt.id, process))
        case .failed, .done:
            driver?.process(.launchFailed(attempt.id, launch.process))
            driver?.process(.attempted(attempt.id, outcome.word))
            mayBeOver()
        }
        keepProcesses()
        // Whether a wake still stands, whose end is told, or not.
        writeDown(self)
    }
}

/// A program that is being launched, and the flow that it is launched with.
@AgentQueue
private final class Launch {
    var flow: HandedFlow?
    let epoch: UInt64?
    let socket: CInt?
    var process: KnownProcess?

    init(_ flow: consuming HandedFlow?) {
        switch flow {
        case .some(let known): (epoch, socket) = (known.epoch, known.descriptor.number)
        case .none: (epoch, socket) = (nil, nil)
        }
        self.flow = consume flow
    }
}

extension Activator.Outcome {
    /// As the connection hears of it.
    fileprivate var word: WakeOutcome {
        switch self {
        case .done, .launched: .done
        case .failed(let reason): .failed(reason)
        }
    }
}
