// SPDX-License-Identifier: Apache-2.0

/// The kernel's answer to "by which route would this packet go?" (`RTM_GETROUTE`).
package enum RouteAnswer: Hashable, Sendable {
    /// By this one.
    case route(Route)
    /// By none, and why.
    case refused(RouteRefusal)
}

/// Why the kernel finds no route; each is a different mistake to the user, and a different `errno`.
package enum RouteRefusal: Hashable, Sendable {
    /// No rule leads to a route, or a `throw` route ended the search (`ENETUNREACH`).
    case noRoute
    /// An `unreachable` route (`EHOSTUNREACH`).
    case unreachable
    /// A `prohibit` route or rule (`EACCES`).
    case prohibited
    /// A `blackhole` route or rule (`EINVAL`, which looks like a bug of the asker and is not).
    case blackhole
    /// The kernel has no such address family: IPv6 is compiled out or disabled (`EAFNOSUPPORT`).
    case familyUnsupported
    /// Anything else, as the kernel's error number.
    case other(code: Int32)
}

/// A route that the kernel chose for one destination.
package struct Route: Hashable, Sendable {
    /// Where the packet ends up (from `rtm_type`).
    package enum Scope: Hashable, Sendable {
        /// At another host (`RTN_UNICAST`).
        case remote
        /// On this machine (`RTN_LOCAL`).
        case local
        /// At several hosts (`RTN_BROADCAST`, `RTN_MULTICAST`, `RTN_ANYCAST`).
        case group
    }

    /// Where the packet ends up.
    package var scope: Scope
    /// The interface it leaves by (`RTA_OIF`).
    package var interfaceIndex: Int
    /// The next hop, of either family (`RTA_GATEWAY`, `RTA_VIA`); `nil` when the destination is on the link.
    package var gateway: IPAddress?
    /// The source address the kernel would fill in (`RTA_PREFSRC`).
    package var source: IPAddress?
    /// The table that held the route (`RTA_TABLE` under `RTM_F_LOOKUP_TABLE`). Zero where none did.
    package var table: UInt32

    /// Whether it stands in no table: asked for a packet that is bound to a link, IPv4 takes a destination without a
    /// route for a neighbour there (`ip_route_output_key_hash_rcu` in net/ipv4/route.c).
    package var isGuess: Bool { table == 0 && scope == .remote }

    /// A route.
    package init(
        scope: Scope = .remote, interfaceIndex: Int, gateway: IPAddress? = nil, source: IPAddress?, table: UInt32 = 254
    ) {
        self.scope = scope
        self.interfaceIndex = interfaceIndex
        self.gateway = gateway
        self.source = source
        self.table = table
    }
}
