// SPDX-License-Identifier: Apache-2.0

/// One host that offers a service, as an SRV record says it (RFC 2782).
public struct ServiceLocation: Hashable, Sendable {
    /// Hosts with a lower number are tried first.
    public var priority: UInt16
    /// Among hosts of one priority, the share of clients that this one wants.
    public var weight: UInt16
    /// The port on that host.
    public var port: UInt16
    /// The host's name as it is spelled there, without a final dot. Empty for the root ("."), which says that the
    /// service is decidedly not offered.
    public var target: String

    /// A location.
    public init(priority: UInt16, weight: UInt16, port: UInt16, target: String) {
        self.priority = priority
        self.weight = weight
        self.port = port
        self.target = target
    }
}
