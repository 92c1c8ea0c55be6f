// SPDX-License-Identifier: Apache-2.0

/// An address family, as `ip -4` and `ip -6` tell them apart.
package enum Family: String, Hashable, Sendable, CaseIterable {
    /// IPv4.
    case v4 = "-4"
    /// IPv6.
    case v6 = "-6"
}

/// One of the host's two ways to the router. The raw value is the interface's name at both ends of the cable.
///
/// Addresses are those set aside for documentation: RFC 5737 and RFC 3849.
package enum Uplink: String, Hashable, Sendable, CaseIterable {
    /// The preferred one: its default routes have the lower metric.
    case wan0
    /// The one to fall back on.
    case wan1

    /// The interface's name.
    package var name: String { rawValue }

    /// The metric of the default routes that the host is set up with.
    package var metric: Int {
        switch self {
        case .wan0: 100
        case .wan1: 200
        }
    }

    /// The host's address on it.
    package func address(_ family: Family) -> String { network(family) + "2" }

    /// The host's address on it with the length of the prefix, as `ip address add` takes it.
    package func prefix(_ family: Family) -> String { "\(address(family))/\(Self.prefixLength(family))" }

    /// The router's address on it.
    package func gateway(_ family: Family) -> String { network(family) + "1" }

    /// The router's address on it with the length of the prefix.
    func gatewayPrefix(_ family: Family) -> String { "\(gateway(family))/\(Self.prefixLength(family))" }

    /// The interface's number in the host. The router's differs on purpose: to the kernel a link whose number equals
    /// its peer's looks like hardware, and it delays hardware's second change of carrier within a second
    /// (`linkwatch_urgent_event` in net/core/link_watch.c).
    package var index: Int {
        switch self {
        case .wan0: 10
        case .wan1: 11
        }
    }

    /// The first address of its IPv6 network.
    var prefixAddress: String { network(.v6) }

    static func prefixLength(_ family: Family) -> Int {
        switch family {
        case .v4: 24
        case .v6: 64
        }
    }

    private func network(_ family: Family) -> String {
        switch (self, family) {
        case (.wan0, .v4): "192.0.2."
        case (.wan1, .v4): "198.51.100."
        case (.wan0, .v6): "2001:db8:a::"
        case (.wan1, .v6): "2001:db8:b::"
        }
    }
}
