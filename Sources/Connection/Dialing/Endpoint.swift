// SPDX-License-Identifier: Apache-2.0

package import DialtoneNetworkPath

/// An address and a port.
package struct Endpoint: Hashable, Sendable, CustomStringConvertible {
    /// The address.
    package var address: IPAddress
    /// The port, in the machine's byte order.
    package var port: UInt16

    /// An endpoint.
    package init(address: IPAddress, port: UInt16) {
        self.address = address
        self.port = port
    }

    /// `192.0.2.7:5060`, or with IPv6 `[2001:db8::7]:5060` (RFC 5952, section 6).
    package var description: String {
        address.family == .v4 ? "\(address):\(port)" : "[\(address)]:\(port)"
    }
}
