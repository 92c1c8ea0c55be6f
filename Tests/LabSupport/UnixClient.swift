// SPDX-License-Identifier: Apache-2.0

// Which C module the compiler takes SOCK_STREAM from depends on which it loads first; both are named.
internal import CDialtoneLabSupport
package import DialtonePlatform
internal import Glibc

/// A Unix socket that a test works byte by byte, for what no well-behaved client does.
///
/// Its calls block: make them inside of ``Namespace/run(_:)``. They are bounded, so that a test that fails ends.
package final class UnixClient: Sendable {
    private let descriptor: OwnedDescriptor

    private init(_ kind: __socket_type) throws(SystemError) {
        let kind = CInt(kind.rawValue | SOCK_CLOEXEC.rawValue)
        let number = try retryingInterrupts("making a socket") { socket(AF_UNIX, kind, 0) }
        descriptor = OwnedDescriptor(number)
        let limit = timeval(tv_sec: Int(ChangeSignal.generousLimit.milliseconds / 1000), tv_usec: 0)
        for option in [SO_RCVTIMEO, SO_SNDTIMEO] {
            let result = withUnsafeBytes(of: limit) {
                setsockopt(number, SOL_SOCKET, option, $0.baseAddress, socklen_t($0.count))
            }
            if result != 0 { throw .last("limiting how long a socket may wait") }
        }
    }

    /// A connection to the service that listens on `path`.
    ///
    /// - Parameter user: whose process the service takes this for; only root can be another. `nil`: this one's.
    package static func connected(to path: String, as user: UInt32? = nil) throws(SystemError) -> UnixClient {
        let client = try UnixClient(SOCK_STREAM)
        let number = client.descriptor.number
        try client.withAddress(path) { address, length throws(SystemError) in
            try retryingInterrupts("connecting to \(path)") { () -> CInt in
                guard let user else { return connect(number, address, length) }
                return clab_connect_as(user, number, address, length)
            }
        }
        return client
    }

    /// A datagram socket at `path`, as a service manager has one for notices (`$NOTIFY_SOCKET`).
    package static func receiving(at path: String) throws(SystemError) -> UnixClient {
        let client = try UnixClient(SOCK_DGRAM)
        try client.withAddress(path) { address, length throws(SystemError) in
            try retryingInterrupts("binding \(path)") { bind(client.descriptor.number, address, length) }
        }
        return client
    }

    /// Writes `text`; a `NUL` is written as it stands.
    ///
    /// - Throws: `EPIPE` when the other end is gone.
    package func send(_ text: String) throws(SystemError) {
        try send(Array(text.utf8))
    }

    /// Writes bytes.
    package func send(_ bytes: [UInt8]) throws(SystemError) {
        var rest = bytes[...]
        while !rest.isEmpty {
            let count = try retryingInterrupts("sending") {
                rest.withUnsafeBytes { Glibc.send(descriptor.number, $0.baseAddress, $0.count, CInt(MSG_NOSIGNAL)) }
            }
            rest = rest.dropFirst(count)
        }
    }

    /// Its number, for what this type has no call for. It is this object's to close.
    package var number: CInt { descriptor.number }

    /// Sends nothing more, and goes on reading.
    package func endSending() { shutdown(descriptor.number, CInt(SHUT_WR)) }

    /// The next datagram, or of a stream what there is, at most 64 KiB; empty at the end of the stream, and where the
    /// other end broke it off.
    package func receive() throws(SystemError) -> [UInt8] {
        var buffer = [UInt8](repeating: 0, count: 65_536)
        do throws(SystemError) {
            let count = try retryingInterrupts("receiving") { recv(descriptor.number, &buffer, buffer.count, 0) }
            return Array(buffer.prefix(count))
        } catch {
            if error.code == ECONNRESET { return [] }
            throw error
        }
    }

    /// The next datagram, if there is one.
    package func pending() throws(SystemError) -> [UInt8]? {
        var buffer = [UInt8](repeating: 0, count: 65_536)
        let count = recv(descriptor.number, &buffer, buffer.count, CInt(MSG_DONTWAIT))
        if count < 0, errno == EAGAIN { return nil }
        if count < 0 { throw .last("receiving") }
        return Array(buffer.prefix(count))
    }

    /// Everything up to the end of the stream.
    package func receiveAll() throws(SystemError) -> [UInt8] {
        var bytes: [UInt8] = []
        while true {
            let more = try receive()
            if more.isEmpty { return bytes }
            bytes += more
        }
    }

    private func withAddress(
        _ path: String, _ body: (UnsafePointer<sockaddr>, socklen_t) throws(SystemError) -> Void
    ) throws(SystemError) {
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        let bytes = Array(path.utf8)
        guard bytes.count < MemoryLayout.size(ofValue: address.sun_path) else {
            throw SystemError("using the path \(path)", code: ENAMETOOLONG)
        }
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: bytes) }
        let length = socklen_t(MemoryLayout<sockaddr_un>.size)
        try withUnsafePointer(to: &address) { pointer throws(SystemError) in
            try pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address throws(SystemError) in
                try body(address, length)
            }
        }
    }
}
