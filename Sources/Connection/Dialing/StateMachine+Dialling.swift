// SPDX-License-Identifier: Apache-2.0

internal import DialtoneNetworkPath

// From the decision to dial to a flow that stands.

extension ConnectionStateMachine {
    /// Begins a dial. The caller has released what the state held.
    mutating func dial(because reason: StatusReason, _ turn: inout Turn<some RandomNumberGenerator>) {
        if endsWithItsFlow(because: reason, &turn) { return }
        guard let path, path.permitsDialling else {
            // Before the path is known there is nothing to be said of it.
            let lost = path.map { StatusReason.noPath($0.reason, destination: $0.destination) }
            return enter(.waiting, because: lost ?? reason, &turn)
        }
        if waitForRefusedLogin(&turn) { return }
        if let until = retry.leftAloneUntil, turn.now < until {
            return wait(until: drawDeadline(policy.backoff, &turn), because: .serverAsked, &turn)
        }
        guard turn.now >= turn.dialsFrom else {
            return wait(until: turn.dialsFrom, because: .awaitsTurn, &turn)
        }
        guard budget.spend(at: turn.now) else {
            return wait(until: budget.earliest, because: .dialledTooOften, &turn)
        }
        let dial = Dial(dialSetting(over: path, now: turn.now), &numbers, &turn)
        goOn(dial, isNew: true, because: reason, &turn)
    }

    /// When the connection's turn to dial comes, where it waits for that.
    package var awaitedTurn: Duration? {
        guard case .backingOff(let deadline) = state, reason == .awaitsTurn else { return nil }
        return deadline
    }

    /// Does what is due in a dial that has no flow to fall back on.
    ///
    /// - Parameters:
    ///   - isNew: whether it begins with this, or to be that.
    ///   - misses: the attempts that failed in this turn.
    mutating func goOn(
        _ dial: Dial, isNew: Bool = false, because reason: StatusReason, misses: [StatusReason] = [],
        _ turn: inout Turn<some RandomNumberGenerator>
    ) {
        var dial = dial
        switch dial.goOn(&numbers, &turn) {
        case .failed(let cause):
            abandon(&dial, .dialFailed, &turn)
            if dial.hasSilence { silence.fell() }
            attemptFailed(cause, &turn)
        case .goesOn(let wake):
            set(&dial, for: wake, &turn)
            let next = State.dialling(dial)
            if isNew { return enter(next, because: reason, &turn) }
            let before = status
            if publicState(of: next) != before.state { return enter(next, because: misses.last ?? reason, &turn) }
            state = next
            for miss in misses { emit(.addressFailed, because: miss, &turn) }
            if misses.isEmpty, status.epoch != before.epoch { emit(.attemptBegan, because: reason, &turn) }
        }
    }

    func set(_ dial: inout Dial, for wake: Duration, _ turn: inout Turn<some RandomNumberGenerator>) {
        // What was due while the machine slept is due now.
        let wake = max(wake, turn.now)
        guard dial.wake != wake else { return }
        dial.wake = wake
        turn.perform(.scheduleTimer(.dial, deadline: wake))
    }

    /// Gives up what a dial has under way, its timer included.
    func abandon(
        _ dial: inout Dial, _ closing: CloseReason, but winner: UInt64? = nil,
        _ turn: inout Turn<some RandomNumberGenerator>
    ) {
        if dial.wake != nil { turn.perform(.cancelTimer(.dial)) }
        dial.close(closing, but: winner, &turn)
    }

    /// Changes the dial that runs, be it for the first flow or for a better one, and does what is due in it then.
    ///
    /// - Parameter change: returns the attempts that it made fail; `nil` where it was no news for this dial.
    mutating func advance<Random>(
        _ turn: inout Turn<Random>, _ change: (inout Dial, inout Dial.Numbers, inout Turn<Random>) -> [StatusReason]?
    ) {
        switch state {
        case .dialling(let before):
            var dial = before
            guard let misses = change(&dial, &numbers, &turn) else { return }
            goOn(dial, because: reason, misses: misses, &turn)
        case .ready(let ready):
            guard case .dialling(let before, let failures)? = ready.move else { return }
            var dial = before
            guard change(&dial, &numbers, &turn) != nil else { return }
            goOn(moving: ready, by: dial, afterFailures: failures, &turn)
        case .waiting, .backingOff, .failed, .closed:
            break
        }
    }

    // MARK: - What is heard of a dial

    mutating func resolved(
        _ query: UInt64, _ answer: NameAnswer, _ turn: inout Turn<some RandomNumberGenerator>
    ) {
        advance(&turn) { dial, numbers, turn in dial.answered(query, answer, &numbers, &turn) ? [] : nil }
    }

    mutating func resolutionFailed(
        _ query: UInt64, _ failure: ResolutionFailure, _ turn: inout Turn<some RandomNumberGenerator>
    ) {
        advance(&turn) { dial, _, turn in dial.failed(query, failure, &turn) ? [] : nil }
    }

    /// The handshake has as long as the connect had: a few round trips more, and the server's arithmetic.
    mutating func handshakeBegan(_ epoch: UInt64, _ local: Endpoint, _ turn: inout Turn<some RandomNumberGenerator>) {
        advance(&turn) { dial, _, turn in dial.handshakeBegan(epoch, local, now: turn.now) ? [] : nil }
    }

    mutating func dialFailed(
        _ epoch: UInt64, _ failure: FlowFailure, _ turn: inout Turn<some RandomNumberGenerator>
    ) {
        advance(&turn) { dial, _, turn in
            dial.attemptFailed(epoch, failure, closing: .dialFailed, &turn).map { [.dialFailed(failure, $0.remote)] }
        }
    }

    mutating func dialSucceeded(
        _ epoch: UInt64, _ local: Endpoint, _ remote: Endpoint, _ security: TLSSummary?,
        _ turn: inout Turn<some RandomNumberGenerator>
    ) {
        var won: Dial
        var old: Ready?
        switch state {
        case .dialling(let dial):
            won = dial
        case .ready(let ready):
            guard case .dialling(let dial, _)? = ready.move else { return }
            (won, old) = (dial, ready)
        case .waiting, .backingOff, .failed, .closed:
            return
        }
        guard won.attempts.contains(where: { $0.epoch == epoch }) else { return }
        abandon(&won, .outrun, but: epoch, &turn)
        if won.options != socketOptions {
            // The dial began under an earlier policy, or before a client left another opening.
            turn.perform(.configureSocket(epoch: epoch, socketOptions))
        }
        retry.dialSucceeded()
        let detour = won.attempts.first { $0.epoch == epoch }?.detour
        if detour != nil { silence.note(won, over: path, at: turn.now) }
        silence.ended()
        let interface = path?.interface.flatMap { interface in
            interface.addresses.contains { $0.address == local.address } ? interface.name : nil
        }
        var ready = Ready(
            epoch: epoch, local: local, remote: remote, interface: detour?.value.interface ?? interface,
            security: security.map { .value($0) }, settledAt: turn.now,
            liveness: Liveness(
                policy.livenessFigures, connectedAt: turn.now, hasAnsweredKeepalives: hasAnsweredKeepalives))
        (ready.isBound, ready.isDetour) = (detour != nil, detour != nil)
        if let opening { return play(opening, on: ready, besides: old, &turn) }
        if let old { closeFlow(old, .replaced, &turn) }
        noteReached(ready)
        loginTaken()
        attend(to: ready, &turn)
        enter(.ready(ready), because: reason(for: ready, besides: old), &turn)
    }

    /// Why a new flow stands: it is the better one only where the one before could have stayed.
    func reason(for ready: Ready, besides old: Ready?) -> StatusReason {
        if ready.isDetour { return .detoured(around: path?.interface?.name ?? "the first uplink") }
        return old.map(\.isSilent) ?? true ? .connected : .replaced
    }

    // MARK: - Timers

    mutating func timerFired(_ timer: ConnectionTimer, _ turn: inout Turn<some RandomNumberGenerator>) {
        switch timer {
        case .dial: dialIsDue(&turn)
        case .retry: retryIsDue(&turn)
        case .opening: openingIsDue(&turn)
        case .proof: proofIsDue(&turn)
        }
    }

    private mutating func dialIsDue(_ turn: inout Turn<some RandomNumberGenerator>) {
        var wake: Duration?
        if case .dialling(let dial) = state { wake = dial.wake }
        if case .ready(let ready) = state, case .dialling(let dial, _)? = ready.move { wake = dial.wake }
        guard let wake, isDue(wake, .dial, &turn) else { return }
        advance(&turn) { dial, _, turn in
            // It rang, and is to be set again whatever comes next.
            dial.wake = nil
            return dial.giveUpOverdue(&turn).map { .dialFailed($1, $0.remote) }
        }
    }

    private mutating func retryIsDue(_ turn: inout Turn<some RandomNumberGenerator>) {
        switch state {
        case .backingOff(let deadline), .failed(let deadline):
            guard isDue(deadline, .retry, &turn) else { return }
            dial(because: .retryDue, &turn)
        case .ready(let ready):
            guard case .waiting(let deadline, let failures)? = ready.move, isDue(deadline, .retry, &turn) else {
                return
            }
            move(ready, afterFailures: failures, &turn)
        case .waiting, .dialling, .closed:
            break
        }
    }

    func isDue(
        _ deadline: Duration, _ timer: ConnectionTimer, _ turn: inout Turn<some RandomNumberGenerator>
    ) -> Bool {
        if turn.now >= deadline { return true }
        turn.perform(.scheduleTimer(timer, deadline: deadline))
        return false
    }
}
