// SPDX-License-Identifier: Apache-2.0

import DialtoneNetworkPath
import Testing

@testable import Reachability

/// When a question's lookups are to be made anew, because what they were made of has changed.
struct InquiryTests {
    private static let remote = IPAddress(v4: 0xC633_6407)
    private static let own = IPAddress(v4: 0xC000_020A)
    private static let wired = Interface(
        index: 2, name: "eth0", kind: .wired, addresses: [InterfaceAddress(own, prefixLength: 24)])
    private static let network = NetworkSnapshot(interfaces: [2: wired])

    private static func target(interface: String? = nil, source: IPAddress? = nil) -> Inquiry {
        let target = Target(.address(remote), interface: interface, source: source)
        return Inquiry(target, at: [remote], in: network)
    }

    /// Whether `inquiry`, made on ``network``, is outdated once `event` happened.
    private func isOutdated(_ inquiry: Inquiry, by event: KernelEvent) -> Bool {
        var snapshot = Self.network
        let change = snapshot.apply(event)
        return inquiry.isOutdated(by: change, in: snapshot)
    }

    private static func renamed(_ name: String) -> KernelEvent {
        .interfacePresent(Interface(index: 2, name: name, kind: .wired))
    }

    private static let newcomer = Interface(index: 3, name: "tun0", kind: .tunnel)

    @Test func `what rests on no link is never outdated`() {
        for event in [.interfaceRemoved(index: 2), Self.renamed("wan"), .interfacePresent(Self.newcomer)] {
            #expect(!isOutdated(Self.target(), by: event))
            #expect(!isOutdated(Inquiry(network: .any, in: Self.network), by: event))
        }
    }

    @Test func `a named interface is looked for where it came went or changed its name`() {
        #expect(isOutdated(Self.target(interface: "eth0"), by: .interfaceRemoved(index: 2)))
        #expect(isOutdated(Self.target(interface: "eth0"), by: Self.renamed("wan")))
        #expect(isOutdated(Self.target(interface: "wan"), by: Self.renamed("wan")))
        #expect(isOutdated(Self.target(interface: "tun0"), by: .interfacePresent(Self.newcomer)))
        #expect(!isOutdated(Self.target(interface: "eth0"), by: .interfacePresent(Self.newcomer)))
        #expect(!isOutdated(Self.target(interface: "tun1"), by: .interfacePresent(Self.newcomer)))
    }

    /// After messages were lost it is not told which link changed.
    @Test func `a named interface is looked for among all after a reread`() {
        var snapshot = Self.network
        let inquiry = Self.target(interface: "eth0")
        let moved = Interface(index: 9, name: "eth0", kind: .wired)
        let change = snapshot.replace(with: NetworkSnapshot(interfaces: [9: moved]))
        #expect(inquiry.isOutdated(by: change, in: snapshot))
    }

    @Test func `a named source counts where it can be used`() {
        let away = KernelEvent.addressRemoved(InterfaceAddress(Self.own, prefixLength: 24), interfaceIndex: 2)
        #expect(isOutdated(Self.target(source: Self.own), by: away))
        var down = Self.wired
        down.hasCarrier = false
        #expect(isOutdated(Self.target(source: Self.own), by: .interfacePresent(down)))
        #expect(!isOutdated(Self.target(source: Self.remote), by: away))
        #expect(!isOutdated(Self.target(source: Self.own), by: .interfacePresent(Self.newcomer)))
    }

    @Test func `a requirement counts where other interfaces meet it`() {
        let tunnels = Inquiry(network: .requires(.tunnel), in: Self.network)
        #expect(isOutdated(tunnels, by: .interfacePresent(Self.newcomer)))
        #expect(!isOutdated(tunnels, by: .interfaceRemoved(index: 2)))
        let noTunnels = Inquiry(network: .prohibits([.tunnel]), in: Self.network)
        #expect(!isOutdated(noTunnels, by: .interfacePresent(Self.newcomer)))
        #expect(isOutdated(noTunnels, by: .interfaceRemoved(index: 2)))
    }

    /// A host with IPv6 for its own site alone tries a dual-stack server's IPv4 address first.
    @Test func `of several addresses the path is to the one that is tried first`() {
        let far6 = IPAddress(v6: 0x2001_0db8 << 96 | 9)
        let local6 = IPAddress(v6: 0xfd00 << 112 | 2)
        let global6 = IPAddress(v6: 0x2001_0db8 << 96 | 2)
        let inquiry = Inquiry(Target(.name("host")), at: [far6, Self.remote], in: Self.network)
        let v4 = RouteAnswer.route(Route(interfaceIndex: 2, source: Self.own))
        func destination(_ v6: RouteAnswer, _ v4: RouteAnswer) -> IPAddress? {
            inquiry.path(by: [v6, v4], in: Self.network).destination
        }
        #expect(destination(.route(Route(interfaceIndex: 2, source: local6)), v4) == Self.remote)
        #expect(destination(.route(Route(interfaceIndex: 2, source: global6)), v4) == far6)
        #expect(destination(.refused(.noRoute), v4) == Self.remote)
        #expect(destination(.route(Route(interfaceIndex: 2, source: local6)), .refused(.noRoute)) == far6)
    }

    /// What was not asked yet may be concerned by anything.
    @Test func `without an answer everything concerns`() {
        let inquiry = Self.target()
        let scope = ChangeScope(KernelChange(.neighbours), in: Self.network)
        #expect(inquiry.isConcerned(by: scope))
        inquiry.note([.refused(.prohibited)], in: Self.network)
        #expect(!inquiry.isConcerned(by: scope))
    }
}
