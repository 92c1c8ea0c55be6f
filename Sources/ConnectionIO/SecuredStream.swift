// SPDX-License-Identifier: Apache-2.0

internal import Connection
internal import Glibc
internal import Platform
internal import TLS

/// A TLS session on a connected socket: carries bytes between the two.
///
/// What is not plaintext is dealt with as it comes, whoever holds the flow: tickets, key updates, alerts, the server's
/// end. Plaintext is the client's: once there is some that nobody read, no more is taken out of the socket.
@AgentQueue
final class SecuredStream {
    /// One for all flows: what is read is with a session before the next flow's turn.
    private static let buffer = UnsafeMutableRawBufferPointer.allocate(
        byteCount: TLSSession.inputLimit, alignment: 16)

    private let session: TLSSession
    /// Plaintext that was taken out of the session to look at what stands behind it; it is read first.
    private var ahead: [UInt8] = []
    /// What the socket failed of, when it did.
    private(set) var failure: SystemError?

    /// Begins a session. Nothing is sent before the first ``carry(over:reading:)``.
    init(_ session: TLSSession) {
        self.session = session
    }

    /// Where the session stands.
    var state: TLSSession.State { session.state }

    /// What was agreed on; `nil` before the handshake is over.
    var summary: TLSSummary? { session.summary }

    /// How many bytes of plaintext wait for the client.
    var unreadBytes: Int { ahead.count + session.unreadPlaintext }

    /// What the socket is to be watched for. Level-triggered as far as bytes are wanted or wait to be sent, so that one
    /// flow takes one buffer a turn; while they are not wanted, for the end alone, as a flow without TLS is.
    var interest: Poller.Readiness {
        var interest: Poller.Readiness = []
        if session.pendingOutput > 0 { interest.insert(.writable) }
        if session.wantsInput { interest.insert(.readable) }
        return interest.isEmpty ? [.peerClosed, .edgeTriggered] : interest
    }

    /// Sends what waits to be sent, and takes what came if `reading`. A failure of the socket stands in ``failure``.
    func carry(over socket: CInt, reading: Bool) {
        if reading, session.wantsInput { receive(from: socket) }
        session.drain { send($0, to: socket) }
    }

    /// Whether plaintext can be sent now: what was sent before has left.
    var takesPlaintext: Bool { session.state == .open && session.pendingOutput == 0 }

    /// Sends plaintext, whole or not at all.
    func send(_ plaintext: [UInt8], over socket: CInt) -> Bool {
        // A session that has something of its own to send has a socket that takes nothing now.
        guard session.pendingOutput == 0 else { return false }
        let count = plaintext.withUnsafeBytes { session.send($0) }
        session.drain { send($0, to: socket) }
        return count == plaintext.count
    }

    /// Copies unread plaintext without taking it.
    func peek(into buffer: UnsafeMutableRawBufferPointer) -> Int {
        let count = copyAhead(to: buffer)
        return count + session.peek(into: UnsafeMutableRawBufferPointer(rebasing: buffer[count...]))
    }

    /// Takes unread plaintext.
    func read(into buffer: UnsafeMutableRawBufferPointer) -> Int {
        let count = copyAhead(to: buffer)
        if count > 0 { ahead.removeFirst(count) }
        guard count < buffer.count else { return count }
        return count + session.read(into: UnsafeMutableRawBufferPointer(rebasing: buffer[count...]))
    }

    private func copyAhead(to buffer: UnsafeMutableRawBufferPointer) -> Int {
        let count = min(ahead.count, buffer.count)
        buffer.copyBytes(from: ahead.prefix(count))
        return count
    }

    /// Takes more out of the socket although there is plaintext that nobody read: what is looked for may stand in two
    /// records. The caller bounds how often.
    ///
    /// - Returns: whether there is more to look at than before.
    func lookFurther() -> Bool {
        let count = session.unreadPlaintext
        guard count > 0 else { return false }
        ahead += [UInt8](unsafeUninitializedCapacity: count) { buffer, taken in
            taken = session.read(into: UnsafeMutableRawBufferPointer(buffer))
        }
        return session.unreadPlaintext > 0
    }

    /// Says the end to the server, as far as the socket takes it at once.
    func close(over socket: CInt) {
        session.close()
        session.drain { send($0, to: socket) }
    }

    /// Takes what came before the socket failed, up to plaintext that nobody read. One buffer at most: a server's last
    /// flight and its alert fit into it, and more would keep the queue from others.
    func takeLastWords(from socket: CInt) {
        guard session.wantsInput else { return }
        let count = recv(socket, Self.buffer.baseAddress, Self.buffer.count, CInt(MSG_DONTWAIT))
        if count > 0 { session.receive(UnsafeRawBufferPointer(rebasing: Self.buffer[..<count])) }
    }

    private func receive(from socket: CInt) {
        let buffer = Self.buffer
        let count = recv(socket, buffer.baseAddress, buffer.count, CInt(MSG_DONTWAIT))
        if count > 0 {
            session.receive(UnsafeRawBufferPointer(rebasing: buffer[..<count]))
        } else if count == 0 {
            session.receiveEnd()
        } else if !Self.passes(errno) {
            failure = .last("reading from the flow")
        }
    }

    private func send(_ bytes: UnsafeRawBufferPointer, to socket: CInt) -> Int {
        let count = Glibc.send(socket, bytes.baseAddress, bytes.count, CInt(MSG_DONTWAIT) | CInt(MSG_NOSIGNAL))
        if count >= 0 { return count }
        if !Self.passes(errno) { failure = .last("writing to the flow") }
        return 0
    }

    private static func passes(_ code: CInt) -> Bool {
        code == EAGAIN || code == EINTR
    }
}
