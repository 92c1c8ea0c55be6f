// SPDX-License-Identifier: Apache-2.0

// Whether a flow that stands still reaches the server: keepalives and their answers, and the proof that is owed after a
// change of the path or a suspend.

extension ConnectionStateMachine {
    mutating func probeSent(_ epoch: UInt64, _ turn: inout Turn<some RandomNumberGenerator>) {
        update(epoch, because: .verified, &turn) { $0.probeSent(at: $1) }
    }

    mutating func answered(_ epoch: UInt64, _ count: Int, _ turn: inout Turn<some RandomNumberGenerator>) {
        update(epoch, because: .verified, &turn) { $0.answered(count, at: $1) }
    }

    mutating func answerHidden(_ epoch: UInt64, _ turn: inout Turn<some RandomNumberGenerator>) {
        update(epoch, because: .verified, &turn) { liveness, _ in liveness.withdrawProbes() }
    }

    /// The answers to what was sent are not looked for any more.
    mutating func withdrawProbes(of epoch: UInt64, _ turn: inout Turn<some RandomNumberGenerator>) {
        update(epoch, because: reason, &turn) { liveness, _ in liveness.withdrawProbes() }
    }

    mutating func acknowledged(
        _ epoch: UInt64, _ begun: Duration, _ turn: inout Turn<some RandomNumberGenerator>
    ) {
        update(epoch, because: .verified, &turn) { $0.acknowledged(begun, at: $1) }
    }

    /// Only a round trip that begins from now on shows that the server is there.
    mutating func verify(because reason: StatusReason, _ turn: inout Turn<some RandomNumberGenerator>) {
        guard case .ready(let ready) = state, !ready.isSilent else { return }
        turn.perform(.probe(epoch: ready.epoch))
        update(ready.epoch, because: reason, &turn) { $0.verify(at: $1) }
    }

    mutating func resumed(_ turn: inout Turn<some RandomNumberGenerator>) {
        // The network may have to come up first, and what fails meanwhile fails of that.
        retry.pathMoved(at: turn.now, isAnotherNetwork: true)
        switch state {
        case .ready(let ready) where ready.isSilent:
            if !ready.isLoggingInElsewhere { endMove(.overslept, &turn) }
            dialBeside(afterAnotherWay: false, &turn)
        case .ready: verify(because: .resumed, &turn)
        case .dialling, .backingOff, .failed: redial(because: .resumed, closing: .overslept, &turn)
        case .waiting, .closed: break
        }
    }

    mutating func heartbeatChanged(_ turn: inout Turn<some RandomNumberGenerator>) {
        guard case .ready(let ready) = state else { return }
        turn.perform(.keepAlive(epoch: ready.epoch, heartbeat(on: ready)))
        // The answers to what was sent before are not looked for any more.
        update(ready.epoch, because: reason, &turn) { [figures = policy.livenessFigures] liveness, _ in
            liveness.adopt(figures)
        }
    }

    mutating func proofIsDue(_ turn: inout Turn<some RandomNumberGenerator>) {
        guard case .ready(var ready) = state, let deadline = ready.proofDeadline, isDue(deadline, .proof, &turn)
        else { return }
        if ready.isSilent, let loss = ready.loss { return returnIsOverdue(ready, loss, &turn) }
        switch ready.liveness.check(at: turn.now) {
        case .unanswered: lose(ready, because: .unanswered, &turn)
        case .unverified: lose(ready, because: .unverified, &turn)
        case .indifferent:
            turn.perform(.giveUpAnswers(epoch: ready.epoch))
            fallthrough
        case .alive:
            state = .ready(ready)
            if let next = ready.liveness.deadline { turn.perform(.scheduleTimer(.proof, deadline: next)) }
        }
    }

    /// Changes what is known of a flow's life, and the timer and the state that follow from it.
    private mutating func update(
        _ epoch: UInt64, because reason: StatusReason, _ turn: inout Turn<some RandomNumberGenerator>,
        _ change: (inout Liveness, Duration) -> Void
    ) {
        guard case .ready(var ready) = state, ready.epoch == epoch else { return }
        let before = (deadline: ready.proofDeadline, isInDoubt: ready.isInDoubt, told: publicState)
        change(&ready.liveness, turn.now)
        if !ready.isInDoubt, ready.loss != nil {
            ready.loss = nil
            endMoveForLoss(of: &ready, &turn)
        }
        hasAnsweredKeepalives = ready.liveness.hasAnsweredKeepalives
        if ready.proofDeadline != before.deadline {
            turn.perform(ready.proofDeadline.map { .scheduleTimer(.proof, deadline: $0) } ?? .cancelTimer(.proof))
        }
        if ready.isInDoubt == before.isInDoubt {
            state = .ready(ready)
        } else {
            enter(.ready(ready), from: before.told, because: reason, &turn)
        }
    }

    /// The line is dead, and only this machine knows.
    private mutating func lose(
        _ ready: Ready, because cause: StatusReason, _ turn: inout Turn<some RandomNumberGenerator>
    ) {
        if ready.opening != nil { turn.perform(.cancelTimer(.opening)) }
        // Its timer has rung. Nothing is to be said to a remote that does not hear.
        turn.perform(.closeSocket(epoch: ready.epoch, .unanswered, ready.ownership.rest(after: .unanswered)))
        stopObservingWay(of: ready, &turn)
        let wasStable = isStable(ready, at: turn.now)
        flowIsOver(ready, at: turn.now)
        if !ready.isDetour { silence.fell() }
        if !wasStable { retry.flowFailed(because: cause, at: turn.now) }
        if promoteMove(of: ready, because: cause, &turn) { return }
        guard let path, path.permitsDialling else { return dial(because: cause, &turn) }
        // A line that was cut in the middle is dialled anew at once: the keepalives of a server's agents lie at
        // different times, and so do these dials. One that keeps falling silent waits.
        if wasStable || cause == .unverified { return dial(because: cause, &turn) }
        wait(for: .backOff, because: cause, &turn)
    }
}

extension ConnectionPolicy {
    /// What keepalives are judged by.
    var livenessFigures: KeepaliveFigures { heartbeat?.figures ?? KeepaliveProtocol.kernel.figures }
}
