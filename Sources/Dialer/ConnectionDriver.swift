// SPDX-License-Identifier: Apache-2.0

public import NetworkPath
public import Platform
public import Supervisor
internal import TLS

/// What a connection is called, and whose it is, for notes about it.
public struct ConnectionLabel: Hashable, Sendable {
    /// Its name.
    public var name: String
    /// The user who owns it.
    public var user: UInt32

    /// A label.
    public init(name: String, user: UInt32) { (self.name, self.user) = (name, user) }
}

/// Runs one connection: does with real sockets, timers and names what its ``ConnectionStateMachine`` decides, and tells
/// it what comes of that. It decides nothing itself.
///
/// A driver lives from ``open()`` until ``close()``, whoever holds it. With a flow that stands it holds no timer and
/// makes no system call.
@AgentQueue
public final class ConnectionDriver {
    private var machine: ConnectionStateMachine
    let context: DialerContext
    private let account: Account
    /// The turn to dial that it waits for, and whether the first attempt after one is paid for.
    private var turn: NetworkBudget.WaitingTurn?
    private var hasPaidAttempt = false
    /// Where its flows outlive the process; `nil` where they end with it.
    let store: (any FlowStore)?
    private unowned let observer: any ConnectionObserver
    /// The sockets that are open, by epoch: one that stands, and those that race to take its place.
    var flows: [UInt64: Flow] = [:]
    private var timers = TimerTable()
    private var observation: (any Ongoing)?
    private var flowObservation: (any Ongoing)?
    private var queries: [UInt64: any Ongoing] = [:]
    private(set) lazy var keeper = FlowKeeper(
        context.wakes, context.intervals.learner(of: account.user), owner: self)
    /// The opening exchanges that are played, by epoch.
    private var openings: [UInt64: OpeningPlayer] = [:]
    /// TLS sessions that the next flow may take up again. Only a connection with TLS makes it.
    private lazy var resumption = TLSResumption()
    /// Flows that ended before the client had read what came on them.
    let remnants = Remnants()
    /// Flows that others took the place of while a client had them, until it takes its successor.
    private var lingering: [UInt64: (flow: Flow, timer: Timers.Timer)] = [:]
    /// What happened while the actions of an earlier input ran.
    private var backlog: [ConnectionInput] = []
    /// How long a client has to change over to a flow that took the place of the one it has.
    private static let lingeringTime = Duration.seconds(30)
    private var isProcessing = false
    /// Whether another process goes on from here.
    var hasSteppedDown = false
    /// Whose connection it is.
    public var label: ConnectionLabel?

    /// A connection that is not at work yet. The observer outlives the connection.
    ///
    /// - Parameters:
    ///   - account: who answers for it.
    ///   - store: where its flows outlive the process; `nil` where they end with it.
    public init(
        policy: ConnectionPolicy, account: Account = .administrator, context: DialerContext,
        store: (any FlowStore)? = nil,
        observer: any ConnectionObserver
    ) {
        machine = ConnectionStateMachine(policy: policy, now: BootClock.now())
        self.context = context
        self.account = account
        self.store = store
        self.observer = observer
    }

    // MARK: - Requests

    /// Begins the supervision. To be called once, or ``adopt(_:_:)``.
    public func open() { process(.opened) }

    /// Begins the supervision with a flow that stands: a connected stream socket.
    ///
    /// - Throws: the kernel's refusal to watch it. Nothing has begun then.
    public func adopt(_ descriptor: consuming OwnedDescriptor, _ adoption: Adoption) throws(SystemError) {
        flows[adoption.epoch] = try Flow(
            adopting: descriptor, adoption, machine.policy.socketOptions, owner: self)
        if let store { flows[adoption.epoch]?.keep(in: store) }
        process(.adopted(adoption))
    }

    /// Gives a client the flow. From now on the client reads and writes, and the agent only watches for the flow's end.
    ///
    /// What an ended flow left unread is handed out before the flow that took its place: first come, first read. It is
    /// kept until `taker` comes again, or shows in another way that it has it.
    public func take(by taker: FlowTaker = .unknown) throws(TakeRefusal) -> HandedFlow {
        do throws(SystemError) {
            if let remnant = try remnants.take(by: taker) { return remnant }
        } catch {
            throw .system(error)
        }
        let status = machine.status
        guard let custody = status.custody, let flow = flows[status.epoch], custody.session != .opening else {
            throw .notReady(status.state)
        }
        let descriptor: OwnedDescriptor
        do throws(SystemError) {
            descriptor = try flow.handOver()
        } catch {
            throw .system(error)
        }
        closeLingering()
        process(.taken(epoch: status.epoch))
        return HandedFlow(epoch: status.epoch, descriptor: descriptor, isOver: false)
    }

    /// Takes the flow back from the client that had it, with a session on it.
    ///
    /// - Parameter opening: what to play on the flows to come in place of the policy's opening, an empty one for none;
    ///   `nil` for what was played before.
    public func park(_ epoch: UInt64, leaving opening: Opening? = nil) throws(ParkRefusal) {
        // Nothing is left on one that has ended; but who says so had it.
        remnants.settle(epoch)
        let status = machine.status
        guard let custody = status.custody, status.epoch == epoch else {
            throw .staleEpoch(current: status.epoch)
        }
        guard custody.holder == .client else { throw .notTaken }
        if let opening { process(.openingLeft(opening)) }
        process(.parked(epoch: epoch))
    }

    /// Takes the flow back from a client that never came to read or write it.
    public func takeBack(_ epoch: UInt64) {
        if taker(of: epoch) != nil { return remnants.giveBack(epoch) }
        process(.returned(epoch: epoch))
    }

    /// The client that had the flow is gone, and did not park it.
    ///
    /// What it has not read is there for the next one, where it is known to have neither read nor written: then it
    /// stood between two messages.
    ///
    /// - Parameter isAlone: whether nobody else can have a descriptor of the flow from it. Then the flow goes on.
    /// - Returns: whether it is an ended flow that waits to be taken again.
    @discardableResult
    public func abandon(_ epoch: UInt64, isAlone: Bool = false) -> Bool {
        if taker(of: epoch) != nil { return remnants.abandon(epoch, keepsRest: policy.keepsAbandonedFlow) }
        process(.abandoned(epoch: epoch, isUntouched: flows[epoch]?.isUntouched ?? false, isAlone: isAlone))
        return false
    }

    /// Who has taken an ended flow, and has not shown yet that it has it.
    public func taker(of epoch: UInt64) -> FlowTaker? { remnants.taker(of: epoch) }

    /// The program that an ended flow was taken for runs.
    public func launched(_ epoch: UInt64, as taker: FlowTaker) { remnants.launched(epoch, as: taker) }

    /// The client sees to what it was woken for: it has what it took.
    public func acknowledged() { remnants.settleAll() }

    /// Makes a new flow in place of whatever there is: now, or as soon as a server that asked to be left alone for a
    /// while may be dialled again.
    public func redial(after pause: Duration? = nil) { process(.redialRequested(after: pause)) }

    /// Ends the connection for good: when this returns, its socket is closed and nothing of it runs any more. Asked for
    /// by the observer in the middle of an event, as every request it comes right after that event's actions.
    public func close() {
        process(.closeRequested)
        closeLingering()
        remnants.close()
    }

    /// Goes on under another policy, and keeps the flow where that allows it.
    public func change(to policy: ConnectionPolicy) { process(.policyChanged(policy)) }

    /// An address is no longer on this machine, or no longer usable. For every connection to be told.
    public func localAddressRemoved(_ address: IPAddress) { process(.localAddressRemoved(address)) }

    /// The machine woke from suspend. For every connection to be told.
    public func resumed() { process(.resumed) }

    // MARK: - What can be asked

    /// What can be said of the connection now, with the newest proof that the kernel knows of.
    public var status: ConnectionStatus {
        var status = machine.status
        // While a proof is owed, none is better than the machine's.
        if status.state == .ready, let proof = status.lastProof,
            let acknowledged = flows[status.epoch]?.lastAcknowledgement
        {
            status.lastProof = max(proof, acknowledged)
        }
        return status
    }

    /// What the machine says of the flow that stands, for a later process to adopt.
    var adoption: Adoption? { machine.adoption }

    /// The highest number that a flow had.
    var newestEpoch: UInt64 { machine.newestEpoch }

    /// Whether a flow that ended has bytes left that its client has not read.
    public var hasRemnants: Bool { !remnants.isEmpty }

    /// Whether such a one waits to be taken.
    public var hasRemnantToTake: Bool { remnants.isWaiting }

    /// The policy it runs under.
    public var policy: ConnectionPolicy { machine.policy }

    /// How many bytes wait for the client; `nil` without a flow that stands.
    public var unreadBytes: Int? {
        let status = machine.status
        return status.lastProof == nil ? nil : flows[status.epoch]?.unreadBytes
    }

    /// Calls `handler` once, when more than `count` bytes wait on the flow that the agent has, unless somebody takes it
    /// before. Of a flow with TLS only the first bytes are known to wait: what is behind them is not decrypted.
    public func awaitBytes(beyond count: Int, _ handler: @escaping @AgentQueue () -> Void) {
        if let flow = flows[machine.status.epoch], flow.isParked { keeper.awaitBytes(on: flow, beyond: count, handler) }
    }

    // MARK: - The run loop

    func process(_ input: ConnectionInput) {
        if hasSteppedDown { return }
        if isProcessing { return backlog.append(input) }
        isProcessing = true
        step(input)
        while !backlog.isEmpty {
            let inputs = backlog
            backlog = []
            for input in inputs { step(input) }
        }
        isProcessing = false
    }

    private func step(_ input: ConnectionInput) {
        var random = SystemRandomNumberGenerator()
        let now = BootClock.now()
        let offered = turn ?? context.budget.nextTurn(of: account, now: now)
        let actions = machine.process(input, now: now, dialsFrom: offered.at, using: &random)
        noteTurn(offered, now)
        for action in actions { run(action) }
        guard case .flowPathChanged(let epoch, _) = input, machine.policy.heartbeat?.adapts == true else { return }
        keeper.found(network(of: machine.status), of: epoch)
    }

    /// Takes the turn that the machine decided to wait for, or that it has waited for.
    private func noteTurn(_ offered: NetworkBudget.WaitingTurn, _ now: Duration) {
        switch machine.awaitedTurn {
        case nil:
            if turn.take() != nil { hasPaidAttempt = true }
        case offered.at where turn == nil && offered.isPaid:
            context.budget.take(offered, for: account, now: now)
            turn = offered
        case .some: break
        }
    }

    private func run(_ action: ConnectionAction) {
        switch action {
        case .observePath(let target):
            observation?.cancel()
            observation = context.paths.observePath(to: target, for: account) { self.process(.pathChanged($0)) }
        case .stopObservingPath:
            observation?.cancel()
            observation = nil
        case .observeFlowPath(let epoch, let target):
            flowObservation = context.paths.observePath(to: target, for: account) {
                self.process(.flowPathChanged(epoch: epoch, $0))
            }
        case .stopObservingFlowPath:
            flowObservation?.cancel()
            flowObservation = nil
        case .resolve(let query, let question):
            ask(question, query)
        case .cancelResolution(let query):
            queries.removeValue(forKey: query)?.cancel()
        case .openSocket(let request):
            open(request)
        case .configureSocket(let epoch, let options):
            configure(epoch, options)
        case .keepAlive(let epoch, let heartbeat):
            if let flow = flows[epoch] { keeper.keepAlive(flow, heartbeat) }
        case .watchInput(let epoch, let isWatched):
            guard let flow = flows[epoch] else { break }
            // A flow stands again: what the server said before is out of date.
            if isWatched { remnants.dropRefusal() }
            // What comes while it is watched is for a client that sleeps.
            flow.isParked = isWatched
            keeper.watchInput(of: flow, isWatched)
        case .playOpening(let epoch, let opening):
            if let flow = flows[epoch] { play(opening, on: flow) }
        case .probe(let epoch):
            if let flow = flows[epoch] { keeper.probe(flow) }
        case .giveUpAnswers(let epoch):
            keeper.giveUpAnswers(on: epoch)
        case .closeSocket(let epoch, let reason, let rest):
            keeper.forget(epoch)
            openings.removeValue(forKey: epoch)?.stop()
            // Of what left from an address that is gone nothing arrives.
            if let flow = flows.removeValue(forKey: epoch) { end(flow, rest, reason == .localAddressRemoved) }
        case .scheduleTimer(let timer, let deadline):
            timers.schedule(timer, at: deadline) { self.ring(timer) }
        case .cancelTimer(let timer):
            timers.cancel(timer)
        case .emit(let event):
            if machine.policy.heartbeat?.adapts == true { keeper.heard(event, on: network(of: event.status)) }
            observer.connection(self, did: event)
        }
    }

    /// Closes a flow, as soon as nothing on it is to be read any more.
    private func end(_ flow: Flow, _ rest: UnreadRest, _ isAborting: Bool) {
        switch rest {
        case .kept where flow.mayHaveUnread: remnants.keep(flow)
        case .keptAsRefusal where flow.mayHaveUnread: remnants.keepRefusal(flow)
        case .dropped, .kept, .keptAsRefusal: flow.close(aborting: isAborting)
        case .delivered: remnants.letGo(flow, aborting: isAborting)
        case .lingering:
            lingering[flow.epoch] = (
                flow, Timers.shared.schedule(after: Self.lingeringTime) { [weak self] in self?.closeLingering() }
            )
        }
    }

    private func closeLingering() {
        for (flow, timer) in lingering.values {
            timer.cancel()
            remnants.letGo(flow)
        }
        lingering = [:]
    }

    private func ring(_ timer: ConnectionTimer) {
        // What a process that was stopped, or a queue that was busy, has not been told yet counts.
        switch timer {
        case .proof: keeper.lookForProof()
        case .dial: for flow in flows.values where !flow.isConnected { flow.takeWhatCame() }
        case .opening: for player in openings.values { player.goOn() }
        case .retry: break
        }
        process(.timerFired(timer))
    }

    /// The network that the flow goes through, for a heartbeat that adapts to it.
    private func network(of status: ConnectionStatus) -> NetworkIdentity? {
        guard status.state.hasFlow, let path = status.path, path.source == status.localAddress?.address else {
            return nil
        }
        return context.paths.network(of: path)
    }

    private func ask(_ question: NameQuestion, _ number: UInt64) {
        guard context.budget.ask(for: account, isPartOfDial: true, now: BootClock.now()) else {
            return process(.resolutionFailed(query: number, .heldBack))
        }
        queries[number] = context.names.ask(question, for: machine.policy.target) { result in
            self.queries[number] = nil
            switch result {
            case .success(let answer): self.process(.resolved(query: number, answer))
            case .failure(let failure): self.process(.resolutionFailed(query: number, failure))
            }
        }
    }

    private func open(_ request: FlowRequest) {
        let isPaid = hasPaidAttempt
        hasPaidAttempt = false
        if let held = context.budget.attempt(
            at: request.remote, for: account, isPaid: isPaid, now: BootClock.now())
        {
            return process(.dialFailed(epoch: request.epoch, .heldBack(held)))
        }
        do throws(FlowFailure) {
            flows[request.epoch] = try Flow(request, owner: self, secure: try securing(request.tls))
        } catch {
            process(.dialFailed(epoch: request.epoch, error))
        }
    }

    /// What begins the TLS session of a flow. The files are read before the flow's first packet: where one is of no
    /// use, the server is not bothered.
    private func securing(_ request: TLSRequest?) throws(FlowFailure) -> Flow.Securing? {
        guard let request else { return nil }
        do throws(TLSFailure) {
            let shared = try context.tls.context(for: request.policy)
            return { [resumption] () throws(TLSFailure) in try TLSSession(request, in: shared, resuming: resumption) }
        } catch {
            throw .tls(error)
        }
    }

    private func play(_ opening: Opening, on flow: Flow) {
        let epoch = flow.epoch
        let player = OpeningPlayer(opening, on: flow) { [weak self] outcome in
            guard let self else { return }
            switch outcome {
            case .answered(let awaiting, let begun):
                process(.openingAnswered(epoch: epoch, awaiting: awaiting, begun: begun))
            case .opened:
                openings[epoch] = nil
                process(.sessionOpened(epoch: epoch))
            case .failed(let failure):
                openings[epoch] = nil
                process(.openingFailed(epoch: epoch, failure))
            }
        }
        openings[epoch] = player
        player.goOn()
    }

    private func configure(_ epoch: UInt64, _ options: SocketOptions) {
        do throws(SystemError) {
            try flows[epoch]?.configure(options)
            keeper.configured(epoch)
        } catch {
            // The figures were validated, so the kernel refuses them for a socket that broke in this moment alone.
            return
        }
    }
}

extension ConnectionDriver: FlowOwner {
    var user: UInt32 { account.user }

    func flow(_ flow: Flow, did outcome: Flow.Outcome) {
        switch outcome {
        case .securing(let local):
            process(.handshakeBegan(epoch: flow.epoch, local: local))
        case .connected(let local, let remote, let security):
            // Before anybody hears of it: who parks it relies on that.
            if let store { flow.keep(in: store) }
            // What came in this very turn: whoever moves away now leaves it behind.
            if machine.status.epoch != flow.epoch { keeper.sortInput(on: machine.status.epoch) }
            process(.dialSucceeded(epoch: flow.epoch, local: local, remote: remote, security: security))
        case .connectFailed(let failure):
            process(.dialFailed(epoch: flow.epoch, failure))
        case .remoteClosed:
            process(.remoteClosed(epoch: flow.epoch))
        case .failed(let failure):
            process(.flowFailed(epoch: flow.epoch, failure))
        }
    }
}

extension ConnectionDriver: FlowKeeperOwner {
    func flowKeeper(heard word: ConnectionInput) { process(word) }
}

/// The timers of one connection that are scheduled.
@AgentQueue
struct TimerTable {
    private var dial: Timers.Timer?
    private var retry: Timers.Timer?
    private var opening: Timers.Timer?
    private var proof: Timers.Timer?

    nonisolated init() {}

    /// Schedules a timer in place of an earlier one of its kind.
    mutating func schedule(_ timer: ConnectionTimer, at deadline: Duration, _ handler: @escaping @AgentQueue () -> Void)
    {
        self[timer]?.cancel()
        self[timer] = Timers.shared.schedule(at: deadline, handler)
    }

    mutating func cancel(_ timer: ConnectionTimer) {
        self[timer]?.cancel()
        self[timer] = nil
    }

    private subscript(timer: ConnectionTimer) -> Timers.Timer? {
        get {
            switch timer {
            case .dial: dial
            case .retry: retry
            case .opening: opening
            case .proof: proof
            }
        }
        set {
            switch timer {
            case .dial: dial = newValue
            case .retry: retry = newValue
            case .opening: opening = newValue
            case .proof: proof = newValue
            }
        }
    }
}
