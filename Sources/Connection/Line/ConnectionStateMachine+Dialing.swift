// SPDX-License-Identifier: Apache-2.0

internal import DialtoneNetworkPath

// From the decision to dial to a flow that stands.

extension ConnectionStateMachine {
    /// Begins a dial. The caller has released what the state held.
    mutating func dial(because reason: StatusReason, _ turn: inout Turn<some RandomNumberGenerator>) {
        if endsWithItsFlow(because: reason, &turn) { return }
        guard let path, path.permitsDialling else {
            // Before the path is known there is nothing to be said of it.
            let lost = path.map { StatusReason.noPath($0.reason, destination: $0.destination) }
            return enter(.waiting, because: lost ?? reason, &turn)
        }
        if waitForRefusedLogin(&turn) { return }
        if let until = retry.leftAloneUntil, turn.now < until {
            return wait(until: drawDeadline(policy.backoff, &turn), because: .serverAsked, &turn)
        }
        guard turn.now >= turn.dialsFrom else {
            return wait(until: turn.dialsFrom, because: .awaitsTurn, &turn)
        }
        guard budget.spend(at: turn.now) else {
            return wait(until: budget.earliest, because: .dialledTooOften, &turn)
        }
        let dial = Dial(dialSetting(over: path, now: turn.now), &numbers, &turn)
        goOn(dial, isNew: true, because: reason, &turn)
    }

    /// When the connection's turn to dial comes, where it waits for that.
    package var awaitedTurn: Duration? {
        guard case .backingOff(let deadline) = state, reason == .awaitsTurn else { return nil }
        return deadline
    }

    /// Does what is due in a dial that has no flow to fall back on.
    ///
    /// - Parameters:
    ///   - isNew: whether it begins with this, or to be that.
    ///   - misses: the attempts that failed in this turn.
    mutating func goOn(
        _ dial: Dial, isNew: Bool = false, because reason: StatusReason, misses: [StatusReason] = [],
        _ turn: inout Turn<some RandomNumberGenerator>
    ) {
        var dial = dial
        switch dial.goOn(&numbers, &turn) {
        case .failed(let cause):
            abandon(&dial, .dialFailed, &turn)
            if dial.hasSilence { silence.fell() }
            wait(for: retry.dialFailed(because: cause, at: turn.now), because: cause, &turn)
        case .goesOn(let wake):
            set(&dial, for: wake, &turn)
            let next = State.dialling(dial)
            if isNew { return enter(next, because: reason, &turn) }
            let before = status
            if publicState(of: next) != before.state { return enter(next, because: misses.last ?? reason, &turn) }
            state = next
            for miss in misses { emit(.addressFailed, because: miss, &turn) }
            if misses.isEmpty, status.epoch != before.epoch { emit(.attemptBegan, because: reason, &turn) }
        }
    }

    /// What a dial over `path` is made by.
    ///
    /// - Parameter isTrial: whether it is to show that something gets through on that way.
    func dialSetting(over path: Path, isTrial: Bool = false, now: Duration) -> Dial.Setting {
        Dial.Setting(
            policy: policy, options: socketOptions, path: path,
            known: reached?.end(at: now, networkChangedAt: retry.networkChangedAt, under: policy),
            patience: isTrial ? nil : silence.patience(with: path, under: policy))
    }

    /// A server has answered on this flow, to a login where there is one.
    mutating func noteReached(_ flow: StandingFlow) {
        guard case .name = policy.remote.host, flow.settledAt != nil else { return }
        reached = Reached(remote: flow.ends.remote, at: flow.liveness.lastProof)
    }

    func set(_ dial: inout Dial, for wake: Duration, _ turn: inout Turn<some RandomNumberGenerator>) {
        // What was due while the machine slept is due now.
        let wake = max(wake, turn.now)
        guard dial.wake != wake else { return }
        dial.wake = wake
        turn.perform(.scheduleTimer(.dial, deadline: wake))
    }

    /// Gives up what a dial has under way, its timer included.
    func abandon(
        _ dial: inout Dial, _ closing: CloseReason, but winner: UInt64? = nil,
        _ turn: inout Turn<some RandomNumberGenerator>
    ) {
        if dial.wake != nil { turn.perform(.cancelTimer(.dial)) }
        dial.close(closing, but: winner, &turn)
    }

    /// Changes the dial that runs, be it for the first flow or for a better one, and does what is due in it then.
    ///
    /// - Parameter change: returns the attempts that it made fail; `nil` where it was no news for this dial.
    mutating func advance<Random>(
        _ turn: inout Turn<Random>, _ change: (inout Dial, inout Dial.Numbers, inout Turn<Random>) -> [StatusReason]?
    ) {
        guard var dial = runningDial, let misses = change(&dial, &numbers, &turn) else { return }
        if let flow, let move = flow.move {
            goOn(moving: flow, by: dial, afterFailures: move.failures, &turn)
        } else {
            goOn(dial, because: reason, misses: misses, &turn)
        }
    }

    /// The dial that runs, be it for the first flow or for a better one.
    private var runningDial: Dial? {
        switch state {
        case .dialling(let dial): dial
        case .ready(let flow): flow.move?.dial
        case .waiting, .backingOff, .failed, .closed: nil
        }
    }

    mutating func dialSucceeded(
        _ epoch: UInt64, _ local: Endpoint, _ remote: Endpoint, _ security: TLSSummary?,
        _ turn: inout Turn<some RandomNumberGenerator>
    ) {
        let old = flow
        guard var won = runningDial, won.attempts.contains(where: { $0.epoch == epoch }) else { return }
        abandon(&won, .outrun, but: epoch, &turn)
        if won.options != socketOptions {
            // The dial began under an earlier policy, or before a client left another opening.
            turn.perform(.configureSocket(epoch: epoch, socketOptions))
        }
        retry.dialSucceeded()
        let detour = won.attempts.first { $0.epoch == epoch }?.detour
        if detour != nil { silence.note(won, over: path, at: turn.now) }
        silence.ended()
        let interface = path?.interface.flatMap { interface in
            interface.addresses.contains { $0.address == local.address } ? interface.name : nil
        }
        let ends = FlowEnds(local: local, remote: remote, interface: detour?.value.interface ?? interface)
        let flow = StandingFlow(
            epoch: epoch, ends: ends, isBound: detour != nil, security: security, settledAt: turn.now,
            liveness: Liveness(
                policy.livenessFigures, connectedAt: turn.now, hasAnsweredKeepalives: hasAnsweredKeepalives))
        if let opening { return play(opening, on: flow, besides: old, &turn) }
        if let old { closeFlow(old, .replaced, &turn) }
        noteReached(flow)
        loginTaken()
        attend(to: flow, &turn)
        enter(.ready(flow), because: reason(for: flow, besides: old), &turn)
    }

    /// Why a new flow stands: it is the better one only where the one before could have stayed.
    func reason(for flow: StandingFlow, besides old: StandingFlow?) -> StatusReason {
        if flow.way.isDetour { return .detoured(around: path?.interface?.name ?? "the first uplink") }
        return old.map(\.isSilent) ?? true ? .connected : .replaced
    }

    // MARK: - Timers

    mutating func timerFired(_ timer: ConnectionTimer, _ turn: inout Turn<some RandomNumberGenerator>) {
        switch timer {
        case .dial: dialIsDue(&turn)
        case .retry: retryIsDue(&turn)
        case .opening: openingIsDue(&turn)
        case .proof: proofIsDue(&turn)
        }
    }

    private mutating func dialIsDue(_ turn: inout Turn<some RandomNumberGenerator>) {
        guard let wake = runningDial?.wake, isDue(wake, .dial, &turn) else { return }
        advance(&turn) { dial, _, turn in
            // It rang, and is to be set again whatever comes next.
            dial.wake = nil
            return dial.giveUpOverdue(&turn).map { .dialFailed($1, $0.remote) }
        }
    }

    private mutating func retryIsDue(_ turn: inout Turn<some RandomNumberGenerator>) {
        switch state {
        case .backingOff(let deadline), .failed(let deadline):
            guard isDue(deadline, .retry, &turn) else { return }
            dial(because: .retryDue, &turn)
        case .ready(let flow):
            guard let move = flow.move, let deadline = move.deadline, isDue(deadline, .retry, &turn) else { return }
            self.move(flow, afterFailures: move.failures, &turn)
        case .waiting, .dialling, .closed:
            break
        }
    }

    func isDue(
        _ deadline: Duration, _ timer: ConnectionTimer, _ turn: inout Turn<some RandomNumberGenerator>
    ) -> Bool {
        if turn.now >= deadline { return true }
        turn.perform(.scheduleTimer(timer, deadline: deadline))
        return false
    }
}

// MARK: - After a failure

extension ConnectionStateMachine {
    /// The remote or the line ended a flow.
    mutating func flowEnded(
        _ epoch: UInt64, _ cause: StatusReason, _ turn: inout Turn<some RandomNumberGenerator>
    ) {
        guard let flow else { return }
        let closing: CloseReason = cause == .remoteClosed ? .remoteClosed : .failed
        guard flow.epoch == epoch else { return nextFlowFailed(epoch, closing, because: cause, &turn) }
        let ended = cause
        let cause =
            flow.settledAt.map {
                retry.flowEnded(at: turn.now - $0, lacksLogin: flow.lacksLogin(under: policy), because: ended)
            } ?? ended
        closeFlow(flow, closing, &turn, rest: cause.isServersEnding ? flow.ownership.rest(after: .remoteClosed) : nil)
        if flow.isLoggingInElsewhere {
            // A server that allows each client one session ends this flow when the next one logs in.
            _ = promoteMove(of: flow, because: .replaced, &turn)
            return
        }
        if !isStable(flow, at: turn.now) { retry.flowFailed(because: cause, at: turn.now) }
        if cause.isSilence, !flow.way.isDetour { silence.fell() }
        goOn(after: flow, because: cause, &turn)
        if let opening = flow.opening { openingHadNoAnswer(opening.failure(.ended), &turn) }
    }

    /// Dials or waits, after a flow that ended.
    mutating func goOn(
        after flow: StandingFlow, because cause: StatusReason, _ turn: inout Turn<some RandomNumberGenerator>
    ) {
        if promoteMove(of: flow, because: cause, &turn) { return }
        // It may have outlived the path that the next one needs.
        guard let path, path.permitsDialling else { return dial(because: cause, &turn) }
        if login.refusal?.isOfMove == false, refusedUntil(turn.now) != nil { return dial(because: cause, &turn) }
        guard let wait = retry.wait(afterFlowEndedBy: cause, at: turn.now) else { return dial(because: cause, &turn) }
        self.wait(for: wait, because: cause, &turn)
    }

    /// Waits, and then dials.
    mutating func wait(
        for wait: Retry.Wait, because cause: StatusReason, _ turn: inout Turn<some RandomNumberGenerator>
    ) {
        if endsWithItsFlow(because: cause, &turn) { return }
        let backoff: BackoffPolicy =
            switch wait {
            case .settling: .brief
            case .backOff: policy.backoff
            case .mending: .slow
            }
        self.wait(until: drawDeadline(backoff, &turn), isFailed: wait == .mending, because: cause, &turn)
    }

    /// Waits until then, and then dials.
    ///
    /// - Parameter isFailed: whether time alone will not mend the cause.
    mutating func wait(
        until deadline: Duration, isFailed: Bool = false, because reason: StatusReason,
        _ turn: inout Turn<some RandomNumberGenerator>
    ) {
        turn.perform(.scheduleTimer(.retry, deadline: deadline))
        enter(isFailed ? .failed(until: deadline) : .backingOff(until: deadline), because: reason, &turn)
    }

    /// Ends a connection that is its flow and nothing more.
    ///
    /// - Returns: whether it is one.
    mutating func endsWithItsFlow(
        because cause: StatusReason, _ turn: inout Turn<some RandomNumberGenerator>
    ) -> Bool {
        guard !policy.redials else { return false }
        turn.perform(.stopObservingPath)
        enter(.closed, because: cause, &turn)
        return true
    }

    /// When to dial again: what chance draws, but not earlier than the budget allows, or the wait would end in another.
    func drawDeadline(_ backoff: BackoffPolicy, _ turn: inout Turn<some RandomNumberGenerator>) -> Duration {
        max(retry.deadline(by: backoff, from: turn.now, using: &turn.random), budget.earliest)
    }
}
