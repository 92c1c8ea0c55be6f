// SPDX-License-Identifier: Apache-2.0

internal import Activation
internal import Dialer
internal import DialtoneAPI
internal import Glibc
internal import NetworkPath
internal import Platform
internal import Supervisor

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
    /// The process that has the flow, as far as it can be watched.
    private var holder: ProcessHandle?
    /// Whether the agent launched it: then its end is told with how it ended.
    private var isHolderLaunched = false
    /// The processes that have flows which ended, as long as they have not shown it.
    private var takersOfEnded: [UInt64: (process: ProcessHandle, taker: FlowTaker)] = [:]
    private var lastTaker = 0
    /// Called when it may be over without an event of its own.
    var mayBeOver: @AgentQueue () -> Void = {}
    /// The process that is taking the flow in this moment.
    private(set) var taker: ProcessHandle?
    /// Whether a user, or the configuration, has no use for it any more.
    private var isBeingClosed: Bool { closing != nil }
    /// Why it is being closed.
    private var closing: StatusReason?
    /// The opening exchange that its client left when it parked.
    var leftOpening: LeftOpening?
    /// What belongs to it beyond this process.
    var legacy = Legacy()
    /// How its client is woken, as its file says.
    private var wake: WakeSettings?
    private let wakes: WakeContext
    /// Calls its client to keep it alive itself.
    private var calls: ClientCalls?
    /// Who asked for these calls.
    private var caller: (any KeepaliveCaller)?
    /// Wakes its client; made when there is one, or could be.
    private(set) var waker: ConnectionWaker?

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
        self.wake = wake
        self.wakes = wakes
        self.record = record
        self.writeDown = writeDown
        if wake != nil { waker = makeWaker() }
    }

    /// Whether it takes the launcher to wake the process that has its flow.
    var isWokenByDeputy: Bool {
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
                unreadBytes: driver.unreadBytes,
                wake: waker?.standing,
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
            policy: policy, account: account, context: context, store: store, observer: self)
        driver.label = ConnectionLabel(name: name, user: owner)
        self.driver = driver
        return driver
    }

    /// Whether it has ended and nothing of it is left for a client.
    var isOver: Bool {
        driver.map { $0.status.state == .closed && (isBeingClosed || !$0.hasRemnants) } ?? false
    }

    /// Begins with a flow that a client brought.
    func adopt(
        _ descriptor: consuming OwnedDescriptor, _ adoption: Adoption, _ policy: ConnectionPolicy,
        by process: ProcessHandle?, in context: DialerContext
    ) throws(SystemError) {
        prepareCalls(policy, context)
        let driver = makeDriver(policy, context)
        // Before the first event, with which all that is known is written down.
        clientCame(process)
        try driver.adopt(descriptor, adoption)
    }

    /// Gives the flow to a client.
    ///
    /// A descriptor may get lost on its way: a client that does not ask the kernel for ancillary data never sees it. So
    /// the process that has the flow may take it again; nobody else may. One that is not known has it until it parks
    /// it, or the flow ends.
    ///
    /// - Parameter process: the client, whose end gives the flow back; `nil` where it cannot be watched.
    func take(by process: ProcessHandle?) throws(RegistryError) -> HandedFlow {
        guard let driver else { throw .notReady(.waiting) }
        if driver.status.custody?.holder == .client {
            // Somebody has it, who is not known, or is about to be launched.
            guard let holder else { throw .heldByClient(0) }
            if holder.isAlive || isHolderLaunched {
                guard let process, holder.isSame(as: process) else { throw .heldByClient(holder.number) }
            } else {
                // It ended in this moment, and nobody may read on where it stopped.
                self.holder = nil
                driver.abandon(driver.status.epoch)
            }
        }
        taker = process
        defer { taker = nil }
        do throws(TakeRefusal) {
            let flow = try driver.take(by: process.map { identity(of: $0) } ?? .unknown)
            if flow.isOver { holdEnded(flow.epoch, by: process) } else { hold(flow.epoch, by: process) }
            clientCame(process)
            // No other flow follows by whose taking the wake would be acknowledged.
            if flow.isOver, driver.status.state == .closed { waker?.lastFlowTaken() }
            return flow
        } catch {
            switch error {
            case .notReady(let state): throw .notReady(state)
            case .system(let failure): throw .system(failure)
            }
        }
    }

    func hold(_ epoch: UInt64, by process: ProcessHandle?) {
        holder = process
        isHolderLaunched = false
        try? process?.onEnd { [weak self, weak process] in
            guard let self, let process, holder === process else { return }
            holder = nil
            driver?.abandon(epoch)
        }
    }

    /// What a process is known by that takes flows which ended. Not its number: those that cannot be seen share one.
    private func identity(of process: ProcessHandle) -> FlowTaker {
        if let known = takersOfEnded.values.first(where: { $0.process.isSame(as: process) }) { return known.taker }
        lastTaker += 1
        return .process(lastTaker)
    }

    /// Sees to it that a flow which ended can be taken again when its taker ends without having shown that it has it.
    private func holdEnded(_ epoch: UInt64, by process: ProcessHandle?) {
        takersOfEnded = takersOfEnded.filter { driver?.taker(of: $0.key) != nil }
        guard let process, let taker = driver?.taker(of: epoch), takersOfEnded[epoch]?.taker != taker else { return }
        takersOfEnded[epoch] = (process, taker)
        try? process.onEnd { [weak self] in
            guard let self, takersOfEnded[epoch]?.taker == taker else { return }
            takersOfEnded[epoch] = nil
            if driver?.taker(of: epoch) == taker, driver?.abandon(epoch) == true { waker?.need(.clientDied) }
            mayBeOver()
        }
    }

    /// Takes the flow back from a client that leaves a session on it, and maybe an opening for the next ones.
    func park(_ epoch: UInt64, leaving opening: LeftOpening?) throws(RegistryError) {
        guard let driver else { throw .staleEpoch(current: 0) }
        // Before the event with which it is written down.
        let before = leftOpening
        leftOpening = opening ?? before
        do throws(ParkRefusal) {
            try driver.park(epoch, leaving: opening?.opening)
            holder = nil
        } catch {
            leftOpening = before
            switch error {
            case .staleEpoch(let current): throw .staleEpoch(current: current)
            case .notTaken: throw .notTaken
            }
        }
    }

    /// A client sees to what it was woken for.
    func acknowledge(_ wake: UInt64) {
        if standingWake == wake { driver?.acknowledged() }
        waker?.acknowledge(wake)
    }

    func prepareCalls(_ policy: ConnectionPolicy, _ context: DialerContext) {
        calls = ClientCalls(context) { [weak self] in self?.callClient() }
        calls?.handler = policy.handler
    }

    /// Nobody is called any more to keep it alive.
    func endCalls() { calls = nil }

    /// The wake that its client has not acknowledged.
    var standingWake: UInt64? { waker?.standing?.number }

    /// Its client's keepalive is due.
    func callClient() {
        expectClient()
        waker?.callForKeepalive(isCalled: caller != nil)
        if let wake = waker?.standing { caller?.called(wake.number) }
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
        calls.custodyChanged(to: driver.status.custody)
    }

    /// `caller` is gone, and what the policy says holds again.
    func endKeepAlive(_ caller: any KeepaliveCaller) {
        guard self.caller === caller else { return }
        self.caller = nil
        calls?.handler = driver?.policy.handler
    }

    /// Whoever watched it does not any more, or somebody new does.
    func subscriptionsChanged() {
        if let waker { return waker.presenceChanged() }
        guard unreadBytes > 0, isWatched(by: nil) else { return }
        expectClient()
        waker?.needForBytes()
    }

    /// This process is its client from now on.
    func clientCame(_ process: ProcessHandle?) {
        expectClient()
        waker?.clientCame(process, of: driver?.status)
    }

    /// Has it be known that there is a client, or could be.
    func expectClient() { waker = waker ?? makeWaker() }

    private func makeWaker() -> ConnectionWaker { ConnectionWaker(name, owner: owner, wake, wakes, subject: self) }

    func redial(after pause: Duration?) { driver?.redial(after: pause) }

    func close(because reason: StatusReason) {
        closing = reason
        driver?.close()
        holder = nil
        forgetLegacy()
    }

    func addressRemoved(_ address: IPAddress) { driver?.localAddressRemoved(address) }

    func resumed() { driver?.resumed() }

    func change(to policy: ConnectionPolicy, wake: WakeSettings?) {
        if wake != self.wake {
            self.wake = wake
            waker?.change(to: wake)
            if waker == nil { waker = makeWaker() }
        }
        guard let driver, driver.policy != policy else { return }
        driver.change(to: policy)
    }
}

extension RegisteredConnection: ConnectionObserver {
    func connection(_ connection: ConnectionDriver, did event: ConnectionEvent) {
        record(event, of: connection)
        // Who watches a connection that nobody has taken yet may be its client.
        let isForClient = event.kind == .arrived || event.kind == .openingFailed
        if waker == nil, isForClient, isWatched(by: nil) { expectClient() }
        waker?.heard(event)
        if event.kind == .policyChanged, caller == nil { calls?.handler = connection.policy.handler }
        calls?.custodyChanged(to: event.status.custody)
        if event.kind == .continued { resumeWake() }
    }

    private func record(_ event: ConnectionEvent, of connection: ConnectionDriver, _ report: WakeReport? = nil) {
        let standing = waker?.standing
        var event = event
        if let closing, event.status.state == .closed { (event.reason, event.status.reason) = (closing, closing) }
        let wake = report == nil && standing == nil ? nil : RecordedWake(standing: standing, report)
        record(
            RecordedEvent(
                clocks: .now(), subject: subject(of: connection), event: event, wake: wake,
                endsWithAgent: connection.lacksPlace))
    }

    /// Made once for as long as the remote stays.
    func subject(of connection: ConnectionDriver) -> RecordedEvent.Subject {
        let remote = connection.policy.remote
        if let subject, subject.remote == remote { return subject }
        let subject = RecordedEvent.Subject(name: name, owner: owner, remote: remote)
        self.subject = subject
        return subject
    }
}

extension RegisteredConnection: WakeSubject {
    var status: ConnectionStatus? { driver?.status }

    func isWatched(by process: ProcessHandle?) -> Bool { wakes.isWatched(self, process) }

    var unreadBytes: Int { driver?.unreadBytes ?? 0 }

    var hasUnreadEnd: Bool { !isBeingClosed && driver?.hasRemnantToTake ?? false }

    func awaitBytes(beyond count: Int, _ handler: @escaping @AgentQueue () -> Void) {
        driver?.awaitBytes(beyond: count, handler)
    }

    func takeForProgram() -> HandedFlow? {
        // A client that has the flow keeps it.
        guard let driver, driver.status.custody?.holder != .client else { return nil }
        return try? driver.take(by: .program)
    }

    // Its end is told with how it ended, and gives the flow back then.
    func programHas(_ epoch: UInt64, _ process: ProcessHandle) {
        if let driver, driver.taker(of: epoch) != nil {
            // How it ends is told with its end.
            let taker = identity(of: process)
            takersOfEnded[epoch] = (process, taker)
            return driver.launched(epoch, as: taker)
        }
        holder = process
        isHolderLaunched = true
    }

    func programGaveBack(_ epoch: UInt64, _ way: ReturnOfFlow) {
        // One that stands has another holder by now where this one has ended.
        if driver?.status.epoch == epoch { holder = nil }
        defer { mayBeOver() }
        switch way {
        // One that parked it by itself, or outlived it, has nothing left to give back.
        case .inOrder: try? driver?.park(epoch)
        case .abandoned: driver?.abandon(epoch, isAlone: true)
        case .untouched: driver?.takeBack(epoch)
        }
    }

    func wake(did report: WakeReport) {
        guard let driver else { return }
        let status = driver.status
        let event = ConnectionEvent(
            kind: .wake, status: status, previousState: status.state, previousDuration: .zero, reason: status.reason)
        record(event, of: driver, report)
    }
    func needsWritingDown() { writeDown(self) }
}
