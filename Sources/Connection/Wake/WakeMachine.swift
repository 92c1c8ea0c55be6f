// SPDX-License-Identifier: Apache-2.0

internal import DialtoneNetworkPath

/// The wakes of one connection's client: what is tried when, until the client acknowledges. It does nothing itself.
///
/// ## The run loop
///
/// The driver owns one machine a connection and tells it everything by ``process(_:now:using:)``. The actions of a call
/// are run in their order, all of them, before the next input is told: what an attempt comes to on the spot is kept and
/// told afterwards. `now` never goes back; a timer that is told early is scheduled anew. Answers to attempts that are
/// over are ignored.
///
/// ## The rules
///
/// - Activation is not delivery: a wake stands until the client acknowledges it, or takes the flow.
/// - There is one wake at a time. A reason that comes while it stands joins it; one that comes after it was given up
///   begins another, with another number.
/// - The cheapest means that can reach the client comes first, and the next one when the client has not acknowledged in
///   time, or at once where the attempt failed or the client went. A client that is known to be stopped is not sent an
///   event to wait for, nor a frozen one a signal.
/// - When all have been tried, they are tried again after a pause; after ``WakePolicy/rounds`` of that, or when nothing
///   is left to try, the wake is given up and reported. There are never more than ``WakePolicy/mostAttempts``.
/// - A program is not launched while the one that was launched before lives, or is on its way: that one may
///   acknowledge, or end.
/// - A program that failed is launched again after a pause, which grows while it goes on failing. One that ended with 0
///   is launched when there is something for it.
/// - A wake that stands has a timer, always: neither a driver that never answers nor a target that hangs keeps it.
package struct WakeMachine: Sendable {
    /// Launches that need not wait, and the time in which one more is earned: a client may run for each message and
    /// end, as inetd's did, but one that ends without reading what it was launched for must not take the machine with
    /// it.
    private static let launchBurst = 30
    private static let launchRefill = Duration.seconds(2)

    /// How long subscribers have to come back after the agent was started anew, before a wake goes on without them.
    /// Clients that were cut off look for the agent several times a second in the beginning.
    package static let returnTime = Duration.seconds(2)

    private enum Phase: Hashable {
        /// An attempt runs. Turns into `waiting` when it was done.
        case attempting(WakeMeans, until: Duration)
        /// The client has been reached, and has this long to acknowledge.
        case waiting(WakeMeans, until: Duration)
        /// The program that was launched before still runs, or is on its way: it may yet acknowledge, or end and make
        /// room for another.
        case outlasting(until: Duration)
        /// Between two rounds, or until a program may be launched again.
        case pausing(until: Duration)

        var deadline: Duration {
            switch self {
            case .attempting(_, let until), .waiting(_, let until), .outlasting(let until), .pausing(let until): until
            }
        }

        /// What the client is being woken by.
        var means: WakeMeans? {
            switch self {
            case .attempting(let means, _), .waiting(let means, _): means
            case .outlasting, .pausing: nil
            }
        }
    }

    private struct Standing: Hashable {
        var wake: StandingWake
        var phase: Phase
        var round = 0
        /// The last step of this round that is over; the next is one that costs more.
        var passed: WakeMeans?
        /// Whether this round has made an attempt.
        var hasTried = false
        /// Whether it was begun by an earlier run of the agent, whose subscribers have not come back yet.
        var awaitsReturn = false
    }

    private enum State: Hashable {
        /// Nothing is wanted of the client. Turns into `standing` when something is.
        case idle
        /// Turns into `idle` when it is acknowledged, and into `failed`. There is a timer.
        case standing(Standing)
        /// Given up. Turns into `idle` when it is acknowledged after all, and into `standing` with another reason.
        case failed(StandingWake)
        /// Over. Turns into nothing.
        case closed
    }

    /// What its user decided.
    package private(set) var policy: WakePolicy
    private var state = State.idle
    private var client: ClientPresence = []
    /// The wake that was spoken of last.
    private var last: StandingWake
    /// Since when the program runs that was launched.
    private var runningSince: Duration?
    /// The attempt to launch one whose outcome is not known yet, which may be longer than the attempt was waited for.
    private var launching: WakeAttempt.ID?
    /// How often in a row it failed.
    private var crashes = 0
    /// When it may be launched again after a failure.
    private var launchableAt: Duration?
    private var launches: TokenBucket

    /// Wakes that were never needed yet.
    ///
    /// - Parameter lastNumber: the highest number that a wake of this connection has had in an earlier run.
    package init(policy: WakePolicy, lastNumber: UInt64 = 0, now: Duration) {
        self.policy = policy
        last = StandingWake(number: min(lastNumber, ConnectionStateMachine.largestNumber), reasons: [], since: now)
        launches = TokenBucket(burst: Self.launchBurst, refill: Self.launchRefill, now: now)
    }

    /// The wake that has not been acknowledged, given up or not.
    package var standing: StandingWake? {
        switch state {
        case .idle, .closed: nil
        case .standing(let standing): standing.wake
        case .failed(let wake): wake
        }
    }

    /// The number of the last wake; 0 before the first.
    package var lastNumber: UInt64 { last.number }

    /// Whether a program that was launched runs.
    package var hasProgram: Bool { runningSince != nil }

    /// Takes note of what happened at `now` and says what to do about it.
    package mutating func process(
        _ input: WakeInput, now: Duration, using random: inout some RandomNumberGenerator
    ) -> [WakeAction] {
        if case .closed = state { return [] }
        var turn = WakeTurn(now: now, random: random)
        switch input {
        case .started: if policy.launch == .always, !hasProgram { need(.start, &turn) }
        case .needed(let reason, let client):
            self.client = client
            need(reason, &turn)
        case .acknowledged(let number): if standing?.number == number { acknowledge(&turn) }
        case .taken: acknowledge(&turn)
        case .attempted(let wake, let attempt, let outcome): attempted(wake, attempt, outcome, &turn)
        case .programStarted: (runningSince, launching) = (now, nil)
        case .programEnded(let end): programEnded(end, &turn)
        case .clientChanged(let client): clientChanged(to: client, &turn)
        case .timerFired: timerFired(&turn)
        case .policyChanged(let policy): policyChanged(to: policy, &turn)
        case .restored(let wake): restore(wake, &turn)
        case .launchContinued(let attempt): launching = attempt
        case .closed: close(&turn)
        }
        random = turn.random
        return turn.actions
    }
}

/// One call of ``WakeMachine/process(_:now:using:)``.
private struct WakeTurn<Random: RandomNumberGenerator> {
    let now: Duration
    var random: Random
    var actions: [WakeAction] = []

    mutating func report(_ kind: WakeReport.Kind, _ wake: StandingWake) {
        actions.append(.report(WakeReport(kind, wake)))
    }
}

// MARK: - What happens

extension WakeMachine {
    private mutating func need(_ reason: WakeReason, _ turn: inout WakeTurn<some RandomNumberGenerator>) {
        switch state {
        case .standing(var standing):
            guard !standing.wake.reasons.contains(reason) else { return }
            standing.wake.reasons.append(reason)
            state = .standing(standing)
            turn.report(.joined(reason), standing.wake)
        case .idle, .failed:
            let wake = StandingWake(number: last.number + 1, reasons: [reason], since: turn.now)
            begin(wake, &turn)
            turn.report(.began, wake)
            proceed(&turn)
        case .closed:
            break
        }
    }

    private mutating func restore(_ wake: StandingWake, _ turn: inout WakeTurn<some RandomNumberGenerator>) {
        guard case .idle = state else { return }
        // The earlier run's last number: the next one is above it.
        var wake = wake
        wake.number = min(wake.number, ConnectionStateMachine.largestNumber)
        last = wake
        guard !wake.hasFailed else { return state = .failed(wake) }
        begin(wake, &turn)
        guard case .standing(var standing) = state else { return }
        if wake.means == .exec {
            // The program that was on its way may run by now: it is waited for, or asked for by another attempt.
            standing.passed = policy.steps.last { $0 < .exec }
            standing.hasTried = true
            state = .standing(standing)
            return proceed(&turn)
        }
        guard !client.contains(.subscribed) else { return proceed(&turn) }
        standing.awaitsReturn = true
        wait(standing, in: .pausing(until: turn.now + Self.returnTime), &turn)
    }

    /// Enters a wake; the caller goes on with ``proceed(_:)``.
    private mutating func begin(_ wake: StandingWake, _ turn: inout WakeTurn<some RandomNumberGenerator>) {
        last = wake
        state = .standing(Standing(wake: wake, phase: .pausing(until: turn.now)))
    }

    private mutating func acknowledge(_ turn: inout WakeTurn<some RandomNumberGenerator>) {
        guard let wake = standing else { return }
        if case .standing = state { turn.actions.append(.cancelTimer) }
        state = .idle
        last = wake
        turn.report(.acknowledged(after: turn.now - wake.since), wake)
    }

    private mutating func attempted(
        _ wake: UInt64, _ attempt: Int, _ outcome: WakeOutcome, _ turn: inout WakeTurn<some RandomNumberGenerator>
    ) {
        let isLaunch = launching == WakeAttempt.ID(wake: wake, attempt: attempt)
        if isLaunch { launching = nil }
        guard case .standing(var standing) = state, standing.wake.number == wake, standing.wake.attempts == attempt,
            case .attempting(let means, _) = standing.phase
        else {
            if isLaunch, case .standing(let standing) = state, case .outlasting = standing.phase { proceed(&turn) }
            return
        }
        switch outcome {
        case .done:
            standing.phase = .waiting(means, until: turn.now + policy.patience(after: means, with: client))
            state = .standing(standing)
            turn.actions.append(.scheduleTimer(standing.phase.deadline))
        case .failed(let reason):
            turn.report(.attemptFailed(means, reason), standing.wake)
            proceed(&turn)
        }
    }

    private mutating func timerFired(_ turn: inout WakeTurn<some RandomNumberGenerator>) {
        guard case .standing(var standing) = state else { return }
        let deadline = standing.phase.deadline
        guard turn.now >= deadline else { return turn.actions.append(.scheduleTimer(deadline)) }
        switch standing.phase {
        case .attempting(let means, _): turn.report(.attemptFailed(means, "it took too long"), standing.wake)
        case .outlasting:
            standing.passed = .exec
            state = .standing(standing)
        case .waiting, .pausing: break
        }
        proceed(&turn)
    }

    private mutating func clientChanged(
        to client: ClientPresence, _ turn: inout WakeTurn<some RandomNumberGenerator>
    ) {
        self.client = client
        guard case .standing(let standing) = state else { return }
        if standing.awaitsReturn, canReach(by: .event) { return proceed(&turn) }
        // Who comes finds the wake in the status; who goes will not acknowledge.
        if let means = standing.phase.means, !canReach(by: means) { proceed(&turn) }
    }

    private mutating func policyChanged(
        to policy: WakePolicy, _ turn: inout WakeTurn<some RandomNumberGenerator>
    ) {
        self.policy = policy
        switch state {
        case .standing(let standing):
            if let means = standing.phase.means, !policy.steps.contains(means) { proceed(&turn) }
        case .failed(let wake):
            // By what is said now it may be possible.
            again(wake, &turn)
        case .idle, .closed: break
        }
    }

    private mutating func programEnded(_ end: ProgramEnd, _ turn: inout WakeTurn<some RandomNumberGenerator>) {
        guard let began = runningSince else { return }
        runningSince = nil
        turn.report(.programEnded(end), standing ?? last)
        switch end {
        case _ where end.isFailure:
            crashes = turn.now - began >= policy.stableAfter ? 1 : crashes + 1
            launchableAt = turn.now + policy.relaunchPauses.delay(afterFailures: crashes - 1, using: &turn.random)
        case .exited, .killed: (crashes, launchableAt) = (0, nil)
        case .unseen: break
        }
        switch state {
        case .standing(let standing):
            // It will not acknowledge any more.
            switch standing.phase {
            case .attempting(.exec, _), .waiting(.exec, _), .outlasting: proceed(&turn)
            case .attempting, .waiting, .pausing: break
            }
        case .idle:
            guard end.isFailure, policy.relaunches, policy.means.contains(.exec) else { return }
            if crashes <= policy.rounds { return need(.clientDied, &turn) }
            // By itself it has nothing to run for, and nothing but another reason has it launched now.
            let wake = StandingWake(
                number: last.number + 1, reasons: [.clientDied], since: turn.now, means: .exec)
            turn.report(.began, wake)
            giveUp(wake, &turn)
        case .failed(let wake):
            // It hung while it was waited for, and what it was wanted for still waits.
            guard policy.means.contains(.exec), end.isFailure ? policy.relaunches : true else { return }
            again(wake, &turn)
        case .closed:
            break
        }
    }

    /// Begins a wake for the reasons of one that was given up.
    private mutating func again(_ wake: StandingWake, _ turn: inout WakeTurn<some RandomNumberGenerator>) {
        let next = StandingWake(number: last.number + 1, reasons: wake.reasons, since: turn.now)
        begin(next, &turn)
        turn.report(.began, next)
        proceed(&turn)
    }

    private mutating func close(_ turn: inout WakeTurn<some RandomNumberGenerator>) {
        if case .standing = state { turn.actions.append(.cancelTimer) }
        state = .closed
    }
}

// MARK: - What is tried next

extension WakeMachine {
    private enum Readiness {
        case now
        case notBefore(Duration)
        case afterProgram
        case never
    }

    /// Makes the next attempt, or pauses, or gives the wake up.
    private mutating func proceed(_ turn: inout WakeTurn<some RandomNumberGenerator>) {
        guard case .standing(var standing) = state else { return }
        if let means = standing.phase.means { standing.passed = means }
        standing.awaitsReturn = false
        guard standing.wake.attempts < policy.mostAttempts else { return giveUp(standing.wake, &turn) }
        for means in policy.steps where standing.passed.map({ $0 < means }) ?? true {
            switch readiness(of: means, now: turn.now) {
            case .now: return attempt(means, standing, &turn)
            case .notBefore(let instant): return wait(standing, in: .pausing(until: instant), &turn)
            case .afterProgram:
                return wait(standing, in: .outlasting(until: turn.now + policy.startTime), &turn)
            case .never: continue
            }
        }
        standing.round += 1
        guard standing.hasTried, standing.round < policy.rounds else { return giveUp(standing.wake, &turn) }
        (standing.passed, standing.hasTried) = (nil, false)
        let pause = policy.pauses.delay(afterFailures: standing.round - 1, using: &turn.random)
        wait(standing, in: .pausing(until: turn.now + pause), &turn)
    }

    private mutating func attempt(
        _ means: WakeMeans, _ standing: Standing, _ turn: inout WakeTurn<some RandomNumberGenerator>
    ) {
        var standing = standing
        standing.hasTried = true
        standing.wake.attempts += 1
        standing.wake.means = means
        standing.phase = .attempting(means, until: turn.now + policy.time(for: means))
        (state, last) = (.standing(standing), standing.wake)
        let wake = standing.wake
        let attempt = WakeAttempt(wake: wake.number, attempt: wake.attempts, means: means, reasons: wake.reasons)
        if means == .exec {
            _ = launches.take(now: turn.now)
            launching = attempt.id
        }
        turn.actions.append(.scheduleTimer(standing.phase.deadline))
        turn.report(.attempted(means), wake)
        turn.actions.append(.attempt(attempt))
    }

    private mutating func wait(
        _ standing: Standing, in phase: Phase, _ turn: inout WakeTurn<some RandomNumberGenerator>
    ) {
        var standing = standing
        standing.phase = phase
        state = .standing(standing)
        turn.actions.append(.scheduleTimer(phase.deadline))
    }

    private mutating func giveUp(_ wake: StandingWake, _ turn: inout WakeTurn<some RandomNumberGenerator>) {
        var wake = wake
        wake.hasFailed = true
        (state, last) = (.failed(wake), wake)
        turn.actions.append(.cancelTimer)
        turn.report(.failed(after: turn.now - wake.since), wake)
    }

    private func readiness(of means: WakeMeans, now: Duration) -> Readiness {
        switch means {
        case .event, .signal, .thaw: return canReach(by: means) ? .now : .never
        case .unit: return .now
        case .exec:
            guard runningSince == nil, launching == nil else { return .afterProgram }
            var launches = launches
            let instant = max(launchableAt ?? now, launches.take(now: now) ?? now)
            return instant > now ? .notBefore(instant) : .now
        }
    }

    /// Whether a nudge can reach the client, as far as is known of it.
    private func canReach(by means: WakeMeans) -> Bool {
        switch means {
        case .event: client.contains(.subscribed) && client.isDisjoint(with: [.stopped, .frozen])
        case .signal: client.contains(.alive) && !client.contains(.frozen)
        case .thaw: client.contains(.alive)
        case .unit, .exec: true
        }
    }
}
