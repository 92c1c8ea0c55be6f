// SPDX-License-Identifier: Apache-2.0

import NetworkPath

@testable import Supervisor

// What is checked once all actions of an answer are known.

extension Checker {
    /// Whether the state has what it needs and nothing more, and the last event says what the status says.
    func checkHoldings(_ status: ConnectionStatus, _ now: Duration) throws {
        let needsSocket = [.connecting, .securing, .ready].contains(status.state)
        try require((known.socket != nil) == needsSocket, .stateHoldsWhatItNeeds, "socket in \(status.state)")
        try require(
            (known.query != nil) == (status.state == .resolving), .stateHoldsWhatItNeeds, "query in \(status.state)")
        let timer: ConnectionTimer? =
            switch status.state {
            case .resolving: .resolution
            case .connecting, .securing: .connect
            case .backingOff, .failed: .retry
            case .waiting, .ready, .closed: nil
            }
        try require(
            Array(known.timers.keys) == (timer.map { [$0] } ?? []), .stateHoldsWhatItNeeds,
            "\(known.timers.keys) in \(status.state)")
        if let timer, timer == .retry {
            try require(status.nextAttempt == known.timers[timer], .stateHoldsWhatItNeeds, "nextAttempt")
        }
        if status.state == .waiting { try require(!known.hasPath, .pathDialledAtOnce, "waits with a path") }
        if let local = status.localAddress {
            try require(local == known.socket?.local, .eventsTellTheStatus, "local address \(local)")
        }
        guard let told = lastEvent?.status else { return }
        let isTold =
            told.state == status.state && told.epoch == status.epoch && told.since == status.since
            && told.attempt == status.attempt && told.nextAttempt == status.nextAttempt
            && told.reason == status.reason
        try require(isTold, .eventsTellTheStatus, "\(status) after \(told)")
    }

    /// Whether the answer is what the rules ask for after this input.
    func checkReaction(
        to input: ConnectionInput, _ before: Knowledge, _ actions: [ConnectionAction], _ status: ConnectionStatus,
        _ now: Duration
    ) throws {
        let wasIdle = before.timers[.retry] != nil
        switch input {
        case .pathChanged(let new):
            try checkPathReaction(new, before, actions, status, now, wasIdle: wasIdle)
        case .localAddressRemoved(let address):
            try require(status.localAddress?.address != address, .boundToWhatExists, "flow keeps \(address)")
            try require(known.socket?.request.source != address, .boundToWhatExists, "dial keeps \(address)")
        case .flowFailed(_, .tls(let failure)) where failure.isPermanent && before.socket != nil && known.socket == nil:
            try checkGivenUp(status, now)
        case .remoteClosed, .flowFailed:
            if before.socket != nil, known.socket == nil { try checkWait(status, now) }
        case .dialFailed, .resolutionFailed, .dialResolved:
            try checkFailedDial(input, before, status, now)
        case .timerFired(let timer):
            guard let deadline = before.timers[timer] else {
                return try require(actions.isEmpty, .silentWithoutNews, "\(timer) was cancelled: \(actions)")
            }
            guard deadline <= now else {
                let again = [ConnectionAction.scheduleTimer(timer, deadline: deadline)]
                return try require(actions == again, .deadlinesKept, "\(timer) is early: \(actions)")
            }
            if timer != .retry { return try checkFailedDial(input, before, status, now) }
            try require(known.isDialling, .stateHoldsWhatItNeeds, "a retry that serves nothing: \(status.reason)")
        case .redialRequested:
            if before.hasPath { try checkDialsNow(status, now) }
            if before.hasPath { (failures, refusedSince) = (0, nil) }
        case .policyChanged:
            if Self.isElsewhere(known.policy, before.policy) { (failures, refusedSince) = (0, nil) }
        case .handshakeBegan(let epoch, _):
            let isNews = before.socket?.request.epoch == epoch && before.socket?.local == nil
            try require(isNews == !actions.isEmpty, .silentWithoutNews, "\(actions)")
            if isNews { try require(status.state == .securing, .stateHoldsWhatItNeeds, "\(status.state)") }
        case .opened, .dialSucceeded, .closeRequested:
            break
        }
    }

    private func checkPathReaction(
        _ new: Path, _ before: Knowledge, _ actions: [ConnectionAction], _ status: ConnectionStatus, _ now: Duration,
        wasIdle: Bool
    ) throws {
        guard let old = before.path else { return try checkFirstPath(status, now) }
        if new.changes(from: old).isEmpty {
            try require(actions.isEmpty, .silentWithoutNews, "\(actions)")
        }
        if !known.hasPath {
            try require(status.state == .waiting, .flowEndsForCause, "\(status.state) without a path")
        } else if !before.hasPath || (wasIdle && Self.isNews(new, after: old) && known.path == new) {
            try checkFirstPath(status, now)
        } else if before.isDialling, known.path == new, Self.takesAnotherWay(new, old) {
            // A dial under way is made anew over the way that the path takes now.
            try checkDialsNow(status, now)
            (failures, refusedSince) = (0, nil)
        } else if before.isDialling {
            try require(
                before.socket?.request.epoch == known.socket?.request.epoch && before.query == known.query,
                .pathDialledAtOnce,
                "a dial is disturbed by news that change nothing for it")
        }
    }

    private func checkFirstPath(_ status: ConnectionStatus, _ now: Duration) throws {
        guard known.hasPath else { return }
        try checkDialsNow(status, now)
        (failures, refusedSince) = (0, nil)
    }

    /// Whether a dial began in this turn, or waits for the budget alone.
    private func checkDialsNow(_ status: ConnectionStatus, _ now: Duration) throws {
        if status.state == .resolving || status.state == .connecting {
            try require(status.since == now, .pathDialledAtOnce, "an old dial goes on")
            return
        }
        try require(status.reason == .dialledTooOften, .pathDialledAtOnce, "\(status.state) for \(status.reason)")
        try require(dials.count >= DialBudget.burst, .pathDialledAtOnce, "after \(dials.count) dials")
        let wait = (status.nextAttempt ?? now) - now
        try require(wait <= DialBudget.interval, .pathDialledAtOnce, "in \(wait)")
    }

    /// Whether the dial that failed with this input, if it did, is followed by the wait that its failure asks for.
    private func checkFailedDial(
        _ input: ConnectionInput, _ before: Knowledge, _ status: ConnectionStatus, _ now: Duration
    ) throws {
        guard before.isDialling, known.query == nil, known.socket == nil else { return }
        let told = misses.first { !$0.isLocal } ?? misses.last
        let (isPermanent, isLocal): (Bool, Bool) =
            switch input {
            case .resolutionFailed(_, let failure): (failure != .temporary, failure == .temporary)
            case .dialResolved: (true, false)
            case .timerFired(.resolution): (false, true)
            case .dialFailed, .timerFired: (told?.isPermanent ?? false, told?.isLocal ?? false)
            case .opened, .pathChanged, .handshakeBegan, .dialSucceeded, .remoteClosed, .flowFailed,
                .localAddressRemoved,
                .redialRequested, .policyChanged, .closeRequested:
                (false, false)
            }
        let isRefused = !isPermanent && !isLocal && told == .refused
        if isLocal, let pathNewsAt, now - pathNewsAt < .seconds(30) {
            let wait = (status.nextAttempt ?? now) - now
            try require((.seconds(1)...atMost(.seconds(2))).contains(wait), .backoffKept, "settling: \(wait)")
            return
        }
        failures += 1
        refusedSince = isRefused ? refusedSince ?? now : nil
        let isRefusedForLong = refusedSince.map { now - $0 >= .seconds(3600) } ?? false
        if status.state == .failed {
            try require(isPermanent || isRefusedForLong, .failedForCause, "\(status.reason)")
            try checkGivenUp(status, now)
        } else {
            try require(!isPermanent && !isRefusedForLong, .failedForCause, "\(status.state), \(status.reason)")
            try checkWait(status, now)
        }
    }

    /// Whether the connection waits for somebody to mend the cause.
    private func checkGivenUp(_ status: ConnectionStatus, _ now: Duration) throws {
        try require(status.state == .failed, .failedForCause, "\(status.state) for \(status.reason)")
        let wait = (status.nextAttempt ?? now) - now
        try require((.seconds(900)...(.seconds(1800))).contains(wait), .failedForCause, "retry in \(wait)")
    }

    /// Whether the wait that begins now lies in the policy's range, and the attempt that comes is counted right.
    private func checkWait(_ status: ConnectionStatus, _ now: Duration) throws {
        try require(status.state == .backingOff, .backoffKept, "\(status.state) after a failure")
        let bound = bound(afterFailures: failures)
        let lowest = known.policy.backoff.jitter == .half ? bound / 2 : .zero
        let wait = (status.nextAttempt ?? .zero) - now
        try require((lowest...atMost(bound)).contains(wait), .backoffKept, "\(wait) after \(failures) failures")
        try require(status.attempt == failures + 1, .backoffKept, "attempt \(status.attempt) of \(failures)")
    }

    /// A bound, or what the budget puts in its place after a burst of dials.
    private func atMost(_ bound: Duration) -> Duration {
        dials.count < DialBudget.burst ? bound : max(bound, DialBudget.interval)
    }

    /// The policy's bound in its own words: the base, multiplied once a failure, cut at the ceiling.
    private func bound(afterFailures failures: Int) -> Duration {
        var bound = known.policy.backoff.base
        if failures == 0 { bound = max(bound, known.policy.backoff.spread) }
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
