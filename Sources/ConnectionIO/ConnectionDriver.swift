// SPDX-License-Identifier: Apache-2.0

package import DialtoneConnection
package import DialtoneNetworkPath
package import DialtonePlatform
internal import Glibc

/// What a connection is called, and whose it is, for notes about it.
package struct ConnectionLabel: Hashable, Sendable {
    /// Its name.
    package var name: String
    /// The user who owns it.
    package var user: UInt32

    /// A label.
    package init(name: String, user: UInt32) { (self.name, self.user) = (name, user) }
}

/// Runs one connection: does with real sockets, timers and names what its ``Connection`` decides, and tells it what
/// comes of that. It decides nothing itself.
///
/// It is at work from ``open()`` to ``close()``, whether somebody holds it or not. While a flow stands and its client
/// is not being woken, it has no timer and makes no system call.
@AgentQueue
package final class ConnectionDriver {
    private(set) var connection: Connection
    let context: DialerContext
    private let account: Account
    /// The turn to dial that it waits for, and whether the first attempt after one is paid for.
    private var turn: NetworkBudget.WaitingTurn?
    private var hasPaidAttempt = false
    /// Where its flows outlive the process; `nil` where they end with it.
    let store: (any FlowStore)?
    /// Words that come late find none.
    private(set) weak var observer: (any ConnectionObserver)?
    /// The sockets that are open, by epoch: one that stands, those that race to take its place, and those that clients
    /// have or may take though others stand.
    var flows = ByEpoch<Flow>()
    /// The one timer of the connection, and for when it is set.
    private var timer: (timer: Timers.Timer, deadline: Duration)?
    private var postponed = 0
    /// Of a connection with TLS alone.
    private(set) lazy var certificates = CertificateWatch()
    private var observation: (any Ongoing)?
    private var flowObservation: (any Ongoing)?
    private var queries: [UInt64: any Ongoing] = [:]
    private(set) lazy var keepaliveSender = KeepaliveSender(
        context.wakes, context.intervals.learner(of: account.user), owner: self)
    /// The opening exchanges that are played, by epoch.
    private var openings = ByEpoch<OpeningPlayer>()
    /// What happened while the effects of an earlier input ran.
    private var backlog: [Input] = []
    private var isProcessing = false
    /// Whether another process goes on from here.
    package internal(set) var hasSteppedDown = false
    /// Whose connection it is.
    package var label: ConnectionLabel?

    /// A connection that is not at work yet.
    ///
    /// - Parameters:
    ///   - wakes: how its client is woken.
    ///   - account: who answers for it.
    ///   - store: where its flows outlive the process; `nil` where they end with it.
    package init(
        policy: ConnectionPolicy, wakes: Wakes.Settings, account: Account = .administrator, context: DialerContext,
        store: (any FlowStore)? = nil, observer: any ConnectionObserver
    ) {
        let now = BootClock.now()
        // The first wake's number is above every one of a daemon that ran before on this boot, as those of events are:
        // an acknowledgement that comes late is not taken for that of another wake.
        connection = Connection(policy: policy, wakes: wakes, lastWake: UInt64(now.milliseconds), now: now)
        self.context = context
        self.account = account
        self.store = store
        self.observer = observer
    }

    // MARK: - Requests

    /// Begins the supervision. To be called once, or ``adopt(_:_:)``.
    package func open() { process(.opened) }

    /// Begins the supervision with a flow that stands: a connected stream socket.
    ///
    /// - Parameter client: the process that brought it, where it can be watched.
    /// - Throws: the kernel's refusal to watch it. Nothing has begun then.
    package func adopt(
        _ descriptor: consuming OwnedDescriptor, _ adoption: Adoption, from client: KnownProcess? = nil
    ) throws(SystemError) {
        flows[adoption.epoch] = try Flow(adopting: descriptor, adoption, policy.socketOptions, owner: self)
        if let store { flows[adoption.epoch]?.keep(in: store) }
        process(.brought(by: client))
        process(.adopted(adoption))
    }

    /// Gives a client what it is to read next (``Connection/offer(to:facts:_:)``).
    ///
    /// - Parameter process: the client; `nil` for one that cannot be watched.
    package func take(by process: KnownProcess? = nil) throws(TakeFailure) -> HandedFlow {
        var effects: [ConnectionEffect] = []
        let offer: Connection.Offer
        do throws(TakeRefusal) {
            defer { for effect in effects { run(effect) } }
            offer = try connection.offer(to: process, facts: facts, &effects)
        } catch {
            throw .refused(error)
        }
        let flow: HandedFlow
        do throws(SystemError) {
            flow = try handOver(offer)
        } catch {
            throw .system(error)
        }
        self.process(.took(epoch: offer.epoch, by: offer.reader))
        return flow
    }

    private func handOver(_ offer: Connection.Offer) throws(SystemError) -> HandedFlow {
        guard let flow = flows[offer.epoch] else { throw SystemError("handing over the socket", code: EBADF) }
        // The client would write into the middle of it.
        guard keepaliveSender.finishReply(on: offer.epoch) else {
            throw SystemError("finishing a reply to the server before the socket is handed over", code: EAGAIN)
        }
        return HandedFlow(epoch: offer.epoch, descriptor: try flow.handOver(), isOver: offer.isOver)
    }

    /// Takes the flow back from the client that had it, with a session on it.
    ///
    /// - Parameters:
    ///   - opening: what to play on the flows to come in place of the policy's opening, an empty one for none; `nil`
    ///     for what was played before.
    ///   - answers: the messages to answer while flows are parked in place of the policy's; `nil` for those before.
    package func park(
        _ epoch: UInt64, leaving opening: Opening? = nil, answering answers: AnsweredMessages? = nil
    ) throws(ParkRefusal) {
        let refusal = connection.parkRefusal(of: epoch, leavesOpening: opening != nil)
        process(.parked(epoch: epoch, leaving: opening, answering: answers))
        if let refusal { throw refusal }
    }

    /// Makes a new flow in place of whatever there is: now, or as soon as a server that asked to be left alone for a
    /// while may be dialled again.
    package func redial(after pause: Duration? = nil) { process(.redialRequested(after: pause)) }

    /// Ends the connection for good: when this returns, its socket is closed and nothing of it runs any more. Asked for
    /// by the observer in the middle of an event, as every request it comes right after that event's actions.
    package func close() { process(.closeRequested) }

    /// Goes on under another policy, and keeps the flow where that allows it.
    package func change(to policy: ConnectionPolicy) { process(.policyChanged(policy)) }

    /// An address is no longer on this machine, or no longer usable. For every connection to be told.
    package func localAddressRemoved(_ address: IPAddress) { process(.localAddressRemoved(address)) }

    /// The machine woke from suspend. For every connection to be told.
    package func resumed() { process(.resumed) }

    // MARK: - What can be asked

    /// What can be said of the connection now, with what the kernel has heard of the remote since.
    package var status: ConnectionStatus {
        var status = connection.status
        // While a proof is owed, none is better than the machine's.
        if status.state == .ready, let proof = status.lastProof, let heard = flows[status.epoch]?.lastHeard {
            status.lastProof = max(proof, heard)
        }
        return status
    }

    /// Whether a flow that ended has bytes left that its client has not read.
    package var hasUnreadEnds: Bool {
        connection.ownership.endedEpochs.contains { flows[$0]?.mayHaveUnread ?? false }
    }

    /// The policy it runs under.
    package var policy: ConnectionPolicy { connection.policy }

    /// The wake that the client has not acknowledged.
    package var standingWake: StandingWake? { connection.wakes.standing }

    /// Whether bytes wait that no client has ever come for.
    package var hasUnclaimedBytes: Bool { connection.hasUnclaimedBytes }

    /// How many bytes wait for the client; `nil` without a flow that stands.
    package var unreadBytes: Int? { connection.standingEpoch.flatMap { flows[$0]?.unreadBytes } }

    /// How often a keepalive is sent on the flow that stands; `nil` while none is.
    package var keepaliveInterval: Duration? {
        connection.standingEpoch.flatMap { keepaliveSender.interval(on: $0) }
    }

    // MARK: - The run loop

    func process(_ input: ConnectionInput) { process(.line(input)) }

    /// Tells what a client or a program did.
    package func process(_ input: ClientInput) { process(.client(input)) }

    func process(_ input: Input) {
        if hasSteppedDown { return }
        if isProcessing { return backlog.append(input) }
        isProcessing = true
        backlog.append(input)
        while !backlog.isEmpty {
            let inputs = backlog
            backlog = []
            for input in inputs {
                if input.mayEnd(connection.standingEpoch) { for word in wordsOfWhatCame() { step(word) } }
                step(input)
            }
        }
        isProcessing = false
        setTimer()
    }

    /// What is told of bytes that have come.
    private func wordsOfWhatCame() -> [Input] {
        let later = backlog
        backlog = []
        defer { backlog = later }
        takeWhatCame()
        return backlog
    }

    private func step(_ input: Input) {
        let now = BootClock.now()
        let offered = turn ?? context.budget.nextTurn(of: account, now: now)
        let effects = decide(input, now, dialsFrom: offered.at)
        noteTurn(offered, now)
        for effect in effects { run(effect) }
        switch input {
        case .line(.dialSucceeded), .restored: watchCertificate()
        default: break
        }
        guard case .line(.flowPathChanged(let epoch, _)) = input, policy.heartbeat?.adapts == true else { return }
        keepaliveSender.found(network(of: connection.status), of: epoch)
    }

    private var facts: Facts { Facts(flows: flows, observer: observer) }

    private func decide(_ input: Input, _ now: Duration, dialsFrom: Duration) -> [ConnectionEffect] {
        var random = Chance()
        return switch input {
        case .line(let input):
            connection.process(input, now: now, dialsFrom: dialsFrom, facts: facts, using: &random)
        case .client(let input):
            connection.process(input, now: now, dialsFrom: dialsFrom, facts: facts, using: &random)
        case .restored(let saved, let sockets):
            connection.restore(
                saved, with: sockets, now: now, dialsFrom: dialsFrom, facts: facts, using: &random)
        case .deadlinePassed:
            connection.deadlinePassed(now: now, dialsFrom: dialsFrom, facts: facts, using: &random)
        }
    }

    /// Arms the timer for what is due next.
    func setTimer() {
        let deadline = hasSteppedDown ? nil : connection.nextDeadline
        guard deadline != timer?.deadline else { return }
        timer?.timer.cancel()
        timer = deadline.map { (Timers.shared.schedule(at: $0) { [weak self] in self?.ring() }, $0) }
    }

    /// How often a deadline waits for what `dialtone-tls` is to pass on, and for how long each time: no longer than a
    /// second, which no machine takes that does not stand still.
    private static let mostPostponed = (times: 50, pause: Duration.milliseconds(20))

    private func ring() {
        timer = nil
        // What has come and is not decrypted yet may be what the deadline is about.
        if postponed < Self.mostPostponed.times, flows.values.contains(where: { $0.isBehind && $0.unreadBytes == 0 }) {
            postponed += 1
            let deadline = BootClock.now() + Self.mostPostponed.pause
            timer = (Timers.shared.schedule(at: deadline) { [weak self] in self?.ring() }, deadline)
            return
        }
        postponed = 0
        // What a process that was stopped, or a queue that was busy, has not been told yet counts.
        for due in connection.dueTimers(at: BootClock.now()) {
            switch due {
            case .proof: keepaliveSender.lookForProof()
            case .dial: for flow in flows.values where !flow.isConnected { flow.takeWhatCame() }
            case .opening: for player in openings.values { player.goOn() }
            case .retry: break
            }
        }
        process(.deadlinePassed)
    }

    /// Takes the turn that the machine decided to wait for, or that it has waited for.
    private func noteTurn(_ offered: NetworkBudget.WaitingTurn, _ now: Duration) {
        switch connection.awaitedTurn {
        case nil:
            if turn.take() != nil { hasPaidAttempt = true }
        case offered.at where turn == nil && offered.isPaid:
            context.budget.take(offered, for: account, now: now)
            turn = offered
        case .some: break
        }
    }

    private func run(_ effect: ConnectionEffect) {
        switch effect {
        case .network(let action):
            run(action)
        case .close(let epoch, let isAborting), .letGo(let epoch, let isAborting):
            leave(epoch)?.close(aborting: isAborting)
        case .retire(let epoch, let survivesAgent, let isHeld):
            guard let flow = leave(epoch) else { break }
            if !survivesAgent { flow.leaveStore() }
            flow.retire(isHeld: isHeld)
            flows[epoch] = flow
        case .rest(let epoch):
            flows[epoch]?.takeBack()
        case .linger(let epoch):
            let flow = leave(epoch)
            flows[epoch] = flow
        case .tell(var event, let wake, let report):
            if event.kind == .wake { event.status = status }
            if policy.heartbeat?.adapts == true { keepaliveSender.heard(event, on: network(of: event.status)) }
            observer?.connection(self, did: event, wake: wake, report)
        case .attempt(let attempt, let process):
            observer?.connection(self, attempts: attempt, process)
        case .launch(let attempt, let offer):
            launch(attempt, offer)
        case .find(let attempt):
            observer?.connection(self, finds: attempt)
        case .awaitBytes(let epoch, let count):
            guard let flow = flows[epoch], connection.reader(of: epoch) == nil else { break }
            keepaliveSender.awaitBytes(on: flow, beyond: count) { [weak self] in self?.process(.bytesCame) }
        case .objection(let text):
            context.onObjection?(text, label)
            // No input from outside leads here: who begins a connection, or counts for it, would do so wrongly.
            assertionFailure(text)
        }
    }

    /// Does no more on a flow.
    private func leave(_ epoch: UInt64) -> Flow? {
        keepaliveSender.forget(epoch)
        openings.remove(epoch)?.stop()
        return flows.remove(epoch)
    }

    private func launch(_ attempt: WakeAttempt, _ offer: Connection.Offer?) {
        guard let observer else { return }
        guard let offer else { return observer.connection(self, launches: attempt, with: nil) }
        do throws(SystemError) {
            observer.connection(self, launches: attempt, with: try handOver(offer))
        } catch {
            process(.launchFailed(attempt.id, nil))
            AgentQueue.async { [weak self] in self?.process(.attempted(attempt.id, .failed(error.description))) }
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
            flowObservation?.cancel()
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
        case .findDetour(let remote, let avoided):
            let detour = context.paths.detour(to: remote, around: avoided, for: policy.target)
            process(.detourFound(remote, detour))
        case .openSocket(let request):
            open(request)
        case .configureSocket(let epoch, let options):
            configure(epoch, options)
        case .keepAlive(let epoch, let heartbeat):
            if let flow = flows[epoch] { keepaliveSender.keepAlive(flow, heartbeat) }
        case .answerMessages(let epoch, let answers):
            if let flow = flows[epoch] { keepaliveSender.answer(answers, on: flow) }
        case .watchInput(let epoch, let isWatched):
            guard let flow = flows[epoch] else { break }
            if isWatched { flow.takeBack() }
            keepaliveSender.watchInput(of: flow, isWatched)
        case .playOpening(let epoch, let opening):
            if let flow = flows[epoch] { play(opening, on: flow) }
        case .probe(let epoch):
            if let flow = flows[epoch] { keepaliveSender.probe(flow) }
        case .giveUpAnswers(let epoch):
            keepaliveSender.giveUpAnswers(on: epoch)
        case .closeSocket, .scheduleTimer, .cancelTimer, .emit:
            // The connection keeps these to itself.
            assertionFailure("\(action) is not the network's")
        }
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
        queries[number] = context.names.ask(question, for: policy.target) { result in
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
            flows[request.epoch] = try Flow(request, owner: self, securing: try securing(request.tls))
        } catch {
            process(.dialFailed(epoch: request.epoch, error))
        }
    }

    private func securing(_ request: TLSRequest?) throws(FlowFailure) -> Securing? {
        guard let request else { return nil }
        do throws(TLSFailure) {
            return try Securing(request, of: label?.name ?? "", by: context.relay)
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
            keepaliveSender.configured(epoch)
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
            if connection.status.epoch != flow.epoch { keepaliveSender.sortInput(on: connection.status.epoch) }
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
