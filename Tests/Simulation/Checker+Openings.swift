// SPDX-License-Identifier: Apache-2.0

import DialtoneNetworkPath

@testable import DialtoneConnection

// What is known of openings, and what is checked of them.

extension Checker {
    /// A flow is connected: it stands, or waits for its opening beside one with a session.
    func noteConnected(_ epoch: UInt64, _ now: Duration) {
        let keepsOld = known.opening != nil && known.standing != nil && known.hasSession
        known.sockets[epoch]?.connectedAt = now
        if !keepsOld { known.loss = nil }
        if let opening = known.opening {
            known.play = Play(
                epoch: epoch, opening: opening, begunAt: now, stepBegunAt: now, missing: opening.steps.count)
        } else {
            // One that was being played on the flow before is over with it.
            known.play = nil
            known.sockets[epoch]?.settledAt = now
            if let socket = known.sockets[epoch] { noteTaken(socket, now) }
            known.refusal = nil
        }
        if keepsOld {
            known.next = epoch
            known.nextLife = known.life
            known.nextLife.begin(known.policy, now)
        } else {
            known.life.begin(known.policy, now)
            known.ownership = known.play == nil ? .new : .opening
        }
    }

    func noteOpening(_ input: ConnectionInput, _ now: Duration) {
        switch input {
        case .openingLeft(let opening):
            let before = known.opening
            known.left = opening
            if known.opening != before { known.refusal = nil }
        case .openingAnswered(let epoch, _, let begun) where epoch == known.play?.epoch:
            known.play?.stepBegunAt = now
            known.play?.missing -= 1
            guard let begun else { break }
            if epoch == known.next { known.nextLife.proved(begun, now) } else { known.life.proved(begun, now) }
        case .sessionOpened(let epoch) where epoch == known.play?.epoch:
            known.sockets[epoch]?.settledAt = now
            silentOpenings = 0
            known.refusal = nil
            if let socket = known.sockets[epoch] { noteTaken(socket, now) }
            // That of the next flow counts from the moment in which the old one is closed.
            if epoch == known.next { break }
            known.play = nil
            known.ownership = .parked
            heartbeatChanged(now)
        case .openingFailed(let epoch, let failure) where epoch == known.play?.epoch:
            noteRefusal(failure, of: known.play?.opening, isOfMove: epoch == known.next, now)
            guard epoch != known.next else { break }
            silentOpenings = 0
            known.play = nil
            known.ownership = .new
        default:
            break
        }
    }

    private func noteRefusal(_ failure: OpeningFailure, of played: Opening?, isOfMove: Bool, _ now: Duration) {
        // Nobody has refused what is said by now.
        guard played == known.opening else { return }
        let waits: ClosedRange<Duration>
        if failure.refusal?.mayPass != true {
            waits = .seconds(900)...(.seconds(1800))
        } else if let pause = failure.refusal?.pause {
            waits = pause...pause + atMost(bound(afterFailures: failures))
        } else {
            return
        }
        known.refusal = Refusal(
            failure: failure, at: now, waits: waits, times: (known.refusal?.times ?? 0) + 1, isOfMove: isOfMove)
    }

    /// When the login that was refused is tried again: at its time, and where the network is another one since, a
    /// minute later; two the next time, and so on.
    func refusalHolds(_ refusal: Refusal) -> ClosedRange<Duration> {
        let isElsewhere = networkNewsAt.map { $0 > refusal.at } ?? false
        let shortest = Duration.seconds(60) * (1 << min(refusal.times - 1, 8))
        let lowest = isElsewhere ? min(shortest, refusal.waits.lowerBound) : refusal.waits.lowerBound
        return refusal.at + lowest...refusal.at + refusal.waits.upperBound
    }

    /// Whether nobody logs in as it was refused before its time.
    func checkRefusal(_ now: Duration) throws {
        guard let refusal = known.refusal else { return }
        try require(
            now >= refusalHolds(refusal).lowerBound, .refusalHeeded, "logs in anew, refused at \(refusal.at)")
    }

    /// Whether the connection waits because its login was refused, and as long as it should.
    func waitsForRefusal(_ status: ConnectionStatus) throws -> Bool {
        guard let refusal = known.refusal, !refusal.isOfMove, status.reason == .openingFailed(refusal.failure),
            status.state == (refusal.failure.refusal?.mayPass == true ? .backingOff : .failed),
            let next = status.nextAttempt
        else { return false }
        try require(refusalHolds(refusal).contains(next), .refusalHeeded, "until \(next)")
        return true
    }

    /// Whether a connection that waits for its refused login alone is dialled at once when another login is known.
    func checkOtherLogin(
        _ before: Knowledge, _ status: ConnectionStatus, _ now: Duration
    ) throws {
        guard let refusal = before.refusal, before.opening != known.opening, before.hasPath else { return }
        let waited = stateBefore?.reason == .openingFailed(refusal.failure) && before.timers[.retry] != nil
        guard before.standing == nil ? waited : before.ownership == .new else { return }
        startOver()
        try checkDialsNow(status, now)
    }

    /// Whether another opening took the place of one that was refused, on a flow that nobody has come for.
    func isRefusedLoginChanged(_ before: Knowledge) -> Bool {
        before.refusal != nil && before.opening != known.opening && before.ownership == .new
    }

    /// The flow that stood is closed, and the next one takes its place, logged in on or not.
    func promoteNext() {
        guard let next = known.next else { return }
        let hasAnswered = known.life.hasAnswered
        known.life = known.nextLife
        known.loss = nil
        if hasAnswered { known.life.hasAnswered = true }
        known.ownership = .opening
        if known.sockets[next]?.settledAt != nil {
            known.play = nil
            known.ownership = .parked
        }
        known.next = nil
    }

    /// Whether a flow that was to take another's place was given up for a cause that the rules name.
    func checkEndOfNext(
        _ epoch: UInt64, _ reason: CloseReason, of input: ConnectionInput, _ before: Knowledge, _ now: Duration
    ) throws {
        let local = before.sockets[epoch]?.local?.address
        let isForCause: Bool =
            switch input {
            case .remoteClosed(let ended): ended == epoch && reason == .remoteClosed
            case .flowFailed(let ended, _): ended == epoch && reason == .failed
            case .openingFailed(let failed, _): failed == epoch && reason == .failed
            case .timerFired(.opening): reason == .timedOut && before.play.map { $0.deadline <= now } ?? false
            case .pathChanged(let new):
                (reason == .pathMoved && new.status == .satisfied && new.source != local)
                    || (reason == .pathLost && new.isCoherent && !Self.mayDial(new))
            case .flowPathChanged(let flow, let new):
                flow == before.standing
                    && ((reason == .pathMoved && new.status == .satisfied && new.source != local)
                        || (reason == .pathLost && new.isCoherent && !Self.mayDial(new)))
            case .localAddressRemoved(let address): address == local && reason == .localAddressRemoved
            case .redialRequested: reason == .superseded
            case .policyChanged(let new):
                reason == .superseded
                    && (Self.isElsewhere(new, before.policy) || !new.movesToBetterPath
                        || before.opening != known.opening)
            case .openingLeft: reason == .superseded && before.opening != known.opening
            case .abandoned(_, let isUntouched, let isAlone):
                reason == .abandoned && !(isUntouched && isAlone) && !before.policy.keepsAbandonedFlow
            case .closeRequested: reason == .closeRequested
            case .opened, .adopted, .reopened, .resolved, .resolutionFailed, .detourFound, .handshakeBegan,
                .dialSucceeded, .dialFailed, .certificateEnds, .timerFired, .probeSent, .answered, .answerHidden,
                .undelivered, .acknowledged, .arrived, .taken, .parked, .returned, .resumed, .serverAsked,
                .openingAnswered, .sessionOpened, .answersLeft:
                false
            }
        try require(isForCause, .keepsSession, "the next flow is closed as \(reason) on \(input)")
    }

    /// Whether the session is what was said of it, and its events are told when they must be.
    func checkOpenings(
        after input: ConnectionInput, _ before: Knowledge, _ actions: [ConnectionAction], _ silentBefore: Int
    ) throws {
        let kinds = actions.compactMap { if case .emit(let event) = $0 { event.kind } else { nil } }
        var (isRefused, isOpened) = (false, false)
        switch input {
        case .openingFailed(let epoch, _):
            isRefused = epoch == before.play?.epoch && epoch == before.standing
        case .sessionOpened(let epoch):
            isOpened = epoch == before.play?.epoch && epoch == before.standing
            if epoch == before.play?.epoch {
                try require(before.play?.missing == 0, .sessionsTrue, "opened before all was answered")
                try require(known.standing == epoch && known.ownership == .parked, .sessionsTrue, "\(known.ownership)")
            } else {
                try require(actions.isEmpty, .silentWithoutNews, "\(actions)")
            }
        default:
            break
        }
        let isSilent = silentOpenings == 3 && silentBefore == 2
        try require(kinds.contains(.openingFailed) == (isRefused || isSilent), .openingsEnd, "\(kinds) on \(input)")
        try require(kinds.contains(.sessionOpened) == isOpened, .sessionsTrue, "\(kinds) on \(input)")
    }

    /// Whether the move that an opening was part of is told to have failed, and tried again.
    func checkFailedMove(_ actions: [ConnectionAction]) throws {
        let isTold = actions.contains { if case .emit(let event) = $0 { event.kind == .moveFailed } else { false } }
        let isRetried = known.timers[.retry] != nil
        try require(isTold && isRetried == known.hasBetterPath, .movesToBetterPath, "gives up silently")
    }
}
