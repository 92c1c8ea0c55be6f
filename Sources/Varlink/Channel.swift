// SPDX-License-Identifier: Apache-2.0

internal import CPlatform
internal import DequeModule
internal import Glibc
internal import Platform

/// A connected Unix socket as messages: what both ends of a Varlink connection have in common.
///
/// A message is written at once, and only what the socket has no room for waits for it. Nothing is read that nobody
/// asked for: the owner turns ``wantsInput`` off while it is busy, and the peer's bytes stay in the peer's account.
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

    private var descriptor: OwnedDescriptor?
    private var registration: Poller.Registration?
    private var framer: VarlinkFramer
    private var output: Deque<VarlinkMessage> = []
    /// How much of the first message of `output` is written.
    private var written = 0
    private var inputEnded = false
    private let handler: @AgentQueue (Poller.Readiness) -> Void

    /// Takes over a connected socket; `handler` gets its readiness once ``resume()`` was called.
    init(
        _ descriptor: consuming OwnedDescriptor, messageLimit: Int,
        handler: @escaping @AgentQueue (Poller.Readiness) -> Void
    ) {
        self.descriptor = consume descriptor
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
        framer = VarlinkFramer(limit: framer.limit)
        descriptor = nil
    }

    /// The next message that is complete.
    func next() throws(Ending) -> [UInt8]? {
        do { return try framer.next() } catch { throw .violated(error) }
    }

    /// Reads what has come, one chunk of it.
    func receive() throws(Ending) -> Input {
        guard let number = descriptor?.number, !inputEnded else { return .end }
        var vector = iovec(iov_base: Self.chunk.baseAddress, iov_len: Self.chunk.count)
        var header = msghdr()
        let count = withUnsafeMutablePointer(to: &vector) { vector in
            header.msg_iov = vector
            header.msg_iovlen = 1
            header.msg_control = Self.control.baseAddress
            header.msg_controllen = Self.control.count
            return recvmsg(number, &header, CInt(MSG_CMSG_CLOEXEC) | CInt(MSG_DONTWAIT))
        }
        guard count >= 0 else { return try Self.outcome(ofRead: errno) }
        closeReceivedDescriptors(&header)
        if header.msg_flags & CInt(MSG_CTRUNC) != 0 { throw .violated(.descriptorsTruncated) }
        guard count > 0 else {
            inputEnded = true
            updateInterest()
            return .end
        }
        framer.append(UnsafeRawBufferPointer(rebasing: Self.chunk[..<count]))
        return .bytes
    }

    private static func outcome(ofRead code: CInt) throws(Ending) -> Input {
        switch code {
        case EAGAIN, EINTR: return .nothing
        case ECONNRESET, EPIPE: throw .hungUp
        default: throw .failed(SystemError("reading from a Varlink connection", code: code))
        }
    }

    /// No method takes descriptors yet. One that came nevertheless is closed before anything else happens, or a client
    /// could fill the process's table with them.
    private func closeReceivedDescriptors(_ header: inout msghdr) {
        guard header.msg_controllen > 0 else { return }
        withUnsafeTemporaryAllocation(of: CInt.self, capacity: Int(platform_descriptors_max)) { numbers in
            let count = platform_received_descriptors(&header, numbers.baseAddress)
            for number in numbers.prefix(Int(count)) { OwnedDescriptor(number).close() }
        }
    }

    /// Sends `message`, after those before it: as much as the socket takes now, the rest as it has room.
    func send(_ message: VarlinkMessage) throws(Ending) {
        output.append(message)
        if output.count == 1 { try flush() }
    }

    /// Writes what the socket has room for.
    func flush() throws(Ending) {
        guard let number = descriptor?.number else { return }
        defer { updateInterest() }
        while let message = output.first {
            let count = message.bytes.withUnsafeBytes { bytes in
                // Descriptors will ride on the first byte of their message: this becomes a sendmsg with SCM_RIGHTS.
                Glibc.send(
                    number, bytes.baseAddress.map { $0 + written }, bytes.count - written,
                    CInt(MSG_NOSIGNAL) | CInt(MSG_DONTWAIT))
            }
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
            if written == message.bytes.count {
                output.removeFirst()
                written = 0
            }
        }
    }
}
