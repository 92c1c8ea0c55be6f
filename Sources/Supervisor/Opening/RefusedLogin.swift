// SPDX-License-Identifier: Apache-2.0

// What the server thought of a login, and what follows for the next dial.

/// A login that the server refused, and will refuse again.
struct RefusedLogin {
    /// How long the same login waits at least, also where the network became another one meanwhile: a portal may have
    /// answered for the server. A link that flaps must not lock an account, which five or ten wrong passwords in a row
    /// do with many servers.
    static let shortestWait = Duration.seconds(60)

    /// What the server said.
    let failure: OpeningFailure
    /// When.
    let at: Duration
    /// When it is tried again, if nothing changes.
    let until: Duration

    /// Until when the same login waits; `nil` where it may be tried now.
    func wait(at now: Duration, networkChangedAt: Duration?) -> Duration? {
        let isElsewhere = networkChangedAt.map { $0 > at } ?? false
        let deadline = isElsewhere ? min(at + Self.shortestWait, until) : until
        return now < deadline ? deadline : nil
    }
}

extension ConnectionStateMachine {
    /// Until when the login that the server refused is not tried again.
    func refusedUntil(_ now: Duration) -> Duration? {
        refusedLogin?.value.wait(at: now, networkChangedAt: networkChangedAt)
    }

    /// The server said no.
    mutating func loginRefused(_ failure: OpeningFailure, _ turn: inout Turn<some RandomNumberGenerator>) {
        lastFailure = .openingFailed(failure)
        if let pause = failure.refusal?.pause { serverAsked(pause, &turn) }
        guard failure.isLasting else { return }
        let wait = BackoffPolicy.slow.delay(afterFailures: 0, using: &turn.random)
        refusedLogin = .value(RefusedLogin(failure: failure, at: turn.now, until: turn.now + wait))
    }

    /// The server took the login, or there is no login.
    mutating func loginTaken() { (refusedLogin, lastFailure) = (nil, nil) }

    /// What is said to log in is another from now on: what was refused is no matter any more.
    ///
    /// - Returns: whether the connection waited for that, and is dialled.
    mutating func loginChanged(_ turn: inout Turn<some RandomNumberGenerator>) -> Bool {
        guard refusedLogin != nil else { return false }
        refusedLogin = nil
        switch state {
        case .failed: break
        // The server refused and did not hang up, and nobody has come for the flow.
        case .ready(let ready) where ready.custody == .new: break
        case .ready, .waiting, .dialling, .backingOff, .closed: return false
        }
        redial(because: .policyChanged, closing: .superseded, &turn)
        return true
    }
}
