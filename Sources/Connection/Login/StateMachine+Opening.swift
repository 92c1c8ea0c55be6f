// SPDX-License-Identifier: Apache-2.0

// How the agent logs in on a new flow for a client that sleeps.

/// How far the opening exchange is on a flow.
struct OpeningProgress: Hashable {
    private let begunAt: Duration
    private var stepBegunAt: Duration
    /// The step whose answer is awaited, from 1.
    private var step: Int
    /// What is played.
    let opening: Opening

    init(of opening: Opening, at now: Duration) {
        self.opening = opening
        (begunAt, stepBegunAt) = (now, now)
        step = opening.stepAwaited(from: 0)
    }

    /// When it is given up.
    var deadline: Duration { min(stepBegunAt + Opening.answerDeadline, begunAt + Opening.deadline) }

    /// An answer came, and the one to `step` is next.
    mutating func answered(awaiting step: Int, at now: Duration) {
        self.step = step
        stepBegunAt = now
    }

    /// It failed here.
    func failure(_ cause: OpeningFailure.Cause) -> OpeningFailure { OpeningFailure(step: step, cause: cause) }
}

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
        _ opening: Opening, on connected: Ready, besides old: Ready?, _ turn: inout Turn<some RandomNumberGenerator>
    ) {
        var ready = connected
        let progress = OpeningProgress(of: opening, at: turn.now)
        (ready.ownership, ready.opening, ready.settledAt) = (.opening, progress, nil)
        let keepsOld = old?.ownership.isOfUse ?? false
        if let old, !keepsOld { closeFlow(old, .replaced, &turn) }
        turn.perform(.playOpening(epoch: ready.epoch, opening))
        turn.perform(.scheduleTimer(.opening, deadline: progress.deadline))
        if let old, keepsOld {
            var failures = 0
            if case .dialling(_, let before)? = old.move { failures = before }
            keep(old, moving: .opening(ready, failures: failures))
        } else {
            enter(.ready(ready), because: reason(for: ready, besides: old), &turn)
        }
    }

    /// Changes the flow on which the opening is played.
    private mutating func withOpeningFlow(_ epoch: UInt64, _ change: (inout Ready) -> Void) {
        guard case .ready(var ready) = state else { return }
        if ready.epoch == epoch, ready.opening != nil {
            change(&ready)
            state = .ready(ready)
        } else if case .opening(var next, let failures)? = ready.move, next.epoch == epoch {
            change(&next)
            keep(ready, moving: .opening(next, failures: failures))
        }
    }

    // MARK: - What comes of it

    mutating func openingAnswered(
        _ epoch: UInt64, _ awaited: Int, _ begun: Duration?, _ turn: inout Turn<some RandomNumberGenerator>
    ) {
        let now = turn.now
        var deadline: Duration?
        withOpeningFlow(epoch) { ready in
            ready.opening?.answered(awaiting: awaited, at: now)
            deadline = ready.opening?.deadline
        }
        guard let deadline else { return }
        turn.perform(.scheduleTimer(.opening, deadline: deadline))
        // A round trip, and of the server's program at that.
        guard let begun else { return }
        if case .ready(let ready) = state, ready.epoch == epoch {
            acknowledged(epoch, begun, &turn)
        } else {
            withOpeningFlow(epoch) { $0.liveness.acknowledged(begun, at: now) }
        }
    }

    mutating func sessionOpened(_ epoch: UInt64, _ turn: inout Turn<some RandomNumberGenerator>) {
        guard case .ready(let before) = state, opensSession(epoch) else { return }
        turn.perform(.cancelTimer(.opening))
        retry.openingAnswered()
        loginTaken()
        let now = turn.now
        withOpeningFlow(epoch) { ready in
            (ready.ownership, ready.opening, ready.settledAt) = (.parked, nil, now)
        }
        guard case .ready(let ready) = state else { return }
        guard case .opening(var next, _)? = ready.move else {
            noteReached(ready)
            attend(to: ready, &turn)
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
        guard case .ready(var ready) = state, opensSession(epoch) else { return }
        let cause = StatusReason.openingFailed(failure)
        guard ready.epoch == epoch else {
            if case .opening(let next, _)? = ready.move {
                loginRefused(failure, of: next.opening?.opening, isOfMove: true, &turn)
            }
            return nextFlowFailed(epoch, .failed, because: cause, &turn)
        }
        loginRefused(failure, of: ready.opening?.opening, isOfMove: false, &turn)
        turn.perform(.cancelTimer(.opening))
        retry.openingAnswered()
        (ready.ownership, ready.opening) = (.new, nil)
        state = .ready(ready)
        // A dial that is under way would say the same on the next flow, and take this one's place.
        if login.refusal != nil {
            endMove(.superseded, &turn)
            if case .ready(let alone) = state { ready = alone }
        }
        // What the server said is not looked for: the client is called anyway.
        sendKeepalives(on: ready, &turn)
        reason = cause
        emit(.openingFailed, because: cause, &turn)
    }

    mutating func openingIsDue(_ turn: inout Turn<some RandomNumberGenerator>) {
        guard case .ready(let ready) = state else { return }
        if let progress = ready.opening {
            guard isDue(progress.deadline, .opening, &turn) else { return }
            var lost = ready
            // Its timer has rung.
            lost.opening = nil
            closeFlow(lost, .timedOut, &turn)
            let cause = StatusReason.openingFailed(progress.failure(.timedOut))
            retry.flowFailed(because: cause, at: turn.now)
            goOn(after: lost, because: cause, &turn)
            openingHadNoAnswer(progress.failure(.timedOut), &turn)
        } else if case .opening(let next, _)? = ready.move, let progress = next.opening {
            guard isDue(progress.deadline, .opening, &turn) else { return }
            withOpeningFlow(next.epoch) { $0.opening = nil }
            nextFlowFailed(next.epoch, .timedOut, because: .openingFailed(progress.failure(.timedOut)), &turn)
        }
    }

    /// Whether the opening is played on this flow.
    private func opensSession(_ epoch: UInt64) -> Bool {
        guard case .ready(let ready) = state else { return false }
        if ready.epoch == epoch { return ready.opening != nil }
        if case .opening(let next, _)? = ready.move { return next.epoch == epoch }
        return false
    }

    /// The flow over a better path did not come to take the place of the one that stands, if `epoch` is that flow's.
    mutating func nextFlowFailed(
        _ epoch: UInt64, _ closing: CloseReason, because cause: StatusReason,
        _ turn: inout Turn<some RandomNumberGenerator>
    ) {
        guard case .ready(let ready) = state, case .opening(let next, let failures)? = ready.move, next.epoch == epoch
        else { return }
        // There is a session on the one that stands, whatever the server said on this one.
        closeFlow(next, closing, &turn, rest: .dropped)
        moveFailed(ready, afterFailures: failures, because: cause, &turn)
    }

    /// An opening came to nothing and nobody refused it. The state was entered that follows from that.
    mutating func openingHadNoAnswer(_ failure: OpeningFailure, _ turn: inout Turn<some RandomNumberGenerator>) {
        lastFailure = .openingFailed(failure)
        if retry.openingHadNoAnswer() { emit(.openingFailed, because: .openingFailed(failure), &turn) }
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
