// SPDX-License-Identifier: Apache-2.0

// Which C module the compiler takes SOCK_STREAM from depends on which it loads first; both are named.
internal import CDialtoneLabSupport
internal import DialtonePlatform
internal import Glibc

/// A blocking TCP socket, for the ends of connections that a test plays itself.
///
/// It belongs to the namespace it was made in: make it inside of ``Namespace/run(_:)-(_)``. A handshake needs no
/// ``accept()`` at the other end, so one thread can play both ends in turn.
package final class TCPSocket: Sendable {
    /// `nil` once closed.
    private let descriptor: Lock<OwnedDescriptor?>

    /// Takes over `number` and bounds its calls, so that a test that fails does not hang: they then throw `EAGAIN`.
    private init(limiting number: CInt) throws(SystemError) {
        descriptor = Lock(OwnedDescriptor(number))
        let limit = timeval(tv_sec: Int(ChangeSignal.generousLimit.milliseconds / 1000), tv_usec: 0)
        try setOption(SOL_SOCKET, SO_RCVTIMEO, limit, "limiting how long a socket may wait")
        try setOption(SOL_SOCKET, SO_SNDTIMEO, limit, "limiting how long a socket may wait")
    }

    /// A socket that listens on every address of both families; on a free port if `port` is 0.
    package static func listening(on port: UInt16) throws -> TCPSocket {
        try withAddress("::", port, flags: AI_PASSIVE) { address, length, family in
            let socket = try TCPSocket(family: family)
            try socket.setOption(SOL_SOCKET, SO_REUSEADDR, 1, "allowing the reuse of port \(port)")
            try socket.setOption(CInt(IPPROTO_IPV6), IPV6_V6ONLY, 0, "listening on both families")
            try retryingInterrupts("binding to port \(port)") { bind(socket.number, address, length) }
            try retryingInterrupts("listening on port \(port)") { listen(socket.number, 16) }
            return socket
        }
    }

    /// A connection to `destination`, leaving from the address `source` if one is named.
    package static func connected(
        to destination: String, _ port: UInt16, from source: String? = nil
    ) throws -> TCPSocket {
        try withAddress(destination, port) { address, length, family in
            let socket = try TCPSocket(family: family)
            if let source {
                try withAddress(source, 0) { address, length, _ in
                    try retryingInterrupts("binding to \(source)") { bind(socket.number, address, length) }
                }
            }
            try retryingInterrupts("connecting to \(destination), port \(port)") {
                connect(socket.number, address, length)
            }
            return socket
        }
    }

    /// The next connection to a listening socket.
    package func accept() throws -> TCPSocket {
        try TCPSocket(limiting: retryingInterrupts("accepting a connection") { Glibc.accept(number, nil, nil) })
    }

    /// Writes all of `text`.
    package func send(_ text: String) throws {
        var bytes = Array(text.utf8)[...]
        while !bytes.isEmpty {
            let count = try retryingInterrupts("sending") {
                bytes.withUnsafeBytes { Glibc.send(number, $0.baseAddress, $0.count, CInt(MSG_NOSIGNAL)) }
            }
            bytes = bytes.dropFirst(count)
        }
    }

    /// What comes next, at most 64 KiB; empty at the end of the stream.
    package func receive() throws -> String {
        var buffer = [UInt8](repeating: 0, count: 65_536)
        let count = try retryingInterrupts("receiving") { recv(number, &buffer, buffer.count, 0) }
        return String(decoding: buffer.prefix(count), as: UTF8.self)
    }

    /// Lets the kernel give up after `limit` without an acknowledgement (`TCP_USER_TIMEOUT`, RFC 5482).
    package func setUserTimeout(_ limit: Duration) throws {
        try setOption(
            CInt(IPPROTO_TCP), TCP_USER_TIMEOUT, CInt(limit.milliseconds), "setting the user timeout")
    }

    /// Makes the end of this socket a reset instead of an end of stream (`SO_LINGER` with zero seconds).
    package func resetOnClose() throws {
        try setOption(SOL_SOCKET, SO_LINGER, linger(l_onoff: 1, l_linger: 0), "setting linger")
    }

    /// Closes the socket now; unread bytes make it a reset, as TCP has it. No other thread may be using it.
    package func close() {
        descriptor.withLock { $0 = nil }
    }

    /// This end's port.
    package func port() throws -> UInt16 {
        var address = sockaddr_storage()
        var length = socklen_t(MemoryLayout.size(ofValue: address))
        return try withUnsafeMutableBytes(of: &address) { bytes in
            try retryingInterrupts("asking for a socket's port") {
                getsockname(number, bytes.assumingMemoryBound(to: sockaddr.self).baseAddress, &length)
            }
            // `sin_port` and `sin6_port` stand at the same place, after the family.
            return UInt16(bigEndian: bytes.load(fromByteOffset: 2, as: UInt16.self))
        }
    }

    /// -1 once closed, which every call answers with `EBADF`.
    private var number: CInt { descriptor.withLock { $0?.number ?? -1 } }

    private convenience init(family: CInt) throws(SystemError) {
        let number = try retryingInterrupts("making a socket") {
            socket(family, CInt(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        }
        try self.init(limiting: number)
    }

    private func setOption<T>(_ level: CInt, _ name: CInt, _ value: T, _ operation: String) throws(SystemError) {
        let result = withUnsafeBytes(of: value) {
            setsockopt(number, level, name, $0.baseAddress, socklen_t($0.count))
        }
        if result != 0 { throw .last(operation) }
    }
}

/// Calls `body` with a numeric address in the kernel's form, and its family.
@discardableResult
private func withAddress<T>(
    _ text: String, _ port: UInt16, flags: CInt = 0,
    _ body: (UnsafePointer<sockaddr>, socklen_t, CInt) throws -> T
) throws -> T {
    var hints = addrinfo()
    hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV | flags
    hints.ai_socktype = CInt(SOCK_STREAM.rawValue)
    var result: UnsafeMutablePointer<addrinfo>?
    let code = getaddrinfo(text, String(port), &hints, &result)
    guard code == 0, let info = result?.pointee, let address = info.ai_addr else {
        throw SystemError("reading the address \(text) (\(String(cString: gai_strerror(code))))", code: EINVAL)
    }
    defer { freeaddrinfo(result) }
    return try body(address, info.ai_addrlen, info.ai_family)
}
