// SPDX-License-Identifier: Apache-2.0

internal import DialtoneNetworkPath

// Make before break: a flow over the better path is dialled while the old one stands, and takes its place.

extension ConnectionStateMachine {
    /// What a path that came or moved means for a flow that stands.
    mutating func pathMoved(
        under flow: StandingFlow, from old: Path?, _ turn: inout Turn<some RandomNumberGenerator>
    ) {
        // A flow over another uplink goes back by trials of the first.
        guard !flow.way.isDetour, let path = flow.way.path(orConnections: path), path.permitsDialling else { return }
        // The server has heard of a login that is under way.
        if flow.isLoggingInElsewhere { return }
        if Move.isBetter(path, for: flow, under: policy) {
            if flow.move?.dial != nil, let old, !path.leadsElsewhere(than: old) { return }
            endMove(.pathMoved, &turn)
            if let flow = self.flow { move(flow, afterFailures: 0, &turn) }
        } else if path.status == .satisfied {
            // The way leads from the flow's own address again.
            endMove(.pathMoved, &turn)
        } else {
            forgetWaitingMove(&turn)
        }
    }

    /// Gives up a login on another flow that has no way any more, as a path that the kernel chose shows.
    mutating func endLogin(ledAwayBy path: Path, _ turn: inout Turn<some RandomNumberGenerator>) {
        guard let next = flow?.move?.next, path.leadsAway(from: next) else { return }
        endMove(path.permitsDialling ? .pathMoved : .pathLost, &turn)
    }

    /// Begins to dial over the better path, where there is one and nothing is on its way.
    mutating func moveIfBetter(_ turn: inout Turn<some RandomNumberGenerator>) {
        guard let flow, flow.move == nil, Move.betterPath(than: flow, over: path, under: policy) != nil else { return }
        if flow.awaitsTrial { return awaitTrial(from: flow, afterFailures: 0, &turn) }
        move(flow, afterFailures: 0, &turn)
    }

    /// The way that the kernel chooses is another one than before, or is there again: it is tried at once.
    mutating func tryFirstWay(_ turn: inout Turn<some RandomNumberGenerator>) {
        guard var flow, !flow.isLoggingInElsewhere else { return }
        endMove(of: &flow, .pathMoved, &turn)
        move(flow, afterFailures: 0, &turn)
    }

    /// Where it is not known any more that there is a better path, a move that waits to try it waits for nothing. A
    /// dial that is on its way may arrive all the same.
    mutating func forgetWaitingMove(_ turn: inout Turn<some RandomNumberGenerator>) {
        if flow?.move?.deadline != nil { endMove(.pathMoved, &turn) }
    }

    /// A flow that had lost something has proved itself. That may have been the only reason for another one: its user
    /// wants no moves, or bytes came meanwhile, which a move would leave behind.
    mutating func endMoveForLoss(of flow: inout StandingFlow, _ turn: inout Turn<some RandomNumberGenerator>) {
        guard Move.betterPath(than: flow, over: path, under: policy) == nil, !flow.isLoggingInElsewhere else { return }
        if flow.move?.dial != nil, Move.mayLeave(flow, under: policy) { return }
        endMove(of: &flow, .superseded, &turn)
    }

    /// Begins to dial over the better path.
    mutating func move(
        _ flow: StandingFlow, afterFailures failures: Int, _ turn: inout Turn<some RandomNumberGenerator>
    ) {
        guard let better = Move.betterPath(than: flow, over: path, under: policy) else {
            return keep(flow, moving: nil)
        }
        var earliest = max(retry.leftAloneUntil ?? turn.now, refusedUntil(turn.now) ?? turn.now, turn.now)
        if turn.dialsFrom > earliest {
            // The flow that stands will do meanwhile. Not all connections that wait like this may dial in one instant.
            earliest = turn.dialsFrom
            if !flow.isSilent {
                earliest += policy.backoff.delay(afterFailures: failures, using: &turn.random)
            }
        }
        guard earliest <= turn.now, budget.spend(at: turn.now) else {
            return moveLater(flow, from: earliest, afterFailures: failures, &turn)
        }
        let dial = Dial(dialSetting(over: better, isTrial: flow.awaitsTrial, now: turn.now), &numbers, &turn)
        goOn(moving: flow, by: dial, afterFailures: failures, &turn)
    }

    /// Does what is due in a dial over the better path.
    mutating func goOn(
        moving flow: StandingFlow, by dial: Dial, afterFailures failures: Int,
        _ turn: inout Turn<some RandomNumberGenerator>
    ) {
        var dial = dial
        switch dial.goOn(&numbers, &turn) {
        case .goesOn(let wake):
            set(&dial, for: wake, &turn)
            keep(flow, moving: Move(by: dial, afterFailures: failures))
        case .failed(let cause):
            abandon(&dial, .dialFailed, &turn)
            moveFailed(flow, afterFailures: failures, because: cause, &turn)
        }
    }

    /// The flow over a better path did not come to take the place of the one that stands, if `epoch` is that flow's.
    mutating func nextFlowFailed(
        _ epoch: UInt64, _ closing: CloseReason, because cause: StatusReason,
        _ turn: inout Turn<some RandomNumberGenerator>
    ) {
        guard let flow, let move = flow.move, let next = move.next, next.epoch == epoch else { return }
        // There is a session on the one that stands, whatever the server said on this one.
        closeFlow(next, closing, &turn, rest: .dropped)
        moveFailed(flow, afterFailures: move.failures, because: cause, &turn)
    }

    /// Another opening is to be said from now on than the one that is being said on the next flow: that one is dialled
    /// again. What the server counts after an old login is not what the client counts (XEP-0198, section 5).
    ///
    /// At once, but where that goes on, as with a failure: who leaves another opening each second may be faster than
    /// the server.
    mutating func beginLoginAgain(_ turn: inout Turn<some RandomNumberGenerator>) {
        guard let move = flow?.move, let played = move.next?.opening?.opening, played != opening else { return }
        endMove(.superseded, &turn)
        guard let flow, Move.betterPath(than: flow, over: path, under: policy) != nil else { return }
        guard move.failures > 0 else { return self.move(flow, afterFailures: 1, &turn) }
        let pause = policy.backoff.delay(afterFailures: move.failures, using: &turn.random)
        moveLater(flow, from: turn.now + pause, afterFailures: move.failures + 1, &turn)
    }

    /// Tries it again later, if the path is still better then.
    private mutating func moveFailed(
        _ flow: StandingFlow, afterFailures failures: Int, because cause: StatusReason,
        _ turn: inout Turn<some RandomNumberGenerator>
    ) {
        let isSettling = retry.isSettling(cause, at: turn.now)
        if Move.betterPath(than: flow, over: path, under: policy) == nil {
            keep(flow, moving: nil)
        } else if flow.awaitsTrial, !isSettling {
            awaitTrial(from: flow, afterFailures: failures + 1, &turn)
        } else {
            let failures = isSettling ? failures : failures + 1
            let backoff = isSettling ? BackoffPolicy.brief : policy.backoff
            let pause = backoff.delay(afterFailures: failures, using: &turn.random)
            moveLater(flow, from: turn.now + pause, afterFailures: failures, &turn)
        }
        emit(.moveFailed, because: cause, &turn)
    }

    /// Waits with the next trial of the way that was silent.
    private mutating func awaitTrial(
        from flow: StandingFlow, afterFailures failures: Int, _ turn: inout Turn<some RandomNumberGenerator>
    ) {
        let pause = silence.pauseBeforeTrial(of: path, afterFailures: failures, using: &turn.random)
        moveLater(flow, from: turn.now + pause, afterFailures: failures, &turn)
    }

    /// Waits until then, and for as long as the budget and a refused login have it wait.
    private mutating func moveLater(
        _ flow: StandingFlow, from instant: Duration, afterFailures failures: Int,
        _ turn: inout Turn<some RandomNumberGenerator>
    ) {
        let deadline = max(instant, budget.earliest, refusedUntil(turn.now) ?? turn.now)
        turn.perform(.scheduleTimer(.retry, deadline: deadline))
        keep(flow, moving: Move(at: deadline, afterFailures: failures))
    }

    mutating func keep(_ flow: StandingFlow, moving move: Move?) {
        var flow = flow
        flow.move = move
        state = .ready(flow)
    }

    /// Gives up the move that is under way, if one is. The flow stays.
    mutating func endMove(_ closing: CloseReason, _ turn: inout Turn<some RandomNumberGenerator>) {
        guard var flow else { return }
        endMove(of: &flow, closing, &turn)
        state = .ready(flow)
    }

    mutating func endMove(
        of flow: inout StandingFlow, _ closing: CloseReason, _ turn: inout Turn<some RandomNumberGenerator>
    ) {
        guard let move = flow.move else { return }
        flow.move = nil
        if var dial = move.dial { abandon(&dial, closing, &turn) }
        if let next = move.next { closeFlow(next, closing, &turn) }
        if move.deadline != nil { turn.perform(.cancelTimer(.retry)) }
    }

    /// The flow is gone. One over the better path takes its place, or a dial for it becomes the dial for the next one.
    ///
    /// - Returns: whether there is one.
    mutating func promoteMove(
        of flow: StandingFlow, because reason: StatusReason, _ turn: inout Turn<some RandomNumberGenerator>
    ) -> Bool {
        if var dial = flow.move?.dial {
            dial.becomeMain(patience: path.flatMap { silence.patience(with: $0, under: policy) })
            goOn(dial, isNew: true, because: reason, &turn)
        } else if var next = flow.move?.next {
            if hasAnsweredKeepalives { next.liveness.answeredBefore() }
            enter(.ready(next), because: reason, &turn)
        } else {
            endMove(.superseded, &turn)
            return false
        }
        return true
    }
}
