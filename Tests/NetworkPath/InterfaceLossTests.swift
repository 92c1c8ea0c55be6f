// SPDX-License-Identifier: Apache-2.0

import DialtoneNetworkPath
import Testing

/// Without an interface, what is left.
@Suite struct InterfaceLossTests {
    /// lo, eth0 and wlan0; a VLAN and a macvlan on eth0, a bridge over eth0, a veth pair, and a VLAN on the bridge.
    private static let stack: LinkStack = {
        let names = [1: "lo", 2: "eth0", 3: "wlan0", 4: "eth0.5", 5: "br0", 6: "veth0", 7: "veth1", 8: "br0.7"]
        var snapshot = NetworkSnapshot(
            interfaces: names.reduce(into: [:]) { links, link in
                links[link.key] = Interface(index: link.key, name: link.value, kind: .other)
            })
        snapshot.interfaces[2]?.addresses = [.init(Sample.own4, prefixLength: 24)]
        return LinkStack(
            snapshot,
            details: [
                1: .init(), 2: .init(master: 5), 3: .init(), 4: .init(driver: "vlan", lower: 2),
                5: .init(driver: "bridge"), 6: .init(driver: "veth", lower: 7), 7: .init(driver: "veth", lower: 6),
                8: .init(driver: "vlan", lower: 5),
            ])
    }()

    @Test func `what stands on it goes with it, and what lives by it alone loses its carrier`() {
        let loss = InterfaceLoss(of: 2, from: Self.stack)
        #expect(loss.gone == [2, 4])
        #expect(loss.silenced == [5, 8])
        #expect(loss.rest.snapshot.interfaces.keys.sorted() == [1, 3, 5, 6, 7, 8])
        #expect(loss.rest.snapshot.interfaces[5]?.hasCarrier == false)
        #expect(loss.addresses == [Sample.own4])
    }

    @Test func `a bridge with another port keeps its carrier, and its ports outlive it`() {
        var stack = Self.stack
        stack.details[3]?.master = 5
        #expect(InterfaceLoss(of: 2, from: stack).silenced.isEmpty)
        stack.snapshot.interfaces[3]?.hasCarrier = false
        #expect(InterfaceLoss(of: 2, from: stack).silenced == [5, 8])
        let bridge = InterfaceLoss(of: 5, from: stack)
        #expect(bridge.gone == [5, 8] && bridge.silenced.isEmpty)
    }

    @Test func `one end of a veth takes the other along`() {
        #expect(InterfaceLoss(of: 6, from: Self.stack).gone == [6, 7])
    }

    @Test func `an address that another interface has as well is not lost`() {
        var stack = Self.stack
        stack.snapshot.interfaces[3]?.addresses = [.init(Sample.own4, prefixLength: 24)]
        #expect(InterfaceLoss(of: 2, from: stack).addresses.isEmpty)
    }

    private static func entry(_ family: IPAddress.Family, by indices: Int..., table: UInt32 = 254) -> RouteEntry {
        RouteEntry(to: .all(family), table: table, nextHops: indices.map { .init(interfaceIndex: $0) })
    }

    @Test func `a route by it goes; of several next hops IPv6 keeps the others, IPv4 only in a group of objects`() {
        let loss = InterfaceLoss(of: 2, from: Self.stack)
        #expect(loss.survivor(of: Self.entry(.v4, by: 2)) == nil)
        #expect(loss.survivor(of: Self.entry(.v4, by: 3)) == Self.entry(.v4, by: 3))
        #expect(loss.survivor(of: Self.entry(.v6, by: 2, 3)) == Self.entry(.v6, by: 3))
        var several = Self.entry(.v4, by: 2, 3)
        #expect(loss.survivor(of: several) == nil)
        several.nextHopObject = 9
        #expect(loss.survivor(of: several)?.nextHops.map(\.interfaceIndex) == [3])
        let refusing = RouteEntry(.prohibit, to: .all(.v4))
        #expect(loss.survivor(of: refusing) == refusing)
    }

    @Test func `a preferred source that is lost takes the IPv4 routes of the main table along, and no others`() {
        let loss = InterfaceLoss(of: 2, from: Self.stack)
        var main = Self.entry(.v4, by: 3)
        main.preferredSource = Sample.own4
        #expect(loss.survivor(of: main) == nil)
        main.table = 100
        #expect(loss.survivor(of: main) == main)
    }

    @Test func `a route by what lost its carrier is marked, unless it is for the machine itself`() {
        let loss = InterfaceLoss(of: 2, from: Self.stack)
        #expect(loss.survivor(of: Self.entry(.v4, by: 5))?.nextHops.first?.isLinkDown == true)
        let own = RouteEntry(.local, to: .all(.v4), table: 255, nextHops: [.init(interfaceIndex: 5)])
        #expect(loss.survivor(of: own) == own)
    }

    @Test(arguments: [IPAddress.Family.v4, .v6])
    func `a next-hop object goes with the carrier of its link, and the route with the last of them`(
        family: IPAddress.Family
    ) {
        let loss = InterfaceLoss(of: 2, from: Self.stack)
        var entry = Self.entry(family, by: 5)
        entry.nextHopObject = 11
        #expect(loss.survivor(of: entry) == nil)
        entry.nextHops.append(.init(interfaceIndex: 3))
        #expect(loss.survivor(of: entry)?.nextHops == [.init(interfaceIndex: 3)])
    }

    @Test func `a source is taken from the interface, else from another; the one on the way to the destination first`()
    {
        var stack = Self.stack
        let (near, far) = (Sample.gateway4, IPAddress(v4: 0x0A00_0001))
        stack.snapshot.interfaces[5]?.addresses = [.init(near, prefixLength: 24)]
        stack.snapshot.interfaces[3]?.addresses = [
            .init(far, prefixLength: 8), .init(Sample.linkLocal6, prefixLength: 64),
        ]
        stack.snapshot.interfaces[6]?.addresses = [
            .init(Sample.own6, prefixLength: 64, isDeprecated: true), .init(Sample.remote6, prefixLength: 64),
        ]
        let loss = InterfaceLoss(of: 2, from: stack)
        #expect(loss.source(to: Sample.remote4, by: 5) == near)
        #expect(loss.source(to: Sample.remote4, by: 7) == far)
        // Rather a global address of another interface than a link-local one, and rather one that is not deprecated.
        let besideOwn = IPAddress(v6: 0x2001_0DB8_0000_0000_0000_0000_0000_000B)
        #expect(loss.source(to: besideOwn, by: 3) == Sample.remote6)
        #expect(loss.source(to: Sample.gateway6, by: 3) == Sample.linkLocal6)
    }
}
