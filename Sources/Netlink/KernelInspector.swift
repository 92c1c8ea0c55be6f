// SPDX-License-Identifier: Apache-2.0

internal import CDialtoneNetlink
package import DialtoneNetworkPath
package import DialtonePlatform
internal import Glibc

/// Asks the kernel what explains a path: rules, the entries of its tables, links with what they stand on, neighbours.
///
/// For a question that a person asks, not for every event: some of it is read by dumps. Each is narrow (one family, one
/// table, strictly checked) and bounded. A socket of its own, since the dump of a router's table is given up on its
/// way, after which the kernel refuses further dumps on the socket.
///
/// It belongs to the network namespace of the threads that call it. Not to be used from two at a time.
package final class KernelInspector {
    /// How many routes of one table are read before it is given up: a few milliseconds' worth, in which the agent does
    /// nothing else. The tables of machines that are not routers have some tens.
    package static let mostRoutes = 4096

    private var socket: NetlinkSocket

    /// Opens the socket.
    ///
    /// - Throws: the kernel's refusal; `EPERM`, `EACCES` or `EAFNOSUPPORT` in a sandbox without netlink.
    package init() throws(SystemError) {
        socket = try NetlinkSocket()
    }

    /// The links and addresses as they are, with what the links stand on.
    package func links() throws(SystemError) -> LinkStack {
        var details: [Int: LinkDetail] = [:]
        var kinds = InterfaceKinds()
        let dump = KernelDump(on: socket) { message in
            if let (index, detail) = LinkDetail.read(message) { details[index] = detail }
        }
        let snapshot = try dump.read(kinds: &kinds)
        return LinkStack(snapshot, details: details)
    }

    /// The kernel's answers to `queries`, in their order.
    package func answers(to queries: [RouteQuery]) throws(SystemError) -> [RouteAnswer] {
        try RouteLookup(on: socket).answers(to: queries.map { PreparedQuery($0) })
    }

    /// The entry that a lookup of `query` matches; `nil` where it matches none, or one that refuses: the kernel then
    /// answers with the error alone.
    package func entry(matching query: RouteQuery) throws(SystemError) -> RouteEntry? {
        try complete(try socket.ask(NetlinkRequest(query, entry: true)) { RouteEntry($0) })
    }

    /// The policy rules of a family in the order in which they are tried. A kernel that is built without them has the
    /// three that every other one starts with.
    package func rules(_ family: IPAddress.Family) throws(SystemError) -> [PolicyRule] {
        var header = fib_rule_hdr()
        header.family = family.number
        let request = NetlinkRequest(type: RTM_GETRULE, flags: NLM_F_REQUEST | NLM_F_DUMP, header: header)
        var rules: [PolicyRule] = []
        do throws(SystemError) {
            _ = try socket.dump(request, "reading the kernel's policy rules") { message in
                if let rule = PolicyRule(message) { rules.append(rule) }
                return true
            }
        } catch {
            guard [EOPNOTSUPP, EAFNOSUPPORT].contains(error.code) else { throw error }
            return [
                PolicyRule(family, priority: 0, .table(UInt32(RT_TABLE_LOCAL.rawValue))),
                PolicyRule(family, priority: 32_766, .table(UInt32(RT_TABLE_MAIN.rawValue))),
            ]
        }
        return rules
    }

    /// What a table has for any of `destinations`, which are of one family.
    ///
    /// Of a table with more routes than `limit` only those that refuse are looked for (the kernel picks them out), and
    /// the reading is not complete: its other entries are not known.
    package func reading(
        of table: UInt32, covering destinations: [IPAddress], limit: Int = mostRoutes
    ) throws(SystemError) -> TableReading {
        var reading = TableReading(table: table, count: 0)
        guard let family = destinations.first?.family else { return reading }
        try add(to: &reading, family, type: 0, destinations, limit: limit)
        guard !reading.isComplete else { return reading }
        reading.entries = []
        for type in RouteEntry.Kind.refusing {
            var refusing = TableReading(table: table, count: 0)
            try add(to: &refusing, family, type: type, destinations, limit: Self.mostRoutes)
            reading.entries += refusing.entries
        }
        return reading
    }

    private func add(
        to reading: inout TableReading, _ family: IPAddress.Family, type: UInt8, _ destinations: [IPAddress], limit: Int
    ) throws(SystemError) {
        var header = rtmsg()
        header.rtm_family = family.number
        header.rtm_type = type
        let table = reading.table
        let request = NetlinkRequest(type: RTM_GETROUTE, flags: NLM_F_REQUEST | NLM_F_DUMP, header: header) {
            nla_put_u32($0, CInt(RTA_TABLE.rawValue), table)
        }
        var (count, entries): (Int, [RouteEntry]) = (0, [])
        do throws(SystemError) {
            let end = try socket.dump(request, "reading routing table \(table)") { message in
                guard let entry = RouteEntry(message) else { return true }
                // A kernel before 4.20 does not pick.
                guard entry.table == table, type == 0 || entry.kind.isRefusing else { return true }
                count += 1
                if destinations.contains(where: entry.prefix.contains) { entries.append(entry) }
                return count < limit
            }
            if end == .abandoned {
                reading.isComplete = false
                socket = try NetlinkSocket()
            }
        } catch {
            // There is no such table: it is made with its first route.
            guard error.code == ENOENT else { throw error }
        }
        reading.count = count
        for entry in entries { if let entry = try complete(entry) { reading.entries.append(entry) } }
    }

    /// The entry of a gateway or of a host on a link; `nil` where the kernel has none.
    package func neighbour(_ neighbour: NetworkSnapshot.Neighbour) throws(SystemError) -> NeighbourEntry? {
        try socket.ask(NetlinkRequest(neighbour)) { NeighbourEntry($0) }
    }

    /// Whether routes by an interface without a carrier are passed over (`ignore_routes_with_linkdown`).
    package func ignoresLinkDown(_ index: Int, _ family: IPAddress.Family) throws(SystemError) -> Bool {
        try socket.setting(NETCONFA_IGNORE_ROUTES_WITH_LINKDOWN, ofInterface: CInt(truncatingIfNeeded: index), family)
    }

    /// Whether the machine forwards packets of this family for others.
    package func forwards(_ family: IPAddress.Family) throws(SystemError) -> Bool {
        try socket.forwards(family)
    }

    /// Fills in the next hops of an entry that names a next-hop object alone (`nexthop_compat_mode` is off).
    private func complete(_ entry: RouteEntry?) throws(SystemError) -> RouteEntry? {
        guard var entry, let object = entry.nextHopObject, entry.nextHops.isEmpty, !entry.kind.isRefusing else {
            return entry
        }
        entry.nextHops = try nextHops(of: object)
        return entry
    }

    private func nextHops(of object: UInt32) throws(SystemError) -> [RouteEntry.NextHop] {
        guard let found = try nextHopObject(object) else { return [] }
        var hops = [found.hop].compactMap { $0 }
        // A group has no groups in it (`nh_check_attr_group` in net/ipv4/nexthop.c).
        for member in found.members {
            guard var hop = try nextHopObject(member.id)?.hop else { continue }
            hop.weight = member.weight
            hops.append(hop)
        }
        return hops
    }

    private func nextHopObject(_ id: UInt32) throws(SystemError) -> NextHopObject? {
        let request = NetlinkRequest(type: RTM_GETNEXTHOP, flags: NLM_F_REQUEST, header: nhmsg()) {
            nla_put_u32($0, CInt(NHA_ID), id)
        }
        return try socket.ask(request) { NextHopObject($0) }
    }
}
