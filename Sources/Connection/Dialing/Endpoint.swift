// SPDX-License-Identifier: Apache-2.0

public import NetworkPath

/// An address and a port.
public struct Endpoint: Hashable, Sendable, CustomStringConvertible {
    /// The address.
    public var address: IPAddress
    /// The port, in the machine's byte order.
    public var port: UInt16

    /// An endpoint.
    public init(address: IPAddress, port: UInt16) {
        self.address = address
        self.port = port
    }

    /// `192.0.2.7:5060`, or with IPv6 `[2001:db8::7]:5060` (RFC 5952, section 6).
    public var description: String {
        address.family == .v4 ? "\(address):\(port)" : "[\(address)]:\(port)"
    }
}
