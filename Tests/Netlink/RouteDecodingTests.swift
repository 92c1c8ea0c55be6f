// SPDX-License-Identifier: Apache-2.0

import CDialtoneNetlink
import DialtoneNetworkPath
import Glibc
import Testing

@testable import DialtoneNetlink

struct RouteDecodingTests {
    private static let own = IPAddress(v4: 0xC000_020A)
    private static let other = IPAddress(v4: 0xC000_020B)
    private static let gateway = IPAddress(v4: 0xC000_0201)
    private static let gateway6 = IPAddress(v6: 0xFE80 << 112 | 1)

    @Test(arguments: [RTM_NEWROUTE, RTM_DELROUTE])
    func `a route of the table is an event`(type: Int) {
        var header = rtmsg()
        header.rtm_family = UInt8(AF_INET)
        header.rtm_dst_len = 24
        let prefix = IPPrefix(Self.other, length: 24)
        #expect(
            events(message(type, header, attribute(Int(RTA_DST.rawValue), address: Self.other)))
                == [.routeChanged(prefix, isRemoval: type == RTM_DELROUTE)])
    }

    @Test func `a route names the links it leads through`() {
        let one = attribute(Int(RTA_OIF.rawValue), number: 7)
        #expect(links(one) == .these([7]))
        #expect(links([]) == .these([]))
        let hops = [3, 12].flatMap { index in
            bytes(of: rtnexthop(rtnh_len: 16, rtnh_flags: 0, rtnh_hops: 0, rtnh_ifindex: index))
                + attribute(Int(RTA_GATEWAY.rawValue), address: Self.gateway)
        }
        #expect(links(attribute(Int(RTA_MULTIPATH.rawValue), hops)) == .these([3, 12]))
        // What is cut short, or claims a length that cannot be, ends the list.
        #expect(links(attribute(Int(RTA_MULTIPATH.rawValue), Array(hops.prefix(20)))) == .these([3]))
        let empty = bytes(of: rtnexthop(rtnh_len: 0, rtnh_flags: 0, rtnh_hops: 0, rtnh_ifindex: 5))
        #expect(links(attribute(Int(RTA_MULTIPATH.rawValue), empty + hops)) == .these([5]))
    }

    @Test func `a route by a next hop object names its links or none`() {
        let object = attribute(Int(RTA_NH_ID.rawValue), number: 9)
        #expect(links(object) == .unnamed)
        #expect(links(object + attribute(Int(RTA_OIF.rawValue), number: 7)) == .these([7]))
    }

    private func links(_ attributes: [UInt8]) -> KernelEvent.RouteLinks? {
        var header = rtmsg()
        header.rtm_family = UInt8(AF_INET)
        guard case .routeChanged(_, let links, _)? = events(message(RTM_NEWROUTE, header, attributes)).first else {
            return nil
        }
        return links
    }

    @Test(arguments: [(AF_INET, IPAddress.Family.v4), (AF_INET6, .v6)])
    func `a route without a destination is a default route`(family: CInt, prefix: IPAddress.Family) {
        var header = rtmsg()
        header.rtm_family = UInt8(family)
        #expect(events(message(RTM_NEWROUTE, header)) == [.routeChanged(.all(prefix))])
    }

    /// Multicast routing and MPLS speak of routes in the same message type.
    @Test func `a route of another family is none`() {
        var header = rtmsg()
        header.rtm_family = UInt8(RTNL_FAMILY_IPMR)
        #expect(events(message(RTM_NEWROUTE, header)).isEmpty)
    }

    /// Exceptions that the kernel caches for one destination (redirects, path MTU) are no one's configuration.
    @Test(arguments: [RTM_NEWROUTE, RTM_DELROUTE])
    func `a cloned route is none`(type: Int) {
        var header = rtmsg()
        header.rtm_flags = UInt32(RTM_F_CLONED)
        #expect(events(message(type, header)).isEmpty)
    }

    @Test(arguments: [
        (RTM_NEWRULE, KernelEvent.ruleChanged), (RTM_DELRULE, .ruleChanged), (RTM_NEWNEXTHOP, .nextHopChanged),
        (RTM_DELNEXTHOP, .nextHopChanged),
    ])
    func `rules and next hops are events whatever they say`(type: Int, event: KernelEvent) {
        #expect(events(message(type, UInt32(0))) == [event])
    }

    @Test(arguments: [
        Int(NLMSG_NOOP), Int(NLMSG_DONE), Int(NLMSG_ERROR), RTM_NEWPREFIX, RTM_NEWNETCONF, 0xFFFF,
    ])
    func `other messages are none`(type: Int) {
        #expect(events(message(type, rtmsg())).isEmpty)
    }

    @Test func `an answer tells the whole way`() {
        let attributes =
            attribute(Int(RTA_TABLE.rawValue), number: 1000) + attribute(Int(RTA_OIF.rawValue), number: 7)
            + attribute(Int(RTA_GATEWAY.rawValue), address: Self.gateway)
            + attribute(Int(RTA_PREFSRC.rawValue), address: Self.own)
        let expected = Route(interfaceIndex: 7, gateway: Self.gateway, source: Self.own, table: 1000)
        #expect(answers(answer(attributes)) == [.route(expected)])
    }

    @Test func `an IPv4 route may have an IPv6 gateway`() {
        let via = attribute(Int(RTA_VIA.rawValue), bytes(of: UInt16(AF_INET6)) + Self.gateway6.bytes)
        #expect(route(in: via)?.gateway == Self.gateway6)
    }

    /// Asked with a source, IPv4 quotes it back and names no other; IPv6 names the one it would prefer beside it.
    @Test func `the source that was asked for is the source`() {
        let asked = attribute(Int(RTA_SRC.rawValue), address: Self.own)
        let preferred = attribute(Int(RTA_PREFSRC.rawValue), address: Self.other)
        #expect(route(in: asked)?.source == Self.own)
        #expect(route(in: asked + preferred)?.source == Self.own)
        #expect(route(in: preferred + asked)?.source == Self.own)
    }

    /// As IPv6 does for a question without one.
    @Test func `an unspecified source was not asked for`() {
        let none = attribute(Int(RTA_SRC.rawValue), address: IPAddress(v6: 0))
        #expect(route(in: none + attribute(Int(RTA_PREFSRC.rawValue), address: Self.own))?.source == Self.own)
        #expect(route(in: attribute(Int(RTA_PREFSRC.rawValue), address: Self.own) + none)?.source == Self.own)
        #expect(route(in: none)?.source == nil)
    }

    @Test func `without the attribute the table is that of the header`() {
        #expect(route(in: [])?.table == 254)
    }

    @Test(arguments: [
        (Int(RTN_UNICAST), Route.Scope.remote), (Int(RTN_LOCAL), .local), (Int(RTN_BROADCAST), .group),
        (Int(RTN_MULTICAST), .group), (Int(RTN_ANYCAST), .group),
    ])
    func `the type says where it ends`(type: Int, scope: Route.Scope) {
        guard case .route(let route)? = answers(answer([], type: type)).first else {
            Issue.record("no route")
            return
        }
        #expect(route.scope == scope)
    }

    /// kernel.md, 11.
    @Test(arguments: [
        (ENETUNREACH, RouteRefusal.noRoute), (EHOSTUNREACH, .unreachable), (EACCES, .prohibited), (EINVAL, .blackhole),
        (EAFNOSUPPORT, .familyUnsupported), (EOPNOTSUPP, .familyUnsupported), (ENOMEM, .other(code: ENOMEM)),
    ])
    func `a refusal has the kernels reason`(code: CInt, refusal: RouteRefusal) {
        let request = message(RTM_GETROUTE, rtmsg())
        for isCapped in [true, false] {
            #expect(answers(errorMessage(code, quoting: request, isCapped: isCapped)) == [.refused(refusal)])
        }
    }

    /// Both are `EINVAL`, but only a mistake in the question comes with words.
    @Test(arguments: [true, false])
    func `an explained refusal is no blackhole`(isCapped: Bool) {
        let refused = errorMessage(
            EINVAL, quoting: message(RTM_GETROUTE, rtmsg()), isCapped: isCapped, explanation: "Invalid source")
        #expect(answers(refused) == [.refused(.other(code: EINVAL))])
    }

    @Test func `other messages are no answer`() {
        #expect(answers(message(RTM_DELROUTE, rtmsg())).isEmpty)
        #expect(answers(message(NLMSG_DONE, CInt(0))).isEmpty)
        #expect(answers(message(RTM_NEWROUTE, UInt32(0))).isEmpty)
    }

    private func answer(_ attributes: [UInt8], type: Int = Int(RTN_UNICAST)) -> [UInt8] {
        var header = rtmsg()
        header.rtm_type = UInt8(type)
        header.rtm_table = 254
        return message(RTM_NEWROUTE, header, attributes)
    }

    private func route(in attributes: [UInt8]) -> Route? {
        guard case .route(let route)? = answers(answer(attributes)).first else { return nil }
        return route
    }

    private func answers(_ datagram: [UInt8]) -> [RouteAnswer] {
        decoding(datagram) { RouteAnswer($0) }
    }
}
