// SPDX-License-Identifier: Apache-2.0

package import DialtoneConnection
internal import DialtoneNetworkPath
package import DialtonePlatform
internal import Glibc

// What is done to a flow's socket before its first packet, and the few options that may change later.

extension FlowRequest {
    /// A socket that is set up and bound as asked, and whose connect has begun.
    ///
    /// What was asked for and cannot be had fails the dial: a flow that must carry a mark and does not would take a way
    /// that its user ruled out.
    package func connectingSocket() throws(FlowFailure) -> OwnedDescriptor {
        let descriptor = try preparedSocket()
        do throws(SystemError) {
            try bind(descriptor)
            try connect(descriptor)
        } catch {
            throw FlowFailure(error)
        }
        return descriptor
    }

    private func preparedSocket() throws(FlowFailure) -> OwnedDescriptor {
        do throws(SystemError) {
            let descriptor = try makeSocket()
            try options.apply(to: descriptor.number, of: remote.address.family)
            try options.applyIdentity(to: descriptor.number)
            return descriptor
        } catch {
            // Not sorted by number: a permission that lacks here is not a firewall that forbids.
            throw .other(code: error.code, text: error.description)
        }
    }

    private func makeSocket() throws(SystemError) -> OwnedDescriptor {
        let family = remote.address.family == .v4 ? AF_INET : AF_INET6
        let kind = CInt(SOCK_STREAM.rawValue | SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue)
        let number = socket(family, kind, CInt(IPPROTO_TCP))
        if number < 0 { throw .last("making a socket") }
        return OwnedDescriptor(number)
    }

    private func bind(_ descriptor: borrowing OwnedDescriptor) throws(SystemError) {
        if isBoundToInterface, let interfaceIndex {
            // Since Linux 5.7 a socket that is not bound yet takes no privilege (`sock_bindtoindex`).
            try descriptor.number.set(
                SOL_SOCKET, SO_BINDTOIFINDEX, CInt(clamping: interfaceIndex),
                "binding the socket to interface \(interfaceIndex)")
        }
        guard let source else { return }
        // The port is then chosen by connect, which may share one among different remotes; bind would have to find one
        // that is free for all, and a busy gateway runs out of those.
        try descriptor.number.set(IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, 1, "leaving the choice of the port to connect")
        let number = descriptor.number
        let local = SocketAddress(source, port: 0, interfaceIndex: interfaceIndex ?? 0)
        let result = local.withPointer { Glibc.bind(number, $0, $1) }
        if result != 0 { throw .last("binding the socket to \(source)") }
    }

    private func connect(_ descriptor: borrowing OwnedDescriptor) throws(SystemError) {
        let number = descriptor.number
        let peer = SocketAddress(remote.address, port: remote.port, interfaceIndex: interfaceIndex ?? 0)
        let result = peer.withPointer { Glibc.connect(number, $0, $1) }
        if result == 0 { return }
        let code = errno
        // Interrupted, a connect goes on by itself all the same (connect(2)).
        if code != EINPROGRESS, code != EINTR { throw SystemError("connecting to \(remote)", code: code) }
    }
}

extension SocketOptions {
    /// Sets what may change while a flow stands: the keepalive, the user timeout and how its packets are marked.
    func apply(to socket: CInt, of family: IPAddress.Family) throws(SystemError) {
        if let keepalive {
            let tcp = CInt(IPPROTO_TCP)
            try socket.set(tcp, TCP_KEEPIDLE, keepalive.idle.wholeSeconds, "setting the keepalive's idle time")
            try socket.set(tcp, TCP_KEEPINTVL, keepalive.interval.wholeSeconds, "setting the keepalive's interval")
            try socket.set(tcp, TCP_KEEPCNT, CInt(keepalive.count), "setting the keepalive's count")
        }
        try socket.set(SOL_SOCKET, SO_KEEPALIVE, keepalive == nil ? 0 : 1, "switching the keepalive")
        let timeout = CInt(clamping: userTimeout.milliseconds)
        try socket.set(CInt(IPPROTO_TCP), TCP_USER_TIMEOUT, timeout, "setting the user timeout")
        try applyTrafficClass(to: socket, of: family)
        for number in numbers {
            try socket.set(
                number.level, number.option, number.value, "setting the socket's \(number.name) to \(number.value)")
        }
    }

    private func applyTrafficClass(
        to socket: CInt, of family: IPAddress.Family
    ) throws(SystemError) {
        let byte = CInt(trafficClass.byte)
        switch family {
        case .v4: try socket.set(IPPROTO_IP, IP_TOS, byte, "setting the traffic class")
        case .v6: try socket.set(IPPROTO_IPV6, IPV6_TCLASS, byte, "setting the traffic class")
        }
        // After the class, from which the kernel derives a priority of its own (`rt_tos2priority`).
        try socket.set(SOL_SOCKET, SO_PRIORITY, CInt(priority), "setting the priority")
    }

    /// Sets what is fixed for a flow's life: whose its packets are, and that they leave without waiting for more.
    fileprivate func applyIdentity(to socket: CInt) throws(SystemError) {
        // Signaling is small messages that somebody waits for; Nagle's algorithm would hold the second one back.
        try socket.set(CInt(IPPROTO_TCP), TCP_NODELAY, 1, "switching Nagle's algorithm off")
        if let mark {
            try socket.set(SOL_SOCKET, SO_MARK, CInt(bitPattern: mark), "setting the firewall mark \(mark)")
        }
        // The owner of a socket's inode is the user that routing rules by uid look at (sk_uid, Linux 4.10).
        if let user, user != geteuid(), fchown(socket, user, gid_t.max) != 0 {
            throw .last("giving the socket to user \(user)")
        }
    }
}

extension CInt {
    fileprivate func set(
        _ level: CInt, _ option: CInt, _ value: CInt, _ operation: @autoclosure () -> String
    ) throws(SystemError) {
        if !setSocketOption(option, at: level, to: value) { throw .last(operation()) }
    }

    fileprivate func set(
        _ level: Int, _ option: CInt, _ value: CInt, _ operation: @autoclosure () -> String
    ) throws(SystemError) {
        try set(CInt(level), option, value, operation())
    }
}

extension Duration {
    fileprivate var wholeSeconds: CInt { CInt(clamping: components.seconds) }
}

extension FlowFailure {
    /// A kernel's error from `bind`, `connect` or a socket that broke, by what it means for the next dial.
    package init(_ error: SystemError) {
        switch error.code {
        case ECONNREFUSED: self = .refused
        case ECONNRESET, ECONNABORTED, EPIPE: self = .reset
        case ETIMEDOUT: self = .timedOut
        case EHOSTUNREACH, EHOSTDOWN: self = .hostUnreachable
        case ENETUNREACH, ENETDOWN: self = .networkUnreachable
        case EADDRNOTAVAIL: self = .addressNotAvailable
        case EACCES, EPERM: self = .forbidden
        default: self = .other(code: error.code, text: error.description)
        }
    }
}
