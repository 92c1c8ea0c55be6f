// SPDX-License-Identifier: Apache-2.0

import DialtoneNetworkPath

@testable import DialtoneConnection

// Where servers of the name were reached, and what a dial makes of that.

extension Checker {
    /// The server at the other end of a flow took the login, or there is none.
    func noteTaken(_ socket: Socket, _ now: Duration) {
        guard case .name = known.policy.remote.host, let connectedAt = socket.connectedAt,
            // One that another took the place of says nothing new when it is closed.
            connectedAt >= known.newest?.since ?? connectedAt
        else { return }
        known.newest = (socket.request.remote, connectedAt, now)
    }

    /// Whether a dial that failed for want of an answer has tried the address that answered last.
    func checkUsedWhatIsKnown(_ dial: Dial, _ now: Duration) throws {
        guard let newest = known.newest, now - newest.since <= .seconds(86_400), newest.known < dial.begunAt else {
            return
        }
        try require(dial.tried.contains(newest.remote), .dialsTheAnswer, "gives up without \(newest.remote)")
    }

    /// Whether an address that no name server told may be dialled: the one that answered within a day, where none was
    /// told in 1.8 s or nobody can be asked.
    func checkUnanswered(_ remote: Endpoint, _ dial: Dial, _ now: Duration) throws {
        let isReached = known.reached[remote].map { now - $0 <= .seconds(86_400) } ?? false
        let isLate = now - dial.begunAt >= .milliseconds(1800) && !known.queries.isEmpty
        let isDead = known.queries.isEmpty && dial.nameMisses.contains(.temporary)
        try require(
            isReached && dial.candidates.isEmpty && (isLate || isDead), .dialsTheAnswer, "\(remote) was not answered")
    }
}
