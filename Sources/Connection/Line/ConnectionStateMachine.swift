// SPDX-License-Identifier: Apache-2.0

internal import DialtoneNetworkPath

/// The life of one connection: decides when to dial, what to close and how long to wait. It does nothing itself.
///
/// ## The run loop
///
/// The driver owns one machine a connection and calls ``process(_:now:dialsFrom:using:)`` with everything that happens
/// to it:
///
/// 1. ``ConnectionInput/opened``, ``ConnectionInput/adopted(_:)`` or ``ConnectionInput/reopened(epoch:_:)`` first and
/// once. Its answer is `observePath`, and the driver tells the path it finds by `pathChanged`, the present one at once
///    and each later one as it comes. Nothing is dialled before that.
/// 2. The actions of a call are run in their order, all of them, before the next input is told. What happens while they
///    run (a `connect` that fails on the spot) is an input too: it is kept and told afterwards, never in between.
/// 3. Teardown precedes set-up in every answer, so that no moment sees two sockets; `emit` comes last, so that who
///    reads the status then sees what the event says.
/// 4. `openSocket` is answered once, by `dialSucceeded` or `dialFailed` (`handshakeBegan` before it, for TLS), and a
///    connected socket later by `remoteClosed` or `flowFailed`. The driver closes a socket on `closeSocket` only, and
///    after it says no more of that epoch.
///    `playOpening` is answered by any number of `openingAnswered` and then by `sessionOpened` or `openingFailed`,
///    unless the flow ends before.
/// 5. `resolve` is answered once, by `resolved` or `resolutionFailed`, unless `cancelResolution` came before.
/// 6. `now` never goes back. A timer that is told early is scheduled anew. Before `proof` is told, the driver looks at
///    what the kernel has heard of the remote (`acknowledged`).
/// 7. After ``ConnectionInput/closeRequested`` nothing of the connection is left: no socket, no query, no timer, no
///    path that is watched. The machine answers everything from then on with no action.
///
/// Words that arrive late (an answer to a query that was given up, an epoch that is closed, a timer that was cancelled)
/// are ignored: queries and epochs are numbered, and no number comes twice. What cannot be late, because it never was,
/// is not to be told (``objection(to:)``).
///
/// ## Of what it is made
///
/// Small machines own what they decide by: ``Dial`` and its ``Race``, ``Retry``, ``DialBudget``, ``Silence``,
/// ``Login``, and for a flow that stands (``StandingFlow``) ``Way``, ``Grace``, ``Liveness``, ``OpeningProgress``,
/// ``Move`` and ``FlowOwnership``. What is here tells them what happens, and makes one answer of theirs: in this file
/// and in its extensions beside it.
///
/// ## The rules
///
/// - No path: no query, no dial, and no socket and no timer once the grace of a flow is over. The path's return is the
///   timer; it also makes the back-off start over.
/// - A flow goes by the path to its own other end, a dial by the path to the connection's target. Where they differ,
///   both are watched.
/// - A path that is *unknown* may be there: dialled, with back-off. One that is not coherent closes nothing.
/// - A flow outlives a change of its path, and it proves itself: a round trip begun after the change must end in time.
///   The same after the machine slept.
/// - A flow whose local address or whose way is gone is kept for ``ConnectionPolicy/grace``, silent, while another one
///   is dialled where that is possible. It proves itself when what it lost is back, and is closed when the other one
///   stands or the time is over.
/// - A path that leads from another address is a better one: a flow is dialled over it while the old one stands, takes
///   its place when it is connected, and only then is the old one closed. It never lives without a flow for that.
/// - A server that owes the answer to a keepalive and does not give it in time has lost its flow.
/// - A flow has one reader at a time. While a client has it, nothing is sent on it. A client that is gone without
///   having parked it leaves a stream that nobody can read on: it is closed. Bytes for a client that sleeps are not
///   left behind for a better path.
/// - With an opening exchange to play, a flow is nobody's until that has succeeded, and one over a better path takes no
///   other's place before. A server that answers otherwise refuses the login: the client is wanted, and the same login
///   waits for 15 to 30 minutes. A server that does not answer is dialled again.
/// - Every failure counts once and waits, the first one included. The count starts over when a flow lasted
///   ``ConnectionPolicy/stableAfter``; that is seen by comparing instants when the flow ends, not by a timer. Flows
///   that the server ends one after the other at the same age do not count as stable while nobody is logged in on them.
package struct ConnectionStateMachine: ~Copyable {
    /// What the connection is doing, with what belongs to that and to nothing else.
    enum State {
        /// No path, or none heard of yet; holds nothing. Turns into `dialling` when a path comes (`backingOff` if that
        /// happens too often) and `closed` on request.
        case waiting
        /// Names are asked for, sockets connect or are being secured. Turns into `ready`, `backingOff` or `failed` when
        /// all has failed, `waiting` when the path goes, itself anew when the path moves or a user asks, and `closed`.
        /// Indirect, because it is the largest and the shortest: a thousand ready connections need not hold room for
        /// it.
        indirect case dialling(Dial)
        /// A flow stands. There is no timer but while it owes a proof or moves to a better path. Turns into itself with
        /// another flow, `backingOff` or `failed` when the remote or the line ends it, `dialling` when it does not
        /// prove itself or a user asks, `dialling` or `waiting` when its address or its way is gone for longer than its
        /// grace, and `closed`.
        case ready(StandingFlow)
        /// Waits to dial again. Turns into `dialling` at its time, when the path moves or a user asks; `waiting` when
        /// the path goes, and `closed`.
        case backingOff(until: Duration)
        /// As `backingOff`, with a long wait: time alone will not mend it.
        case failed(until: Duration)
        /// Over. Turns into nothing.
        case closed
    }

    /// The largest number of an earlier run's that is counted on from, of flows here and of wakes in ``WakeMachine``:
    /// what JSON's readers tell from its neighbours (RFC 8259, section 6). A thousand a second reach it in 285,000
    /// years, so what is above was never counted.
    package static let largestNumber: UInt64 = 1 << 53

    /// What its user decided.
    package internal(set) var policy: ConnectionPolicy
    var state = State.waiting
    /// Whether the first word was told.
    var hasBegun = false
    var reason = StatusReason.opened
    /// When `state` was entered.
    var since: Duration
    /// Since when there is a flow, or there is none.
    var turnedAt: Duration
    /// The newest path that is believed; `nil` before the first and after a change of target.
    var path: Path? {
        get { boxedPath?.value }
        set { boxedPath = newValue.map { .value($0) } }
    }
    // Shared with each status that tells of it.
    private var boxedPath: Boxed<Path>?
    /// What is counted of its failures, and what the next dial waits for.
    var retry = Retry()
    var budget = DialBudget()
    var numbers = Dial.Numbers()
    /// The flow that was last spoken of.
    var shownEpoch: UInt64 = 0
    /// Whether the server has ever answered a keepalive, on whichever flow.
    var hasAnsweredKeepalives = false
    var login = Login()
    /// What a client left to be answered in place of the policy's.
    var leftAnswers: AnsweredMessages?
    /// What the last dial or flow failed of, until a flow stands that its server took.
    var lastFailure: StatusReason?
    /// Whether something gets through where the kernel's route leads.
    var silence = Silence()
    /// Where a server of this name was last reached.
    var reached: Reached?

    /// A machine for a policy that was validated, not yet at work: ``ConnectionInput/opened`` starts it.
    package init(policy: ConnectionPolicy, now: Duration) {
        self.policy = policy
        (since, turnedAt) = (now, now)
    }

    /// Takes note of what happened at `now` and says what to do about it.
    ///
    /// - Parameter dialsFrom: when the budget of the connection's user lets it dial (``NetworkBudget``); in the past
    ///   for at once.
    package mutating func process(
        _ input: ConnectionInput, now: Duration, dialsFrom: Duration = .zero,
        using random: inout some RandomNumberGenerator
    ) -> [ConnectionAction] {
        if case .closed = state { return [] }
        if case .beginning = input.subject { hasBegun = true }
        var turn = Turn(now: now, dialsFrom: dialsFrom, random: random)
        switch input {
        case .opened: open(&turn)
        case .adopted(let adoption): adopt(adoption, &turn)
        case .reopened(let epoch, let restart): reopen(epoch, restart, &turn)
        case .pathChanged(let path): pathChanged(to: path, &turn)
        case .flowPathChanged(let epoch, let path): flowPathChanged(of: epoch, to: path, &turn)
        case .resolved(let query, let answer): advance(&turn) { $0.answered(query, answer, &$1, &$2) ? [] : nil }
        case .resolutionFailed(let query, let failure):
            advance(&turn) { dial, _, turn in dial.failed(query, failure, &turn) ? [] : nil }
        case .detourFound(let remote, let detour):
            advance(&turn) { dial, _, _ in dial.found(detour, to: remote) ? [] : nil }
        case .handshakeBegan(let epoch, let local):
            advance(&turn) { dial, _, turn in dial.handshakeBegan(epoch, local, now: turn.now) ? [] : nil }
        case .dialSucceeded(let epoch, let local, let remote, let security):
            dialSucceeded(epoch, local, remote, security, &turn)
        case .dialFailed(let epoch, let failure):
            advance(&turn) { dial, _, turn in
                let attempt = dial.attemptFailed(epoch, failure, closing: .dialFailed, &turn)
                return attempt.map { [.dialFailed(failure, $0.remote)] }
            }
        case .remoteClosed(let epoch): flowEnded(epoch, .remoteClosed, &turn)
        case .flowFailed(let epoch, let failure): flowEnded(epoch, .flowFailed(failure), &turn)
        case .probeSent(let epoch): update(epoch, &turn) { $0.probeSent(at: $1) }
        case .answered(let epoch, let count): update(epoch, &turn) { $0.answered(count, at: $1) }
        case .answerHidden(let epoch): update(epoch, &turn) { liveness, _ in liveness.withdrawProbes() }
        // Of one whose way is gone nothing is heard.
        case .undelivered(let epoch): if flow?.isSilent == false { update(epoch, &turn) { $0.undelivered(at: $1) } }
        case .acknowledged(let epoch, let begun): update(epoch, &turn) { $0.acknowledged(begun, at: $1) }
        case .arrived(let epoch): arrived(epoch, &turn)
        case .certificateEnds(let epoch): certificateEnds(epoch, &turn)
        case .taken(let epoch, let reader): taken(epoch, by: reader, &turn)
        case .parked(let epoch, let handled): parked(epoch, handled: handled, &turn)
        case .returned(let epoch): returned(epoch, &turn)
        case .abandoned(let epoch, let isUntouched, let isAlone):
            abandoned(epoch, isUntouched: isUntouched, isAlone: isAlone, &turn)
        case .openingLeft(let opening): openingLeft(opening, &turn)
        case .answersLeft(let answers): answersLeft(answers, &turn)
        case .openingAnswered(let epoch, let awaited, let begun): openingAnswered(epoch, awaited, begun, &turn)
        case .sessionOpened(let epoch): sessionOpened(epoch, &turn)
        case .openingFailed(let epoch, let failure): openingFailed(epoch, failure, &turn)
        case .resumed: resumed(&turn)
        case .serverAsked(let pause): retry.serverAsked(pause, at: turn.now)
        case .localAddressRemoved(let address): localAddressRemoved(address, &turn)
        case .timerFired(let timer): timerFired(timer, &turn)
        case .redialRequested(let pause): redialRequested(after: pause, &turn)
        case .policyChanged(let policy): policyChanged(to: policy, &turn)
        case .closeRequested: close(&turn)
        }
        random = turn.random
        return turn.actions
    }
}

// MARK: - Requests

extension ConnectionStateMachine {
    mutating func open(_ turn: inout Turn<some RandomNumberGenerator>) {
        turn.perform(.observePath(policy.target))
        emit(.opened, because: .opened, &turn)
    }

    private mutating func redialRequested(after pause: Duration?, _ turn: inout Turn<some RandomNumberGenerator>) {
        // A user's word goes before the server's, unless it is the server's that the user passes on.
        login.forgetRefusal()
        retry.serverAsked(pause, at: turn.now)
        redial(because: .redialRequested, closing: .superseded, &turn)
    }

    /// Gives up whatever runs and dials anew, as far as there is a path.
    mutating func redial(
        because reason: StatusReason, closing: CloseReason, _ turn: inout Turn<some RandomNumberGenerator>
    ) {
        if case .waiting = state { return }
        release(closing, &turn)
        retry.startOver()
        dial(because: reason, &turn)
    }

    private mutating func policyChanged(
        to policy: ConnectionPolicy, _ turn: inout Turn<some RandomNumberGenerator>
    ) {
        let old = self.policy
        guard policy != old else { return }
        let (oldHeartbeat, oldOptions, oldOpening) = (heartbeat, socketOptions, opening)
        let oldAnswers = answers
        self.policy = policy
        // The newest word counts.
        if policy.opening != old.opening { login.left = nil }
        if policy.answers != old.answers { leftAnswers = nil }
        if policy.needsAnotherFlow(than: old) {
            // The path that is known leads to the old target; the driver is asked for the new one's.
            release(.superseded, &turn)
            path = nil
            retry.startOver()
            hasAnsweredKeepalives = false
            retry.serverAsked(nil, at: turn.now)
            // What a client left was for the other server, with its secrets.
            (login, leftAnswers, silence) = (Login(), nil, Silence())
            (lastFailure, reached) = (nil, nil)
            turn.perform(.observePath(policy.target))
            return enter(.waiting, because: .policyChanged, &turn)
        }
        configureSockets(after: oldOptions, &turn)
        if heartbeat != oldHeartbeat { heartbeatChanged(&turn) }
        answersChanged(from: oldAnswers, &turn)
        if !policy.movesToBetterPath, let flow, !flow.isSilent { endMove(.superseded, &turn) }
        if case .backingOff(let deadline) = state, policy.backoff != old.backoff {
            // A wait that was drawn from figures nobody wants any more is not sat out; a shorter one is not drawn out.
            let sooner = drawDeadline(policy.backoff, &turn)
            if sooner < deadline {
                turn.perform(.scheduleTimer(.retry, deadline: sooner))
                state = .backingOff(until: sooner)
            }
        }
        if opening != oldOpening, loginChanged(&turn) { return }
        emit(.policyChanged, because: .policyChanged, &turn)
    }

    private mutating func close(_ turn: inout Turn<some RandomNumberGenerator>) {
        release(.closeRequested, &turn)
        turn.perform(.stopObservingPath)
        enter(.closed, because: .closeRequested, &turn)
    }
}

// MARK: - What every rule is made of

extension ConnectionStateMachine {
    /// The flow that stands; `nil` without one. To set `nil` changes nothing.
    var flow: StandingFlow? {
        get { if case .ready(let flow) = state { flow } else { nil } }
        set { if let newValue { state = .ready(newValue) } }
    }

    /// What is set on its sockets.
    var socketOptions: SocketOptions { policy.socketOptions(keeping: opening) }

    /// Sets what is another than before on the sockets that are open.
    mutating func configureSockets(after old: SocketOptions, _ turn: inout Turn<some RandomNumberGenerator>) {
        let options = socketOptions
        guard options != old else { return }
        for epoch in openEpochs { turn.perform(.configureSocket(epoch: epoch, options)) }
    }

    /// The epochs of the sockets that are open.
    private var openEpochs: [UInt64] {
        switch state {
        case .dialling(let dial): return dial.attempts.map(\.epoch)
        case .ready(let flow): return [flow.epoch] + (flow.move?.epochs ?? [])
        case .waiting, .backingOff, .failed, .closed: return []
        }
    }

    /// Gives up what the state holds: its sockets, its queries, its timers. The caller enters another state.
    mutating func release(_ closing: CloseReason, _ turn: inout Turn<some RandomNumberGenerator>) {
        switch state {
        case .waiting, .closed:
            break
        case .dialling(var dial):
            abandon(&dial, closing, &turn)
        case .ready(let flow):
            endMove(closing, &turn)
            closeFlow(flow, closing, &turn)
        case .backingOff, .failed:
            turn.perform(.cancelTimer(.retry))
        }
    }

    /// Closes a flow that stands; if it was stable, the failures so far are forgotten. Its move, if there is one, goes
    /// on.
    ///
    /// - Parameter rest: what becomes of unread bytes on it; `nil` for what follows from its ownership.
    mutating func closeFlow(
        _ flow: StandingFlow, _ closing: CloseReason, _ turn: inout Turn<some RandomNumberGenerator>,
        rest: UnreadRest? = nil
    ) {
        if flow.proofDeadline != nil { turn.perform(.cancelTimer(.proof)) }
        if flow.opening != nil { turn.perform(.cancelTimer(.opening)) }
        // The one that stands now is the better one for want of any other.
        let closing = closing == .replaced ? flow.grace.ending?.closing ?? closing : closing
        turn.perform(.closeSocket(epoch: flow.epoch, closing, rest ?? flow.ownership.rest(after: closing)))
        if flow.way.isApart { turn.perform(.stopObservingFlowPath(epoch: flow.epoch)) }
        // What is learned of a flow when it ends.
        noteReached(flow)
        guard isStable(flow, at: turn.now) else { return }
        retry.flowWasStable()
        if !flow.way.isDetour, let settledAt = flow.settledAt { silence.flowLasted(turn.now - settledAt) }
        // The server accepted the login on it, the agent's or a client's.
        login.forgetRefusal()
    }

    func isStable(_ flow: StandingFlow, at now: Duration) -> Bool {
        // Not before the server took its opening: one that refuses it would be asked again each second for ever.
        guard let age = flow.settledAt.map({ now - $0 }) else { return false }
        return age >= policy.stableAfter && !(flow.ownership.session == .none && retry.isShortLived(at: age))
    }

    /// Enters a state and tells the subscribers of it.
    ///
    /// - Parameter told: the state that they know of, where it has been left already.
    mutating func enter(
        _ next: State, from told: ConnectionStatus.State? = nil, because reason: StatusReason,
        _ turn: inout Turn<some RandomNumberGenerator>
    ) {
        let previous = (state: told ?? publicState, duration: turn.now - since)
        let hadFlow = publicState.hasFlow
        state = next
        if publicState.hasFlow != hadFlow { turnedAt = turn.now }
        if case .ready(var flow) = next {
            if !flow.isSilent || !flow.way.isAwaited { chooseWay(of: &flow, after: nil, &turn) }
            state = .ready(flow)
            if flow.way.isDetour { moveIfBetter(&turn) }
        }
        self.reason = reason
        if reason.isFailure { lastFailure = reason }
        since = turn.now
        shownEpoch = status.epoch
        turn.perform(
            .emit(
                ConnectionEvent(
                    kind: .stateChanged, status: status, previousState: previous.state,
                    previousDuration: previous.duration, reason: reason)))
    }

    /// Tells the subscribers of something that left the state as it is.
    mutating func emit(
        _ kind: ConnectionEvent.Kind, because reason: StatusReason, _ turn: inout Turn<some RandomNumberGenerator>
    ) {
        shownEpoch = status.epoch
        turn.perform(
            .emit(
                ConnectionEvent(
                    kind: kind, status: status, previousState: publicState, previousDuration: turn.now - since,
                    reason: reason)))
    }
}

// MARK: - What can be asked

extension ConnectionStateMachine {
    /// What can be said of the connection now.
    package var status: ConnectionStatus {
        var status = ConnectionStatus(
            state: publicState, reason: reason, epoch: shownEpoch, attempt: retry.failures + 1, since: since)
        status.boxedPath = boxedPath
        status.lastFailure = lastFailure
        status.turnedAt = turnedAt
        switch state {
        case .waiting, .closed:
            break
        case .dialling(let dial):
            guard let attempt = dial.foremost else { break }
            status.epoch = attempt.epoch
            status.localAddress = attempt.local
            status.remoteAddress = attempt.remote
        case .ready(let flow):
            status.epoch = flow.epoch
            if let own = flow.way.ownPath { status.path = own }
            (status.localAddress, status.remoteAddress) = (flow.ends.local, flow.ends.remote)
            status.interface = flow.ends.interface
            if flow.way.isDetour { status.avoidedInterface = path?.interface?.name }
            status.boxedSecurity = flow.security
            status.lastProof = flow.liveness.lastProof
            status.ownership = flow.ownership
            status.lacksLogin = flow.lacksLogin(under: policy)
        case .backingOff(let deadline), .failed(let deadline):
            status.nextAttempt = deadline
        }
        return status
    }

    /// The state without what belongs to it.
    var publicState: ConnectionStatus.State { publicState(of: state) }

    func publicState(of state: State) -> ConnectionStatus.State {
        switch state {
        case .waiting: .waiting
        case .dialling(let dial): dial.foremost.map { $0.local == nil ? .connecting : .securing } ?? .resolving
        case .ready(let flow): flow.isInDoubt ? .verifying : .ready
        case .backingOff: .backingOff
        case .failed: .failed
        case .closed: .closed
        }
    }
}
