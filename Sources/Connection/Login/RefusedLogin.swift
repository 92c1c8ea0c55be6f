// SPDX-License-Identifier: Apache-2.0

// What the server thought of a login, and what follows for the next dial.

/// A login that the server refused, and will refuse again: for good, or for as long as it said.
struct RefusedLogin {
    /// How long the same login waits at least, also where the network became another one meanwhile: a portal may have
    /// answered for the server. Doubled with each further refusal: a link that flaps must not lock an account, which
    /// five or ten wrong passwords in a row do with many servers.
    static let shortestWait = Duration.seconds(60)

    /// What the server said.
    let failure: OpeningFailure
    /// When.
    let at: Duration
    /// When it is tried again, if nothing changes.
    let until: Duration
    /// How often in a row it was refused.
    let times: Int
    /// Whether it was refused on a flow beside another one with a session: only moves wait for it. Some servers refuse
    /// a second session of the same client.
    let isOfMove: Bool

    /// Until when the same login waits; `nil` where it may be tried now.
    func wait(at now: Duration, networkChangedAt: Duration?) -> Duration? {
        let isElsewhere = networkChangedAt.map { $0 > at } ?? false
        let shortest = Self.shortestWait * (1 << min(max(times, 1) - 1, 8))
        let deadline = isElsewhere ? min(at + shortest, until) : until
        return now < deadline ? deadline : nil
    }
}

extension ConnectionStateMachine {
    /// Until when the login that the server refused is not tried again.
    func refusedUntil(_ now: Duration) -> Duration? {
        refusedLogin?.value.wait(at: now, networkChangedAt: retry.networkChangedAt)
    }

    /// The server said no to an opening.
    mutating func loginRefused(
        _ failure: OpeningFailure, of played: Opening?, isOfMove: Bool, _ turn: inout Turn<some RandomNumberGenerator>
    ) {
        if !isOfMove { lastFailure = .openingFailed(failure) }
        // Another one is to be said by now, which nobody has refused.
        guard played == opening else { return }
        let wait: Duration
        if failure.isLasting {
            wait = BackoffPolicy.slow.delay(afterFailures: 0, using: &turn.random)
        } else if let pause = failure.refusal?.pause {
            // What the server asked for it asked of everybody: a wait of one's own comes on top.
            wait = pause + policy.backoff.delay(afterFailures: retry.failures, using: &turn.random)
        } else {
            return
        }
        let times = (refusedLogin?.value.times ?? 0) + 1
        refusedLogin = .value(
            RefusedLogin(failure: failure, at: turn.now, until: turn.now + wait, times: times, isOfMove: isOfMove))
    }

    /// Waits for the time at which the login that was refused is tried again.
    ///
    /// - Returns: whether it waits.
    mutating func waitForRefusedLogin(_ turn: inout Turn<some RandomNumberGenerator>) -> Bool {
        guard let refused = refusedLogin?.value else { return false }
        if refused.isOfMove {
            // The session beside which it was refused is over.
            refusedLogin = nil
            return false
        }
        guard let deadline = refusedUntil(turn.now) else { return false }
        let failure = refused.failure
        wait(until: deadline, isFailed: failure.isLasting, because: .openingFailed(failure), &turn)
        return true
    }

    /// The server took the login, or there is no login.
    mutating func loginTaken() { (refusedLogin, lastFailure) = (nil, nil) }

    /// What is said to log in is another from now on: what was refused does not count any more.
    ///
    /// - Returns: whether the connection waited for that, and is dialled.
    mutating func loginChanged(_ turn: inout Turn<some RandomNumberGenerator>) -> Bool {
        guard refusedLogin != nil else { return false }
        refusedLogin = nil
        switch state {
        // What it waits for otherwise, another login does not mend.
        case .backingOff, .failed: if case .openingFailed = reason { break } else { return false }
        // The server refused and did not hang up, and nobody has come for the flow.
        case .ready(let ready) where ready.ownership == .new: break
        case .ready(let ready):
            if case .waiting? = ready.move {
                endMove(.superseded, &turn)
                moveIfBetter(&turn)
            }
            return false
        case .waiting, .dialling, .closed: return false
        }
        redial(because: .policyChanged, closing: .superseded, &turn)
        return true
    }
}
