// SPDX-License-Identifier: Apache-2.0

import DialtoneNetworkPath
import DialtoneTestSupport
import Testing

struct NetworkSnapshotTests {
    private static let other4 = IPAddress(v4: 0xC000_020B)  // 192.0.2.11
    private static let deadGateway = NetworkSnapshot.Neighbour(interfaceIndex: 2, address: Sample.gateway4)

    /// Applies `event` and checks what it is said to change, and that the generation counts changes and only those.
    private func apply(
        _ event: KernelEvent, to snapshot: inout NetworkSnapshot, _ subjects: KernelChange.Subjects,
        lost: Set<IPAddress> = [], routes: KernelChange.Destinations = .none,
        sourceLocation: SourceLocation = #_sourceLocation
    ) {
        let before = snapshot
        let change = snapshot.apply(event)
        #expect(change.subjects == subjects, sourceLocation: sourceLocation)
        #expect(change.lostAddresses == lost, sourceLocation: sourceLocation)
        #expect(change.routes == routes, sourceLocation: sourceLocation)
        if change.isEmpty {
            #expect(snapshot == before, sourceLocation: sourceLocation)
        } else {
            #expect(snapshot.generation == before.generation + 1, sourceLocation: sourceLocation)
        }
    }

    @Test func `a new interface is a change and its repetition is none`() {
        var snapshot = Sample.network
        apply(.interfacePresent(Sample.wifi), to: &snapshot, .interfaces)
        #expect(snapshot.interfaces[Sample.wifiIndex] == Sample.wifi)
        apply(.interfacePresent(Sample.wifi), to: &snapshot, [])
    }

    /// A rule may pass over the routes by links of a group.
    @Test func `another group of a link is a change of rules`() {
        var snapshot = Sample.network
        apply(.interfacePresent(Sample.wifi, group: 0), to: &snapshot, .interfaces)
        apply(.interfacePresent(Sample.wifi, group: 0), to: &snapshot, [])
        apply(.interfacePresent(Sample.wifi), to: &snapshot, [])
        apply(.interfacePresent(Sample.wifi, group: 7), to: &snapshot, [.interfaces, .rules])
        snapshot.loseTrackOfRoutes()
        apply(.interfacePresent(Sample.wifi, group: 0), to: &snapshot, [.interfaces, .rules])
    }

    /// Routes have it as their source a moment later, and nothing tells of that.
    @Test func `an IPv4 address is foretold when it comes and both families when they go`() {
        var snapshot = Sample.network
        let foretold = [IPAddress(v4: 0xC000_0217), Sample.linkLocal6].map { address in
            let entry = InterfaceAddress(address, prefixLength: 24)
            let came = snapshot.apply(.addressPresent(entry, interfaceIndex: Sample.wifiIndex))
            let went = snapshot.apply(.addressRemoved(entry, interfaceIndex: Sample.wifiIndex))
            return [came.isForetold, went.isForetold]
        }
        #expect(foretold == [[true, true], [false, true]])
    }

    /// kernel.md, 5: wireless drivers re-send a link with nothing new in it. The message never carries the addresses.
    @Test func `a repeated link keeps its addresses`() {
        var snapshot = Sample.network
        var wired = Sample.wired
        wired.addresses = []
        apply(.interfacePresent(wired), to: &snapshot, [])
        wired.hasCarrier = false
        apply(
            .interfacePresent(wired), to: &snapshot, .interfaces, lost: [Sample.own4, Sample.own6, Sample.linkLocal6])
        #expect(snapshot.interfaces[2]?.addresses == Sample.wired.addresses)
        #expect(snapshot.interfaces[2]?.hasCarrier == false)
    }

    /// With `keep_addr_on_down` the kernel looks for duplicates of them anew, and says nothing before it is done.
    @Test func `an address that a link keeps while it is down is tentative until the kernel says otherwise`() {
        var snapshot = Sample.network
        let exempt = InterfaceAddress(Sample.linkLocal6, prefixLength: 64, skipsDetection: true)
        _ = snapshot.apply(.addressPresent(exempt, interfaceIndex: 2))
        for isUp in [false, true] {
            var wired = Sample.wired
            wired.isUp = isUp
            _ = snapshot.apply(.interfacePresent(wired))
        }
        #expect(!snapshot.hasUsable(Sample.own6))
        #expect(snapshot.hasUsable(Sample.own4))
        #expect(snapshot.hasUsable(Sample.linkLocal6))
        let passed = InterfaceAddress(Sample.own6, prefixLength: 64)
        apply(.addressPresent(passed, interfaceIndex: 2), to: &snapshot, .addresses)
        #expect(snapshot.hasUsable(Sample.own6))
    }

    @Test func `all of the loopback's IPv4 prefix is the machine's own, and of its IPv6 prefix one address`() {
        for isUp in [true, false] {
            let loopback = Interface(
                index: 1, name: "lo", kind: .loopback, isUp: isUp, hasCarrier: isUp,
                addresses: [
                    InterfaceAddress(IPAddress("127.0.0.1")!, prefixLength: 8),
                    InterfaceAddress(IPAddress("2001:db8::1")!, prefixLength: 64),
                ])
            let snapshot = NetworkSnapshot(generation: 1, interfaces: [1: loopback])
            for (address, isOwn) in [
                ("127.0.0.1", true), ("127.0.0.2", true), ("127.255.0.1", true), ("128.0.0.1", false),
                ("2001:db8::1", true), ("2001:db8::2", false), ("::1", false),
            ] {
                #expect(snapshot.hasUsable(IPAddress(address)!) == (isUp && isOwn), "\(address)")
            }
        }
        #expect(Sample.network.hasUsable(Sample.own4) && !Sample.network.hasUsable(Sample.gateway4))
    }

    /// Linux keeps them, and packets from them leave by another link: a flow bound to one of them is dead.
    @Test(arguments: [\Interface.isUp, \Interface.hasCarrier])
    func `the addresses of a link that goes down are lost unless another has them`(
        property: any WritableKeyPath<Interface, Bool> & Sendable
    ) {
        var snapshot = Sample.network
        _ = snapshot.apply(.addressPresent(InterfaceAddress(Sample.own4, prefixLength: 24), interfaceIndex: 1))
        var wired = Sample.wired
        wired[keyPath: property] = false
        apply(.interfacePresent(wired), to: &snapshot, .interfaces, lost: [Sample.own6, Sample.linkLocal6])
        #expect(!snapshot.hasUsable(Sample.own6))
        #expect(snapshot.hasUsable(Sample.own4))
        // They were lost with the link; that they are removed now is no news for any flow.
        apply(
            .addressRemoved(InterfaceAddress(Sample.own6, prefixLength: 64), interfaceIndex: 2), to: &snapshot,
            .addresses)
    }

    @Test func `a removed interface takes its addresses and neighbours along`() {
        var snapshot = Sample.network
        let elsewhere = NetworkSnapshot.Neighbour(interfaceIndex: 3, address: Sample.gateway4)
        snapshot.failedNeighbours = [Self.deadGateway, elsewhere]
        apply(
            .interfaceRemoved(index: 2), to: &snapshot, [.interfaces, .addresses],
            lost: [Sample.own4, Sample.own6, Sample.linkLocal6])
        #expect(snapshot.interfaces[2] == nil)
        #expect(snapshot.failedNeighbours == [elsewhere])
        apply(.interfaceRemoved(index: 2), to: &snapshot, [])
    }

    @Test func `addresses come in the kernel's order`() {
        var snapshot = Sample.network
        let address = InterfaceAddress(Self.other4, prefixLength: 24)
        apply(.addressPresent(address, interfaceIndex: 2), to: &snapshot, .addresses)
        let wired = Sample.wired.addresses
        #expect(snapshot.interfaces[2]?.addresses == [wired[0], address] + wired[1...])
        // Of IPv6 the newest comes first, before those that reach no farther.
        let newest = InterfaceAddress(Sample.remote6, prefixLength: 64)
        apply(.addressPresent(newest, interfaceIndex: 2), to: &snapshot, .addresses)
        #expect(snapshot.interfaces[2]?.addresses == [wired[0], address, newest] + wired[1...])
    }

    /// The second of its network comes last, until the first is gone.
    @Test func `a secondary address is promoted`() {
        var snapshot = Sample.network
        var second = InterfaceAddress(Self.other4, prefixLength: 24, isSecondary: true)
        let third = InterfaceAddress(Sample.remote4, prefixLength: 24)
        for address in [second, third] {
            apply(.addressPresent(address, interfaceIndex: 2), to: &snapshot, .addresses)
        }
        let first = Sample.wired.addresses[0]
        #expect(snapshot.interfaces[2]?.addresses.prefix(3) == [first, third, second])
        apply(.addressRemoved(first, interfaceIndex: 2), to: &snapshot, .addresses, lost: [first.address])
        second.isSecondary = false
        apply(.addressPresent(second, interfaceIndex: 2), to: &snapshot, .addresses)
        #expect(snapshot.interfaces[2]?.addresses.prefix(2) == [third, second])
    }

    /// kernel.md, 5: lifetime refreshes re-send an address; the end of its preferred lifetime is a new flag.
    @Test func `only a different address is a change`() {
        var snapshot = Sample.network
        var address = InterfaceAddress(Sample.own6, prefixLength: 64)
        apply(.addressPresent(address, interfaceIndex: 2), to: &snapshot, [])
        address.isDeprecated = true
        apply(.addressPresent(address, interfaceIndex: 2), to: &snapshot, .addresses)
        #expect(snapshot.interfaces[2]?.addresses[1] == address)
        #expect(snapshot.interfaces[2]?.addresses.count == 3)
    }

    @Test func `a removed address is lost`() {
        var snapshot = Sample.network
        apply(
            .addressRemoved(InterfaceAddress(Sample.own4, prefixLength: 24), interfaceIndex: 2), to: &snapshot,
            .addresses, lost: [Sample.own4])
        apply(.addressRemoved(InterfaceAddress(Sample.own4, prefixLength: 24), interfaceIndex: 2), to: &snapshot, [])
        apply(.addressRemoved(InterfaceAddress(Sample.own4, prefixLength: 24), interfaceIndex: 99), to: &snapshot, [])
        #expect(!snapshot.hasUsable(Sample.own4))
    }

    /// One that was removed before the kernel had told of it may be the source that a lookup found.
    @Test func `an address of IPv6 that was never told is lost as well`() {
        var snapshot = Sample.network
        let untold = InterfaceAddress(IPAddress(v6: 0x2001_0DB8_0000_0000_0000_0000_0000_0077), prefixLength: 64)
        let change = snapshot.apply(.addressRemoved(untold, interfaceIndex: 2))
        #expect(change.addresses == [untold.address] && change.links == [2])
        #expect(change.lostAddresses == [untold.address])
    }

    @Test func `an address on two interfaces is lost only with the last`() {
        var snapshot = Sample.network
        let address = InterfaceAddress(Sample.own4, prefixLength: 24)
        apply(.interfacePresent(Sample.wifi), to: &snapshot, .interfaces)
        apply(.addressPresent(address, interfaceIndex: 3), to: &snapshot, .addresses)
        apply(
            .addressRemoved(InterfaceAddress(Sample.own4, prefixLength: 24), interfaceIndex: 2), to: &snapshot,
            .addresses)
        #expect(snapshot.hasUsable(Sample.own4))
        apply(.interfaceRemoved(index: 3), to: &snapshot, [.interfaces, .addresses], lost: [Sample.own4])
    }

    /// IPv4 allows that: with prefixes of different lengths, or to different peers.
    @Test(arguments: [
        InterfaceAddress(Sample.own4, prefixLength: 32),
        InterfaceAddress(Sample.own4, prefixLength: 24, peer: Sample.gateway4),
    ])
    func `an address twice on one interface is lost only with the last`(other: InterfaceAddress) {
        var snapshot = Sample.network
        apply(.addressPresent(other, interfaceIndex: 2), to: &snapshot, .addresses)
        apply(.addressRemoved(other, interfaceIndex: 2), to: &snapshot, .addresses)
        #expect(snapshot.hasUsable(Sample.own4))
        apply(.addressPresent(other, interfaceIndex: 2), to: &snapshot, .addresses)
        let first = InterfaceAddress(Sample.own4, prefixLength: 24)
        apply(.addressRemoved(first, interfaceIndex: 2), to: &snapshot, .addresses)
        apply(.addressRemoved(other, interfaceIndex: 2), to: &snapshot, .addresses, lost: [Sample.own4])
    }

    /// An IPv6 address is there once; its peer may be set later.
    @Test func `an IPv6 address that gets a peer is no second one`() {
        var snapshot = Sample.network
        let address = InterfaceAddress(Sample.own6, prefixLength: 64, peer: Sample.gateway6)
        apply(.addressPresent(address, interfaceIndex: 2), to: &snapshot, .addresses)
        #expect(snapshot.interfaces[2]?.addresses[1] == address)
        #expect(snapshot.interfaces[2]?.addresses.count == 3)
    }

    /// The other copy does not help while packets may not carry it.
    @Test func `an address whose other copy is tentative is lost`() {
        var snapshot = Sample.network
        let address = InterfaceAddress(Sample.own6, prefixLength: 64, isTentative: true)
        apply(.addressPresent(address, interfaceIndex: 3), to: &snapshot, .addresses)
        apply(
            .addressRemoved(InterfaceAddress(Sample.own6, prefixLength: 64), interfaceIndex: 2), to: &snapshot,
            .addresses, lost: [Sample.own6])
    }

    @Test func `duplicate detection runs its course`() {
        var snapshot = Sample.network
        var address = InterfaceAddress(Self.other4, prefixLength: 24, isTentative: true)
        apply(.addressPresent(address, interfaceIndex: 2), to: &snapshot, .addresses)
        #expect(!snapshot.hasUsable(Self.other4))
        address.isTentative = false
        apply(.addressPresent(address, interfaceIndex: 2), to: &snapshot, .addresses)
        #expect(snapshot.hasUsable(Self.other4))
        address.isDuplicate = true
        apply(.addressPresent(address, interfaceIndex: 2), to: &snapshot, .addresses, lost: [Self.other4])
        #expect(!snapshot.hasUsable(Self.other4))
    }

    /// No flow can be bound to it (bind(2) refuses a tentative address), so none is to be told that it went.
    @Test func `an address that never worked is not lost`() {
        var snapshot = Sample.network
        var address = InterfaceAddress(Self.other4, prefixLength: 24, isTentative: true)
        apply(.addressPresent(address, interfaceIndex: 2), to: &snapshot, .addresses)
        (address.isTentative, address.isDuplicate) = (false, true)
        apply(.addressPresent(address, interfaceIndex: 2), to: &snapshot, .addresses)
        address.isDeprecated = true
        apply(.addressPresent(address, interfaceIndex: 2), to: &snapshot, .addresses)
        apply(
            .addressRemoved(InterfaceAddress(Self.other4, prefixLength: 24), interfaceIndex: 2), to: &snapshot,
            .addresses)
    }

    /// Messages of two groups may be read in either order.
    @Test func `an address before its link is kept`() {
        var snapshot = NetworkSnapshot()
        let address = InterfaceAddress(Sample.own4, prefixLength: 24)
        apply(.addressPresent(address, interfaceIndex: 2), to: &snapshot, .addresses)
        #expect(snapshot.interfaces[2]?.isOperational == false)
        apply(.interfacePresent(Sample.wired), to: &snapshot, .interfaces)
        #expect(snapshot.interfaces[2]?.name == "eth0")
        #expect(snapshot.interfaces[2]?.addresses == [address])
    }

    /// What they say is not kept: the kernel is asked again.
    @Test(arguments: [(KernelEvent.ruleChanged, KernelChange.Subjects.rules), (.nextHopChanged, .nextHops)])
    func `rules and next hops always count`(event: KernelEvent, subject: KernelChange.Subjects) {
        var snapshot = Sample.network
        apply(event, to: &snapshot, subject)
        apply(event, to: &snapshot, subject)
    }

    @Test func `routes always count with where they lead`() {
        var snapshot = Sample.network
        let prefix = IPPrefix(Sample.own4, length: 24)
        apply(.routeChanged(prefix), to: &snapshot, .routes, routes: .inside([prefix]))
        apply(.routeChanged(prefix), to: &snapshot, .routes, routes: .inside([prefix]))
    }

    @Test func `the setting by which routes are passed over concerns them all`() {
        var snapshot = Sample.network
        apply(.routeSelectionChanged, to: &snapshot, .routes, routes: .all)
    }

    /// Between two failures it was asked for, and the kernel may have gone by it or round it.
    @Test func `a gateway recovers once and each of its failures counts`() {
        var snapshot = Sample.network
        apply(.neighbourChanged(Self.deadGateway, isFailed: false), to: &snapshot, [])
        apply(.neighbourChanged(Self.deadGateway, isFailed: true), to: &snapshot, .neighbours)
        apply(.neighbourChanged(Self.deadGateway, isFailed: true), to: &snapshot, .neighbours)
        #expect(snapshot.failedNeighbours == [Self.deadGateway])
        apply(.neighbourChanged(Self.deadGateway, isFailed: false), to: &snapshot, .neighbours)
        #expect(snapshot.failedNeighbours.isEmpty)
    }

    /// The kernel sweeps its table, and failures go first: no sign of life, but to be asked for.
    @Test func `a failure that was forgotten stands`() {
        var snapshot = Sample.network
        #expect(snapshot.apply(.neighbourForgotten(Self.deadGateway)) == KernelChange())
        _ = snapshot.apply(.neighbourChanged(Self.deadGateway, isFailed: true))
        let generation = snapshot.generation
        #expect(snapshot.apply(.neighbourAwaited(Self.deadGateway)) == KernelChange())
        #expect(snapshot.failedNeighbours == [Self.deadGateway])
        let change = snapshot.apply(.neighbourForgotten(Self.deadGateway))
        #expect(change.subjects.isEmpty && !change.isEmpty)
        #expect(change.forgotten == [Self.deadGateway])
        #expect(snapshot.failedNeighbours == [Self.deadGateway])
        #expect(snapshot.generation == generation)
    }

    /// What was known of the other end of a cable goes with the cable.
    @Test(arguments: [\Interface.isUp, \Interface.hasCarrier])
    func `a failure goes with its link`(property: any WritableKeyPath<Interface, Bool> & Sendable) {
        var snapshot = Sample.network
        let elsewhere = NetworkSnapshot.Neighbour(interfaceIndex: 3, address: Sample.gateway4)
        snapshot.failedNeighbours = [Self.deadGateway, elsewhere]
        var wired = Sample.wired
        wired[keyPath: property] = false
        _ = snapshot.apply(.interfacePresent(wired))
        #expect(snapshot.failedNeighbours == [elsewhere])
    }

    /// kernel.md, 18: A to B to A is two changes.
    @Test func `there and back is visible`() {
        var snapshot = Sample.network
        var wired = Sample.wired
        wired.hasCarrier = false
        apply(
            .interfacePresent(wired), to: &snapshot, .interfaces, lost: [Sample.own4, Sample.own6, Sample.linkLocal6])
        apply(.interfacePresent(Sample.wired), to: &snapshot, .interfaces)
        #expect(snapshot.interfaces == Sample.network.interfaces)
        #expect(snapshot.generation == Sample.network.generation + 2)
    }

    @Test func `a reread replaces everything but the user's word`() {
        var snapshot = Sample.network
        snapshot.costs = CostPolicy(expensive: ["wlan0"], constrained: ["wlan0"])
        snapshot.isCoherent = false
        let generation = snapshot.generation
        var reread = NetworkSnapshot()
        for event in [
            KernelEvent.interfacePresent(Sample.wifi),
            .addressPresent(InterfaceAddress(Sample.own4, prefixLength: 24), interfaceIndex: 3),
            .addressPresent(InterfaceAddress(Sample.own6, prefixLength: 64, isDuplicate: true), interfaceIndex: 3),
        ] {
            _ = reread.apply(event)
        }
        let change = snapshot.replace(with: reread)
        #expect(change.subjects == .all)
        #expect(
            change.lostAddresses == [Sample.own6, Sample.linkLocal6, IPAddress.loopback, IPAddress.loopbackV6],
            "moved to another interface is not lost; a duplicate is")
        #expect(snapshot.interfaces.keys.sorted() == [3])
        #expect(snapshot.interfaces[3]?.isExpensive == true)
        #expect(snapshot.interfaces[3]?.isConstrained == true)
        #expect(snapshot.costs.expensive == ["wlan0"])
        #expect(snapshot.isCoherent)
        #expect(snapshot.generation == generation + 1)
    }

    @Test func `a reread that finds the same still counts`() {
        var snapshot = Sample.network
        let change = snapshot.replace(with: Sample.network)
        #expect(change == .everything)
        #expect(snapshot.generation == Sample.network.generation + 1)
    }

    @Test func `changes of one turn add up`() {
        var change = KernelChange()
        #expect(change.isEmpty)
        change.merge(KernelChange(.addresses, lostAddresses: [Sample.own4]))
        change.merge(KernelChange(.routes, lostAddresses: [Sample.own6]))
        #expect(change == KernelChange([.addresses, .routes], lostAddresses: [Sample.own4, Sample.own6]))
        #expect(!change.isEmpty)
    }

    @Test func `every subject is part of all`() {
        let subjects: [KernelChange.Subjects] = [
            .interfaces, .addresses, .routes, .rules, .nextHops, .neighbours, .coherence,
        ]
        #expect(Set(subjects.map(\.rawValue)).count == subjects.count)
        #expect(subjects.reduce(into: []) { $0.formUnion($1) } == KernelChange.Subjects.all)
    }
}
