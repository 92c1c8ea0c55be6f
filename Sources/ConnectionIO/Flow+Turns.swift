// SPDX-License-Identifier: Apache-2.0

internal import DialtonePlatform
internal import DialtoneRelayMessages
internal import Glibc

// What is made of input, and how much, is its peers' choice: an answer may come byte by byte. So it is done in turns,
// on account of the connection's user, like that user's calls.

extension Flow: TurnTaker {
    /// Takes what the kernel reports of the socket.
    func hear(_ readiness: Poller.Readiness) {
        guard awaitsInput else { return noted(readiness) }
        heard.formUnion(readiness)
        guard !isInLine else { return }
        isInLine = true
        Turns.shared.add(self, for: owner.label?.user ?? 0)
    }

    func takeTurn() {
        isInLine = false
        let readiness = heard
        heard = []
        if number != nil, !hasEnded { noted(readiness) }
    }

    /// Hears of the connect, of the handshake or of the end out of turn: a deadline is about to be judged by it.
    func takeWhatCame() {
        guard !hasEnded else { return }
        if secured != nil { return hearRelay() }
        guard !isConnected, let socketNumber else { return }
        var entry = pollfd(fd: socketNumber, events: Int16(POLLOUT), revents: 0)
        if poll(&entry, 1, 0) == 1 { noted(.writable) }
    }

    /// Whether something has come that `dialtone-tls` has not passed on yet: it lies in the socket, or there.
    var isBehind: Bool {
        guard let secured, let socketNumber else { return false }
        // What is done with is asked for first: what comes in between counts as not passed on.
        guard let settled = secured.counts?.settled, let received = Progress.received(ofTCP: socketNumber) else {
            // An earlier version of it does not say. After its word of the end nothing is known.
            return !secured.hasTakenAll && socketNumber.unreadBytes ?? 0 > 0
        }
        return settled.rest(of: received.count) > (received.mayCountEnd ? 1 : 0) && secured.isServed
    }
}
