// SPDX-License-Identifier: Apache-2.0

public import NetworkPath
public import Platform
public import Supervisor
internal import TLS

/// Runs one connection: does with real sockets, timers and names what its ``ConnectionStateMachine`` decides, and tells
/// it what comes of that. It decides nothing itself.
///
/// A driver lives from ``open()`` until ``close()``, whoever holds it. With a flow that stands it holds no timer and
/// makes no system call.
@AgentQueue
public final class ConnectionDriver {
    private var machine: ConnectionStateMachine
    private let context: DialerContext
    private unowned let observer: any ConnectionObserver
    /// The sockets that are open, by epoch: one that stands, and those that race to take its place.
    private var flows: [UInt64: Flow] = [:]
    private var timers = TimerTable()
    private var observation: (any Ongoing)?
    private var queries: [UInt64: any Ongoing] = [:]
    private(set) lazy var keeper = FlowKeeper(context.wakes, context.intervals, owner: self)
    /// TLS sessions that the next flow may take up again. Only a connection with TLS makes it.
    private lazy var resumption = TLSResumption()
    /// What happened while the actions of an earlier input ran.
    private var backlog: [ConnectionInput] = []
    private var isProcessing = false

    /// A connection that is not at work yet. The policy is valid (``ConnectionPolicy/validate()``); the observer
    /// outlives the connection.
    public init(policy: ConnectionPolicy, context: DialerContext, observer: any ConnectionObserver) {
        machine = ConnectionStateMachine(policy: policy, now: BootClock.now())
        self.context = context
        self.observer = observer
    }

    // MARK: - Requests

    /// Begins the supervision. To be called once.
    public func open() { process(.opened) }

    /// Makes a new flow in place of whatever there is: now, or as soon as a server that asked to be left alone for a
    /// while may be dialled again.
    public func redial(after pause: Duration? = nil) { process(.redialRequested(after: pause)) }

    /// Ends the connection for good: when this returns, its socket is closed and nothing of it runs any more. Asked for
    /// by the observer in the middle of an event, as every request it comes right after that event's actions.
    public func close() { process(.closeRequested) }

    /// Goes on under another policy, a valid one, and keeps the flow where that allows it.
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

    /// The policy it runs under.
    public var policy: ConnectionPolicy { machine.policy }

    /// How many bytes wait for the client; `nil` without a flow that stands.
    public var unreadBytes: Int? {
        let status = machine.status
        return status.lastProof == nil ? nil : flows[status.epoch]?.unreadBytes
    }

    // MARK: - The run loop

    private func process(_ input: ConnectionInput) {
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
        for action in machine.process(input, now: BootClock.now(), using: &random) { run(action) }
    }

    private func run(_ action: ConnectionAction) {
        switch action {
        case .observePath(let target):
            observation?.cancel()
            observation = context.paths.observePath(to: target) { self.process(.pathChanged($0)) }
        case .stopObservingPath:
            observation?.cancel()
            observation = nil
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
        case .probe(let epoch):
            if let flow = flows[epoch] { keeper.probe(flow) }
        case .giveUpAnswers(let epoch):
            keeper.giveUpAnswers(on: epoch)
        case .closeSocket(let epoch, let reason):
            keeper.forget(epoch)
            flows.removeValue(forKey: epoch)?.close(aborting: reason == .localAddressRemoved)
        case .scheduleTimer(let timer, let deadline):
            timers.schedule(timer, at: deadline) { self.ring(timer) }
        case .cancelTimer(let timer):
            timers.cancel(timer)
        case .emit(let event):
            if machine.policy.heartbeat?.adapts == true { keeper.heard(event, on: network(of: event.status)) }
            observer.connection(self, did: event)
        }
    }

    private func ring(_ timer: ConnectionTimer) {
        if timer == .proof { keeper.lookForProof() }
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
        queries[number] = context.names.ask(question, for: machine.policy.target) { result in
            self.queries[number] = nil
            switch result {
            case .success(let answer): self.process(.resolved(query: number, answer))
            case .failure(let failure): self.process(.resolutionFailed(query: number, failure))
            }
        }
    }

    private func open(_ request: FlowRequest) {
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
    func flow(_ flow: Flow, did outcome: Flow.Outcome) {
        switch outcome {
        case .securing(let local):
            process(.handshakeBegan(epoch: flow.epoch, local: local))
        case .connected(let local, let remote, let security):
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
            case .proof: proof
            }
        }
        set {
            switch timer {
            case .dial: dial = newValue
            case .retry: retry = newValue
            case .proof: proof = newValue
            }
        }
    }
}
