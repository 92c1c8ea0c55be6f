// SPDX-License-Identifier: Apache-2.0

// Whether a flow that stands still reaches the server: keepalives and their answers, and the proof that is owed after a
// change of the path or a suspend (``Liveness``). And who owns it: a client takes it and parks it again, or is gone
// without a word (``FlowOwnership``).

extension ConnectionStateMachine {
    /// Only a round trip that begins from now on shows that the server is there.
    mutating func verify(because reason: StatusReason, _ turn: inout Turn<some RandomNumberGenerator>) {
        guard let flow, !flow.isSilent else { return }
        turn.perform(.probe(epoch: flow.epoch))
        update(flow.epoch, because: reason, &turn) { $0.verify(at: $1) }
    }

    mutating func resumed(_ turn: inout Turn<some RandomNumberGenerator>) {
        // The network may have to come up first, and what fails meanwhile fails of that.
        retry.pathMoved(at: turn.now, isAnotherNetwork: true)
        switch state {
        case .ready(let flow) where flow.isSilent:
            if !flow.isLoggingInElsewhere { endMove(.overslept, &turn) }
            dialBeside(afterAnotherWay: false, &turn)
        case .ready: verify(because: .resumed, &turn)
        case .dialling, .backingOff, .failed: redial(because: .resumed, closing: .overslept, &turn)
        case .waiting, .closed: break
        }
    }

    mutating func heartbeatChanged(_ turn: inout Turn<some RandomNumberGenerator>) {
        guard let flow else { return }
        turn.perform(.keepAlive(epoch: flow.epoch, heartbeat(on: flow)))
        // The answers to what was sent before are not looked for any more.
        update(flow.epoch, because: reason, &turn) { [figures = policy.livenessFigures] liveness, _ in
            liveness.adopt(figures)
        }
    }

    mutating func proofIsDue(_ turn: inout Turn<some RandomNumberGenerator>) {
        guard var flow, let deadline = flow.proofDeadline, isDue(deadline, .proof, &turn) else { return }
        if flow.isSilent { return returnIsOverdue(flow, &turn) }
        switch flow.liveness.check(at: turn.now) {
        case .unanswered: lose(flow, because: .unanswered, &turn)
        case .unverified: lose(flow, because: .unverified, &turn)
        case .indifferent:
            turn.perform(.giveUpAnswers(epoch: flow.epoch))
            fallthrough
        case .alive:
            state = .ready(flow)
            scheduleProof(of: flow, &turn)
        }
    }

    func scheduleProof(of flow: StandingFlow, _ turn: inout Turn<some RandomNumberGenerator>) {
        if let deadline = flow.proofDeadline { turn.perform(.scheduleTimer(.proof, deadline: deadline)) }
    }

    /// Changes what is known of a flow's life, and the timer and the state that follow from it.
    mutating func update(
        _ epoch: UInt64, because reason: StatusReason = .verified, _ turn: inout Turn<some RandomNumberGenerator>,
        _ change: (inout Liveness, Duration) -> Void
    ) {
        guard let before = flow, before.epoch == epoch else { return }
        let told = publicState
        var flow = before
        change(&flow.liveness, turn.now)
        if !flow.isInDoubt, flow.grace.isRunning {
            flow.grace.end()
            endMoveForLoss(of: &flow, &turn)
        }
        hasAnsweredKeepalives = flow.liveness.hasAnsweredKeepalives
        if flow.proofDeadline != before.proofDeadline {
            turn.perform(flow.proofDeadline.map { .scheduleTimer(.proof, deadline: $0) } ?? .cancelTimer(.proof))
        }
        if flow.isInDoubt == before.isInDoubt {
            state = .ready(flow)
        } else {
            enter(.ready(flow), from: told, because: reason, &turn)
        }
    }

    /// The line is dead, and only this machine knows.
    private mutating func lose(
        _ flow: StandingFlow, because cause: StatusReason, _ turn: inout Turn<some RandomNumberGenerator>
    ) {
        var lost = flow
        // Its timer has rung, and nothing is awaited any more. Nothing is to be said to a remote that does not hear.
        lost.liveness.suspend()
        lost.liveness.withdrawProbes()
        let wasStable = isStable(flow, at: turn.now)
        closeFlow(lost, .unanswered, &turn)
        if !flow.way.isDetour { silence.fell() }
        if !wasStable { retry.flowFailed(because: cause, at: turn.now) }
        if promoteMove(of: flow, because: cause, &turn) { return }
        guard let path, path.permitsDialling else { return dial(because: cause, &turn) }
        // A line that was cut in the middle is dialled again at once: the agents of one server send their keepalives
        // at different times, so they dial at different times. A line that keeps falling silent waits.
        if wasStable || cause == .unverified { return dial(because: cause, &turn) }
        wait(for: .backOff, because: cause, &turn)
    }
}

// MARK: - Who owns it

extension ConnectionStateMachine {
    mutating func adopt(_ adoption: Adoption, _ turn: inout Turn<some RandomNumberGenerator>) {
        let newest = max(adoption.epoch, adoption.past?.newestEpoch ?? 0)
        numbers.epoch = max(numbers.epoch, min(newest, Self.largestNumber))
        let ends = FlowEnds(local: adoption.local, remote: adoption.remote, interface: adoption.interface)
        var flow = StandingFlow(
            epoch: adoption.epoch, ends: ends, isBound: adoption.isBound, security: adoption.security,
            settledAt: adoption.past?.connectedAt ?? turn.now,
            liveness: Liveness(
                policy.livenessFigures, connectedAt: adoption.lastProof ?? turn.now,
                hasAnsweredKeepalives: hasAnsweredKeepalives))
        (flow.ownership, flow.handled) = (adoption.ownership, adoption.handled)
        // The keys of a flow that a client dialled are with the client.
        flow.isSealed = policy.remote.scheme.needsTLS && adoption.security == nil
        noteReached(flow)
        turn.perform(.observePath(policy.target))
        turn.perform(.configureSocket(epoch: adoption.epoch, socketOptions))
        let isInDoubt = adoption.past?.isInDoubt == true
        // Nobody looked for the proof that it owed to the earlier run.
        if isInDoubt { flow.liveness.verify(at: turn.now) }
        state = .ready(flow)
        turnedAt = adoption.past?.upSince ?? turn.now
        if let past = adoption.past {
            since = past.since
            reason = .restarted(.kept)
        } else {
            reason = .adopted
        }
        attend(to: flow, &turn)
        if isInDoubt {
            turn.perform(.probe(epoch: adoption.epoch))
            scheduleProof(of: flow, &turn)
        }
        emit(adoption.past == nil ? .opened : .continued, because: reason, &turn)
    }

    /// Goes on where an earlier run of the agent stopped, without a flow.
    mutating func reopen(_ epoch: UInt64, _ restart: Restart, _ turn: inout Turn<some RandomNumberGenerator>) {
        numbers.epoch = max(numbers.epoch, min(epoch, Self.largestNumber))
        reason = .restarted(restart)
        turn.perform(.observePath(policy.target))
        if endsWithItsFlow(because: reason, &turn) { return }
        emit(.continued, because: reason, &turn)
    }

    /// The flow that stands, and who has it.
    var standing: (epoch: UInt64, ownership: FlowOwnership)? {
        flow.map { ($0.epoch, $0.ownership) }
    }

    /// What a later run of the agent needs to go on with the flow that stands; `nil` without one.
    package var adoption: Adoption? {
        guard let flow else { return nil }
        return Adoption(
            epoch: flow.epoch, local: flow.ends.local, remote: flow.ends.remote,
            ownership: FlowOwnership(reader: flow.ownership.reader, session: flow.ownership.session),
            lastProof: flow.liveness.lastProof, interface: flow.ends.interface, isBound: flow.way.isBound,
            security: flow.security?.value, handled: flow.handled,
            past: .init(
                connectedAt: flow.settledAt ?? since, since: since, upSince: turnedAt, isInDoubt: flow.isInDoubt))
    }

    /// The highest number that a flow had; the next one's is above it.
    package var newestEpoch: UInt64 { numbers.epoch }

    /// The certificate by which the flow's ends know each other ends soon: told, and nothing else.
    mutating func certificateEnds(_ epoch: UInt64, _ turn: inout Turn<some RandomNumberGenerator>) {
        guard let flow, flow.epoch == epoch,
            let end = flow.security?.value.certificateEnd
        else { return }
        emit(.certificateEnds, because: .certificateEnds(end), &turn)
    }

    /// A client has the flow from now on, and the agent only watches for its end.
    mutating func taken(_ epoch: UInt64, by reader: Reader, _ turn: inout Turn<some RandomNumberGenerator>) {
        changeOwner(epoch, because: .taken, kind: .taken, &turn) { $0.take(by: reader) }
    }

    /// Who has the flow is known better: nothing follows from that for the line.
    mutating func replace(_ reader: Reader, by next: Reader) {
        flow?.ownership.replace(reader, by: next)
    }

    /// The client gave the flow back, between two messages and with a session on it.
    mutating func parked(_ epoch: UInt64, handled: UInt32?, _ turn: inout Turn<some RandomNumberGenerator>) {
        count(handled, on: epoch)
        changeOwner(epoch, because: .parked, kind: .parked, &turn) { $0.park() }
    }

    /// The flow comes back as it was given: the program that was to have it never ran.
    mutating func returned(_ epoch: UInt64, _ turn: inout Turn<some RandomNumberGenerator>) {
        changeOwner(epoch, because: .parked, kind: .parked, &turn) { $0.giveBack() }
    }

    /// The client that had the flow is gone, and did not say where in the stream it was.
    ///
    /// - Parameters:
    ///   - isUntouched: whether it has neither read nor written: then what came is there for the next one.
    ///   - isAlone: whether nobody else can have a descriptor of the flow from it. An untouched flow is then what it
    ///     was.
    mutating func abandoned(
        _ epoch: UInt64, isUntouched: Bool, isAlone: Bool, _ turn: inout Turn<some RandomNumberGenerator>
    ) {
        guard var flow, flow.epoch == epoch, flow.ownership.holder == .client else { return }
        let isAsGiven = isUntouched && isAlone
        guard isAsGiven || policy.keepsAbandonedFlow else {
            if isUntouched { _ = flow.ownership.giveBack() }
            state = .ready(flow)
            return redial(because: .clientGone, closing: .abandoned, &turn)
        }
        if !isAsGiven { count(nil, on: epoch) }
        changeOwner(epoch, because: .clientGone, kind: .abandoned, &turn) {
            isAsGiven ? $0.giveBack() : $0.abandon()
        }
    }

    /// Bytes for the client wait on a flow that the agent has.
    mutating func arrived(_ epoch: UInt64, _ turn: inout Turn<some RandomNumberGenerator>) {
        guard var flow, flow.epoch == epoch, flow.ownership.arrived() else { return }
        state = .ready(flow)
        // A move would leave them behind. But where the server has heard of the new flow already, they may be what it
        // says of that.
        if !flow.isLoggingInElsewhere, !flow.isSilent { endMove(.superseded, &turn) }
        emit(.arrived, because: .arrived, &turn)
    }

    /// Changes who owns the flow.
    ///
    /// - Parameter change: says whether it changed anything.
    private mutating func changeOwner(
        _ epoch: UInt64, because reason: StatusReason, kind: ConnectionEvent.Kind,
        _ turn: inout Turn<some RandomNumberGenerator>, _ change: (inout FlowOwnership) -> Bool
    ) {
        guard var flow, flow.epoch == epoch, change(&flow.ownership) else { return }
        // What its client makes of it is its client's, whatever came of an opening.
        if flow.settledAt == nil {
            flow.settledAt = turn.now
            noteReached(flow)
        }
        if flow.ownership.session == .open { lastFailure = nil }
        state = .ready(flow)
        attend(to: flow, &turn)
        // A move may have waited for the client to read what had come.
        moveIfBetter(&turn)
        emit(kind, because: reason, &turn)
    }

    /// Does on a flow what follows from its ownership: sends its keepalives or not, watches for bytes or not.
    mutating func attend(to flow: StandingFlow, _ turn: inout Turn<some RandomNumberGenerator>) {
        // Before the bytes are looked at that wait already.
        if !answers.isEmpty { answerMessages(on: flow, &turn) }
        turn.perform(.watchInput(epoch: flow.epoch, flow.ownership.holder == .daemon))
        sendKeepalives(on: flow, &turn)
    }

    /// Sends a flow's keepalives, or does not, by its ownership.
    mutating func sendKeepalives(on flow: StandingFlow, _ turn: inout Turn<some RandomNumberGenerator>) {
        guard heartbeat != nil else { return }
        let heartbeat = heartbeat(on: flow)
        turn.perform(.keepAlive(epoch: flow.epoch, heartbeat))
        // The answers to what was sent are not looked for any more.
        if heartbeat == nil { update(flow.epoch, because: reason, &turn) { liveness, _ in liveness.withdrawProbes() } }
    }

    /// What is sent on a flow by its ownership; `nil` where the kernel's keepalive stands alone.
    func heartbeat(on flow: StandingFlow) -> Heartbeat? {
        flow.isSealed ? nil : heartbeat.flatMap { flow.ownership.permits($0.kind) ? $0 : nil }
    }
}

extension ConnectionPolicy {
    /// What keepalives are judged by.
    var livenessFigures: KeepaliveFigures { heartbeat?.figures ?? KeepaliveProtocol.kernel.figures }
}
