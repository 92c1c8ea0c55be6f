// SPDX-License-Identifier: Apache-2.0

// For what the client is woken.

extension Connection {
    // MARK: - What happens to the line

    /// - Parameter isOfProgram: whether it is about a program that was launched, whose end says more.
    mutating func heard(_ event: ConnectionEvent, isOfProgram: Bool, _ turn: inout ConnectionTurn) {
        switch event.kind {
        case .arrived:
            need(.data, &turn)
        case .taken, .parked:
            wakes.overrun = nil
            guard !isOfProgram else { break }
            if event.kind == .taken {
                noteAcknowledgement(turn.now)
                beginBudget(turn.now)
            }
            wakes.review = nil
            clientHasCome(&turn)
            wakes.idleAcknowledgements = 0
        case .abandoned:
            wakes.overrun = nil
            needForLostClient(&turn)
        case .opened, .stateChanged:
            stateChanged(event, &turn)
        case .continued:
            continued(event.status, &turn)
            resumeWake(&turn)
        case .openingFailed:
            need(.openingFailed, &turn)
        case .sessionOpened, .addressFailed, .attemptBegan, .moveFailed, .pathChanged, .policyChanged, .certificateEnds,
            .wake:
            break
        }
        if let ownership = event.status.ownership { wakes.hadSession = ownership.session == .open }
    }

    /// The connection goes on as an earlier run of the agent left it: none of this is new to its client.
    private mutating func continued(_ status: ConnectionStatus, _ turn: inout ConnectionTurn) {
        wakes.hasStarted = true
        guard let ownership = status.ownership else {
            if wakes.hadSession { need(.lost, &turn) }
            wakes.hadSession = false
            return
        }
        wakes.lastEpoch = status.epoch
        if ownership.session == .open || ownership.holder == .client { wakes.hasHadClient = true }
    }

    private mutating func stateChanged(_ event: ConnectionEvent, _ turn: inout ConnectionTurn) {
        let status = event.status
        if status.ownership?.holder != .client { wakes.overrun = nil }
        if status.state == .closed {
            // What it left is there to be taken, or comes back from a program that does not begin.
            if ownership.endedEpochs.isEmpty { return tellWakes(.closed, &turn) }
            return ownership.isWaiting ? need(.data, &turn) : ()
        }
        guard status.state.hasFlow, let ownership = status.ownership else {
            needForLostClient(&turn)
            if wakes.hadSession { need(.lost, &turn) }
            wakes.hadSession = false
            return
        }
        guard status.epoch != wakes.lastEpoch else { return }
        wakes.lastEpoch = status.epoch
        let isFirst = !wakes.hasStarted
        wakes.hasStarted = true
        if isFirst { return tellWakes(.started, &turn) }
        // A client that has not come yet has no session to make anew.
        if wakes.hasHadClient, ownership.session == .none { need(.reconnected, &turn) }
    }

    /// First of all reasons: what a program finds in its environment is the one that it is launched for.
    private mutating func needForLostClient(_ turn: inout ConnectionTurn) {
        guard turn.hasLostClient else { return }
        turn.hasLostClient = false
        need(.clientDied, &turn)
    }

    // MARK: - Whether there is a reason

    /// The client wants something to be done, or is to do something, for which it must run.
    mutating func need(_ reason: WakeReason, _ turn: inout ConnectionTurn) {
        guard wakes.settings.reasons.contains(reason) else { return }
        // Who watches a connection that nobody has taken yet may be its client.
        guard wakes.settings.isTended || wakes.hasHadClient || turn.facts.isWatched(by: nil) else { return }
        tellWakes(.needed(reason, presence(with: reason, turn.facts)), &turn)
    }

    /// Wakes the client for what waits, where nothing is being done about it.
    mutating func needForWhatWaits(_ turn: inout ConnectionTurn) {
        wakes.review = nil
        if wakes.standing == nil, isAnythingWaiting(turn.facts) { need(.data, &turn) }
    }

    /// Wakes the client for what came right before the end of a flow, which was not told of as it came.
    mutating func needForWhatWasKept(_ turn: inout ConnectionTurn) {
        guard let kept = turn.keptUnread.take() else { return }
        guard wakes.standing?.hasFailed == true else {
            return wakes.standing == nil && wakes.review == nil ? need(.data, &turn) : ()
        }
        let isMore = kept.count > wakes.review?.given(on: kept.epoch) ?? 0
        switch wakes.review {
        case .awaitingBytes where isMore:
            wakes.review = nil
            need(.data, &turn)
        case .furtherBytes(let at, _, _): wakes.review = isMore ? .keptBytes(at: at) : nil
        case .awaitingBytes, .untouched, .keptBytes, nil: break
        }
    }

    private func isAnythingWaiting(_ facts: some ConnectionFacts) -> Bool {
        ownership.isOwed || standingOfAgent.map { facts.mayHaveUnread($0) } ?? false
    }

    /// The flow that stands, where the agent has it.
    private var standingOfAgent: UInt64? {
        line.standing.flatMap { $0.ownership.holder == .daemon ? $0.epoch : nil }
    }

    mutating func watchersChanged(_ turn: inout ConnectionTurn) {
        presenceChanged(&turn)
        if wakes.standing == nil, !wakes.hasHadClient, turn.facts.isWatched(by: nil) { needForWhatWaits(&turn) }
    }

    /// The client can be reached in another way than before, or not any more.
    mutating func presenceChanged(_ turn: inout ConnectionTurn) {
        // Where no wake stands, it is looked at when one begins.
        guard let wake = wakes.standing, !wake.hasFailed else { return }
        tellWakes(.clientChanged(presence(with: nil, turn.facts)), &turn)
    }

    /// How the client can be reached, with another reason to.
    func presence(with reason: WakeReason?, _ facts: some ConnectionFacts) -> ClientPresence {
        var presence = wakes.client.map { facts.presence(of: $0) } ?? []
        let standing = wakes.standing.flatMap { $0.hasFailed ? nil : $0.reasons } ?? []
        let isCalled = wakes.isListening && Set(standing + [reason].compactMap(\.self)) == [.keepAlive]
        if isCalled || facts.isWatched(by: wakes.client) { presence.insert(.subscribed) }
        return presence
    }

    mutating func change(to settings: Wakes.Settings, _ turn: inout ConnectionTurn) {
        wakes.settings = settings
        // Also where the same means have other targets now: what was given up may be possible.
        tellWakes(.policyChanged(settings.policy), &turn)
    }

    // MARK: - What is looked at again

    /// Continues a wake of an earlier run of the agent: after the client is told that the connection goes on, and
    /// before there is another reason to wake it.
    mutating func resumeWake(_ turn: inout ConnectionTurn) {
        guard let wake = wakes.inherited.take()?.value else { return }
        tellWakes(.clientChanged(presence(with: nil, turn.facts)), &turn)
        tellWakes(.restored(wake), &turn)
    }

    /// A client, or a program, has something to read, with which whatever stands is acknowledged; but what it leaves
    /// where it is, is looked at again.
    mutating func clientHasCome(_ turn: inout ConnectionTurn) {
        tellWakes(.taken, &turn)
        reviewLater(&turn)
    }

    mutating func acknowledged(_ wake: UInt64, by process: KnownProcess?, _ turn: inout ConnectionTurn) {
        guard wakes.standing?.number == wake else { return }
        // Who sees to it has what it took. A program that does not run yet has said nothing: it was another one.
        if process == nil || process != wakes.beginning { ownership.settleAll(of: process, turn.facts, &turn.effects) }
        noteAcknowledgement(turn.now)
        tellWakes(.acknowledged(wake: wake), &turn)
        // It may have meant to take the flow, and died.
        reviewLater(&turn)
    }

    /// Has what waits looked at again after a while, where nothing else is being done about it.
    mutating func reviewLater(_ turn: inout ConnectionTurn) {
        guard wakes.standing == nil, isAnythingWaiting(turn.facts) else { return }
        let pauses = wakes.settings.policy.pauses
        let pause = pauses.delay(afterFailures: wakes.idleAcknowledgements, using: &turn.random)
        wakes.idleAcknowledgements += 1
        wakes.review = .untouched(at: turn.now + pause)
    }

    /// Has bytes that come after a wake was given up begin another one: at once, and then no more often than the
    /// longest pause between two rounds.
    private mutating func awaitFurtherBytes(_ turn: inout ConnectionTurn) {
        let (now, epoch) = (turn.now, standingOfAgent)
        let count = epoch.map { turn.facts.unreadBytes(on: $0) } ?? 0
        let due = max(now, wakes.reviewableAt)
        wakes.reviewableAt = due + wakes.settings.policy.pauses.ceiling
        if due > now { return wakes.review = .furtherBytes(at: due, epoch: epoch, beyond: count) }
        awaitBytes(beyond: count, &turn)
    }

    private mutating func awaitBytes(beyond count: Int, _ turn: inout ConnectionTurn) {
        wakes.review = nil
        guard wakes.standing?.hasFailed == true, let standing = line.standing, standing.ownership.holder == .daemon
        else {
            return
        }
        wakes.review = .awaitingBytes(epoch: standing.epoch, beyond: count)
        turn.effects.append(.awaitBytes(epoch: standing.epoch, beyond: count))
    }

    private mutating func noteAcknowledgement(_ now: Duration) {
        if let wake = wakes.standing { wakes.acknowledged = .init(wake: .value(wake), at: now) }
    }

    /// Counts from now how long the client has the flow that it was woken for.
    private mutating func beginBudget(_ now: Duration) {
        let limit = wakes.settings.budget
        guard let acknowledged = wakes.acknowledged.take(), now - acknowledged.at < limit else { return }
        wakes.overrun = .init(wake: acknowledged.wake, at: now + limit)
    }

    mutating func wakeDeadlinePassed(_ turn: inout ConnectionTurn) {
        if let deadline = wakes.machineDeadline, deadline <= turn.now {
            wakes.machineDeadline = nil
            // It may have been stopped or frozen since it was last looked at.
            presenceChanged(&turn)
            tellWakes(.timerFired, &turn)
        }
        if let overrun = wakes.overrun, overrun.at <= turn.now {
            wakes.overrun = nil
            report(WakeReport(.overran(limit: wakes.settings.budget), overrun.wake.value), turn: &turn)
        }
        switch wakes.review {
        case .untouched(let at) where at <= turn.now: needForWhatWaits(&turn)
        case .furtherBytes(let at, _, let count) where at <= turn.now: awaitBytes(beyond: count, &turn)
        case .keptBytes(let at) where at <= turn.now:
            wakes.review = nil
            if ownership.isWaiting { need(.data, &turn) }
        case .untouched, .furtherBytes, .awaitingBytes, .keptBytes, nil: break
        }
    }

    // MARK: - The machine

    mutating func tellWakes(_ input: WakeInput, _ turn: inout ConnectionTurn) {
        for action in wakes.process(input, now: turn.now, using: &turn.random) {
            switch action {
            case .attempt(let attempt) where attempt.means == .exec: turn.launches.append(attempt)
            case .attempt(let attempt): turn.effects.append(.attempt(attempt, wakes.client))
            case .scheduleTimer(let deadline): wakes.machineDeadline = deadline
            case .cancelTimer: wakes.machineDeadline = nil
            case .report(let word): report(word, turn: &turn)
            }
        }
    }

    private mutating func report(_ report: WakeReport, turn: inout ConnectionTurn) {
        let status = line.status
        let event = ConnectionEvent(
            kind: .wake, status: status, previousState: status.state, previousDuration: .zero, reason: status.reason)
        turn.effects.append(.tell(event, wake: wakes.standing, report: report))
        switch report.kind {
        case .failed: awaitFurtherBytes(&turn)
        case .began, .acknowledged: wakes.review = nil
        case .joined, .attempted, .attemptFailed, .programEnded, .overran: break
        }
    }
}
