// SPDX-License-Identifier: Apache-2.0

import DialtoneCoalescing
import DialtoneNetworkPath

@testable import DialtoneConnection

// What is checked once all actions of an answer are known.

extension Checker {
    /// Whether the state has what it needs and nothing more, and the last event says what the status says.
    func checkHoldings(_ status: ConnectionStatus, _ now: Duration) throws {
        func needs(_ condition: Bool, _ what: @autoclosure () -> String) throws {
            try require(condition, .stateHoldsWhatItNeeds, "\(what()) in \(status.state)")
        }
        let standing = known.sockets.filter { $0.value.connectedAt != nil && $0.key != known.next }
        let attempts = known.attempts
        let isDialling = !known.queries.isEmpty || !attempts.isEmpty
        if let next = known.next { try require(known.sockets[next] != nil, .oneFlow, "\(next) is closed") }
        try require(standing.count <= 1, .oneFlow, "\(standing.keys) stand")
        try needs(status.state.hasFlow == (standing.count == 1), "\(standing.count) flows")
        if let (epoch, socket) = standing.first {
            try require(status.epoch == epoch, .oneFlow, "says \(status.epoch)")
            let options = known.policy.socketOptions(keeping: known.opening)
            try require(socket.options == options, .configuredAsAsked, "\(socket.options) and not \(options)")
        }
        // After a restart of the agent nothing is known of the way before the first path.
        let isApart = known.leadsElsewhere || known.isDetour || known.isAskedAnew
        let isRight = known.isWatchedApart == isApart || known.path == nil
        try require(isRight, .watchesTheWay, "\(known.isWatchedApart)")
        let isSecuring = attempts.values.contains { $0.local != nil }
        switch status.state {
        case .resolving: try needs(attempts.isEmpty && !known.queries.isEmpty, "attempts or no query")
        case .connecting: try needs(!attempts.isEmpty && !isSecuring, "no attempt")
        case .securing: try needs(isSecuring, "no handshake")
        case .ready, .verifying: break
        case .waiting, .backingOff, .failed, .closed: try needs(!isDialling, "a dial")
        }
        try needs((known.timers[.dial] != nil) == isDialling, "dial timer \(known.timers)")
        let isIdle = status.state == .backingOff || status.state == .failed
        let waitsToMove = status.state.hasFlow && known.timers[.retry] != nil
        try require(known.timers[.opening] == known.play?.deadline, .openingsEnd, "opening timer \(known.timers)")
        try needs((known.timers[.retry] != nil) == (isIdle || waitsToMove), "retry timer")
        let mayMove = known.hasBetterPath || known.awaitsWay
        if waitsToMove { try needs(!isDialling && mayMove, "a retry that serves nothing") }
        try needs(known.timers[.proof] == (status.state.hasFlow ? known.proofDeadline : nil), "proof timer")
        if isIdle { try needs(status.nextAttempt == known.timers[.retry], "nextAttempt") }
        if status.state == .waiting { try require(!known.hasPath, .pathDialledAtOnce, "waits with a path") }
        if status.state.hasFlow { try checkProofs(status, now) }
        // What the server goes by after a login is what the client said last.
        if known.next != nil { try require(known.play?.opening == known.opening, .sessionsTrue, "an old login") }
        let avoided = known.isDetour ? known.path?.interface?.name : nil
        try require(status.avoidedInterface == avoided, .detoursInNeed, "avoids \(status.avoidedInterface ?? "none")")
        // Not which client has it: a launch becomes a program without a word to the line.
        let parts = { (ownership: FlowOwnership) in (ownership.holder, ownership.session, ownership.hasArrivals) }
        let isKnown = status.ownership.map { status.state.hasFlow && parts($0) == parts(known.ownership) }
        try require(isKnown ?? !status.state.hasFlow, .oneReader, "\(known.ownership)")
        guard let told = lastEvent?.status else { return }
        let isTold =
            told.state == status.state && told.epoch == status.epoch && told.since == status.since
            && told.attempt == status.attempt && told.nextAttempt == status.nextAttempt
            && told.reason == status.reason
        try require(isTold, .eventsTellTheStatus, "\(status) after \(told)")
    }

    /// Whether the flow's proofs are what they are said to be.
    private func checkProofs(_ status: ConnectionStatus, _ now: Duration) throws {
        let life = known.life
        let isInDoubt = life.event != nil || known.isSilent
        try require((status.state == .verifying) == isInDoubt, .proofsKept, "\(status.state)")
        try require(status.lastProof == life.lastProof, .proofsKept, "\(String(describing: status.lastProof))")
        guard let proof = life.lastProof, let heartbeat = known.policy.heartbeat, life.figures.isAnswerMandatory,
            heartbeat.kind.figures.answer == .message, status.state == .ready, known.heartbeat != nil,
            // Behind bytes that nobody read no answer is seen; the kernel's keepalive stands in.
            !known.ownership.hasArrivals
        else { return }
        // What a machine that sleeps cannot keep, it makes up for when it wakes; figures that change count from then.
        let promised = heartbeat.cadence.interval + life.figures.answerDeadline
        let excuse = max(wokeAt ?? .zero, heartbeatChangedAt ?? .zero, answerHiddenAt ?? .zero)
        guard now - excuse > promised else { return }
        try require(now - proof <= promised, .proofsKept, "ready with a proof of \(now - proof) ago")
    }

    /// Whether the answer is what the rules ask for after this input.
    func checkReaction(
        to input: ConnectionInput, _ before: Knowledge, _ actions: [ConnectionAction], _ status: ConnectionStatus,
        _ now: Duration
    ) throws {
        switch input {
        case _ where status.state == .closed:
            // One that is not dialled again ends with its flow.
            let isForCause = input == .closeRequested || !known.policy.redials
            try require(isForCause, .flowEndsForCause, "closed on \(input)")
        case .pathChanged(let new):
            try checkPathReaction(new, before, actions, status, now)
        case .flowPathChanged(let epoch, let new):
            guard epoch == before.standing, before.isWatchedApart, new.isCoherent || Self.mayDial(new) else {
                return try require(actions.isEmpty, .silentWithoutNews, "\(actions)")
            }
            try checkWayReaction(new, before, actions, status, now)
        case .localAddressRemoved(let address):
            let isKept = known.isSilent || status.localAddress?.address != address
            try require(isKept, .boundToWhatExists, "flow keeps \(address)")
            if known.isSilent { try checkSilence() }
            let isBound = known.attempts.values.contains { ($0.local?.address ?? $0.request.source) == address }
            try require(!isBound, .boundToWhatExists, "dial keeps \(address)")
        case .remoteClosed, .flowFailed:
            if before.standing != nil, known.standing == nil { try checkEndOfFlow(input, status, now) }
            if before.next != nil, known.next == nil, known.standing == before.standing { try checkFailedMove(actions) }
        case .resolved, .resolutionFailed, .dialFailed:
            try checkFailedDial(before, actions, status, now)
        case .timerFired(let timer):
            try checkTimer(timer, before, actions, status, now)
        case .redialRequested:
            if before.hasPath {
                startOver()
                try checkDialsNow(status, now)
            }
        case .resumed:
            try checkResume(before, actions, status, now)
        case .policyChanged:
            if Self.isElsewhere(known.policy, before.policy) { return startOver() }
            try checkOtherLogin(before, status, now)
        case .openingLeft:
            try checkOtherLogin(before, status, now)
        case .handshakeBegan(let epoch, _):
            let isNews = before.attempts[epoch] != nil && before.sockets[epoch]?.local == nil
            try require(isNews || actions.isEmpty, .silentWithoutNews, "\(actions)")
            if isNews, known.standing == nil {
                try require(status.state == .securing, .stateHoldsWhatItNeeds, "\(status.state)")
            }
        case .dialSucceeded(let epoch, _, _, _):
            let isNews = before.attempts[epoch] != nil
            try require(
                isNews == (known.standing == epoch && before.standing != epoch) || known.next == epoch, .oneFlow,
                "\(epoch) for \(actions)")
            if isNews { try require(!known.isDialling, .stateHoldsWhatItNeeds, "a dial that was won goes on") }
        case .probeSent(let epoch), .answered(let epoch, _), .answerHidden(let epoch), .undelivered(let epoch),
            .acknowledged(let epoch, _):
            if epoch != before.standing { try require(actions.isEmpty, .silentWithoutNews, "\(actions)") }
        case .serverAsked:
            try require(actions.isEmpty, .silentWithoutNews, "\(actions)")
        case .certificateEnds: break
        case .arrived(let epoch), .taken(let epoch, _), .parked(let epoch, _), .returned(let epoch),
            .abandoned(let epoch, _, _):
            try checkHands(epoch, before, actions, status, now)
        case .openingFailed:
            if before.next != nil, known.next == nil { try checkFailedMove(actions) }
        case .opened, .adopted, .reopened, .detourFound, .closeRequested, .openingAnswered, .sessionOpened,
            .answersLeft:
            break
        }
    }

    private func checkResume(
        _ before: Knowledge, _ actions: [ConnectionAction], _ status: ConnectionStatus, _ now: Duration
    ) throws {
        if before.isSilent {
            try checkSilence()
        } else if let standing = before.standing {
            try require(actions.contains(.probe(epoch: standing)), .proofsKept, "slept, and takes no care")
        } else if before.hasPath {
            startOver()
            try checkDialsNow(status, now)
        }
    }

    /// Whether the flow is in the hands that it should be in, and was given up where nobody knows what was read of it.
    private func checkHands(
        _ epoch: UInt64, _ before: Knowledge, _ actions: [ConnectionAction], _ status: ConnectionStatus, _ now: Duration
    ) throws {
        guard epoch == before.standing else {
            return try require(actions.isEmpty, .silentWithoutNews, "\(actions)")
        }
        guard known.standing == epoch else {
            startOver()
            return before.hasPath ? try checkDialsNow(status, now) : ()
        }
        if before.ownership.session == .opening { return try require(actions.isEmpty, .oneReader, "\(actions)") }
        let isNews = before.ownership != known.ownership
        try require(isNews == !actions.isEmpty, .oneReader, "\(actions)")
    }

    private func checkTimer(
        _ timer: ConnectionTimer, _ before: Knowledge, _ actions: [ConnectionAction], _ status: ConnectionStatus,
        _ now: Duration
    ) throws {
        guard let deadline = before.timers[timer] else {
            return try require(actions.isEmpty, .silentWithoutNews, "\(timer) was cancelled: \(actions)")
        }
        guard deadline <= now else {
            let again = [ConnectionAction.scheduleTimer(timer, deadline: deadline)]
            return try require(actions == again, .deadlinesKept, "\(timer) is early: \(actions)")
        }
        switch timer {
        case .dial:
            try checkFailedDial(before, actions, status, now)
        case .retry:
            let isHeld = [.dialledTooOften, .awaitsTurn, .serverAsked].contains(status.reason)
            if before.standing == nil {
                let isHeld = try isHeld || waitsForRefusal(status)
                try require(known.isDialling || isHeld, .stateHoldsWhatItNeeds, "a retry that serves nothing")
            } else if known.hasBetterPath {
                try require(known.isDialling || known.timers[.retry] != nil, .movesToBetterPath, "gives up")
            }
        case .opening:
            if known.standing == nil {
                try checkEndOfFlow(.timerFired(timer), status, now)
            } else if before.standing == known.standing {
                try checkFailedMove(actions)
            }
        case .proof:
            guard before.isSilent || before.life.isLost(at: now) else { return }
            try require(before.standing.map { known.sockets[$0] == nil } ?? true, .proofsKept, "a dead flow stands")
        }
    }

    private func checkPathReaction(
        _ new: Path, _ before: Knowledge, _ actions: [ConnectionAction], _ status: ConnectionStatus, _ now: Duration
    ) throws {
        guard let old = before.path else {
            // One that an earlier run of the agent had goes on.
            return before.standing == nil ? try checkFirstPath(status, now) : ()
        }
        if new.changes(from: old).isEmpty {
            try require(actions.isEmpty, .silentWithoutNews, "\(actions)")
        }
        if known.isSilent || before.isSilent { return try checkReturn(new, before, actions, status) }
        let wasIdle = before.standing == nil && before.timers[.retry] != nil
        if before.standing != nil, known.isWatchedApart || (known.path == new && before.isElsewhere(new)) {
            // It is another flow's way.
            try require(known.standing == before.standing, .flowEndsForCause, "\(status.state) without its path")
        } else if !known.hasPath {
            try require(status.state == .waiting, .flowEndsForCause, "\(status.state) without a path")
        } else if before.standing != nil {
            guard known.path == new else { return }
            try checkWayReaction(new, before, actions, status, now)
        } else if !before.hasPath || (wasIdle && Self.isNews(new, after: old) && known.path == new) {
            try checkFirstPath(status, now)
        } else if before.isDialling, known.path == new, Self.takesAnotherWay(new, old) {
            // A dial under way is made anew over the way that the path takes now.
            startOver()
            try checkDialsNow(status, now)
        } else if before.isDialling {
            try require(
                before.sockets.keys == known.sockets.keys && before.queries == known.queries, .pathDialledAtOnce,
                "a dial is disturbed by news that change nothing for it")
        }
    }

    /// Whether a flow whose own way is another now proves itself and moves, or ends where it leads nowhere.
    private func checkWayReaction(
        _ new: Path, _ before: Knowledge, _ actions: [ConnectionAction], _ status: ConnectionStatus, _ now: Duration
    ) throws {
        if known.isSilent || before.isSilent { return try checkReturn(new, before, actions, status) }
        guard Self.mayDial(new) else {
            try require(known.standing == nil, .flowEndsForCause, "stays without a way")
            if known.hasPath { try checkDialsNow(status, now) }
            return
        }
        guard let standing = before.standing, let old = before.way, Self.takesAnotherWay(new, old) else { return }
        try require(actions.contains(.probe(epoch: standing)), .proofsKept, "moves, and takes no care")
        guard known.next == nil else { return }
        let moves = known.isDialling || known.timers[.retry] != nil
        try require(moves == known.hasBetterPath, .movesToBetterPath, "\(known.timers) for \(new)")
    }

    /// Whether a flow that has no way stays, and proves itself when it has one again.
    private func checkReturn(
        _ new: Path, _ before: Knowledge, _ actions: [ConnectionAction], _ status: ConnectionStatus
    ) throws {
        try require(known.standing == before.standing, .flowEndsForCause, "\(status.state) within its grace")
        if known.isSilent { return try checkSilence() }
        guard before.isSilent, let standing = known.standing else { return }
        try require(actions.contains(.probe(epoch: standing)), .proofsKept, "is back, and takes no care")
    }

    /// Whether another flow is dialled beside one that has no way, where there is one for it.
    private func checkSilence() throws {
        guard known.policy.redials, known.next == nil, known.hasPath, !known.awaitsWay else { return }
        let isTried = known.isDialling || known.timers[.retry] != nil
        try require(isTried, .pathDialledAtOnce, "waits with a path")
    }

    private func checkFirstPath(_ status: ConnectionStatus, _ now: Duration) throws {
        guard known.hasPath else { return }
        startOver()
        try checkDialsNow(status, now)
    }

    /// Whether a dial began in this turn, or waits for the budget or at the server's wish alone.
    func checkDialsNow(_ status: ConnectionStatus, _ now: Duration) throws {
        if status.state == .resolving || status.state == .connecting {
            try require(status.since == now, .pathDialledAtOnce, "an old dial goes on")
            return
        }
        if try waitsForRefusal(status) { return }
        let wait = (status.nextAttempt ?? now) - now
        if status.reason == .awaitsTurn {
            return try require(
                dialsFrom > now && status.nextAttempt == dialsFrom, .turnAwaited, "in \(wait), for \(dialsFrom)")
        }
        if status.reason == .serverAsked {
            // And a wait of one's own on top, or all would be back at its end.
            let own = (status.nextAttempt ?? now) - (leftAloneUntil ?? now)
            return try require(
                (.zero...atMost(bound(afterFailures: failures))).contains(own), .serverHeeded, "in \(wait)")
        }
        try require(status.reason == .dialledTooOften, .pathDialledAtOnce, "\(status.state) for \(status.reason)")
        try require(dials.count >= DialBudget.burst, .pathDialledAtOnce, "after \(dials.count) dials")
        try require(wait <= DialBudget.interval, .pathDialledAtOnce, "in \(wait)")
    }

    /// After the end of a flow: a dial over the better path that was under way goes on, or the wait is the policy's.
    private func checkEndOfFlow(_ input: ConnectionInput, _ status: ConnectionStatus, _ now: Duration) throws {
        if case .flowFailed(_, .securingEnded) = input, known.hasPath, !known.isDialling || beganDialInThisTurn {
            return try checkEndOfSecuring(status, now)
        }
        if known.isDialling {
            return try require(!beganDialInThisTurn, .backoffKept, "dials at once after \(input)")
        }
        if !known.hasPath { return try require(status.state == .waiting, .noPacketWithoutPath, "\(status.state)") }
        if try waitsForRefusal(status) { return }
        if case .flowFailed(_, .tls(let failure)) = input, failure.isPermanent { return try checkGivenUp(status, now) }
        if case .flowFailed(_, let failure) = input, isSettling(failure, now) {
            return try checkBriefWait((status.nextAttempt ?? now) - max(now, leftAloneUntil ?? now))
        }
        try checkWait(status, now)
    }

    /// Whether a flow that ended with what had its keys is made anew at once, if not for the second time in a moment.
    private func checkEndOfSecuring(_ status: ConnectionStatus, _ now: Duration) throws {
        if try waitsForRefusal(status) { return }
        let isFirst = securingEndedAt.map { now - $0 >= .seconds(30) } ?? true
        securingEndedAt = now
        if isFirst { return try checkDialsNow(status, now) }
        try checkBriefWait((status.nextAttempt ?? now) - max(now, leftAloneUntil ?? now))
    }

    /// Whether a failure is that of a network that has just changed, or of what has the keys.
    func isSettling(_ failure: FlowFailure, _ now: Duration) -> Bool {
        failure == .securingEnded || failure.isLocal && pathNewsAt.map { now - $0 < .seconds(30) } ?? false
    }

    /// Whether the dial that failed in this turn, if it did, is followed by the wait that its failure asks for.
    private func checkFailedDial(
        _ before: Knowledge, _ actions: [ConnectionAction], _ status: ConnectionStatus, _ now: Duration
    ) throws {
        guard before.isDialling, !known.isDialling, let dial else { return }
        // What became of the address that answered last tells less than that there is no other.
        let isWithoutAddress = dial.candidates.isEmpty && !dial.nameMisses.isEmpty
        if isWithoutAddress, dial.nameMisses.contains(.temporary), !dial.isServiceRefused,
            !dial.nameMisses.contains(.noSuchName)
        {
            try checkUsedWhatIsKnown(dial, now)
        }
        let told = isWithoutAddress ? nil : dial.told
        let isPermanent: Bool
        var settlesSince: Duration?
        if dial.isServiceRefused, dial.candidates.isEmpty {
            isPermanent = true
        } else if let told {
            isPermanent = told.isPermanent
            if told.isLocal { settlesSince = pathNewsAt }
        } else if dial.nameMisses.contains(.temporary) {
            (isPermanent, settlesSince) = (false, pathNewsAt)
        } else {
            (isPermanent, settlesSince) = (true, networkNewsAt)
        }
        let isSettling = told == .securingEnded || settlesSince.map { now - $0 < .seconds(30) } ?? false
        if before.standing != nil {
            try checkFailedMove(actions)
            guard isSettling, let next = known.timers[.retry], known.refusal == nil else { return }
            return try checkBriefWait(next - now)
        }
        if isSettling { return try checkBriefWait((status.nextAttempt ?? now) - max(now, leftAloneUntil ?? now)) }
        failures += 1
        refusedSince = told == .refused ? refusedSince ?? now : nil
        let isRefusedForLong = refusedSince.map { now - $0 >= .seconds(3600) } ?? false
        if isPermanent || isRefusedForLong {
            try checkGivenUp(status, now)
        } else {
            try checkWait(status, now)
        }
    }

    /// Whether the wait is that for a network that is still settling.
    private func checkBriefWait(_ wait: Duration) throws {
        try require((.seconds(1)...atMost(.seconds(2))).contains(wait), .backoffKept, "settling: \(wait)")
    }

    /// Whether the connection waits for somebody to mend the cause.
    private func checkGivenUp(_ status: ConnectionStatus, _ now: Duration) throws {
        try require(status.state == .failed, .failedForCause, "\(status.state) for \(status.reason)")
        let wait = (status.nextAttempt ?? now) - max(now, leftAloneUntil ?? now)
        try require((.seconds(900)...(.seconds(1800))).contains(wait), .failedForCause, "retry in \(wait)")
    }

    /// Whether the wait that begins now lies in the policy's range, and the attempt that comes is counted right.
    private func checkWait(_ status: ConnectionStatus, _ now: Duration) throws {
        try require(status.state == .backingOff, .backoffKept, "\(status.state) after a failure")
        let bound = bound(afterFailures: failures)
        let lowest = known.policy.backoff.jitter == .half ? bound / 2 : .zero
        let wait = (status.nextAttempt ?? .zero) - max(now, leftAloneUntil ?? now)
        try require((lowest...atMost(bound)).contains(wait), .backoffKept, "\(wait) after \(failures) failures")
        try require(status.attempt == failures + 1, .backoffKept, "attempt \(status.attempt) of \(failures)")
    }

    /// A bound, or what the budget puts in its place after a burst of dials.
    func atMost(_ bound: Duration) -> Duration {
        dials.count < DialBudget.burst ? bound : max(bound, DialBudget.interval)
    }

    /// The policy's bound in its own words: the base, multiplied once a failure, cut at the ceiling.
    func bound(afterFailures failures: Int) -> Duration {
        var bound = known.policy.backoff.base
        if failures == 0 || endings.count > 1 { bound = max(bound, known.policy.backoff.spread) }
        for _ in 0..<failures where bound < known.policy.backoff.ceiling {
            bound = bound * known.policy.backoff.multiplier
        }
        return min(bound, known.policy.backoff.ceiling)
    }
}

extension FlowFailure {
    /// Whether the rules take it for one that time does not mend.
    fileprivate var isPermanent: Bool {
        if case .tls(let failure) = self { failure.isPermanent } else { false }
    }
}
