// SPDX-License-Identifier: Apache-2.0

internal import Glibc
internal import Platform
internal import TLS

// What is computed for a flow, and how much, is its peers' choice: a handshake takes milliseconds, a client and a
// server that are both quick have always something to encrypt, and an answer may come byte by byte. So it is done in
// turns, on account of the connection's user, like that user's calls.

extension Flow: TurnTaker {
    /// Takes what the kernel reports of the socket.
    func hear(_ readiness: Poller.Readiness) {
        let isSecured = secure != nil || security != nil
        guard isSecured || awaitsInput else { return noted(readiness) }
        heard.formUnion(readiness)
        // Not to be told of it again before its turn.
        if isSecured { registration?.update(.edgeTriggered) }
        standInLine()
    }

    /// Waits for a turn, unless it does already.
    func standInLine() {
        guard !isInLine else { return }
        isInLine = true
        Turns.shared.add(self, for: owner.label?.user ?? 0)
    }

    func takeTurn() {
        isInLine = false
        let readiness = heard
        heard = []
        guard number != nil else { return }
        if hasEnded { passOn() } else { noted(readiness) }
    }

    /// Whether something lies in the socket for TLS, of which nothing waits to be read yet.
    var hasUndecrypted: Bool { undecryptedBytes > 0 }

    /// How many bytes that is.
    var undecryptedBytes: Int {
        guard !hasEnded, let security, security.unreadBytes == 0 else { return 0 }
        return inputBytes(for: security)
    }

    /// Whether the socket has something for a session that takes it.
    func hasInput(for security: SecuredStream) -> Bool { inputBytes(for: security) > 0 }

    private func inputBytes(for security: SecuredStream) -> Int {
        guard let number, security.state == .open else { return 0 }
        return Self.queued(number)
    }

    /// Bytes of the client's that wait to be encrypted.
    var hasUnsentBytes: Bool { relay?.hasUnsentBytes ?? false }

    /// Decrypts what lies in the socket, or hears of its connect, out of turn: a deadline is about to be judged by it.
    func takeWhatCame() {
        guard !hasEnded, let number else { return }
        if security != nil {
            heard.insert(.readable)
            return takeTurn()
        }
        guard !isConnected else { return }
        var entry = pollfd(fd: number, events: Int16(POLLOUT), revents: 0)
        if poll(&entry, 1, 0) == 1 { noted(.writable) }
    }

    /// Passes on a buffer each way; where the client has written more, that is for another turn.
    func exchange(_ relay: Relay, _ security: SecuredStream, over number: CInt) {
        if relay.exchange(with: security, over: number) { standInLine() }
    }
}
