// SPDX-License-Identifier: Apache-2.0

internal import Glibc
internal import NetworkPath
internal import Platform
internal import Supervisor

extension Endpoint {
    /// Calls `body` with this endpoint as the kernel takes it. `scope` is the index of the interface that a link-local
    /// IPv6 address is on; other addresses have none.
    func withSocketAddress<Result>(
        scope: Int?, _ body: (UnsafePointer<sockaddr>, socklen_t) -> Result
    ) -> Result {
        func call<Address>(_ address: inout Address) -> Result {
            withUnsafePointer(to: &address) {
                $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                    body($0, socklen_t(MemoryLayout<Address>.size))
                }
            }
        }
        switch address.family {
        case .v4:
            var storage = sockaddr_in()
            storage.sin_family = sa_family_t(AF_INET)
            storage.sin_port = port.bigEndian
            withUnsafeMutableBytes(of: &storage.sin_addr) { $0.copyBytes(from: address.bytes) }
            return call(&storage)
        case .v6:
            var storage = sockaddr_in6()
            storage.sin6_family = sa_family_t(AF_INET6)
            storage.sin6_port = port.bigEndian
            withUnsafeMutableBytes(of: &storage.sin6_addr) { $0.copyBytes(from: address.bytes) }
            if address.isLinkLocal, let scope { storage.sin6_scope_id = UInt32(scope) }
            return call(&storage)
        }
    }

    /// The address that a socket is bound to.
    ///
    /// - Throws: the kernel's refusal of `getsockname`, or `EAFNOSUPPORT` for a socket that is not of the Internet.
    static func local(of descriptor: borrowing OwnedDescriptor) throws(SystemError) -> Endpoint {
        let number = descriptor.number
        var storage = sockaddr_storage()
        var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
        let result = withUnsafeMutablePointer(to: &storage) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { getsockname(number, $0, &length) }
        }
        if result != 0 { throw .last("asking for the flow's local address") }
        guard let endpoint = Endpoint(storage) else {
            throw SystemError("reading the flow's local address", code: EAFNOSUPPORT)
        }
        return endpoint
    }

    private init?(_ storage: sockaddr_storage) {
        switch CInt(storage.ss_family) {
        case AF_INET:
            let address = withUnsafeBytes(of: storage) { $0.loadUnaligned(as: sockaddr_in.self) }
            self.init(address.sin_port, withUnsafeBytes(of: address.sin_addr) { IPAddress(bytes: Array($0)) })
        case AF_INET6:
            let address = withUnsafeBytes(of: storage) { $0.loadUnaligned(as: sockaddr_in6.self) }
            self.init(address.sin6_port, withUnsafeBytes(of: address.sin6_addr) { IPAddress(bytes: Array($0)) })
        default:
            return nil
        }
    }

    private init?(_ networkOrderPort: in_port_t, _ address: IPAddress?) {
        guard let address else { return nil }
        self.init(address: address, port: UInt16(bigEndian: networkOrderPort))
    }
}
