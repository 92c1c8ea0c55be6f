// SPDX-License-Identifier: Apache-2.0

// How the agent logs in on a new flow for a client that sleeps.

extension ConnectionStateMachine {
    /// What is said on each new flow.
    var opening: Opening? { login.opening(by: policy) }

    /// What the agent sends to keep flows alive.
    var heartbeat: Heartbeat? { policy.heartbeat?.keeping(opening) }

    mutating func openingLeft(_ opening: Opening?, _ turn: inout Turn<some RandomNumberGenerator>) {
        let before = (opening: self.opening, heartbeat: heartbeat, options: socketOptions)
        login.left = opening
        configureSockets(after: before.options, &turn)
        if heartbeat != before.heartbeat { heartbeatChanged(&turn) }
        if self.opening != before.opening { _ = loginChanged(&turn) }
    }

    /// Logs in on a flow that was just connected. One that stands with a session on it is kept until that is done; the
    /// server may end it in the middle.
    mutating func play(
        _ opening: Opening, on connected: StandingFlow, besides old: StandingFlow?,
        _ turn: inout Turn<some RandomNumberGenerator>
    ) {
        var flow = connected
        let progress = OpeningProgress(of: opening, at: turn.now)
        (flow.ownership, flow.opening, flow.settledAt) = (.opening, progress, nil)
        let keepsOld = old?.ownership.isOfUse ?? false
        if let old, !keepsOld { closeFlow(old, .replaced, &turn) }
        turn.perform(.playOpening(epoch: flow.epoch, opening))
        turn.perform(.scheduleTimer(.opening, deadline: progress.deadline))
        if let old, keepsOld {
            keep(old, moving: Move(to: flow, afterFailures: old.move?.failures ?? 0))
        } else {
            enter(.ready(flow), because: reason(for: flow, besides: old), &turn)
        }
    }

    /// Changes the flow on which the opening is played.
    private mutating func withOpeningFlow(_ epoch: UInt64, _ change: (inout StandingFlow) -> Void) {
        guard var flow else { return }
        if flow.epoch == epoch, flow.opening != nil {
            change(&flow)
        } else if flow.move?.next?.epoch == epoch {
            flow.move?.changeNext(change)
        }
        state = .ready(flow)
    }

    // MARK: - What comes of it

    mutating func openingAnswered(
        _ epoch: UInt64, _ awaited: Int, _ begun: Duration?, _ turn: inout Turn<some RandomNumberGenerator>
    ) {
        let now = turn.now
        var deadline: Duration?
        withOpeningFlow(epoch) { flow in
            flow.opening?.answered(awaiting: awaited, at: now)
            deadline = flow.opening?.deadline
        }
        guard let deadline else { return }
        turn.perform(.scheduleTimer(.opening, deadline: deadline))
        // A round trip, and of the server's program at that.
        guard let begun else { return }
        if flow?.epoch == epoch {
            update(epoch, &turn) { $0.acknowledged(begun, at: $1) }
        } else {
            withOpeningFlow(epoch) { $0.liveness.acknowledged(begun, at: now) }
        }
    }

    mutating func sessionOpened(_ epoch: UInt64, _ turn: inout Turn<some RandomNumberGenerator>) {
        guard let before = flow, opensSession(epoch) else { return }
        turn.perform(.cancelTimer(.opening))
        retry.openingAnswered()
        loginTaken()
        let (now, handled) = (turn.now, answers.handled)
        withOpeningFlow(epoch) { flow in
            // A session that has begun has handled no stanza yet.
            flow.handled = flow.opening?.opening.resumesStream == true ? handled : 0
            (flow.ownership, flow.opening, flow.settledAt) = (.parked, nil, now)
        }
        guard let flow else { return }
        guard var next = flow.move?.next else {
            noteReached(flow)
            attend(to: flow, &turn)
            moveIfBetter(&turn)
            return emit(.sessionOpened, because: .sessionOpened, &turn)
        }
        closeFlow(before, .replaced, &turn)
        noteReached(next)
        if hasAnsweredKeepalives { next.liveness.answeredBefore() }
        attend(to: next, &turn)
        enter(.ready(next), because: reason(for: next, besides: before), &turn)
    }

    /// The server said something else than was expected. The flow is left for the client to look at.
    mutating func openingFailed(
        _ epoch: UInt64, _ failure: OpeningFailure, _ turn: inout Turn<some RandomNumberGenerator>
    ) {
        guard let told = flow, opensSession(epoch) else { return }
        let cause = StatusReason.openingFailed(failure)
        let isOfMove = told.epoch != epoch
        let played = isOfMove ? told.move?.next?.opening : told.opening
        loginRefused(failure, of: played?.opening, isOfMove: isOfMove, &turn)
        if isOfMove { return nextFlowFailed(epoch, .failed, because: cause, &turn) }
        turn.perform(.cancelTimer(.opening))
        retry.openingAnswered()
        withOpeningFlow(epoch) { ($0.ownership, $0.opening) = (.new, nil) }
        // A dial that is under way would say the same on the next flow, and take this one's place.
        if login.refusal != nil { endMove(.superseded, &turn) }
        // What the server said is not looked for: the client is called anyway.
        if let flow { sendKeepalives(on: flow, &turn) }
        reason = cause
        emit(.openingFailed, because: cause, &turn)
    }

    mutating func openingIsDue(_ turn: inout Turn<some RandomNumberGenerator>) {
        guard let standing = flow, let played = standing.opening == nil ? standing.move?.next : standing,
            let progress = played.opening, isDue(progress.deadline, .opening, &turn)
        else { return }
        // Its timer has rung.
        withOpeningFlow(played.epoch) { $0.opening = nil }
        let failure = progress.failure(.timedOut)
        let cause = StatusReason.openingFailed(failure)
        guard standing.epoch == played.epoch, let lost = flow else {
            return nextFlowFailed(played.epoch, .timedOut, because: cause, &turn)
        }
        closeFlow(lost, .timedOut, &turn)
        retry.flowFailed(because: cause, at: turn.now)
        goOn(after: lost, because: cause, &turn)
        openingHadNoAnswer(failure, &turn)
    }

    /// Whether the opening is played on this flow.
    private func opensSession(_ epoch: UInt64) -> Bool {
        flow.map { $0.epoch == epoch ? $0.opening != nil : $0.move?.next?.epoch == epoch } ?? false
    }

    /// An opening came to nothing and nobody refused it. The state was entered that follows from that.
    mutating func openingHadNoAnswer(_ failure: OpeningFailure, _ turn: inout Turn<some RandomNumberGenerator>) {
        lastFailure = .openingFailed(failure)
        if retry.openingHadNoAnswer() { emit(.openingFailed, because: .openingFailed(failure), &turn) }
    }
}

// MARK: - A login that was refused

extension ConnectionStateMachine {
    /// Until when the login that the server refused is not tried again.
    func refusedUntil(_ now: Duration) -> Duration? {
        login.wait(at: now, networkChangedAt: retry.networkChangedAt)
    }

    /// The server said no to an opening.
    mutating func loginRefused(
        _ failure: OpeningFailure, of played: Opening?, isOfMove: Bool, _ turn: inout Turn<some RandomNumberGenerator>
    ) {
        if !isOfMove { lastFailure = .openingFailed(failure) }
        // Another one is to be said by now, which nobody has refused.
        guard played == opening else { return }
        let wait: Duration
        if failure.isLasting {
            wait = BackoffPolicy.slow.delay(afterFailures: 0, using: &turn.random)
        } else if let pause = failure.refusal?.pause {
            // What the server asked for it asked of everybody: a wait of one's own comes on top.
            wait = pause + policy.backoff.delay(afterFailures: retry.failures, using: &turn.random)
        } else {
            return
        }
        login.refused(failure, isOfMove: isOfMove, at: turn.now, for: wait)
    }

    /// Waits for the time at which the login that was refused is tried again.
    ///
    /// - Returns: whether it waits.
    mutating func waitForRefusedLogin(_ turn: inout Turn<some RandomNumberGenerator>) -> Bool {
        login.sessionMayBeOver()
        guard let failure = login.refusal?.failure, let deadline = refusedUntil(turn.now) else { return false }
        wait(until: deadline, isFailed: failure.isLasting, because: .openingFailed(failure), &turn)
        return true
    }

    /// The server took the login, or there is no login.
    mutating func loginTaken() {
        login.forgetRefusal()
        lastFailure = nil
    }

    /// What is said to log in is another from now on: what was refused does not count any more, and what is being said
    /// on a next flow is out of date.
    ///
    /// - Returns: whether the connection waited for that, and is dialled.
    mutating func loginChanged(_ turn: inout Turn<some RandomNumberGenerator>) -> Bool {
        beginLoginAgain(&turn)
        guard let refusal = login.refusal else { return false }
        login.forgetRefusal()
        switch state {
        // What it waits for otherwise, another login does not mend.
        case .backingOff, .failed: guard reason == .openingFailed(refusal.failure) else { return false }
        // The server refused and did not hang up, and nobody has come for the flow.
        case .ready(let flow) where flow.ownership == .new: break
        case .ready(let flow):
            if flow.move?.deadline != nil {
                endMove(.superseded, &turn)
                moveIfBetter(&turn)
            }
            return false
        case .waiting, .dialling, .closed: return false
        }
        redial(because: .policyChanged, closing: .superseded, &turn)
        return true
    }
}

extension FlowOwnership {
    /// Whether something would be lost with a flow that a new one takes the place of.
    fileprivate var isOfUse: Bool {
        switch session {
        case .open, .unknown: true
        case .none, .opening: false
        }
    }
}
