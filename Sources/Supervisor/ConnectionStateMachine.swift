// SPDX-License-Identifier: Apache-2.0

internal import NetworkPath

/// The life of one connection: decides when to dial, what to close and how long to wait. It does nothing itself.
///
/// ## The run loop
///
/// The driver owns one machine a connection and calls ``process(_:now:using:)`` with everything that happens to it:
///
/// 1. ``ConnectionInput/opened`` first and once. Its answer is `observePath`, and the driver tells the path it finds by
///    `pathChanged`, the present one at once and each later one as it comes. Nothing is dialled before that.
/// 2. The actions of a call are run in their order, all of them, before the next input is told. What happens while they
///    run (a `connect` that fails on the spot) is an input too: it is kept and told afterwards, never in between.
/// 3. Teardown precedes set-up in every answer, so that no moment sees two sockets; `emit` comes last, so that who
///    reads the status then sees what the event says.
/// 4. `openSocket` is answered once, by `dialSucceeded` or `dialFailed` (`handshakeBegan` before it, for TLS), and a
///    connected socket later by `remoteClosed` or `flowFailed`. The driver closes a socket on `closeSocket` only, and
///    after it says no more of that epoch.
/// 5. `resolve` is answered once, by `dialResolved` or `resolutionFailed`, unless `cancelResolution` came before.
/// 6. `now` never goes back. A timer that is told early is scheduled anew.
/// 7. After ``ConnectionInput/closeRequested`` nothing of the connection is left: no socket, no query, no timer, no
///    path that is watched. The machine answers everything from then on with no action.
///
/// Words that arrive late (an answer to a query that was given up, an epoch that is closed, a timer that was cancelled)
/// are ignored: queries and epochs are numbered, and no number comes twice.
///
/// ## The rules
///
/// - No path: no socket, no query and no timer. The path's return is the timer; it also makes the back-off start over.
/// - A path that is *unknown* may be there: dialled, with back-off. One that is not coherent closes nothing.
/// - A flow outlives a change of its path as long as its local address is on this machine.
/// - Every failure counts once and waits, the first one included. The count starts over when a flow lasted
///   ``ConnectionPolicy/stableAfter``; that is seen by comparing instants when the flow ends, not by a timer.
public struct ConnectionStateMachine: ~Copyable {
    /// What the connection is doing, with what belongs to that and to nothing else.
    enum State {
        /// No path, or none heard of yet; holds nothing. Turns into `resolving` or `connecting` when a path comes
        /// (`backingOff` if that happens too often) and `closed` on request.
        case waiting
        /// A query runs. Turns into `connecting` with its answer, `backingOff` or `failed` without one, `waiting` when
        /// the path goes, itself when the path moves or a user asks, and `closed`.
        case resolving(Resolving)
        /// A socket is connecting, or connected and being secured. Turns into `ready`, itself with the next address,
        /// `backingOff` or `failed` after the last one, `waiting` when the path goes, `resolving` or itself when the
        /// path moves or a user asks, and `closed`. Indirect, because it is the largest and the shortest: a thousand
        /// ready connections need not hold room for it.
        indirect case connecting(Connecting)
        /// A flow stands; there is no timer. Turns into `backingOff` when the remote or the line ends it, `resolving`
        /// or `connecting` when its address goes or a user asks, `waiting` when the path goes, and `closed`.
        case ready(Ready)
        /// Waits to dial again. Turns into `resolving` or `connecting` at its time, when the path moves or a user asks;
        /// `waiting` when the path goes, and `closed`.
        case backingOff(until: Duration)
        /// As `backingOff`, with a long wait: time alone will not mend it.
        case failed(until: Duration)
        /// Over. Turns into nothing.
        case closed
    }

    struct Resolving {
        let query: UInt64
        let deadline: Duration
    }

    struct Connecting {
        let epoch: UInt64
        let remote: Endpoint
        /// The address the socket was asked to bind to.
        let source: IPAddress?
        /// The addresses that come after this one.
        var walk: AddressWalk
        var deadline: Duration
        /// The socket's own end, once it is connected and the TLS handshake runs.
        var local: Endpoint?
    }

    struct Ready {
        let epoch: UInt64
        let local: Endpoint
        let remote: Endpoint
        /// The interface that had the local address when the flow was made.
        let interface: String?
        let security: TLSSummary?
        let connectedAt: Duration
    }

    /// How long a query may take: one round over the three servers that `resolv.conf` can name, at its default of 5 s.
    static let resolutionTimeout = Duration.seconds(15)

    /// How long after a change of the path its failures count as the network settling: addresses still tentative, a
    /// name server that is not routed to yet. Duplicate address detection, router discovery and DHCP are over by then.
    static let settlingTime = Duration.seconds(30)

    /// For how long every dial must have been refused until that counts as permanent: longer than a server's upgrade.
    static let persistentRefusal = Duration.seconds(3600)

    /// What its user decided.
    public internal(set) var policy: ConnectionPolicy
    var state = State.waiting
    var reason = StatusReason.opened
    /// When `state` was entered.
    var since: Duration
    /// The newest path that is believed; `nil` before the first and after a change of target.
    var path: Path?
    /// When the path came or last moved; `nil` while it has not.
    var pathMovedAt: Duration?
    /// How many dials failed, or flows ended before they were stable, in a row.
    var failures = 0
    /// Since when every dial was refused.
    var refusedSince: Duration?
    var budget = DialBudget()
    var newestEpoch: UInt64 = 0
    var newestQuery: UInt64 = 0

    /// A machine for a policy that was validated, not yet at work: ``ConnectionInput/opened`` starts it.
    public init(policy: ConnectionPolicy, now: Duration) {
        self.policy = policy
        since = now
    }

    /// Takes note of what happened at `now` and says what to do about it.
    public mutating func process(
        _ input: ConnectionInput, now: Duration, using random: inout some RandomNumberGenerator
    ) -> [ConnectionAction] {
        if case .closed = state { return [] }
        var turn = Turn(now: now, random: random)
        switch input {
        case .opened: open(&turn)
        case .pathChanged(let path): pathChanged(to: path, &turn)
        case .dialResolved(let query, let addresses): resolved(query, addresses, &turn)
        case .resolutionFailed(let query, let failure): resolutionFailed(query, failure, &turn)
        case .handshakeBegan(let epoch, let local): handshakeBegan(epoch, local, &turn)
        case .dialSucceeded(let epoch, let local, let remote, let security):
            dialSucceeded(epoch, local, remote, security, &turn)
        case .dialFailed(let epoch, let failure): dialFailed(epoch, failure, &turn)
        case .remoteClosed(let epoch): flowEnded(epoch, .remoteClosed, &turn)
        case .flowFailed(let epoch, let failure): flowEnded(epoch, .flowFailed(failure), &turn)
        case .localAddressRemoved(let address): localAddressRemoved(address, &turn)
        case .timerFired(let timer): timerFired(timer, &turn)
        case .redialRequested: redial(because: .redialRequested, closing: .superseded, &turn)
        case .policyChanged(let policy): policyChanged(to: policy, &turn)
        case .closeRequested: close(&turn)
        }
        random = turn.random
        return turn.actions
    }

    /// One call of ``process(_:now:using:)``: its instant, its random source, and the actions so far.
    struct Turn<Random: RandomNumberGenerator> {
        let now: Duration
        var random: Random
        var actions: [ConnectionAction] = []

        mutating func perform(_ action: ConnectionAction) {
            actions.append(action)
        }
    }
}

// MARK: - Requests

extension ConnectionStateMachine {
    private mutating func open(_ turn: inout Turn<some RandomNumberGenerator>) {
        turn.perform(.observePath(policy.target))
        emit(.opened, because: .opened, &turn)
    }

    /// Gives up whatever runs and dials anew, as far as there is a path.
    mutating func redial(
        because reason: StatusReason, closing: CloseReason, _ turn: inout Turn<some RandomNumberGenerator>
    ) {
        if case .waiting = state { return }
        release(closing, &turn)
        startOver()
        dial(because: reason, &turn)
    }

    private mutating func policyChanged(
        to policy: ConnectionPolicy, _ turn: inout Turn<some RandomNumberGenerator>
    ) {
        let old = self.policy
        guard policy != old else { return }
        self.policy = policy
        if policy.needsAnotherFlow(than: old) {
            // The path that is known leads to the old target; the driver is asked for the new one's.
            release(.superseded, &turn)
            path = nil
            startOver()
            turn.perform(.observePath(policy.target))
            return enter(.waiting, because: .policyChanged, &turn)
        }
        if let epoch = openEpoch, policy.socketOptions != old.socketOptions {
            turn.perform(.configureSocket(epoch: epoch, policy.socketOptions))
        }
        if case .backingOff(let deadline) = state, policy.backoff != old.backoff {
            // A wait that was drawn from figures nobody wants any more is not sat out; a shorter one is not drawn out.
            let sooner = drawDeadline(policy.backoff, &turn)
            if sooner < deadline {
                turn.perform(.scheduleTimer(.retry, deadline: sooner))
                state = .backingOff(until: sooner)
            }
        }
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
    /// The epoch of the socket that is open, if one is.
    private var openEpoch: UInt64? {
        switch state {
        case .connecting(let connecting): connecting.epoch
        case .ready(let ready): ready.epoch
        case .waiting, .resolving, .backingOff, .failed, .closed: nil
        }
    }

    /// Forgets the failures so far: the next ones have other causes.
    mutating func startOver() {
        failures = 0
        refusedSince = nil
    }

    /// Gives up what the state holds: its socket, its query, its timer. The caller enters another state.
    mutating func release(_ closing: CloseReason, _ turn: inout Turn<some RandomNumberGenerator>) {
        switch state {
        case .waiting, .closed:
            break
        case .resolving(let resolving):
            turn.perform(.cancelTimer(.resolution))
            turn.perform(.cancelResolution(query: resolving.query))
        case .connecting(let connecting):
            turn.perform(.cancelTimer(.connect))
            turn.perform(.closeSocket(epoch: connecting.epoch, closing))
        case .ready(let ready):
            turn.perform(.closeSocket(epoch: ready.epoch, closing))
            if isStable(ready, at: turn.now) { startOver() }
        case .backingOff, .failed:
            turn.perform(.cancelTimer(.retry))
        }
    }

    func isStable(_ ready: Ready, at now: Duration) -> Bool {
        now - ready.connectedAt >= policy.stableAfter
    }

    /// Enters a state and tells the subscribers of it.
    mutating func enter(
        _ next: State, because reason: StatusReason, _ turn: inout Turn<some RandomNumberGenerator>
    ) {
        let previous = (state: publicState, duration: turn.now - since)
        state = next
        self.reason = reason
        since = turn.now
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
        turn.perform(
            .emit(
                ConnectionEvent(
                    kind: kind, status: status, previousState: publicState, previousDuration: turn.now - since,
                    reason: reason)))
    }
}
