// SPDX-License-Identifier: Apache-2.0

internal import CDialtoneNetlink
internal import DialtoneNetworkPath

extension KernelEvent {
    /// What `message` says; `nil` for messages that say nothing about reachability.
    ///
    /// - Parameter kinds: finds out what kind of network a link leads to.
    init?(_ message: NetlinkMessage, kinds: inout InterfaceKinds) {
        switch message.type {
        case RTM_NEWLINK, RTM_DELLINK: self.init(link: message, kinds: &kinds)
        case RTM_NEWADDR, RTM_DELADDR: self.init(address: message)
        case RTM_NEWROUTE, RTM_DELROUTE: self.init(route: message)
        case RTM_NEWRULE, RTM_DELRULE: self = .ruleChanged
        case RTM_NEWNEXTHOP, RTM_DELNEXTHOP: self = .nextHopChanged
        case RTM_NEWNETCONF: self.init(configuration: message)
        case RTM_NEWNEIGH, RTM_DELNEIGH: self.init(neighbour: message)
        default: return nil
        }
    }

    private init?(link message: NetlinkMessage, kinds: inout InterfaceKinds) {
        guard let link = message.payload(ifinfomsg.self) else { return nil }
        // The bridge code speaks of its ports in the same message type; a port's departure is not its interface's.
        guard CInt(link.ifi_family) == AF_UNSPEC else { return nil }
        let index = Int(link.ifi_index)
        if message.type == RTM_DELLINK {
            kinds.forget(index)
            self = .interfaceRemoved(index: index)
            return
        }
        var name = ""
        var driver: String?
        var group: UInt32?
        for attribute in message.attributes(after: ifinfomsg.self) {
            switch attribute.type {
            case Int(IFLA_IFNAME): name = attribute.string
            case Int(IFLA_GROUP): group = attribute.uint32
            case Int(IFLA_LINKINFO):
                driver = attribute.nested.first { $0.type == Int(IFLA_INFO_KIND) }?.string
            default: break
            }
        }
        let flags = link.ifi_flags
        // IFF_LOWER_UP is the driver's carrier. IFF_RUNNING comes with the operational state (RFC 2863): once the
        // kernel has begun to hand packets to the driver, and, where a supplicant asked for it, once the keys are
        // agreed on. A packet between the two is lost. (`dev_get_flags` in net/core/dev.c.)
        let carrier = IFF_LOWER_UP.rawValue | IFF_RUNNING.rawValue
        self = .interfacePresent(
            Interface(
                index: index, name: name,
                kind: kinds.kind(ofIndex: index, name: name, hardware: link.ifi_type, driver: driver),
                isUp: flags & IFF_UP.rawValue != 0, hasCarrier: flags & carrier == carrier),
            isRunning: flags & IFF_RUNNING.rawValue != 0, group: group)
    }

    private init?(address message: NetlinkMessage) {
        guard let header = message.payload(ifaddrmsg.self) else { return nil }
        var address: IPAddress?
        var local: IPAddress?
        var flags = UInt32(header.ifa_flags)
        for attribute in message.attributes(after: ifaddrmsg.self) {
            switch attribute.type {
            case Int(IFA_ADDRESS): address = IPAddress(bytes: attribute.bytes)
            // On a point-to-point link IFA_ADDRESS is the other end's and this one is ours.
            case Int(IFA_LOCAL): local = IPAddress(bytes: attribute.bytes)
            case Int(IFA_FLAGS): flags = attribute.uint32 ?? flags
            default: break
            }
        }
        guard let own = local ?? address else { return nil }
        let index = Int(header.ifa_index)
        func has(_ flag: CInt) -> Bool { flags & UInt32(flag) != 0 }
        let entry = InterfaceAddress(
            own, prefixLength: Int(header.ifa_prefixlen), peer: address == own ? nil : address,
            isTentative: has(IFA_F_TENTATIVE) && !has(IFA_F_OPTIMISTIC),
            isDuplicate: has(IFA_F_DADFAILED), isDeprecated: has(IFA_F_DEPRECATED),
            skipsDetection: has(IFA_F_NODAD), scope: own.family == .v4 ? header.ifa_scope : 0,
            // The same bit of an IPv6 address says that it is temporary.
            isSecondary: own.family == .v4 && has(IFA_F_SECONDARY))
        self =
            message.type == RTM_DELADDR
            ? .addressRemoved(entry, interfaceIndex: index) : .addressPresent(entry, interfaceIndex: index)
    }

    private init?(route message: NetlinkMessage) {
        guard let prefix = message.routePrefix else { return nil }
        self = .routeChanged(prefix, through: message.routeLinks, isRemoval: message.type == RTM_DELROUTE)
    }

    private init?(configuration message: NetlinkMessage) {
        // A message about one setting names that one; a new interface's names all of them and is nothing new, since the
        // interface has a message of its own.
        let named = message.attributes(after: netconfmsg.self).map(\.type).filter { $0 != Int(NETCONFA_IFINDEX) }
        guard named == [Int(NETCONFA_IGNORE_ROUTES_WITH_LINKDOWN)] else { return nil }
        self = .routeSelectionChanged
    }

    private init?(neighbour message: NetlinkMessage) {
        // Forwarding entries (AF_BRIDGE) come in the same message, with a far tunnel end as their destination; a proxy
        // entry says who answers for an address, not whether it answers.
        guard let header = message.payload(ndmsg.self),
            [AF_INET, AF_INET6].contains(CInt(header.ndm_family)), CInt(header.ndm_flags) & NTF_PROXY == 0,
            let destination = message.attributes(after: ndmsg.self).first(where: { $0.type == Int(NDA_DST) }),
            let address = IPAddress(bytes: destination.bytes)
        else { return nil }
        let neighbour = NetworkSnapshot.Neighbour(interfaceIndex: Int(header.ndm_ifindex), address: address)
        let state = CInt(header.ndm_state)
        if message.type == RTM_NEWNEIGH, state & NUD_FAILED != 0 {
            self = .neighbourChanged(neighbour, isFailed: true)
        } else if message.type == RTM_NEWNEIGH, state & Self.answering != 0 {
            self = .neighbourChanged(neighbour, isFailed: false)
        } else if message.type == RTM_NEWNEIGH, state & NUD_INCOMPLETE != 0 {
            self = .neighbourAwaited(neighbour)
        } else {
            // Of a deleted entry nothing is known any more.
            self = .neighbourForgotten(neighbour)
        }
    }

    /// The states in which the kernel sends packets to a neighbour (`NUD_VALID` in include/net/neighbour.h).
    static let answering = NUD_PERMANENT | NUD_NOARP | NUD_REACHABLE | NUD_PROBE | NUD_STALE | NUD_DELAY
}

extension NetlinkMessage {
    /// Whether this is a notice about a route.
    var isRoute: Bool { type == RTM_NEWROUTE || type == RTM_DELROUTE }

    /// Where the route leads that this is a notice about; `nil` where it is about none that counts.
    var routePrefix: IPPrefix? {
        guard isRoute, let route = payload(rtmsg.self) else { return nil }
        // Entries that the kernel caches for one destination (redirects, path MTU) are no one's configuration.
        guard route.rtm_flags & UInt32(RTM_F_CLONED) == 0 else { return nil }
        let family: IPAddress.Family
        switch CInt(route.rtm_family) {
        case AF_INET: family = .v4
        case AF_INET6: family = .v6
        default: return nil
        }
        // No RTA_DST is a default route.
        let destination = attributes(after: rtmsg.self).first { $0.type == Int(RTA_DST.rawValue) }
        let address = destination.flatMap { IPAddress(bytes: $0.bytes) }
        return address.map { IPPrefix($0, length: Int(route.rtm_dst_len)) } ?? .all(family)
    }

    /// The links that the route leads through.
    var routeLinks: KernelEvent.RouteLinks {
        var links: [Int] = []
        var isByObject = false
        for attribute in attributes(after: rtmsg.self) {
            switch attribute.type {
            case Int(RTA_OIF.rawValue): links.append(Int(attribute.uint32 ?? 0))
            case Int(RTA_MULTIPATH.rawValue): links += attribute.nextHopLinks
            case Int(RTA_NH_ID.rawValue): isByObject = true
            default: break
            }
        }
        // The kernel names an object's links beside it, unless it is told not to (net.ipv4.nexthop_compat_mode).
        return links.isEmpty && isByObject ? .unnamed : .these(links)
    }
}

extension NetlinkAttribute {
    /// The links of a multipath route: `RTA_MULTIPATH` holds a `struct rtnexthop` for each, its length first.
    fileprivate var nextHopLinks: [Int] {
        var links: [Int] = []
        var rest = bytes[...]
        while rest.count >= MemoryLayout<rtnexthop>.size {
            let hop = UnsafeRawBufferPointer(rebasing: rest).loadUnaligned(as: rtnexthop.self)
            links.append(Int(hop.rtnh_ifindex))
            // RTNH_ALIGN; a length that cannot be ends the walk.
            let length = (Int(hop.rtnh_len) + 3) & ~3
            guard length >= MemoryLayout<rtnexthop>.size else { break }
            rest = rest.dropFirst(length)
        }
        return links
    }
}
