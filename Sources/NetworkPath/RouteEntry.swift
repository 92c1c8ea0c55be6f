// SPDX-License-Identifier: Apache-2.0

/// An entry of a routing table, as the kernel shows it in a dump or as the match of a lookup (`RTM_F_FIB_MATCH`).
package struct RouteEntry: Hashable, Sendable {
    /// What the entry does with a packet (`rtm_type`).
    package enum Kind: Hashable, Sendable {
        /// Sends it on.
        case unicast
        /// Delivers it on this machine.
        case local
        /// To several hosts.
        case group
        /// Swallows it.
        case blackhole
        /// Declares the destination unreachable.
        case unreachable
        /// Prohibits it.
        case prohibit
        /// Ends the search in its table; the next rule is tried.
        case `throw`
        /// Something else, by its number.
        case other(UInt8)

        /// Whether a packet is refused, or the search ended, without a next hop.
        package var isRefusing: Bool {
            switch self {
            case .blackhole, .unreachable, .prohibit, .throw: true
            case .unicast, .local, .group, .other: false
            }
        }
    }

    /// One way that the entry may send a packet.
    package struct NextHop: Hashable, Sendable {
        /// The interface it leaves by.
        package var interfaceIndex: Int
        /// The next router, of either family; `nil` where the destination is on the link.
        package var gateway: IPAddress?
        /// Its share among several, from 1.
        package var weight: Int
        /// Not used any more: its interface is down (`RTNH_F_DEAD`).
        package var isDead: Bool
        /// Its interface has no carrier (`RTNH_F_LINKDOWN`).
        package var isLinkDown: Bool

        /// A next hop.
        package init(
            interfaceIndex: Int, gateway: IPAddress? = nil, weight: Int = 1, isDead: Bool = false,
            isLinkDown: Bool = false
        ) {
            self.interfaceIndex = interfaceIndex
            self.gateway = gateway
            self.weight = weight
            self.isDead = isDead
            self.isLinkDown = isLinkDown
        }
    }

    /// What it does.
    package var kind: Kind
    /// What it leads to.
    package var prefix: IPPrefix
    /// The table that holds it.
    package var table: UInt32
    /// Among entries for one prefix the lowest counts (`RTA_PRIORITY`).
    package var metric: UInt32
    /// Who set it (`rtm_protocol`).
    package var origin: UInt8 = 0
    /// The traffic class that it is for (`rtm_tos`).
    package var trafficClass: UInt8 = 0
    /// The source that it is for (`RTA_SRC`; IPv6 alone has such entries).
    package var sourcePrefix: IPPrefix?
    /// The source address that packets get (`RTA_PREFSRC`).
    package var preferredSource: IPAddress?
    /// The next-hop object that it uses (`RTA_NH_ID`).
    package var nextHopObject: UInt32?
    /// Its next hops.
    package var nextHops: [NextHop]

    /// An entry.
    package init(
        _ kind: Kind = .unicast, to prefix: IPPrefix, table: UInt32 = 254, metric: UInt32 = 0,
        nextHops: [NextHop] = []
    ) {
        self.kind = kind
        self.prefix = prefix
        self.table = table
        self.metric = metric
        self.nextHops = nextHops
    }

    /// Whether the entry is for packets of `query` at all: its destination, its source, no traffic class.
    package func covers(_ query: RouteQuery) -> Bool {
        guard trafficClass == 0, prefix.contains(query.destination) else { return false }
        guard let sourcePrefix, sourcePrefix.length > 0 else { return true }
        return query.source.map(sourcePrefix.contains) ?? false
    }

    /// Whether the kernel looks at this entry before `other` in one table: the longer destination, then the longer
    /// source, then the lower metric.
    func precedes(_ other: RouteEntry) -> Bool {
        let (mine, others) = (sourcePrefix?.length ?? 0, other.sourcePrefix?.length ?? 0)
        return (other.prefix.length, others, metric) < (prefix.length, mine, other.metric)
    }

    /// Whether the kernel has nothing to prefer one of the two by.
    func ties(with other: RouteEntry) -> Bool { !precedes(other) && !other.precedes(self) }
}

/// What was found in one table for one destination.
package struct TableReading: Hashable, Sendable {
    /// The table.
    package var table: UInt32
    /// How many routes it has; the number read where it was not read to its end.
    package var count: Int
    /// Whether all of it was seen that matters for the destination. A table of a router is not read to its end.
    package var isComplete: Bool
    /// Those of its entries that cover the destination.
    package var entries: [RouteEntry]

    /// A reading.
    package init(table: UInt32, count: Int, isComplete: Bool = true, entries: [RouteEntry] = []) {
        self.table = table
        self.count = count
        self.isComplete = isComplete
        self.entries = entries
    }
}
