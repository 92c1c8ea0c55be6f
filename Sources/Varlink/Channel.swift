// SPDX-License-Identifier: Apache-2.0

internal import CDialtonePlatform
internal import DequeModule
internal import DialtonePlatform
internal import Glibc

/// A connected Unix socket as messages: what both ends of a Varlink connection have in common.
///
/// A message is written at once, and only what the socket has no room for waits for it. The owner says what is read by
/// ``wantsInput``; what is not stays in the peer's account, with its descriptors.
@AgentQueue
final class Channel {
    /// Why a channel can no longer be used.
    enum Ending: Error {
        /// The peer closed it.
        case hungUp
        /// The kernel refused.
        case failed(SystemError)
        /// The peer broke the protocol.
        case violated(VarlinkViolation)
    }

    /// What ``receive()`` found.
    enum Input {
        case bytes, nothing, end
    }

    /// The most bytes read in one go: enough that a long message takes few calls, little enough that one connection
    /// does not hold up the queue.
    private static let chunkBytes = 32 * 1024
    private static let chunk = UnsafeMutableRawBufferPointer.allocate(byteCount: chunkBytes, alignment: 16)
    private static let control = UnsafeMutableRawBufferPointer.allocate(
        byteCount: Int(platform_descriptors_space), alignment: MemoryLayout<cmsghdr>.alignment)

    /// A message that came.
    struct Incoming {
        /// Its bytes without the NUL.
        let bytes: [UInt8]
        /// What rode on it.
        let descriptors: VarlinkDescriptors?
    }

    /// A message on its way out.
    private struct Outgoing {
        let message: VarlinkMessage
        /// What rides on its first byte; `nil` once that is in the socket, which then holds them.
        var descriptors: VarlinkDescriptors?
    }

    private var descriptor: OwnedDescriptor?
    private var registration: Poller.Registration?
    private var framer: VarlinkFramer
    private var inbox: DescriptorInbox
    private var output: Deque<Outgoing> = []
    /// How much of the first message of `output` is written.
    private var written = 0
    private var inputEnded = false
    private let handler: @AgentQueue (Poller.Readiness) -> Void

    /// Takes over a connected socket; `handler` gets its readiness once ``resume()`` was called.
    init(
        _ descriptor: consuming OwnedDescriptor, messageLimit: Int, inbox: DescriptorInbox,
        handler: @escaping @AgentQueue (Poller.Readiness) -> Void
    ) {
        self.descriptor = consume descriptor
        self.inbox = inbox
        self.handler = handler
        framer = VarlinkFramer(limit: messageLimit)
    }

    var isOpen: Bool { descriptor != nil }
    /// Whether everything that was sent is in the socket.
    var isDrained: Bool { output.isEmpty }

    /// Whether readable bytes are to be reported. A hang-up is reported in any case.
    var wantsInput = true {
        didSet { updateInterest() }
    }

    private var interest: Poller.Readiness {
        var interest: Poller.Readiness = []
        if wantsInput && !inputEnded { interest.insert(.readable) }
        if !isDrained { interest.insert(.writable) }
        return interest
    }

    private func updateInterest() {
        registration?.update(interest)
    }

    /// Reports readiness from now on.
    func resume() throws(SystemError) {
        guard registration == nil, let number = descriptor?.number else { return }
        registration = try Poller.shared.register(number, interest, handler)
    }

    /// Reports nothing until ``resume()``, not even a hang-up.
    func pause() {
        registration?.cancel()
        registration = nil
    }

    /// Closes now. What was not written is lost.
    func close() {
        pause()
        output = []
        inbox.removeAll()
        framer = VarlinkFramer(limit: framer.limit)
        descriptor.take()?.endConnection()
    }

    /// Whether descriptors that come are kept for their message. Those that come while they are not are closed, and
    /// where the kernel can (`SO_PASSRIGHTS`, Linux 6.16) their sender is refused (`EPERM`).
    var acceptsDescriptors = true {
        didSet {
            if acceptsDescriptors != oldValue { descriptor?.acceptDescriptors(acceptsDescriptors) }
        }
    }

    /// Called with their number when descriptors came that were not accepted, and were closed.
    var onRefusedDescriptors: (@AgentQueue (Int) -> Void)?

    /// The most bytes of a read while nothing is pending.
    var firstChunkBytes = chunkBytes
    /// The most bytes of a message.
    var messageLimit: Int { framer.limit }
    /// How many bytes are here: came and not taken yet, or sent and not in the socket.
    var heldBytes: Int { framer.count + output.reduce(-written) { $0 + $1.message.bytes.count } }
    /// Whether there is room for another read: no more than one message of the limit's length waits.
    var hasRoom: Bool { framer.count <= framer.limit }
    /// Whether descriptors wait here for the rest of their message, or for their message's turn.
    var holdsDescriptors: Bool { !inbox.isEmpty }

    /// Another descriptor of the socket, which ends nothing by being open.
    func duplicateDescriptor() throws(SystemError) -> OwnedDescriptor {
        switch descriptor {
        case .some(let descriptor): return try descriptor.duplicate()
        case .none: throw SystemError("asking who is connected", code: ENOTCONN)
        }
    }

    /// The next message that is complete.
    func next() throws(Ending) -> Incoming? {
        let ordinal = framer.taken
        do throws(VarlinkViolation) {
            return try framer.next().map { Incoming(bytes: $0, descriptors: inbox.take(ordinal)) }
        } catch {
            throw .violated(error)
        }
    }

    /// The process at the other end, to be named to the kernel without mistaking another for it.
    func openPeerProcess(_ peer: VarlinkPeer) throws(SystemError) -> OwnedDescriptor {
        guard let number = descriptor?.number else { throw SystemError("asking who is connected", code: ENOTCONN) }
        return try peer.openProcess(connectedTo: number)
    }

    /// Reads what has come, one chunk of it.
    func receive() throws(Ending) -> Input {
        guard let number = descriptor?.number, !inputEnded else { return .end }
        var room = framer.isEmpty ? firstChunkBytes : Self.chunk.count
        if inbox.isFull {
            // Only what has none: the rest is closed with the connection.
            let (count, hasDescriptors) = Self.peek(number)
            guard count >= 0 else { return try Self.outcome(ofRead: errno) }
            if hasDescriptors { throw .violated(.descriptorsTruncated) }
            room = min(room, max(count, 1))
        }
        var vector = iovec(iov_base: Self.chunk.baseAddress, iov_len: room)
        var header = msghdr()
        let count = withUnsafeMutablePointer(to: &vector) { vector in
            header.msg_iov = vector
            header.msg_iovlen = 1
            header.msg_control = Self.control.baseAddress
            header.msg_controllen = Self.control.count
            return recvmsg(number, &header, CInt(MSG_CMSG_CLOEXEC) | CInt(MSG_DONTWAIT))
        }
        guard count >= 0 else { return try Self.outcome(ofRead: errno) }
        guard count > 0 else {
            inputEnded = true
            updateInterest()
            return .end
        }
        framer.append(UnsafeRawBufferPointer(rebasing: Self.chunk[..<count]))
        if header.msg_controllen > 0 || header.msg_flags & CInt(MSG_CTRUNC) != 0 {
            let ordinal = framer.ordinalOfLastByte
            do throws(VarlinkViolation) {
                let refused = try inbox.collect(&header, ordinal: ordinal, isRefused: !acceptsDescriptors)
                if refused > 0 { onRefusedDescriptors?(refused) }
            } catch {
                throw .violated(error)
            }
        }
        return .bytes
    }

    /// How many bytes the next read gets, and whether descriptors ride on them; a negative number for `errno`. The
    /// kernel tells of descriptors by the room that they lack, and takes none away.
    private static func peek(_ number: CInt) -> (count: Int, hasDescriptors: Bool) {
        var vector = iovec(iov_base: chunk.baseAddress, iov_len: chunk.count)
        return withUnsafeMutablePointer(to: &vector) { vector in
            var header = msghdr()
            header.msg_iov = vector
            header.msg_iovlen = 1
            let count = recvmsg(number, &header, CInt(MSG_PEEK) | CInt(MSG_DONTWAIT))
            return (count, header.msg_flags & CInt(MSG_CTRUNC) != 0)
        }
    }

    private static func outcome(ofRead code: CInt) throws(Ending) -> Input {
        switch code {
        case EAGAIN, EINTR: return .nothing
        case ECONNRESET, EPIPE: throw .hungUp
        default: throw .failed(SystemError("reading from a Varlink connection", code: code))
        }
    }

    /// Sends `message`, after those before it: as much as the socket takes now, the rest as it has room. Descriptors
    /// ride on its first byte. On this side they are closed when they are in the socket, or when the channel is closed.
    func send(_ message: VarlinkMessage, _ descriptors: VarlinkDescriptors? = nil) throws(Ending) {
        output.append(Outgoing(message: message, descriptors: descriptors))
        if output.count == 1 { try flush() }
    }

    /// Writes what the socket has room for.
    func flush() throws(Ending) {
        guard let number = descriptor?.number else { return }
        defer { updateInterest() }
        while let outgoing = output.first {
            let count = write(outgoing, to: number)
            guard count >= 0 else {
                let code = errno
                switch code {
                case EINTR: continue
                case EAGAIN: return
                case EPIPE, ECONNRESET: throw .hungUp
                default: throw .failed(SystemError("writing to a Varlink connection", code: code))
                }
            }
            written += count
            // What rode on the first byte is in the socket, which holds it for the peer.
            output[0].descriptors = nil
            if written == outgoing.message.bytes.count {
                output.removeFirst()
                written = 0
            }
        }
    }

    /// Writes what is left of a message. Each is a `sendmsg` of its own, so that a reader knows whose the descriptors
    /// are.
    private func write(_ outgoing: Outgoing, to number: CInt) -> Int {
        outgoing.message.bytes.withUnsafeBytes { bytes in
            let rest = UnsafeRawBufferPointer(rebasing: bytes[written...])
            guard let descriptors = outgoing.descriptors else {
                return platform_send(number, rest.baseAddress, rest.count, nil, 0)
            }
            return descriptors.withNumbers {
                platform_send(number, rest.baseAddress, rest.count, $0.baseAddress, CInt($0.count))
            }
        }
    }
}
