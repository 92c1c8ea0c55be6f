// SPDX-License-Identifier: Apache-2.0

/// One host that offers a service, as an SRV record says it (RFC 2782).
package struct ServiceLocation: Hashable, Sendable {
    /// Hosts with a lower number are tried first.
    package var priority: UInt16
    /// Among hosts of one priority, the share of clients that this one wants.
    package var weight: UInt16
    /// The port on that host.
    package var port: UInt16
    /// The host's name as it is spelled there, without a final dot. Empty for the root ("."), which says that the
    /// service is decidedly not offered.
    package var target: String
}
