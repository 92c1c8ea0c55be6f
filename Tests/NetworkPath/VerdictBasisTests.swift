// SPDX-License-Identifier: Apache-2.0

import DialtoneNetworkPath
import Testing

/// Which events may change which verdict: the table of the rule.
struct VerdictBasisTests {
    /// A verdict, by what was asked and what the kernel answered on the network of ``Sample``.
    enum Verdict: CaseIterable, CustomTestStringConvertible {
        /// By the default route over the Ethernet.
        case wired
        /// The same in IPv6.
        case wired6
        /// Over the Ethernet, with the address of another link as its source.
        case borrowed
        /// By no route.
        case stranded
        /// Refused by a rule.
        case prohibited
        /// Asked for over the second link, which has no route.
        case bound
        /// With a given source.
        case sourced

        var testDescription: String { "\(self)" }

        var query: RouteQuery {
            var query = RouteQuery(self == .wired6 ? Sample.remote6 : Sample.remote4)
            if self == .bound { query.interfaceIndex = Sample.wifiIndex }
            if self == .sourced { query.source = VerdictBasisTests.wifiAddress }
            return query
        }

        var answer: RouteAnswer {
            switch self {
            case .wired: .route(Sample.route4)
            case .wired6: .route(Sample.route6)
            case .borrowed:
                .route(Route(interfaceIndex: 2, gateway: Sample.gateway4, source: VerdictBasisTests.wifiAddress))
            case .stranded, .bound: .refused(.noRoute)
            case .prohibited: .refused(.prohibited)
            case .sourced:
                .route(Route(interfaceIndex: 2, gateway: Sample.gateway4, source: VerdictBasisTests.wifiAddress))
            }
        }

        func basis(in snapshot: NetworkSnapshot) -> VerdictBasis {
            var basis = VerdictBasis(capacity: 1)
            basis.add(query, answer, in: snapshot)
            return basis
        }
    }

    fileprivate static let wifiAddress = IPAddress(v4: 0xC633_6464)  // 198.51.100.100
    private static let elsewhere = IPPrefix(IPAddress(v4: 0xCB00_7100), length: 24)
    private static let there = IPPrefix(Sample.remote4, length: 24)
    private static let there6 = IPPrefix(Sample.remote6, length: 64)

    /// Ethernet and an idle second link, both followed since they appeared, with no word of a route through either.
    private static func network() -> NetworkSnapshot {
        var snapshot = NetworkSnapshot()
        for link in [Sample.lo, Sample.wired, Sample.wifi] {
            _ = snapshot.apply(.interfacePresent(link, isRunning: true))
            for address in link.addresses {
                _ = snapshot.apply(.addressPresent(address, interfaceIndex: link.index))
            }
        }
        let address = InterfaceAddress(wifiAddress, prefixLength: 24)
        _ = snapshot.apply(.addressPresent(address, interfaceIndex: Sample.wifiIndex))
        return snapshot
    }

    private static func veth(_ change: (inout Interface) -> Void = { _ in }) -> KernelEvent {
        var link = Interface(index: 70, name: "veth0", kind: .virtual)
        change(&link)
        return .interfacePresent(link, isRunning: true)
    }

    /// The verdicts, of those made on `network`, that the events after it may change.
    private func concerned(_ events: [KernelEvent], after network: NetworkSnapshot = network()) -> Set<Verdict> {
        let bases = Verdict.allCases.map { ($0, $0.basis(in: network)) }
        var snapshot = network
        var change = KernelChange()
        for event in events { change.merge(snapshot.apply(event)) }
        let scope = ChangeScope(change, in: snapshot)
        return Set(bases.filter { $0.1.isConcerned(by: scope) }.map(\.0))
    }

    @Test(
        arguments: [
            ([KernelEvent.routeChanged(elsewhere)], []),
            ([.routeChanged(there)], [Verdict.wired, .borrowed, .stranded, .prohibited, .bound, .sourced]),
            ([.routeChanged(there6)], [.wired6]),
            ([.ruleChanged], Verdict.allCases),
            ([.nextHopChanged], Verdict.allCases),
            ([.routeSelectionChanged], Verdict.allCases),
            (
                [.neighbourChanged(.init(interfaceIndex: 2, address: Sample.gateway4), isFailed: true)],
                [.wired, .borrowed, .sourced]
            ),
            ([.neighbourChanged(.init(interfaceIndex: 2, address: Sample.gateway6), isFailed: true)], [.wired6]),
            ([.neighbourChanged(.init(interfaceIndex: 3, address: Sample.gateway4), isFailed: true)], []),
            (
                [.addressRemoved(InterfaceAddress(Sample.own4, prefixLength: 24), interfaceIndex: 2)],
                [.wired, .wired6, .borrowed, .sourced]
            ),
            // Of the second link's address: who uses it, and who asked for the link.
            (
                [.addressRemoved(InterfaceAddress(wifiAddress, prefixLength: 24), interfaceIndex: 3)],
                [.borrowed, .sourced, .bound]
            ),
            // Who borrows a source may be lent another.
            (
                [.addressPresent(InterfaceAddress(IPAddress(v4: 0x0A00_0001), prefixLength: 8), interfaceIndex: 3)],
                [.borrowed, .bound]
            ),
            (
                [.addressPresent(InterfaceAddress(IPAddress(v6: 1 << 125), prefixLength: 8), interfaceIndex: 3)],
                [.bound]
            ),
        ] as [([KernelEvent], [Verdict])])
    func `an event concerns those whose verdict rests on it`(events: [KernelEvent], expected: [Verdict]) {
        #expect(concerned(events) == Set(expected))
    }

    /// A container's link: it comes, goes up, gets a link-local address, joins a bridge, goes down and away.
    @Test func `a containers link concerns nobody`() {
        let address = IPAddress(v6: UInt128(0xFE80) << 112 | 0x77)
        let life: [KernelEvent] = [
            Self.veth {
                $0.isUp = false
                $0.hasCarrier = false
            },
            Self.veth { $0.hasCarrier = false }, Self.veth(),
            .addressPresent(InterfaceAddress(address, prefixLength: 64, isTentative: true), interfaceIndex: 70),
            .addressPresent(InterfaceAddress(address, prefixLength: 64), interfaceIndex: 70),
            .routeChanged(IPPrefix(IPAddress(v6: 0xFF << 120), length: 8), through: .these([70])),
            .routeChanged(IPPrefix(IPAddress(v6: 0xFE80 << 112), length: 64), through: .these([70])),
            Self.veth { $0.name = "eth0" },
            .addressRemoved(InterfaceAddress(address, prefixLength: 64), interfaceIndex: 70),
            Self.veth { $0.hasCarrier = false },
            .interfaceRemoved(index: 70),
        ]
        for length in 1...life.count { #expect(concerned(Array(life.prefix(length))).isEmpty, "\(length) events") }
        var network = Self.network()
        for (position, event) in life.enumerated() {
            #expect(concerned([event], after: network).isEmpty, "event \(position)")
            _ = network.apply(event)
        }
    }

    /// The link was there before the kernel was followed, and nobody knows its routes.
    @Test(
        arguments: [
            [veth { $0.isUp = false }], [veth { $0.hasCarrier = false }], [.interfaceRemoved(index: 70)],
        ] as [[KernelEvent]])
    func `what a link does in silence concerns all whom it may lead to`(events: [KernelEvent]) {
        var network = Self.network()
        _ = network.apply(Self.veth())
        #expect(concerned(events, after: network).isEmpty)
        network.loseTrackOfRoutes()
        #expect(concerned(events, after: network) == Set(Verdict.allCases))
    }

    /// A route through it to one of them was told; of one through which too many were, it is not kept where to.
    @Test func `a link that got a route concerns those it leads to`() {
        let history = [Self.veth(), .routeChanged(Self.there, through: .these([70]))]
        let network = Self.network()
        let bases = Verdict.allCases.map { ($0, $0.basis(in: network)) }
        var snapshot = network
        for event in history { _ = snapshot.apply(event) }
        // The route has gone, but its link may bring it back unsaid.
        for event in [Self.veth { $0.hasCarrier = false }, Self.veth()] {
            let scope = ChangeScope(snapshot.apply(event), in: snapshot)
            let concerned = Set(bases.filter { $0.1.isConcerned(by: scope) }.map(\.0))
            #expect(concerned == Set(Verdict.allCases).subtracting([.wired6]))
        }
        for number in 0..<UInt32(64) {
            snapshot.noteRoute(to: IPPrefix(IPAddress(v4: number << 8), length: 24), through: .these([70]))
        }
        let scope = ChangeScope(snapshot.apply(.interfaceRemoved(index: 70)), in: snapshot)
        #expect(bases.allSatisfy { $0.1.isConcerned(by: scope) })
    }

    /// The kernel settles a carrier's routes together with `IFF_RUNNING`, maybe after the flag for the carrier itself.
    @Test func `a link that settles concerns all whom it may lead to`() {
        let settled = KernelEvent.interfacePresent(Sample.wifi, isRunning: false)
        var network = Self.network()
        network.loseTrackOfRoutes()
        #expect(concerned([settled], after: network) == Set(Verdict.allCases))
        #expect(concerned([.interfacePresent(Sample.wifi, isRunning: true)], after: network).isEmpty)
    }

    /// IPv6 goes round a dead router by the next best route, and back when it is there again.
    @Test(arguments: [true, false])
    func `a neighbour concerns all whom its link may lead to`(isFailed: Bool) {
        let router = NetworkSnapshot.Neighbour(interfaceIndex: Sample.wifiIndex, address: Sample.gateway6)
        var network = Self.network()
        network.failedNeighbours = isFailed ? [] : [router]
        let event = KernelEvent.neighbourChanged(router, isFailed: isFailed)
        #expect(concerned([event], after: network).isEmpty)
        network.noteRoute(to: .all(.v6), through: .these([Sample.wifiIndex]))
        #expect(concerned([event], after: network) == [.wired6])
    }

    /// After a next-hop object changed, or messages were lost, any link may lead anywhere.
    @Test(arguments: [KernelEvent.nextHopChanged, .routeChanged(there, through: .unnamed)])
    func `after a route without a named link any link may lead there`(event: KernelEvent) {
        var network = Self.network()
        let basis = Verdict.wired.basis(in: network)
        _ = network.apply(Self.veth())
        _ = network.apply(event)
        let scope = ChangeScope(network.apply(.interfaceRemoved(index: 70)), in: network)
        #expect(basis.isConcerned(by: scope))
    }

    /// Without a route the reason is read from all links: a carrier, an address of the family.
    @Test func `the reason for no route is everybodys`() {
        let network = Self.network()
        var down = [Sample.wired, Sample.wifi].map { link in
            var link = link
            link.hasCarrier = false
            return KernelEvent.interfacePresent(link, isRunning: true)
        }
        let basis = Verdict.stranded.basis(in: network)
        var snapshot = network
        var change = snapshot.apply(down.removeFirst())
        // There is another with a carrier and an address.
        #expect(!basis.isConcerned(by: ChangeScope(change, in: snapshot)))
        change = snapshot.apply(down.removeFirst())
        #expect(basis.isConcerned(by: ChangeScope(change, in: snapshot)))
    }

    /// IPv6 prefers another link's address to a deprecated one of the route's own (RFC 6724, rule 3 before 5).
    @Test func `an IPv6 source is its link's own only while it is good`() {
        let news = KernelEvent.addressPresent(
            InterfaceAddress(IPAddress(v6: 1 << 125), prefixLength: 64), interfaceIndex: 3)
        #expect(!concerned([news]).contains(.wired6))
        var network = Self.network()
        let deprecated = InterfaceAddress(Sample.own6, prefixLength: 64, isDeprecated: true)
        _ = network.apply(.addressPresent(deprecated, interfaceIndex: 2))
        #expect(concerned([news], after: network).contains(.wired6))
    }

    @Test func `the gateways are those of the answers`() {
        var basis = VerdictBasis(capacity: 7)
        for verdict in Verdict.allCases { basis.add(verdict.query, verdict.answer, in: Self.network()) }
        let gateways = [Sample.gateway4, Sample.gateway6].map {
            NetworkSnapshot.Neighbour(interfaceIndex: 2, address: $0)
        }
        #expect(Set(basis.gateways) == Set(gateways))
    }
}
