// SPDX-License-Identifier: Apache-2.0

/// A policy rule (`RTM_GETRULE`): which packets it selects, and what becomes of them.
package struct PolicyRule: Hashable, Sendable {
    /// What becomes of a selected packet (`fib_rule_hdr.action`).
    package enum Action: Hashable, Sendable {
        /// It is looked up in this table; where that has no route, the next rule is tried.
        case table(UInt32)
        /// The rule of this priority is tried next.
        case goto(UInt32)
        /// Nothing: the next rule is tried.
        case nop
        /// It is swallowed.
        case blackhole
        /// It is declared unreachable.
        case unreachable
        /// It is prohibited.
        case prohibit
        /// Something that this kernel knows and this program does not.
        case other(UInt8)
    }

    /// A range of ports, or with a mask the ports that agree with its lower bound in the mask's bits.
    package struct Ports: Hashable, Sendable {
        /// The range (`struct fib_rule_port_range`).
        package var range: ClosedRange<UInt16>
        /// `FRA_DPORT_MASK`, where there is one.
        package var mask: UInt16?

        /// Ports.
        package init(_ range: ClosedRange<UInt16>, mask: UInt16? = nil) {
            self.range = range
            self.mask = mask
        }

        /// Whether `port` is one of them (`fib_rule_port_match` in include/net/fib_rules.h).
        func contains(_ port: UInt16) -> Bool {
            mask.map { (port ^ range.lowerBound) & $0 == 0 } ?? range.contains(port)
        }
    }

    /// Whose packets it is for.
    package var family: IPAddress.Family
    /// Rules are tried in ascending order of it (`FRA_PRIORITY`).
    package var priority: UInt32
    /// What becomes of the packets that it selects.
    package var action: Action
    /// Whether it selects the packets that do not fit (`FIB_RULE_INVERT`).
    package var isInverted = false
    /// The source (`FRA_SRC`).
    package var source: IPPrefix?
    /// The destination (`FRA_DST`).
    package var destination: IPPrefix?
    /// The interface that it came in by; `lo` for this machine's own packets (`FRA_IIFNAME`).
    package var inbound: String?
    /// The interface that the sender bound it to (`FRA_OIFNAME`).
    package var outbound: String?
    /// The firewall mark, in the bits of ``markMask`` (`FRA_FWMARK`).
    package var mark: UInt32 = 0
    /// `FRA_FWMASK`.
    package var markMask: UInt32 = 0
    /// The sender's user (`FRA_UID_RANGE`).
    package var users: ClosedRange<UInt32>?
    /// The transport protocol's number (`FRA_IP_PROTO`).
    package var transport: UInt8?
    /// The source port (`FRA_SPORT_RANGE`).
    package var sourcePorts: Ports?
    /// The destination port (`FRA_DPORT_RANGE`).
    package var destinationPorts: Ports?
    /// The traffic class (`fib_rule_hdr.tos`, `FRA_DSCP`).
    package var trafficClass: UInt8 = 0
    /// The tunnel that it came out of (`FRA_TUN_ID`).
    package var tunnel: UInt64 = 0
    /// Whether it selects the packets of a VRF, and looks them up in that VRF's table (`FRA_L3MDEV`).
    package var isForVRF = false
    /// A route of this prefix length or shorter, found by this rule, does not count (`FRA_SUPPRESS_PREFIXLEN`).
    package var suppressedLength: Int?
    /// A route by an interface of this group, found by this rule, does not count (`FRA_SUPPRESS_IFGROUP`).
    package var suppressedGroup: UInt32?

    /// A rule; by default it selects every packet of its family.
    package init(_ family: IPAddress.Family, priority: UInt32, _ action: Action) {
        self.family = family
        self.priority = priority
        self.action = action
    }
}

/// A packet of this machine as policy rules see it: a route query, with what the kernel fills in.
package struct RulePacket: Hashable, Sendable {
    /// What was asked.
    package var query: RouteQuery
    /// The sender's user.
    package var user: UInt32
    /// The name of the interface that the sender bound it to.
    package var outbound: String?
    /// The table of the VRF that the interface is part of.
    package var tableOfVRF: UInt32?

    /// Its transport protocol. An IPv4 lookup that names none is for UDP (`inet_rtm_getroute` in net/ipv4/route.c), an
    /// IPv6 lookup for none.
    var transport: UInt8 {
        query.transport?.number ?? (query.destination.family == .v4 ? Target.TransportProtocol.udp.number : 0)
    }

    /// A packet.
    package init(_ query: RouteQuery, user: UInt32, outbound: String? = nil, tableOfVRF: UInt32? = nil) {
        self.query = query
        self.user = query.user ?? user
        self.outbound = outbound
        self.tableOfVRF = tableOfVRF
    }
}

extension PolicyRule {
    /// Whether the rule selects `packet`, by the kernel's own conditions (`fib_rule_match` in net/core/fib_rules.c,
    /// `fib4_rule_match` and `fib6_rule_match`).
    package func selects(_ packet: RulePacket) -> Bool {
        family == packet.query.destination.family && fits(packet) != isInverted
    }

    private func fits(_ packet: RulePacket) -> Bool {
        let query = packet.query
        // What this machine sends itself counts as having come in by the loopback interface.
        if let inbound, inbound != "lo" { return false }
        if let outbound, outbound != packet.outbound { return false }
        if ((query.mark ?? 0) ^ mark) & markMask != 0 { return false }
        // A lookup has no traffic class and comes out of no tunnel.
        if tunnel != 0 || trafficClass != 0 { return false }
        if isForVRF, packet.tableOfVRF == nil { return false }
        if let users, !users.contains(packet.user) { return false }
        if let transport, transport != packet.transport { return false }
        if let sourcePorts, !sourcePorts.contains(0) { return false }
        if let destinationPorts, !destinationPorts.contains(query.port ?? 0) { return false }
        if let destination, !destination.contains(query.destination) { return false }
        return fitsSource(of: query)
    }

    /// A packet whose source is not chosen yet has 0.0.0.0 to an IPv4 rule, and fits no IPv6 rule for a source at all.
    private func fitsSource(of query: RouteQuery) -> Bool {
        guard let source, source.length > 0 else { return true }
        switch family {
        case .v4: return source.contains(query.source ?? IPAddress(v4: 0))
        case .v6: return query.source.map(source.contains) ?? false
        }
    }
}

extension Target.TransportProtocol {
    /// Its number in the Internet header (https://www.iana.org/assignments/protocol-numbers).
    package var number: UInt8 {
        switch self {
        case .tcp: 6
        case .udp: 17
        }
    }
}
