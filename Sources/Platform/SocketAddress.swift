// SPDX-License-Identifier: Apache-2.0

package import DialtoneNetworkPath
package import Glibc

/// An Internet socket address as the kernel takes and gives it.
package struct SocketAddress: Sendable {
    private var storage = sockaddr_storage()
    private var length: socklen_t

    /// An address and port.
    ///
    /// - Parameter interfaceIndex: the link that a link-local IPv6 address is on (`sin6_scope_id`); ignored by others.
    package init(_ address: IPAddress, port: UInt16, interfaceIndex: Int = 0) {
        switch address.family {
        case .v4:
            length = socklen_t(MemoryLayout<sockaddr_in>.size)
            var v4 = sockaddr_in()
            v4.sin_family = sa_family_t(AF_INET)
            v4.sin_port = port.bigEndian
            withUnsafeMutableBytes(of: &v4.sin_addr) { $0.copyBytes(from: address.bytes) }
            withUnsafeMutableBytes(of: &storage) { $0.storeBytes(of: v4, as: sockaddr_in.self) }
        case .v6:
            length = socklen_t(MemoryLayout<sockaddr_in6>.size)
            var v6 = sockaddr_in6()
            v6.sin6_family = sa_family_t(AF_INET6)
            v6.sin6_port = port.bigEndian
            withUnsafeMutableBytes(of: &v6.sin6_addr) { $0.copyBytes(from: address.bytes) }
            v6.sin6_scope_id = address.isLinkLocal ? UInt32(truncatingIfNeeded: interfaceIndex) : 0
            withUnsafeMutableBytes(of: &storage) { $0.storeBytes(of: v6, as: sockaddr_in6.self) }
        }
    }

    /// The address that a socket is bound to (`getsockname`), or `nil` when it has none of the Internet's.
    package init?(localOf descriptor: CInt) {
        self.init { getsockname(descriptor, $0, $1) }
    }

    /// The address that a socket is connected to (`getpeername`), or `nil` when it is connected to none of the
    /// Internet's.
    package init?(peerOf descriptor: CInt) {
        self.init { getpeername(descriptor, $0, $1) }
    }

    private init?(_ fill: (UnsafeMutablePointer<sockaddr>, UnsafeMutablePointer<socklen_t>) -> CInt) {
        var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
        let result = withUnsafeMutablePointer(to: &storage) { storage in
            storage.withMemoryRebound(to: sockaddr.self, capacity: 1) { fill($0, &length) }
        }
        self.length = length
        guard result == 0, address != nil else { return nil }
    }

    /// The address; `nil` for another family than the Internet's two.
    package var address: IPAddress? {
        withUnsafeBytes(of: storage) { bytes in
            switch CInt(storage.ss_family) {
            case AF_INET: IPAddress(bytes: bytes[4..<8])
            case AF_INET6: IPAddress(bytes: bytes[8..<24])
            default: nil
            }
        }
    }

    /// The port, in the machine's byte order.
    package var port: UInt16 {
        // At the same place in both families' structures.
        withUnsafeBytes(of: storage) { UInt16(bigEndian: $0.loadUnaligned(fromByteOffset: 2, as: UInt16.self)) }
    }

    /// Calls `body` with the address for a system call.
    package func withPointer<T>(_ body: (UnsafePointer<sockaddr>, socklen_t) -> T) -> T {
        withUnsafePointer(to: storage) { storage in
            storage.withMemoryRebound(to: sockaddr.self, capacity: 1) { body($0, length) }
        }
    }
}
