// SPDX-License-Identifier: Apache-2.0

internal import DialtoneNetworkPath

// A lease that is renewed and a cable that is put back end no flow. One whose local address or whose way is gone is
// kept for a while: it is not judged by what does not come, another one is dialled at once where another way is there,
// and it proves itself when what it lost is back.

extension ConnectionStateMachine {
    /// What a flow has lost.
    struct Loss: Hashable {
        /// When it was lost first, of losses between which nothing showed that the server is there: a network that
        /// flaps keeps a dead flow no longer than one that is gone.
        let since: Duration
        /// Until when the flow is kept for it.
        let until: Duration
        /// As what the flow is closed then.
        var closing: CloseReason
        /// What it was.
        let cause: StatusReason
        /// Whether it is back, and the proof alone is missing.
        var isBack = false
    }

    /// Keeps a flow that has lost its local address or its way, and dials another one beside it.
    ///
    /// - Returns: whether it is kept. If not, nothing was done.
    mutating func keepForReturn(
        _ lost: Ready, _ closing: CloseReason, because cause: StatusReason,
        _ turn: inout Turn<some RandomNumberGenerator>
    ) -> Bool {
        let since = lost.loss?.since ?? turn.now
        let until = since + policy.grace
        // An interrupted login starts again at once.
        guard turn.now < until, lost.opening == nil else { return false }
        let told = publicState
        var ready = lost
        if !lost.isSilent {
            login.sessionMayBeOver()
            ready.loss = Loss(since: since, until: until, closing: closing, cause: cause)
            ready.liveness.suspend()
            turn.perform(.scheduleTimer(.proof, deadline: until))
        } else if closing == .localAddressRemoved {
            // Without its address, not even a FIN of it would be answered.
            ready.loss?.closing = closing
        }
        state = .ready(ready)
        if closing == .localAddressRemoved { addressIsGone(of: ready, &turn) }
        dialBeside(afterAnotherWay: false, &turn)
        if !lost.isSilent, case .ready(let ready) = state { enter(.ready(ready), from: told, because: cause, &turn) }
        return true
    }

    /// A path that still names an address that was told to be gone is from before that, or the address is back by now.
    /// The way to the flow's own other end is asked for, which says which; nothing is dialled until then.
    private mutating func addressIsGone(of silent: Ready, _ turn: inout Turn<some RandomNumberGenerator>) {
        let address = silent.local.address
        let isNamed = way(of: silent).map { $0.permitsDialling && $0.source == address } ?? false
        defer { forgetSource(address, &turn) }
        guard isNamed else { return }
        var ready = silent
        ready.way = .own(nil)
        state = .ready(ready)
        turn.perform(.observeFlowPath(epoch: ready.epoch, wayTarget(of: ready)))
    }

    /// Dials over the connection's path, where there is one, for a flow that is silent.
    ///
    /// - Parameter isElsewhere: whether it leads another way than what is under way was begun for.
    mutating func dialBeside(afterAnotherWay isElsewhere: Bool, _ turn: inout Turn<some RandomNumberGenerator>) {
        guard case .ready(let ready) = state, ready.isSilent else { return }
        // A trial of the first uplink is of no use before the way is known, either.
        if ready.awaitsWay { return forgetWaitingMove(&turn) }
        let isOfUse =
            switch ready.move {
            case .opening: true
            case .dialling: path?.permitsDialling == true && !isElsewhere
            case .waiting, nil: false
            }
        if isOfUse { return }
        endMove(path?.permitsDialling == true ? .pathMoved : .pathLost, &turn)
        moveIfBetter(&turn)
    }

    /// A path changed while the flow is silent.
    ///
    /// - Parameter isDialled: whether it is the connection's, over which another flow is dialled; or else the flow's
    ///   own.
    mutating func pathChanged(
        whileSilent ready: Ready, from old: Path?, to new: Path, isDialled: Bool,
        _ turn: inout Turn<some RandomNumberGenerator>
    ) {
        let isNews = old.map { new.promisesMore(than: $0) || $0.permitsDialling != new.permitsDialling } ?? true
        guard isNews else { return }
        if way(of: ready)?.leadsBack(to: ready) == true { return goOnAfterReturn(of: ready, &turn) }
        dialBeside(afterAnotherWay: isDialled && old.map { new.leadsElsewhere(than: $0) } ?? true, &turn)
        if !new.permitsDialling { reason = .noPath(new.reason, destination: new.destination) }
        emit(.pathChanged, because: new.permitsDialling ? .pathMoved : reason, &turn)
    }

    /// What a flow lost is back: it shows whether its server is.
    private mutating func goOnAfterReturn(of silent: Ready, _ turn: inout Turn<some RandomNumberGenerator>) {
        var ready = silent
        ready.loss?.isBack = true
        state = .ready(ready)
        // The server has heard of a login that is under way, and may have ended this flow for it.
        if !ready.isLoggingInElsewhere { endMove(.pathMoved, &turn) }
        guard case .ready(var back) = state else { return }
        back.liveness.verify(at: turn.now)
        state = .ready(back)
        turn.perform(.probe(epoch: back.epoch))
        if let deadline = back.proofDeadline { turn.perform(.scheduleTimer(.proof, deadline: deadline)) }
        emit(.pathChanged, because: .pathAvailable, &turn)
    }

    /// What a flow lost did not come back in time.
    mutating func returnIsOverdue(_ silent: Ready, _ loss: Loss, _ turn: inout Turn<some RandomNumberGenerator>) {
        var ready = silent
        // Its timer has rung, and nothing is awaited any more.
        ready.loss = nil
        ready.liveness.withdrawProbes()
        closeFlow(ready, loss.closing, &turn)
        if case .waiting(let deadline, let failures)? = silent.move, failures > 0, login.refusal == nil {
            // The dial for the next flow failed, and waits as it would have without the one that is closed.
            return enter(.backingOff(until: deadline), because: loss.cause, &turn)
        }
        if promoteMove(of: silent, because: loss.cause, &turn) { return }
        dial(because: loss.cause, &turn)
    }
}

extension ConnectionStateMachine.Ready {
    /// Whether what the flow needs is gone, and it waits for that.
    var isSilent: Bool { loss.map { !$0.isBack } ?? false }

    /// Whether it is not known yet which way leads to its other end.
    var awaitsWay: Bool {
        if case .own(nil) = way { true } else { false }
    }

    /// When it is given up, unless it has proved itself or what it lost is back.
    var proofDeadline: Duration? { isSilent ? loss?.until : liveness.deadline }

    /// Whether it may not reach its server any more.
    var isInDoubt: Bool { isSilent || liveness.isVerifying }
}

extension Path {
    /// Whether packets leave from the flow's own address, which is on this machine then.
    func leadsBack(to flow: ConnectionStateMachine.Ready) -> Bool {
        status == .satisfied && source == flow.local.address
    }
}
