// SPDX-License-Identifier: Apache-2.0

internal import CDialtoneNetlink
internal import DialtoneNetworkPath
internal import Glibc

extension RouteEntry {
    /// The entry in an `RTM_NEWROUTE`; `nil` for anything else, and for what the kernel caches for one destination.
    init?(_ message: NetlinkMessage) {
        guard message.type == RTM_NEWROUTE, let header = message.payload(rtmsg.self),
            let family = IPAddress.Family(number: header.rtm_family), header.rtm_flags & UInt32(RTM_F_CLONED) == 0
        else { return nil }
        self.init(Kind(header.rtm_type), to: .all(family), table: UInt32(header.rtm_table))
        origin = header.rtm_protocol
        trafficClass = header.rtm_tos
        var single = NextHop(interfaceIndex: 0, flags: header.rtm_flags)
        for attribute in message.attributes(after: rtmsg.self) {
            switch attribute.type {
            case Int(RTA_DST.rawValue):
                prefix =
                    IPAddress(bytes: attribute.bytes).map { IPPrefix($0, length: Int(header.rtm_dst_len)) } ?? prefix
            case Int(RTA_SRC.rawValue):
                sourcePrefix = IPAddress(bytes: attribute.bytes).map { IPPrefix($0, length: Int(header.rtm_src_len)) }
            case Int(RTA_TABLE.rawValue): table = attribute.uint32 ?? table
            case Int(RTA_PRIORITY.rawValue): metric = attribute.uint32 ?? 0
            case Int(RTA_PREFSRC.rawValue): preferredSource = IPAddress(bytes: attribute.bytes)
            case Int(RTA_NH_ID.rawValue): nextHopObject = attribute.uint32
            case Int(RTA_OIF.rawValue): single.interfaceIndex = Int(attribute.uint32 ?? 0)
            case Int(RTA_MULTIPATH.rawValue): nextHops = NextHop.list(attribute)
            default: single.take(attribute)
            }
        }
        if nextHops.isEmpty, single.interfaceIndex != 0 { nextHops = [single] }
    }
}

extension RouteEntry.Kind {
    fileprivate init(_ type: UInt8) {
        switch Int(type) {
        case Int(RTN_UNICAST): self = .unicast
        case Int(RTN_LOCAL): self = .local
        case Int(RTN_BROADCAST), Int(RTN_MULTICAST), Int(RTN_ANYCAST): self = .group
        case Int(RTN_BLACKHOLE): self = .blackhole
        case Int(RTN_UNREACHABLE): self = .unreachable
        case Int(RTN_PROHIBIT): self = .prohibit
        case Int(RTN_THROW): self = .throw
        default: self = .other(type)
        }
    }

    /// The numbers of those that refuse.
    static let refusing = [RTN_BLACKHOLE, RTN_UNREACHABLE, RTN_PROHIBIT, RTN_THROW].map { UInt8($0) }
}

extension RouteEntry.NextHop {
    fileprivate init(interfaceIndex: Int, flags: UInt32) {
        self.init(
            interfaceIndex: interfaceIndex, isDead: flags & UInt32(RTNH_F_DEAD) != 0,
            isLinkDown: flags & UInt32(RTNH_F_LINKDOWN) != 0)
    }

    fileprivate mutating func take(_ attribute: NetlinkAttribute) {
        switch attribute.type {
        case Int(RTA_GATEWAY.rawValue): gateway = IPAddress(bytes: attribute.bytes)
        // An IPv4 route by an IPv6 next hop: two bytes of family, then the address (struct rtvia).
        case Int(RTA_VIA.rawValue): gateway = IPAddress(bytes: attribute.bytes.dropFirst(2))
        default: break
        }
    }

    /// The next hops of an `RTA_MULTIPATH`: each a `struct rtnexthop` with attributes of its own behind it, aligned to
    /// four bytes as attributes are (`RTNH_ALIGNTO`).
    fileprivate static func list(_ attribute: NetlinkAttribute) -> [Self] {
        var hops: [Self] = []
        var rest = attribute.bytes
        let size = MemoryLayout<rtnexthop>.size
        while rest.count >= size {
            let header = rest.loadUnaligned(as: rtnexthop.self)
            let length = Int(header.rtnh_len)
            guard length >= size, length <= rest.count else { break }
            var hop = Self(interfaceIndex: Int(header.rtnh_ifindex), flags: UInt32(header.rtnh_flags))
            // The kernel keeps the weight less one (rtnh_hops).
            hop.weight = Int(header.rtnh_hops) + 1
            for attribute in NetlinkAttributes(in: UnsafeRawBufferPointer(rebasing: rest[size..<length])) {
                hop.take(attribute)
            }
            hops.append(hop)
            rest = UnsafeRawBufferPointer(rebasing: rest.dropFirst((length + 3) & ~3))
        }
        return hops
    }
}

/// A next-hop object (`RTM_GETNEXTHOP`): one next hop, or a group of them.
struct NextHopObject {
    /// The next hop, unless it is a group.
    private(set) var hop: RouteEntry.NextHop?
    /// The numbers and shares of a group's members.
    private(set) var members: [(id: UInt32, weight: Int)] = []

    init?(_ message: NetlinkMessage) {
        guard message.type == RTM_NEWNEXTHOP, let header = message.payload(nhmsg.self) else { return nil }
        var single = RouteEntry.NextHop(interfaceIndex: 0, flags: header.nh_flags)
        for attribute in message.attributes(after: nhmsg.self) {
            switch attribute.type {
            case Int(NHA_OIF): single.interfaceIndex = Int(attribute.uint32 ?? 0)
            case Int(NHA_GATEWAY): single.gateway = IPAddress(bytes: attribute.bytes)
            case Int(NHA_GROUP):
                let size = MemoryLayout<nexthop_grp>.size
                members = stride(from: 0, through: attribute.bytes.count - size, by: size).map { offset in
                    let member = attribute.bytes.loadUnaligned(fromByteOffset: offset, as: nexthop_grp.self)
                    return (member.id, Int(member.weight) + 1)
                }
            default: break
            }
        }
        if members.isEmpty, single.interfaceIndex != 0 { hop = single }
    }
}
