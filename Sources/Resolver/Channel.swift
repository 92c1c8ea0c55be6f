// SPDX-License-Identifier: Apache-2.0

internal import CAres
internal import Glibc
internal import NetworkPath
internal import Platform

/// One c-ares channel, its sockets in the ``Poller`` and its time-outs in ``Timers``.
///
/// c-ares answers by calling back, sometimes before the function that asked has returned, and must not be destroyed
/// from within. So answers only go to `Resolver.receive` there; `delivery` is called when c-ares is off the stack.
@AgentQueue
final class Channel {
    /// c-ares' own set-up, once for the process.
    private static let library: CInt = ares_library_init(ARES_LIB_INIT_ALL)

    private var channel: ares_channel?
    private var sockets: [CInt: Poller.Registration] = [:]
    private var timer: Timers.Timer?
    private let delivery: @AgentQueue () -> Void

    init(
        configurationFile: String, port: UInt16, delivery: @escaping @AgentQueue () -> Void
    ) throws(ResolutionError) {
        self.delivery = delivery
        guard Self.library == ARES_SUCCESS else { throw .init(status: Self.library) }
        var options = ares_options()
        options.timeout = CInt(Resolver.firstTimeout.milliseconds)
        options.tries = Resolver.rounds
        options.udp_port = port
        options.tcp_port = port
        options.sock_state_cb = socketStateChanged
        // Unretained: it is used until `close()`, which the resolver calls before it lets go of the channel.
        options.sock_state_cb_data = Unmanaged.passUnretained(self).toOpaque()
        let mask =
            ARES_OPT_LOOKUPS | ARES_OPT_TIMEOUTMS | ARES_OPT_TRIES | ARES_OPT_UDP_PORT | ARES_OPT_TCP_PORT
            | ARES_OPT_SOCK_STATE_CB
            | ARES_OPT_RESOLVCONF
        // Both texts are copied before the call returns. "b" asks the servers alone: see `hostsFileEntry(_:)`.
        let status = configurationFile.withCString { path in
            "b".withCString { lookups in
                options.resolvconf_path = UnsafeMutablePointer(mutating: path)
                options.lookups = UnsafeMutablePointer(mutating: lookups)
                return ares_init_options(&channel, &options, mask)
            }
        }
        guard status == ARES_SUCCESS else { throw .init(status: status) }
    }

    /// Ends the channel: its sockets are closed and its questions dropped without an answer.
    func close() {
        timer?.cancel()
        timer = nil
        ares_destroy(channel)
        channel = nil
        assert(sockets.isEmpty, "c-ares ends the watch of each socket that it closes")
    }

    /// What the hosts file has for a name, by family; `nil` if the name does not stand in it at all.
    func hostsFileEntry(_ name: String) -> [IPAddress.Family: [IPAddress]]? {
        var entry: [IPAddress.Family: [IPAddress]] = [:]
        for family in [IPAddress.Family.v4, .v6] { entry[family] = hostsFileAddresses(name, family) }
        if !entry.isEmpty { return entry }
        // RFC 6761, section 6.3: this name is the loopback's, in a hosts file or not, and no server is asked for it.
        return name.lowercased() == "localhost" ? [.v4: [IPAddress(v4: 0x7F00_0001)], .v6: [IPAddress(v6: 1)]] : nil
    }

    /// Asks the name servers.
    func ask(_ question: Query.Question) {
        // c-ares would ask for the search domain alone, and for the part before the NUL.
        guard !question.query.name.isEmpty, !question.query.name.utf8.contains(0) else {
            question.query.resolver.receive(.init(status: ARES_EBADNAME, nil), for: question)
            return
        }
        var hints = ares_addrinfo_hints()
        hints.ai_family = question.family.number
        // Sorting by RFC 6724 inside c-ares would open and connect a socket for each address; see `Resolution`.
        hints.ai_flags = ARES_AI_NOSORT
        // Balanced by `answered`, which c-ares calls exactly once, at the latest when the channel is destroyed.
        let argument = Unmanaged.passRetained(question).toOpaque()
        ares_getaddrinfo(channel, question.query.name, nil, &hints, answered, argument)
        scheduleTimeout()
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

    /// c-ares reads the file anew at each call, as getaddrinfo(3) does: local, small, and six microseconds.
    private func hostsFileAddresses(_ name: String, _ family: IPAddress.Family) -> [IPAddress]? {
        var entry: UnsafeMutablePointer<hostent>?
        guard ares_gethostbyname_file(channel, name, family.number, &entry) == ARES_SUCCESS, let entry else {
            return nil
        }
        defer { ares_free_hostent(entry) }
        var addresses: [IPAddress] = []
        var next = entry.pointee.h_addr_list
        while let address = next?.pointee {
            let bytes = UnsafeRawBufferPointer(start: address, count: family.bitWidth / 8)
            IPAddress(bytes: bytes).map { addresses.append($0) }
            next = next?.successor()
        }
        return addresses.isEmpty ? nil : addresses
    }
}

extension IPAddress.Family {
    fileprivate var number: CInt { self == .v4 ? AF_INET : AF_INET6 }
}

// c-ares calls these from within the calls above, so on the agent's queue.

private func socketStateChanged(
    _ data: UnsafeMutableRawPointer?, _ descriptor: CInt, _ readable: CInt, _ writable: CInt
) {
    guard let data else { return }
    let channel = Unmanaged<Channel>.fromOpaque(data).takeUnretainedValue()
    AgentQueue.assumeIsolated { channel.watch(descriptor, readable: readable != 0, writable: writable != 0) }
}

private func answered(
    _ argument: UnsafeMutableRawPointer?, _ status: CInt, _ timeouts: CInt,
    _ answer: UnsafeMutablePointer<ares_addrinfo>?
) {
    guard let argument else { return }
    let question = Unmanaged<Query.Question>.fromOpaque(argument).takeRetainedValue()
    let result = Query.Answer(status: status, answer)
    ares_freeaddrinfo(answer)
    // The channel is being closed. Whoever closes it asks again what is still wanted.
    guard status != ARES_EDESTRUCTION else { return }
    AgentQueue.assumeIsolated { question.query.resolver.receive(result, for: question) }
}
