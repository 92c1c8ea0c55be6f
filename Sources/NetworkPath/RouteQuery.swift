// SPDX-License-Identifier: Apache-2.0

/// One question to the kernel: by which route would this packet go?
///
/// A rule may select on the packet's mark, owner, protocol or port, so a query without them gets the answer for another
/// packet than the one that will be sent.
package struct RouteQuery: Hashable, Sendable {
    /// Where the packet goes.
    package var destination: IPAddress
    /// Its transport protocol.
    package var transport: Target.TransportProtocol?
    /// Its destination port. The kernel looks at it only along with ``transport``.
    package var port: UInt16?
    /// Its firewall mark.
    package var mark: UInt32?
    /// Its owner; `nil` for the calling process's user.
    package var user: UInt32?
    /// The interface it must leave by.
    package var interfaceIndex: Int?
    /// The source address it must carry.
    package var source: IPAddress?

    /// A query for a bare packet to `destination`.
    package init(_ destination: IPAddress) {
        self.destination = destination
    }

    /// The query that answers for `target` at `destination`, one of the target's addresses.
    ///
    /// - Parameter interfaceIndex: the index of the target's interface, where it names one.
    package init(_ destination: IPAddress, for target: Target, interfaceIndex: Int?) {
        self.destination = destination
        // Signaling runs over TCP; a port without a protocol would be left out of the kernel's lookup.
        transport = target.transport ?? (target.port == nil ? nil : .tcp)
        port = target.port
        mark = target.mark
        user = target.user
        self.interfaceIndex = interfaceIndex
        source = target.source
    }
}
