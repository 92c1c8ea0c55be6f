// SPDX-License-Identifier: Apache-2.0

internal import DialtoneNetworkPath

// Make before break: a flow over the better path is dialled while the old one stands, and takes its place.

extension ConnectionStateMachine {
    /// What a path that came or moved means for a flow that stands.
    mutating func pathMoved(
        under ready: Ready, from old: Path?, _ turn: inout Turn<some RandomNumberGenerator>
    ) {
        // One over another uplink goes back by trials of the first.
        guard !ready.isDetour, let path = way(of: ready), path.permitsDialling else { return }
        // The server has heard of a login that is under way.
        if ready.isLoggingInElsewhere { return }
        if path.isBetter(for: ready, under: policy) {
            if case .dialling? = ready.move, let old, !path.leadsElsewhere(than: old) { return }
            endMove(.pathMoved, &turn)
            if case .ready(let ready) = state { move(ready, afterFailures: 0, &turn) }
        } else if path.status == .satisfied {
            // The way leads from the flow's own address again.
            endMove(.pathMoved, &turn)
        } else {
            forgetWaitingMove(&turn)
        }
    }

    /// Gives up a login on another flow that has no way any more, as a path that the kernel chose shows.
    mutating func endLogin(ledAwayBy path: Path, _ turn: inout Turn<some RandomNumberGenerator>) {
        guard case .ready(let ready) = state, case .opening(let next, _)? = ready.move, path.leadsAway(from: next)
        else { return }
        endMove(path.permitsDialling ? .pathMoved : .pathLost, &turn)
    }

    /// Begins to dial over the better path, where there is one and nothing is on its way.
    mutating func moveIfBetter(_ turn: inout Turn<some RandomNumberGenerator>) {
        guard case .ready(let ready) = state, ready.move == nil, betterWay(for: ready) != nil else { return }
        if ready.awaitsTrial { return awaitTrial(from: ready, afterFailures: 0, &turn) }
        move(ready, afterFailures: 0, &turn)
    }

    /// The path over which another flow can be dialled that is better than this one; `nil` for none.
    private func betterWay(for ready: Ready) -> Path? {
        // Any way is better than none.
        if ready.isSilent {
            guard policy.redials, !ready.awaitsWay else { return nil }
            return path.flatMap { $0.permitsDialling ? $0 : nil }
        }
        if ready.isDetour {
            guard policy.movesToBetterPath, policy.redials, ready.opening == nil, !ready.ownership.hasArrivals else {
                return nil
            }
            return path.flatMap { $0.status == .satisfied && $0.interface?.name != ready.interface ? $0 : nil }
        }
        guard path?.permitsDialling == true, let way = way(of: ready), way.isBetter(for: ready, under: policy) else {
            return nil
        }
        return way
    }

    /// Where it is not known any more that a better path is there, what waits to try it waits for nothing. A dial that
    /// is on its way may arrive all the same.
    mutating func forgetWaitingMove(_ turn: inout Turn<some RandomNumberGenerator>) {
        guard case .ready(let ready) = state, case .waiting? = ready.move else { return }
        endMove(.pathMoved, &turn)
    }

    /// A flow that had lost something has proved itself. That may have been the only reason for another one: its user
    /// wants no moves, or bytes came meanwhile, which a move would leave behind.
    mutating func endMoveForLoss(of ready: inout Ready, _ turn: inout Turn<some RandomNumberGenerator>) {
        guard betterWay(for: ready) == nil, !ready.isLoggingInElsewhere else { return }
        if case .dialling? = ready.move, policy.movesToBetterPath, !ready.ownership.hasArrivals { return }
        endMove(of: &ready, .superseded, &turn)
    }

    /// Begins to dial over the better path.
    mutating func move(
        _ ready: Ready, afterFailures failures: Int, _ turn: inout Turn<some RandomNumberGenerator>
    ) {
        guard let way = betterWay(for: ready) else { return keep(ready, moving: nil) }
        var earliest = max(retry.leftAloneUntil ?? turn.now, refusedUntil(turn.now) ?? turn.now, turn.now)
        if turn.dialsFrom > earliest {
            // The one that stands will do meanwhile. All that wait like this must not come back in one instant.
            earliest = turn.dialsFrom
            if !ready.isSilent {
                earliest += policy.backoff.delay(afterFailures: failures, using: &turn.random)
            }
        }
        guard earliest <= turn.now, budget.spend(at: turn.now) else {
            return moveLater(ready, at: max(earliest, budget.earliest), failures, &turn)
        }
        let dial = Dial(dialSetting(over: way, isTrial: ready.awaitsTrial, now: turn.now), &numbers, &turn)
        goOn(moving: ready, by: dial, afterFailures: failures, &turn)
    }

    /// Does what is due in a dial over the better path.
    mutating func goOn(
        moving ready: Ready, by dial: Dial, afterFailures failures: Int,
        _ turn: inout Turn<some RandomNumberGenerator>
    ) {
        var dial = dial
        switch dial.goOn(&numbers, &turn) {
        case .goesOn(let wake):
            set(&dial, for: wake, &turn)
            keep(ready, moving: .dialling(dial, failures: failures))
        case .failed(let cause):
            abandon(&dial, .dialFailed, &turn)
            moveFailed(ready, afterFailures: failures, because: cause, &turn)
        }
    }

    /// Tries it again later, if the path is still better then.
    mutating func moveFailed(
        _ ready: Ready, afterFailures failures: Int, because cause: StatusReason,
        _ turn: inout Turn<some RandomNumberGenerator>
    ) {
        let isSettling = retry.isSettling(cause, at: turn.now)
        if betterWay(for: ready) == nil {
            keep(ready, moving: nil)
        } else if ready.awaitsTrial, !isSettling {
            awaitTrial(from: ready, afterFailures: failures + 1, &turn)
        } else {
            let failures = isSettling ? failures : failures + 1
            let backoff = isSettling ? BackoffPolicy.brief : policy.backoff
            let pause = backoff.delay(afterFailures: failures, using: &turn.random)
            let refused = refusedUntil(turn.now) ?? turn.now
            moveLater(ready, at: max(turn.now + pause, budget.earliest, refused), failures, &turn)
        }
        emit(.moveFailed, because: cause, &turn)
    }

    mutating func moveLater(
        _ ready: Ready, at deadline: Duration, _ failures: Int, _ turn: inout Turn<some RandomNumberGenerator>
    ) {
        turn.perform(.scheduleTimer(.retry, deadline: deadline))
        keep(ready, moving: .waiting(until: deadline, failures: failures))
    }

    mutating func keep(_ ready: Ready, moving move: Move?) {
        var ready = ready
        ready.move = move
        state = .ready(ready)
    }

    /// Gives up the move that is under way, if one is. The flow stays.
    mutating func endMove(_ closing: CloseReason, _ turn: inout Turn<some RandomNumberGenerator>) {
        guard case .ready(var ready) = state else { return }
        endMove(of: &ready, closing, &turn)
        state = .ready(ready)
    }

    mutating func endMove(
        of ready: inout Ready, _ closing: CloseReason, _ turn: inout Turn<some RandomNumberGenerator>
    ) {
        switch ready.move {
        case .dialling(var dial, _): abandon(&dial, closing, &turn)
        case .opening(let next, _): closeFlow(next, closing, &turn)
        case .waiting: turn.perform(.cancelTimer(.retry))
        case nil: return
        }
        ready.move = nil
    }

    /// The flow is gone. One over the better path takes its place, or a dial for it becomes the dial for the next one.
    ///
    /// - Returns: whether there is one.
    mutating func promoteMove(
        of ready: Ready, because reason: StatusReason, _ turn: inout Turn<some RandomNumberGenerator>
    ) -> Bool {
        switch ready.move {
        case .dialling(var dial, _):
            dial.becomeMain(patience: path.flatMap { patience(with: $0) })
            goOn(dial, isNew: true, because: reason, &turn)
        case .opening(var next, _):
            if hasAnsweredKeepalives { next.liveness.answeredBefore() }
            enter(.ready(next), because: reason, &turn)
        case .waiting, nil:
            endMove(.superseded, &turn)
            return false
        }
        return true
    }
}

extension Path {
    /// Whether this shows that a flow has no way any more: there is none, or it leads from another address by now. Of
    /// one over another uplink than the kernel's it says nothing.
    fileprivate func leadsAway(from flow: ConnectionStateMachine.Ready) -> Bool {
        guard !flow.isDetour, destination == flow.remote.address else { return false }
        guard permitsDialling else { return true }
        return status == .satisfied && source.map { $0 != flow.local.address } ?? false
    }

    /// Whether a new flow over it would leave from another address than the one that stands does: the kernel sends the
    /// old one's packets by the new way too, where few routers let them pass.
    fileprivate func isBetter(for flow: ConnectionStateMachine.Ready, under policy: ConnectionPolicy) -> Bool {
        // The path to another of the name's addresses says nothing of this one's.
        guard policy.redials, status == .satisfied, let source,
            destination == flow.remote.address
        else {
            return false
        }
        // Bytes that the server counts as delivered go to the client first, where the flow is one to be kept.
        guard flow.loss != nil || (policy.movesToBetterPath && !flow.ownership.hasArrivals) else { return false }
        return source != flow.local.address
    }
}
