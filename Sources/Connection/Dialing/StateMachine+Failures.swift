// SPDX-License-Identifier: Apache-2.0

// What comes after a failure: how it is counted, and how long the next dial waits.

extension ConnectionStateMachine {
    /// The remote or the line ended a flow.
    mutating func flowEnded(
        _ epoch: UInt64, _ cause: StatusReason, _ turn: inout Turn<some RandomNumberGenerator>
    ) {
        guard case .ready(let ready) = state else { return }
        let closing: CloseReason = cause == .remoteClosed ? .remoteClosed : .failed
        guard ready.epoch == epoch else { return nextFlowFailed(epoch, closing, because: cause, &turn) }
        let ended = cause
        let cause =
            ready.settledAt.map {
                retry.flowEnded(at: turn.now - $0, lacksLogin: lacksLogin(ready), because: ended)
            } ?? ended
        closeFlow(ready, closing, &turn, rest: cause.isServersEnding ? ready.ownership.rest(after: .remoteClosed) : nil)
        if case .opening? = ready.move {
            // A server that has one session for each client ends this one for the flow that logs in beside it.
            _ = promoteMove(of: ready, because: .replaced, &turn)
            return
        }
        if !isStable(ready, at: turn.now) { retry.flowFailed(because: cause, at: turn.now) }
        if cause.isSilence, !ready.isDetour { silence.fell() }
        goOn(after: ready, because: cause, &turn)
        if let opening = ready.opening { openingHadNoAnswer(opening.failure(.ended), &turn) }
    }

    /// Dials or waits, after a flow that ended.
    mutating func goOn(
        after ready: Ready, because cause: StatusReason, _ turn: inout Turn<some RandomNumberGenerator>
    ) {
        if promoteMove(of: ready, because: cause, &turn) { return }
        // It may have outlived the path that the next one needs.
        guard let path, path.permitsDialling else { return dial(because: cause, &turn) }
        if login.refusal?.isOfMove == false, refusedUntil(turn.now) != nil { return dial(because: cause, &turn) }
        guard let wait = retry.wait(afterFlowEndedBy: cause, at: turn.now) else { return dial(because: cause, &turn) }
        self.wait(for: wait, because: cause, &turn)
    }

    /// A dial has failed as a whole. The caller has released what the state held.
    mutating func attemptFailed(_ cause: StatusReason, _ turn: inout Turn<some RandomNumberGenerator>) {
        wait(for: retry.dialFailed(because: cause, at: turn.now), because: cause, &turn)
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
