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
        closeFlow(ready, closing, &turn, rest: cause.isServersEnding ? ready.ownership.rest(after: .remoteClosed) : nil)
        if case .opening? = ready.move {
            // A server that has one session for each client ends this one for the flow that logs in beside it.
            _ = promoteMove(of: ready, because: .replaced, &turn)
            return
        }
        if !passesInSeconds(cause, turn.now), !isStable(ready, at: turn.now) { failures += 1 }
        if cause.isSilence, !ready.isDetour { hasFallenSilent = true }
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
        if refusedLogin?.value.isOfMove == false, refusedUntil(turn.now) != nil { return dial(because: cause, &turn) }
        if passesInSeconds(cause, turn.now) { return retry(.brief, because: cause, &turn) }
        // With TLS 1.3 a server judges the client's certificate when the client has long been done.
        if Self.kind(of: cause) == .permanent { return giveUp(because: cause, &turn) }
        backOff(because: cause, &turn)
    }

    /// A dial has failed as a whole. The caller has released what the state held.
    mutating func attemptFailed(_ cause: StatusReason, _ turn: inout Turn<some RandomNumberGenerator>) {
        if passesInSeconds(cause, turn.now) { return retry(.brief, because: cause, &turn) }
        let kind = Self.kind(of: cause)
        failures += 1
        refusedSince = kind == .refused ? refusedSince ?? turn.now : nil
        let isRefusedForGood = refusedSince.map { turn.now - $0 >= Self.persistentRefusal } ?? false
        guard kind == .permanent || kind == .absent || isRefusedForGood else {
            return backOff(because: cause, &turn)
        }
        giveUp(because: cause, &turn)
    }

    /// Whether a failure is of a network that is still settling.
    func passesInSeconds(_ cause: StatusReason, _ now: Duration) -> Bool {
        let since: Duration? =
            switch Self.kind(of: cause) {
            case .local: pathMovedAt
            case .absent: networkChangedAt
            case .refused, .permanent, .transient: nil
            }
        return since.map { now - $0 < Self.settlingTime } ?? false
    }

    /// Waits for somebody to mend the cause: dials rarely.
    private mutating func giveUp(because cause: StatusReason, _ turn: inout Turn<some RandomNumberGenerator>) {
        if endsWithItsFlow(because: cause, &turn) { return }
        let deadline = drawDeadline(.slow, &turn)
        turn.perform(.scheduleTimer(.retry, deadline: deadline))
        enter(.failed(until: deadline), because: cause, &turn)
    }

    /// Failures by what the next dial makes of them.
    private enum FailureKind {
        /// This machine's network failed; in the first while after a change that passes in seconds.
        case local
        /// A name is not there, by the word of the name server that is asked now. In the first while after a change
        /// that may be a portal's, or one that does not know of the VPN that is coming up; then time does not mend it.
        case absent
        /// The server's host said no. It means it when it keeps saying so.
        case refused
        /// Time does not mend it.
        case permanent
        /// It may pass.
        case transient
    }

    private static func kind(of cause: StatusReason) -> FailureKind {
        switch cause {
        case .resolutionFailed(.temporary), .resolutionFailed(.heldBack): .local
        case .resolutionFailed(.noSuchName), .resolutionFailed(.noAddress): .absent
        case .resolutionFailed(.notOffered): .permanent
        case .dialFailed(.refused, _): .refused
        case .dialFailed(.tls(let failure), _), .flowFailed(.tls(let failure)):
            failure.isPermanent ? .permanent : .transient
        case .dialFailed(let failure, _), .flowFailed(let failure): failure.isLocal ? .local : .transient
        case .opened, .noPath, .pathAvailable, .pathMoved, .retryDue, .dialledTooOften, .awaitsTurn, .serverAsked,
            .connected, .replaced, .detoured, .resumed, .unanswered, .unverified, .verified, .remoteClosed,
            .localAddressRemoved, .adopted, .restarted, .taken, .parked, .arrived, .clientGone, .sessionOpened,
            .openingFailed, .redialRequested, .policyChanged, .closeRequested, .nameConfigured:
            .transient
        }
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

    /// Waits by the connection's own policy, and then dials.
    mutating func backOff(because cause: StatusReason, _ turn: inout Turn<some RandomNumberGenerator>) {
        retry(policy.backoff, because: cause, &turn)
    }

    private mutating func retry(
        _ backoff: BackoffPolicy, because cause: StatusReason, _ turn: inout Turn<some RandomNumberGenerator>
    ) {
        if endsWithItsFlow(because: cause, &turn) { return }
        let deadline = drawDeadline(backoff, &turn)
        turn.perform(.scheduleTimer(.retry, deadline: deadline))
        enter(.backingOff(until: deadline), because: cause, &turn)
    }

    /// When to dial again: what chance draws, but not earlier than the budget allows, or the wait would end in another.
    func drawDeadline(_ backoff: BackoffPolicy, _ turn: inout Turn<some RandomNumberGenerator>) -> Duration {
        let drawn = backoff.delay(afterFailures: failures, using: &turn.random)
        // What the server asked for it asked of everybody: the wait that would have been comes on top.
        return max(max(leftAloneUntil ?? turn.now, turn.now) + drawn, budget.earliest)
    }
}
