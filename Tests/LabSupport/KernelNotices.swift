// SPDX-License-Identifier: Apache-2.0

internal import CDialtoneLabSupport
package import DialtonePlatform
internal import Glibc

/// What the kernel itself says in some of its groups, and, as telling, what it does not.
///
/// The kernel queues its notices before the call that caused them returns: what is not there when `ip` has ended was
/// not said. (What the kernel does by itself, such as noticing a lost carrier, is waited for by its result.)
package final class KernelNotices: Sendable {
    /// A group of rtnetlink.
    package enum Group: Hashable, Sendable, CaseIterable {
        case link, v4Address, v6Address, v4Route, v6Route, v4Rule, v6Rule, nextHop, neighbour
        case v4Configuration, v6Configuration

        fileprivate var number: rtnetlink_groups {
            switch self {
            case .link: RTNLGRP_LINK
            case .v4Address: RTNLGRP_IPV4_IFADDR
            case .v6Address: RTNLGRP_IPV6_IFADDR
            case .v4Route: RTNLGRP_IPV4_ROUTE
            case .v6Route: RTNLGRP_IPV6_ROUTE
            case .v4Rule: RTNLGRP_IPV4_RULE
            case .v6Rule: RTNLGRP_IPV6_RULE
            case .nextHop: RTNLGRP_NEXTHOP
            case .neighbour: RTNLGRP_NEIGH
            case .v4Configuration: RTNLGRP_IPV4_NETCONF
            case .v6Configuration: RTNLGRP_IPV6_NETCONF
            }
        }
    }

    /// One message.
    package struct Notice: Hashable, Sendable {
        /// What kind it is of, as rtnetlink(7) calls it.
        package enum Kind: Hashable, Sendable {
            case newLink, deletedLink, newAddress, deletedAddress, newRoute, deletedRoute, newRule, deletedRule
            case newNextHop, deletedNextHop, other(UInt16)
        }

        /// What kind it is of.
        package let kind: Kind
        /// Whether it stands for what was there before, too (`NLM_F_REPLACE`).
        package let replaces: Bool
        /// Of a link: which of its flags changed (`ifi_change`).
        package let changedFlags: UInt32?
        /// Of a route: the length of its destination's prefix; a default route's is zero.
        package let prefixLength: Int?
    }

    private let descriptor: OwnedDescriptor

    private init(_ groups: Set<Group>) throws(SystemError) {
        let kind = CInt(SOCK_RAW.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue)
        let number = try retryingInterrupts("opening a netlink socket") { socket(AF_NETLINK, kind, NETLINK_ROUTE) }
        descriptor = OwnedDescriptor(number)
        // Without a port of its own it would pass for the kernel, whose notices do not go to the kernel.
        var address = sockaddr_nl()
        address.nl_family = sa_family_t(AF_NETLINK)
        try retryingInterrupts("binding a netlink socket") {
            withUnsafeBytes(of: &address) { bytes in
                bind(number, bytes.assumingMemoryBound(to: sockaddr.self).baseAddress, socklen_t(bytes.count))
            }
        }
        for group in groups {
            var group = CInt(group.number.rawValue)
            try retryingInterrupts("joining a netlink group") {
                setsockopt(number, SOL_NETLINK, NETLINK_ADD_MEMBERSHIP, &group, socklen_t(MemoryLayout<CInt>.size))
            }
        }
    }

    /// Begins to listen on a machine.
    package static func of(_ groups: Set<Group>, on machine: Namespace) async throws -> KernelNotices {
        try await machine.run { try KernelNotices(groups) }
    }

    /// What was said since the last call.
    package func pending() throws(SystemError) -> [Notice] {
        var notices: [Notice] = []
        var buffer = [UInt8](repeating: 0, count: 64 * 1024)
        while true {
            let count = recv(descriptor.number, &buffer, buffer.count, 0)
            if count < 0, errno == EAGAIN { return notices }
            if count < 0 { throw .last("reading the kernel's notices") }
            notices += Self.notices(in: buffer.prefix(count))
        }
    }

    private static func notices(in datagram: ArraySlice<UInt8>) -> [Notice] {
        var notices: [Notice] = []
        var rest = datagram
        while rest.count >= MemoryLayout<nlmsghdr>.size {
            let header = rest.withUnsafeBytes { $0.loadUnaligned(as: nlmsghdr.self) }
            let body = rest.dropFirst(MemoryLayout<nlmsghdr>.size)
            notices.append(Notice(header, body))
            rest = rest.dropFirst((Int(header.nlmsg_len) + 3) / 4 * 4)
        }
        return notices
    }
}

extension KernelNotices.Notice {
    fileprivate init(_ header: nlmsghdr, _ body: ArraySlice<UInt8>) {
        kind = Kind(header.nlmsg_type)
        replaces = CInt(header.nlmsg_flags) & NLM_F_REPLACE != 0
        let isLink = kind == .newLink && body.count >= MemoryLayout<ifinfomsg>.size
        changedFlags = isLink ? body.withUnsafeBytes { $0.loadUnaligned(as: ifinfomsg.self).ifi_change } : nil
        let isRoute = [.newRoute, .deletedRoute].contains(kind) && body.count >= MemoryLayout<rtmsg>.size
        prefixLength = isRoute ? Int(body.withUnsafeBytes { $0.loadUnaligned(as: rtmsg.self).rtm_dst_len }) : nil
    }
}

extension KernelNotices.Notice.Kind {
    fileprivate init(_ type: UInt16) {
        switch Int(type) {
        case RTM_NEWLINK: self = .newLink
        case RTM_DELLINK: self = .deletedLink
        case RTM_NEWADDR: self = .newAddress
        case RTM_DELADDR: self = .deletedAddress
        case RTM_NEWROUTE: self = .newRoute
        case RTM_DELROUTE: self = .deletedRoute
        case RTM_NEWRULE: self = .newRule
        case RTM_DELRULE: self = .deletedRule
        case RTM_NEWNEXTHOP: self = .newNextHop
        case RTM_DELNEXTHOP: self = .deletedNextHop
        default: self = .other(type)
        }
    }
}
