// SPDX-License-Identifier: Apache-2.0

internal import Platform
internal import Supervisor

extension Endpoint {
    /// The address that a socket is bound to.
    ///
    /// - Throws: the kernel's refusal of `getsockname`.
    static func local(of descriptor: borrowing OwnedDescriptor) throws(SystemError) -> Endpoint {
        guard let bound = SocketAddress(localOf: descriptor.number), let address = bound.address else {
            throw .last("asking for the flow's local address")
        }
        return Endpoint(address: address, port: bound.port)
    }
}
