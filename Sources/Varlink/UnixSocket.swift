// SPDX-License-Identifier: Apache-2.0

internal import CDialtonePlatform
package import DialtonePlatform
internal import Glibc

/// Unix sockets by path.
package enum UnixSocket {
    /// The most bytes of a path, its NUL not counted (`sun_path` of `unix(7)`).
    static let longestPath = MemoryLayout.size(ofValue: sockaddr_un().sun_path) - 1

    /// An unconnected socket, close-on-exec and non-blocking.
    static func make(_ kind: __socket_type = SOCK_STREAM) throws(SystemError) -> OwnedDescriptor {
        let type = CInt(kind.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue)
        return OwnedDescriptor(try retryingInterrupts("making a socket") { socket(AF_UNIX, type, 0) })
    }

    /// A connection to the service at `path`. The kernel connects Unix sockets at once or not at all.
    ///
    /// - Throws: `ENOENT` or `ECONNREFUSED` if nobody is there, `EACCES` without permission, `EAGAIN` if the service
    ///   has as many waiting clients as it allows.
    package static func connect(
        to path: String, keepingMessagesApart: Bool = false
    ) throws(SystemError) -> OwnedDescriptor {
        let socket = try make(keepingMessagesApart ? SOCK_SEQPACKET : SOCK_STREAM)
        try withAddress(of: path, "connecting to \(path)") { address, length in
            Glibc.connect(socket.number, address, length)
        }
        return socket
    }

    /// A socket that is bound to `path`, which must not exist.
    static func bind(to path: String) throws(SystemError) -> OwnedDescriptor {
        let socket = try make()
        try withAddress(of: path, "binding \(path)") { address, length in
            Glibc.bind(socket.number, address, length)
        }
        return socket
    }

    /// The path of a socket that is bound to one; `nil` for any other.
    package static func path(of number: CInt) -> String? {
        var address = sockaddr_un()
        var length = socklen_t(MemoryLayout.size(ofValue: address))
        let result = withUnsafeMutablePointer(to: &address) { address in
            address.withMemoryRebound(to: sockaddr.self, capacity: 1) { getsockname(number, $0, &length) }
        }
        guard result == 0, address.sun_family == sa_family_t(AF_UNIX) else { return nil }
        let path = withUnsafeBytes(of: address.sun_path) {
            String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self)
        }
        return path.isEmpty ? nil : path
    }

    /// The user who listens at the other end, or listened when it was connected to (`SO_PEERCRED`).
    package static func peer(of number: CInt) -> UInt32? {
        credentials(of: number)?.uid
    }

    /// The user, group and process at the other end (`SO_PEERCRED`); `nil` where the kernel does not say.
    static func credentials(of number: CInt) -> platform_credentials? {
        var credentials = platform_credentials()
        var length = socklen_t(MemoryLayout.size(ofValue: credentials))
        return getsockopt(number, SOL_SOCKET, SO_PEERCRED, &credentials, &length) == 0 ? credentials : nil
    }

    private static func withAddress(
        of path: String, _ operation: @autoclosure () -> String,
        _ body: (UnsafePointer<sockaddr>, socklen_t) -> CInt
    ) throws(SystemError) {
        let bytes = Array(path.utf8)
        guard bytes.count <= longestPath else { throw SystemError(operation(), code: ENAMETOOLONG) }
        guard !bytes.isEmpty, !bytes.contains(0) else { throw SystemError(operation(), code: EINVAL) }
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: bytes) }
        try retryingInterrupts(operation()) {
            withUnsafePointer(to: &address) { pointer in
                pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                    body($0, socklen_t(MemoryLayout<sockaddr_un>.size))
                }
            }
        }
    }
}
