// SPDX-License-Identifier: Apache-2.0

internal import Glibc
internal import Platform

/// What a client reads and writes in place of a flow with TLS, whose keys live in this process: one end of a pair of
/// Unix sockets. Plaintext goes between the other end and the session.
///
/// Both directions push back: a client that does not read fills the pair, then one TLS record, then the socket, and the
/// server waits; a server that does not read fills the socket, then the session's output, then the pair, and the client
/// waits.
@AgentQueue
final class Relay {
    /// What each direction of the pair holds at most (`SO_SNDBUF`; the kernel doubles it for its own bookkeeping,
    /// socket(7)). Four of TLS's largest records.
    private static let capacity: CInt = 64 * 1024

    /// One for all relays: what is read is passed on before the next one's turn.
    private static let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 16 * 1024, alignment: 16)

    /// This process's end; `nil` once the client's stream was cut off.
    private var ours: OwnedDescriptor?
    /// Saved, so that what a client left unread is there for the next one. Its number; `nil` once nobody comes for it.
    private var theirs: OwnedDescriptor?
    private var registration: Poller.Registration?
    private var hasEnded = false
    /// Whether what the client writes is of no use any more.
    private var isOneWay = false
    /// Whether the client's side took all that was offered to it last.
    private(set) var hasRoom = true
    /// Whether nobody has the client's end any more.
    private(set) var isDeserted = false
    /// How many bytes went into the pair in each direction.
    private var delivered: UInt64 = 0
    private var taken: UInt64 = 0
    /// Whether plaintext goes to the client. What a parked flow receives stays with the session, where it is watched.
    var isDelivering = false

    /// A pair.
    ///
    /// - Parameters:
    ///   - user: who gets the client's end.
    ///   - onReady: called when the client has written or read, for ``exchange(with:over:)``.
    init(for user: UInt32, onReady: @escaping @AgentQueue () -> Void) throws(SystemError) {
        var ends: [CInt] = [0, 0]
        guard socketpair(AF_UNIX, CInt(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0, &ends) == 0 else {
            throw .last("making a pair of sockets")
        }
        let ours = OwnedDescriptor(ends[0], sharedWith: user)
        theirs = OwnedDescriptor(ends[1], sharedWith: user)
        ours.acceptDescriptors(false)
        ours.readUrgentInTurn()
        for end in ends {
            var size = Self.capacity
            setsockopt(end, SOL_SOCKET, SO_SNDBUF, &size, socklen_t(MemoryLayout<CInt>.size))
        }
        self.ours = consume ours
        registration = try Poller.shared.register(ends[0], [.readable, .writable, .edgeTriggered]) { _ in
            onReady()
        }
    }

    /// A descriptor of the client's end.
    func clientsEnd() throws(SystemError) -> OwnedDescriptor {
        switch theirs {
        case .some(let theirs): try theirs.duplicate()
        case .none: throw SystemError("handing over the flow", code: EBADF)
        }
    }

    /// The number of the client's end, as long as it is kept.
    private var theirNumber: CInt? {
        switch theirs {
        case .some(let theirs): theirs.number
        case .none: nil
        }
    }

    /// The number of this process's end, as long as it is open.
    private var ourNumber: CInt? {
        switch ours {
        case .some(let ours): ours.number
        case .none: nil
        }
    }

    /// Takes what the client wrote; 0 where it writes no more, less where there is nothing now.
    private func receive(into buffer: UnsafeMutableRawBufferPointer) -> Int {
        switch ours {
        case .some(let ours): ours.receiveBytes(into: buffer)
        case .none: -1
        }
    }

    /// What was delivered and not read.
    var unreadBytes: Int { theirNumber.map(Self.queued) ?? 0 }

    /// Whether the client has written what is not encrypted yet.
    var hasUnsentBytes: Bool { waitingBytes > 0 }

    private var waitingBytes: Int { ourNumber.map(Self.queued) ?? 0 }

    /// What the client has read and written so far.
    var progress: Progress {
        Progress(
            read: delivered &- UInt64(unreadBytes),
            written: taken &+ UInt64(waitingBytes) &+ (hasEnded ? 1 : 0))
    }

    private static func queued(_ number: CInt) -> Int {
        var count: CInt = 0
        return ioctl(number, UInt(FIONREAD), &count) == 0 ? Int(count) : 0
    }

    /// Passes on a buffer each way, as far as there is room.
    ///
    /// - Returns: whether the client may have written more. Where both ends are quick there is always more, and others
    ///   have their turn in between.
    func exchange(with security: SecuredStream, over socket: CInt) -> Bool {
        guard registration != nil else { return false }
        let isMore = takeFromClient(security, socket)
        if isDelivering { deliver(security) }
        return isMore
    }

    private func takeFromClient(_ security: SecuredStream, _ socket: CInt) -> Bool {
        guard !hasEnded, security.takesPlaintext else { return false }
        let buffer = Self.buffer
        let count = receive(into: buffer)
        if count == 0 {
            // The client has nothing more to say, and may still read.
            hasEnded = true
            security.close(over: socket)
        }
        guard count > 0 else { return false }
        taken += UInt64(count)
        return security.send(Array(UnsafeRawBufferPointer(rebasing: buffer[..<count])), over: socket)
            && security.takesPlaintext
    }

    /// Delivers plaintext as far as there is room.
    func deliver(_ security: SecuredStream) {
        let buffer = Self.buffer
        hasRoom = true
        guard let number = ourNumber else { return }
        while security.unreadBytes > 0 {
            let count = security.peek(into: buffer)
            guard count > 0 else { return }
            let sent = send(number, buffer.baseAddress, count, CInt(MSG_DONTWAIT) | CInt(MSG_NOSIGNAL))
            guard sent > 0 else {
                isDeserted = errno == EPIPE || errno == ECONNRESET
                return hasRoom = false
            }
            delivered += UInt64(sent)
            _ = security.read(into: UnsafeMutableRawBufferPointer(rebasing: buffer[..<sent]))
        }
    }

    // MARK: - The end

    /// Takes nothing from the client any more: what it writes is refused, as by a socket whose flow has ended.
    func endInput() {
        guard !isOneWay, let theirs = theirNumber else { return }
        isOneWay = true
        // A Unix socket that is closed over bytes that nobody read resets the other end (`unix_release_sock`). So
        // whatever ends this process's part before all is delivered, its own death included, the client reads an error
        // behind what was delivered, and no end of stream. Where this finds no room, there is something already.
        // The byte is none of the client's.
        if send(theirs, [0], 1, CInt(MSG_DONTWAIT) | CInt(MSG_NOSIGNAL)) == 1 { taken &-= 1 }
        ourNumber.map { _ = shutdown($0, CInt(SHUT_RD)) }
    }

    /// Nobody comes for the client's end again: once those who have it have closed it, it ``isDeserted``.
    func letGo() { theirs = nil }

    /// Ends the client's stream after what was delivered, which is all.
    func close() {
        registration?.cancel()
        registration = nil
        // Counted on: whether its taker has touched the stream is asked after this, too.
        while isOneWay {
            let count = receive(into: Self.buffer)
            guard count > 0 else { break }
            taken &+= UInt64(count)
        }
        ourNumber.map { _ = shutdown($0, CInt(SHUT_RDWR)) }
    }

    /// Ends the client's stream with an error behind what was delivered.
    func cut() {
        registration?.cancel()
        registration = nil
        endInput()
        // As above.
        taken &+= UInt64(waitingBytes)
        ours = nil
    }
}
