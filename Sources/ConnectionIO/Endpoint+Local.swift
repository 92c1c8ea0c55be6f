// SPDX-License-Identifier: Apache-2.0

internal import DialtoneConnection
internal import DialtoneNetworkPath
internal import DialtonePlatform
internal import Glibc

extension Endpoint {
    /// The address that a socket is bound to.
    ///
    /// - Throws: the kernel's refusal of `getsockname`.
    static func local(of descriptor: borrowing OwnedDescriptor) throws(SystemError) -> Endpoint {
        guard let bound = SocketAddress(localOf: descriptor.number), let address = bound.address else {
            throw .last("asking for the socket's local address")
        }
        return Endpoint(address: address, port: bound.port)
    }

    /// Whether the address is gone from this machine: the kernel binds nothing to it. `false` where that cannot be
    /// told, as of a link-local address without its link.
    var isAddressGone: Bool {
        guard !address.isLinkLocal else { return false }
        let family = address.family == .v4 ? AF_INET : AF_INET6
        let number = socket(family, CInt(SOCK_DGRAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        guard number >= 0 else { return false }
        let probe = OwnedDescriptor(number)
        let result = SocketAddress(address, port: 0).withPointer { bind(probe.number, $0, $1) }
        return result != 0 && errno == EADDRNOTAVAIL
    }
}
