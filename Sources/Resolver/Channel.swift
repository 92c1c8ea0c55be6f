// SPDX-License-Identifier: Apache-2.0

internal import CDialtoneAres
internal import DialtonePlatform
internal import Glibc

/// One c-ares channel, its sockets in the ``Poller`` and its time-outs in ``Timers``.
///
/// c-ares answers by calling back, sometimes before the function that asked has returned, and must not be destroyed
/// from within. So answers only go to `Resolver.receive` there; `delivery` is called when c-ares is off the stack.
@AgentQueue
final class Channel {
    /// c-ares' own set-up, once for the process.
    private static let library: CInt = ares_library_init(ARES_LIB_INIT_ALL)

    /// What came from the servers so far.
    struct Hearing: Hashable {
        /// Packets of any content.
        var packets = 0
        /// Those among them that say nothing about the name: SERVFAIL, REFUSED and other codes.
        var rejections = 0
    }

    private(set) var hearing = Hearing()
    private var channel: ares_channel?
    private var sockets: [CInt: Poller.Registration] = [:]
    private var timer: Timers.Timer?
    private let delivery: @AgentQueue () -> Void

    init(
        configurationFile: String, port: UInt16, delivery: @escaping @AgentQueue () -> Void
    ) throws(ResolutionError) {
        self.delivery = delivery
        guard Self.library == ARES_SUCCESS else { throw ResolutionError(channel: Self.library) }
        var options = ares_options()
        options.timeout = CInt(Resolver.firstTimeout.milliseconds)
        options.tries = Resolver.rounds
        options.udp_port = port
        options.tcp_port = port
        options.sock_state_cb = socketStateChanged
        // Unretained: it is used until `close()`, which the resolver calls before it lets go of the channel.
        let this = Unmanaged.passUnretained(self).toOpaque()
        options.sock_state_cb_data = this
        let mask =
            ARES_OPT_LOOKUPS | ARES_OPT_TIMEOUTMS | ARES_OPT_TRIES | ARES_OPT_UDP_PORT | ARES_OPT_TCP_PORT
            | ARES_OPT_SOCK_STATE_CB | ARES_OPT_RESOLVCONF | cares_without_cache(&options)
        // Both texts are copied before the call returns. "b" asks the servers alone: the resolver reads the hosts file.
        let status = configurationFile.withCString { path in
            "b".withCString { lookups in
                options.resolvconf_path = UnsafeMutablePointer(mutating: path)
                options.lookups = UnsafeMutablePointer(mutating: lookups)
                return ares_init_options(&channel, &options, mask)
            }
        }
        guard status == ARES_SUCCESS else { throw ResolutionError(channel: status) }
        cares_set_socket_functions(channel, socketFunctions, this)
    }

    /// Ends the channel: its sockets are closed and its questions dropped without an answer.
    func close() {
        timer?.cancel()
        timer = nil
        ares_destroy(channel)
        channel = nil
        // c-ares' own word, whatever its servers sent.
        assert(sockets.isEmpty, "c-ares ends the watch of each socket that it closes")
    }

    /// Asks the name servers: for addresses with the search domains, for anything else without.
    func ask(_ question: Query.Question) {
        let name = question.query.name
        question.hearingBefore = hearing
        // c-ares would ask for the search domain alone, and for the part before the NUL.
        guard !name.isEmpty, !name.utf8.contains(0) else {
            return receive(ARES_EBADNAME, [], for: question)
        }
        // The name of a service, or of what has rules, is complete. The final dot keeps the search domains out.
        let asked = question.query.isForAddresses || name.utf8.last == UInt8(ascii: ".") ? name : name + "."
        // Balanced by `answered`, which c-ares calls exactly once, at the latest when the channel is destroyed.
        let argument = Unmanaged.passRetained(Asked(question, self)).toOpaque()
        cares_search(channel, asked, CInt(question.type.rawValue), answered, argument)
        scheduleTimeout()
    }

    fileprivate func receive(_ status: CInt, _ message: [UInt8], for question: Query.Question) {
        let answer = Query.Answer(
            status: status, message: message, type: question.type,
            wasRejected: hearing.rejections > question.hearingBefore.rejections, now: BootClock.now())
        question.query.resolver.receive(answer, for: question)
    }

    /// A socket's watch begins, changes or (with neither) ends; c-ares closes it only after that.
    fileprivate func watch(_ descriptor: CInt, readable: Bool, writable: Bool) {
        var interest: Poller.Readiness = []
        if readable { interest.insert(.readable) }
        if writable { interest.insert(.writable) }
        if interest.isEmpty {
            sockets.removeValue(forKey: descriptor)?.cancel()
        } else if let registration = sockets[descriptor] {
            registration.update(interest)
        } else {
            // Refused at the user's limit of watches: the answer is then not heard, and c-ares' time-out speaks.
            sockets[descriptor] = try? Poller.shared.register(descriptor, interest) { [self] readiness in
                // An error is fetched by reading or writing, and c-ares does what it was woken for.
                let failed = !readiness.isDisjoint(with: [.error, .hangUp])
                process(
                    reading: failed || readiness.contains(.readable) ? descriptor : ARES_SOCKET_BAD,
                    writing: failed || readiness.contains(.writable) ? descriptor : ARES_SOCKET_BAD)
            }
        }
    }

    /// A packet came from a server. c-ares does not say so where it makes nothing of it.
    fileprivate func heard(_ packet: UnsafeRawBufferPointer, isDatagram: Bool) {
        hearing.packets += 1
        // RFC 1035, section 4.1.1: the response code is the low half of the fourth octet. A stream comes in pieces.
        guard isDatagram, packet.count >= 12 else { return }
        switch packet[3] & 0x0F {
        case 0, 3: break
        default: hearing.rejections += 1
        }
    }

    private func process(reading: CInt, writing: CInt) {
        ares_process_fd(channel, reading, writing)
        scheduleTimeout()
        delivery()
    }

    /// Arms the timer for c-ares' earliest time-out. One that is armed for an earlier moment stays: it costs one wake
    /// for nothing at most, where moving it with each answer would cost a system call each.
    private func scheduleTimeout() {
        var room = timeval()
        guard ares_timeout(channel, nil, &room) != nil else {
            timer?.cancel()
            timer = nil
            return
        }
        // c-ares rounds down to the millisecond; woken that early it would do nothing and ask for another wake.
        let deadline = BootClock.now() + .seconds(room.tv_sec) + .microseconds(room.tv_usec) + .milliseconds(1)
        if let timer, timer.deadline <= deadline { return }
        timer?.cancel()
        timer = Timers.shared.schedule(at: deadline) { [self] in
            timer = nil
            process(reading: ARES_SOCKET_BAD, writing: ARES_SOCKET_BAD)
        }
    }
}

/// A question that c-ares was given, and the channel that was asked: what `answered` is called back with.
private final class Asked: Sendable {
    let question: Query.Question
    unowned let channel: Channel

    init(_ question: Query.Question, _ channel: Channel) {
        self.question = question
        self.channel = channel
    }
}

// c-ares calls these from within the calls above, so on the agent's queue.

private func channel(_ data: UnsafeMutableRawPointer?) -> Channel? {
    data.map { Unmanaged<Channel>.fromOpaque($0).takeUnretainedValue() }
}

private func socketStateChanged(
    _ data: UnsafeMutableRawPointer?, _ descriptor: CInt, _ readable: CInt, _ writable: CInt
) {
    guard let channel = channel(data) else { return }
    AgentQueue.assumeIsolated { channel.watch(descriptor, readable: readable != 0, writable: writable != 0) }
}

private func answered(
    _ argument: UnsafeMutableRawPointer?, _ status: CInt, _ timeouts: CInt, _ message: UnsafeMutablePointer<UInt8>?,
    _ length: CInt
) {
    guard let argument else { return }
    let asked = Unmanaged<Asked>.fromOpaque(argument).takeRetainedValue()
    // The channel is being closed. Whoever closes it asks again what is still wanted.
    guard status != ARES_EDESTRUCTION else { return }
    let message = Array(UnsafeBufferPointer(start: message, count: Int(max(0, length))))
    AgentQueue.assumeIsolated { asked.channel.receive(status, message, for: asked.question) }
}

/// The sockets' functions, for the life of the process. They do what c-ares would do itself, but for three things: a
/// packet is noted (``Channel/heard(_:isDatagram:)``), a server that hangs up raises no signal, and see `sendPacket`.
// Never written after this, so there is nothing to guard.
private nonisolated(unsafe) let socketFunctions: UnsafeMutablePointer<ares_socket_functions> = {
    let functions = UnsafeMutablePointer<ares_socket_functions>.allocate(capacity: 1)
    functions.initialize(
        to: ares_socket_functions(
            asocket: openSocket, aclose: closeSocket, aconnect: connectSocket, arecvfrom: receivePacket,
            asendv: sendPacket))
    return functions
}()

private func openSocket(
    _ family: CInt, _ type: CInt, _ transport: CInt, _ data: UnsafeMutableRawPointer?
) -> ares_socket_t {
    socket(family, type | CInt(SOCK_NONBLOCK.rawValue) | CInt(SOCK_CLOEXEC.rawValue), transport)
}

private func closeSocket(_ descriptor: ares_socket_t, _ data: UnsafeMutableRawPointer?) -> CInt {
    close(descriptor)
}

private func connectSocket(
    _ descriptor: ares_socket_t, _ address: UnsafePointer<sockaddr>?, _ length: ares_socklen_t,
    _ data: UnsafeMutableRawPointer?
) -> CInt {
    connect(descriptor, address, length)
}

private func receivePacket(
    _ descriptor: ares_socket_t, _ buffer: UnsafeMutableRawPointer?, _ size: Int, _ flags: CInt,
    _ sender: UnsafeMutablePointer<sockaddr>?, _ length: UnsafeMutablePointer<ares_socklen_t>?,
    _ data: UnsafeMutableRawPointer?
) -> ares_ssize_t {
    let count = recvfrom(descriptor, buffer, size, flags, sender, length)
    guard count > 0, let channel = channel(data) else { return count }
    // c-ares' buffer, which nobody touches before this returns.
    nonisolated(unsafe) let packet = UnsafeRawBufferPointer(start: buffer, count: count)
    // c-ares asks for the sender of datagrams only: it knows whom a stream is with.
    let isDatagram = sender != nil
    AgentQueue.assumeIsolated { channel.heard(packet, isDatagram: isDatagram) }
    return count
}

private func sendPacket(
    _ descriptor: ares_socket_t, _ pieces: UnsafePointer<iovec>?, _ count: CInt, _ data: UnsafeMutableRawPointer?
) -> ares_ssize_t {
    var message = msghdr()
    message.msg_iov = UnsafeMutablePointer(mutating: pieces)
    message.msg_iovlen = Int(count)
    var sent = sendmsg(descriptor, &message, CInt(MSG_NOSIGNAL))
    // The port's refusal of a datagram before this one (ICMP), which the kernel reports to whoever calls first, and
    // only once: c-ares would move this question on and leave the other to its time-out. Sent again, both are refused
    // together, when the socket is read. On a busy machine the refusals of several datagrams come in between the calls.
    for _ in 0..<mostRefusals where sent < 0 && errno == ECONNREFUSED {
        sent = sendmsg(descriptor, &message, CInt(MSG_NOSIGNAL))
    }
    return sent
}

/// A name has two questions, and each is asked in three rounds.
private let mostRefusals = 6
