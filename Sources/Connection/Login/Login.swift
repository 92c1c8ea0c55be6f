// SPDX-License-Identifier: Apache-2.0

/// What is said to log in, and what the server thought of it last.
struct Login {
    /// One that the server refused, and will refuse again: for good, or for as long as it said.
    struct Refusal {
        /// How long the same login waits at least, also where the network became another one meanwhile: a portal may
        /// have answered for the server. Doubled with each further refusal: a link that flaps must not lock an account,
        /// which five or ten wrong passwords in a row do with many servers.
        fileprivate static let shortestWait = Duration.seconds(60)

        /// What the server said.
        let failure: OpeningFailure
        /// When.
        fileprivate let at: Duration
        /// When it is tried again, if nothing changes.
        fileprivate let until: Duration
        /// How often in a row it was refused.
        fileprivate let times: Int
        /// Whether it was refused on a flow beside another one with a session: only moves wait for it. Some servers
        /// refuse a second session of the same client.
        let isOfMove: Bool
    }

    /// What a client left to be said in place of the policy's opening.
    var left: Opening?
    private var boxedRefusal: Boxed<Refusal>?
    /// The refusal that holds, until something else is to be said or a flow lasts.
    var refusal: Refusal? { boxedRefusal?.value }

    // MARK: - What happens

    /// The server refused it, and it waits for so long.
    mutating func refused(_ failure: OpeningFailure, isOfMove: Bool, at now: Duration, for wait: Duration) {
        let times = (refusal?.times ?? 0) + 1
        boxedRefusal = .value(
            Refusal(failure: failure, at: now, until: now + wait, times: times, isOfMove: isOfMove))
    }

    /// The server took it, or something else is said from now on, or a user wants it to be tried.
    mutating func forgetRefusal() { boxedRefusal = nil }

    /// The session beside which it was refused may be over.
    mutating func sessionMayBeOver() { if refusal?.isOfMove == true { boxedRefusal = nil } }

    // MARK: - What follows

    /// What is said on each new flow.
    func opening(by policy: ConnectionPolicy) -> Opening? {
        guard let opening = left ?? policy.opening, !opening.steps.isEmpty else { return nil }
        return opening
    }

    /// Until when the same login waits; `nil` where it may be tried now.
    ///
    /// - Parameter networkChangedAt: when the network last became another one.
    func wait(at now: Duration, networkChangedAt: Duration?) -> Duration? {
        guard let refusal else { return nil }
        let isElsewhere = networkChangedAt.map { $0 > refusal.at } ?? false
        let shortest = Refusal.shortestWait * (1 << min(max(refusal.times, 1) - 1, 8))
        let deadline = isElsewhere ? min(refusal.at + shortest, refusal.until) : refusal.until
        return now < deadline ? deadline : nil
    }
}
