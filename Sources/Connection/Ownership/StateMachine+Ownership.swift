// SPDX-License-Identifier: Apache-2.0

// Who has the flow that stands: a client takes it and parks it again, or is gone without a word.

extension ConnectionStateMachine {
    mutating func adopt(_ adoption: Adoption, _ turn: inout Turn<some RandomNumberGenerator>) {
        let newest = max(adoption.epoch, adoption.past?.newestEpoch ?? 0)
        numbers.epoch = max(numbers.epoch, min(newest, Self.largestNumber))
        if adoption.ownership.session == .opening {
            // Nobody knows how far it was.
            turn.perform(.closeSocket(epoch: adoption.epoch, .superseded, .dropped))
            return open(&turn)
        }
        var ready = Ready(
            epoch: adoption.epoch, local: adoption.local, remote: adoption.remote, interface: adoption.interface,
            security: adoption.security.map { .value($0) }, settledAt: adoption.past?.connectedAt ?? turn.now,
            liveness: Liveness(
                policy.livenessFigures, connectedAt: adoption.lastProof ?? turn.now,
                hasAnsweredKeepalives: hasAnsweredKeepalives),
            ownership: adoption.ownership)
        // The keys of a flow that a client dialled are with the client.
        ready.isSealed = policy.remote.scheme.needsTLS && adoption.security == nil
        // Until the path says otherwise.
        (ready.isBound, ready.isDetour) = (adoption.isBound, adoption.isBound)
        noteReached(ready)
        turn.perform(.observePath(policy.target))
        turn.perform(.configureSocket(epoch: adoption.epoch, socketOptions))
        let isInDoubt = adoption.past?.isInDoubt == true
        // Nobody looked for the proof that it owed to the earlier run.
        if isInDoubt { ready.liveness.verify(at: turn.now) }
        state = .ready(ready)
        turnedAt = adoption.past?.upSince ?? turn.now
        if let past = adoption.past {
            since = past.since
            reason = .restarted(.kept)
        } else {
            reason = .adopted
        }
        attend(to: ready, &turn)
        if isInDoubt {
            turn.perform(.probe(epoch: adoption.epoch))
            if let deadline = ready.proofDeadline { turn.perform(.scheduleTimer(.proof, deadline: deadline)) }
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
        guard case .ready(let ready) = state else { return nil }
        return (ready.epoch, ready.ownership)
    }

    /// What a later run of the agent needs to go on with the flow that stands; `nil` without one.
    package var adoption: Adoption? {
        guard case .ready(let ready) = state else { return nil }
        return Adoption(
            epoch: ready.epoch, local: ready.local, remote: ready.remote,
            ownership: FlowOwnership(holder: ready.ownership.holder, session: ready.ownership.session),
            lastProof: ready.liveness.lastProof, interface: ready.interface, isBound: ready.isBound,
            security: ready.security?.value,
            past: .init(
                connectedAt: ready.settledAt ?? since, since: since, upSince: turnedAt, isInDoubt: ready.isInDoubt))
    }

    /// The highest number that a flow had; the next one's is above it.
    package var newestEpoch: UInt64 { numbers.epoch }

    /// The certificate by which the flow's ends know each other ends soon: told, and nothing else.
    mutating func certificateEnds(_ epoch: UInt64, _ turn: inout Turn<some RandomNumberGenerator>) {
        guard case .ready(let ready) = state, ready.epoch == epoch,
            let end = ready.security?.value.certificateEnd
        else { return }
        emit(.certificateEnds, because: .certificateEnds(end), &turn)
    }

    /// A client has the flow from now on, and the agent only watches for its end.
    mutating func taken(_ epoch: UInt64, _ turn: inout Turn<some RandomNumberGenerator>) {
        hand(epoch, because: .taken, kind: .taken, &turn) { ownership in
            guard ownership.holder == .daemon, ownership.session != .opening else { return nil }
            return FlowOwnership(holder: .client, session: ownership.session == .open ? .open : .unknown)
        }
    }

    /// The client gave the flow back, between two messages and with a session on it.
    mutating func parked(_ epoch: UInt64, _ turn: inout Turn<some RandomNumberGenerator>) {
        hand(epoch, because: .parked, kind: .parked, &turn) { $0.holder == .client ? .parked : nil }
    }

    /// The flow comes back as it was given: whoever was to have it never ran.
    mutating func returned(_ epoch: UInt64, _ turn: inout Turn<some RandomNumberGenerator>) {
        hand(epoch, because: .parked, kind: .parked, &turn) { ownership in
            ownership.holder == .client ? FlowOwnership(holder: .daemon, session: ownership.session) : nil
        }
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
        guard case .ready(var ready) = state, ready.epoch == epoch, ready.ownership.holder == .client else { return }
        guard isUntouched && isAlone || policy.keepsAbandonedFlow else {
            if isUntouched { ready.ownership.holder = .daemon }
            state = .ready(ready)
            return redial(because: .clientGone, closing: .abandoned, &turn)
        }
        hand(epoch, because: .clientGone, kind: .abandoned, &turn) { ownership in
            FlowOwnership(holder: .daemon, session: isUntouched && isAlone ? ownership.session : .unknown)
        }
    }

    /// Bytes for the client wait on a flow that the agent has.
    mutating func arrived(_ epoch: UInt64, _ turn: inout Turn<some RandomNumberGenerator>) {
        guard case .ready(var ready) = state, ready.epoch == epoch, ready.ownership.holder == .daemon,
            ready.ownership.session != .opening, !ready.ownership.hasArrivals
        else { return }
        ready.ownership.hasArrivals = true
        state = .ready(ready)
        // Whoever moves away now leaves them behind. But where the server has heard of the new flow already, they may
        // be what it says of that.
        if !ready.isLoggingInElsewhere, !ready.isSilent { endMove(.superseded, &turn) }
        emit(.arrived, because: .arrived, &turn)
    }

    /// Changes hands.
    private mutating func hand(
        _ epoch: UInt64, because reason: StatusReason, kind: ConnectionEvent.Kind,
        _ turn: inout Turn<some RandomNumberGenerator>, _ change: (FlowOwnership) -> FlowOwnership?
    ) {
        guard case .ready(var ready) = state, ready.epoch == epoch, let ownership = change(ready.ownership) else {
            return
        }
        ready.ownership = ownership
        // What its client makes of it is its client's, whatever came of an opening.
        if ready.settledAt == nil {
            ready.settledAt = turn.now
            noteReached(ready)
        }
        if ownership.session == .open { lastFailure = nil }
        state = .ready(ready)
        attend(to: ready, &turn)
        // A move may have waited for the client to read what had come.
        moveIfBetter(&turn)
        emit(kind, because: reason, &turn)
    }

    /// Does on a flow what goes with the hands it is in: sends its keepalives or not, watches for bytes or not.
    mutating func attend(to ready: Ready, _ turn: inout Turn<some RandomNumberGenerator>) {
        turn.perform(.watchInput(epoch: ready.epoch, ready.ownership.holder == .daemon))
        sendKeepalives(on: ready, &turn)
    }

    /// Sends a flow's keepalives, or does not, by the hands that it is in.
    mutating func sendKeepalives(on ready: Ready, _ turn: inout Turn<some RandomNumberGenerator>) {
        guard heartbeat != nil else { return }
        let heartbeat = heartbeat(on: ready)
        turn.perform(.keepAlive(epoch: ready.epoch, heartbeat))
        if heartbeat == nil { withdrawProbes(of: ready.epoch, &turn) }
    }

    /// What is sent on a flow in the hands that it is in; `nil` where the kernel's keepalive stands alone.
    func heartbeat(on ready: Ready) -> Heartbeat? {
        ready.isSealed ? nil : heartbeat.flatMap { ready.ownership.permits($0.kind) ? $0 : nil }
    }
}
