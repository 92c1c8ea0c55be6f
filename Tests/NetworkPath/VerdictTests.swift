// SPDX-License-Identifier: Apache-2.0

import DialtoneNetworkPath
import DialtoneTestSupport
import Testing

/// One answer of the kernel in one state of the network, and what is to be concluded.
struct VerdictCase: CustomTestStringConvertible, Sendable {
    let testDescription: String
    var destination = Sample.remote4
    let answer: RouteAnswer
    var network = Sample.network
    let reason: Path.Reason?
}

struct VerdictTests {
    /// kernel.md, 11: each refusal is a different reason to the user.
    @Test(arguments: [
        VerdictCase(testDescription: "no route", answer: .refused(.noRoute), reason: .noRoute),
        VerdictCase(testDescription: "unreachable", answer: .refused(.unreachable), reason: .unreachable),
        VerdictCase(testDescription: "prohibit", answer: .refused(.prohibited), reason: .prohibited),
        VerdictCase(testDescription: "blackhole", answer: .refused(.blackhole), reason: .blackhole),
        VerdictCase(
            testDescription: "no IPv6 in the kernel", destination: Sample.remote6,
            answer: .refused(.familyUnsupported), reason: .noAddress),
        VerdictCase(testDescription: "an unforeseen error", answer: .refused(.other(code: 12)), reason: .noRoute),
    ])
    func `a refusal says why`(_ row: VerdictCase) { check(row) }

    /// Only "no route" is looked into further; a rule or route that forbids is the reason even with no link up.
    @Test(arguments: [
        (RouteRefusal.unreachable, Path.Reason.unreachable), (.prohibited, .prohibited), (.blackhole, .blackhole),
    ])
    func `a forbidding route is the reason whatever the links`(refusal: RouteRefusal, reason: Path.Reason) {
        let path = Path(to: Sample.remote4, by: .refused(refusal), in: NetworkSnapshot())
        #expect(path.reason == reason)
    }

    /// What the links offer is found out once for many verdicts, and anew once one of them has changed.
    @Test func `a reason is that of the links as they are`() {
        var network = Sample.network
        network.prepareForVerdicts()
        #expect(Path(to: Sample.remote4, by: .refused(.noRoute), in: network).reason == .noRoute)
        for index in network.interfaces.keys { network.interfaces[index]?.hasCarrier = false }
        #expect(Path(to: Sample.remote4, by: .refused(.noRoute), in: network).reason == .noCarrier)
        network.prepareForVerdicts()
        for index in network.interfaces.keys { network.interfaces[index]?.hasCarrier = true }
        #expect(Path(to: Sample.remote4, by: .refused(.noRoute), in: network).reason == .noRoute)
    }

    @Test(arguments: [
        VerdictCase(
            testDescription: "no interface at all", answer: .refused(.noRoute), network: NetworkSnapshot(),
            reason: .noCarrier),
        VerdictCase(
            testDescription: "the loopback alone", answer: .refused(.noRoute),
            network: NetworkSnapshot(interfaces: [1: Sample.lo]), reason: .noCarrier),
        VerdictCase(
            testDescription: "the cable is out", answer: .refused(.noRoute),
            network: Sample.network.wired { $0.hasCarrier = false }, reason: .noCarrier),
        VerdictCase(
            testDescription: "the only link is down", answer: .refused(.noRoute),
            network: Sample.network.wired { $0.isUp = false }, reason: .noCarrier),
        VerdictCase(
            testDescription: "a link without an address", answer: .refused(.noRoute),
            network: Sample.network.wired { $0.addresses = [] }, reason: .noAddress),
        VerdictCase(
            testDescription: "an address of the other family only", destination: Sample.remote6,
            answer: .refused(.noRoute),
            network: Sample.network.wired { $0.addresses.removeAll { $0.address.family == .v6 } }, reason: .noAddress),
        VerdictCase(
            testDescription: "a link-local address only", destination: Sample.remote6, answer: .refused(.noRoute),
            network: Sample.network.wired { $0.addresses.removeAll { $0.address == Sample.own6 } }, reason: .noAddress),
        VerdictCase(
            testDescription: "the address is still tentative", answer: .refused(.noRoute),
            network: Sample.network.address(Sample.own4) { $0.isTentative = true }, reason: .noAddress),
        VerdictCase(
            testDescription: "the address is on a link without carrier", answer: .refused(.noRoute),
            network: Sample.network.wired { $0.hasCarrier = false }
                .with { $0.interfaces[Sample.wifiIndex] = Sample.wifi }, reason: .noAddress),
        VerdictCase(
            testDescription: "one link of two works", answer: .refused(.noRoute),
            network: Sample.network.with {
                $0.interfaces[Sample.wifiIndex] = Interface(index: 3, name: "wlan0", kind: .wifi, hasCarrier: false)
            }, reason: .noRoute),
    ])
    func `no route is traced to its cause`(_ row: VerdictCase) { check(row) }

    /// kernel.md, 6, 8 and 10: a lookup that succeeds proves little.
    @Test(arguments: [
        VerdictCase(testDescription: "nothing", answer: .route(Sample.route4), reason: nil),
        VerdictCase(
            testDescription: "nothing, over IPv6", destination: Sample.remote6, answer: .route(Sample.route6),
            reason: nil),
        VerdictCase(
            testDescription: "the carrier is gone and the route stays", answer: .route(Sample.route4),
            network: Sample.network.wired { $0.hasCarrier = false }, reason: .noCarrier),
        VerdictCase(
            testDescription: "the link is down", answer: .route(Sample.route4),
            network: Sample.network.wired { $0.isUp = false }, reason: .noRoute),
        VerdictCase(
            testDescription: "the link is not known yet", answer: .route(Sample.route4),
            network: Sample.network.with { $0.interfaces[Sample.wiredIndex] = nil }, reason: .noRoute),
        VerdictCase(
            testDescription: "nothing: without a route, a guess that the destination is on the link",
            answer: .route(Route(interfaceIndex: 2, source: Sample.own4, table: 0)), reason: nil),
        VerdictCase(
            testDescription: "no source address", answer: .route(Route(interfaceIndex: 2, source: nil)),
            reason: .noAddress),
        VerdictCase(
            testDescription: "an unspecified source address",
            answer: .route(Route(interfaceIndex: 2, source: IPAddress(v6: 0))), reason: .noAddress),
        VerdictCase(
            testDescription: "source ::1, as during duplicate address detection", destination: Sample.remote6,
            answer: .route(Route(interfaceIndex: 2, gateway: Sample.gateway6, source: IPAddress.loopbackV6)),
            reason: .noAddress),
        VerdictCase(
            testDescription: "a link-local source beyond the link", destination: Sample.remote6,
            answer: .route(Route(interfaceIndex: 2, gateway: Sample.gateway6, source: Sample.linkLocal6)),
            reason: .noAddress),
        VerdictCase(
            testDescription: "nothing: a link-local source on the link", destination: Sample.remote6,
            answer: .route(Route(interfaceIndex: 2, source: Sample.linkLocal6)), reason: nil),
        VerdictCase(
            testDescription: "a tentative source", destination: Sample.remote6, answer: .route(Sample.route6),
            network: Sample.network.address(Sample.own6) { $0.isTentative = true }, reason: .noAddress),
        VerdictCase(
            testDescription: "a source that another host has", destination: Sample.remote6,
            answer: .route(Sample.route6),
            network: Sample.network.address(Sample.own6) { $0.isDuplicate = true }, reason: .noAddress),
        VerdictCase(
            testDescription: "nothing: a deprecated source still works", destination: Sample.remote6,
            answer: .route(Sample.route6),
            network: Sample.network.address(Sample.own6) { $0.isDeprecated = true }, reason: nil),
        VerdictCase(
            testDescription: "nothing: the source is on another interface",
            answer: .route(Route(interfaceIndex: 3, gateway: Sample.gateway4, source: Sample.own4)),
            network: Sample.network.with { $0.interfaces[Sample.wifiIndex] = Sample.wifi }, reason: nil),
        VerdictCase(
            testDescription: "the gateway is dead", answer: .route(Sample.route4),
            network: Sample.network.with { $0.failedNeighbours = [.init(interfaceIndex: 2, address: Sample.gateway4)] },
            reason: .gatewayUnreachable),
        VerdictCase(
            testDescription: "nothing: the same address is dead on another link", answer: .route(Sample.route4),
            network: Sample.network.with { $0.failedNeighbours = [.init(interfaceIndex: 3, address: Sample.gateway4)] },
            reason: nil),
        VerdictCase(
            testDescription: "the gateway on that other link",
            answer: .route(Route(interfaceIndex: 3, gateway: Sample.gateway4, source: Sample.own4)),
            network: Sample.network.with {
                $0.interfaces[Sample.wifiIndex] = Sample.wifi
                $0.failedNeighbours = [.init(interfaceIndex: 3, address: Sample.gateway4)]
            }, reason: .gatewayUnreachable),
        VerdictCase(
            testDescription: "an IPv4 route's dead IPv6 gateway",
            answer: .route(Route(interfaceIndex: 2, gateway: Sample.gateway6, source: Sample.own4)),
            network: Sample.network.with { $0.failedNeighbours = [.init(interfaceIndex: 2, address: Sample.gateway6)] },
            reason: .gatewayUnreachable),
        VerdictCase(
            testDescription: "the carrier before the gateway", answer: .route(Sample.route4),
            network: Sample.network.wired { $0.hasCarrier = false }
                .with { $0.failedNeighbours = [.init(interfaceIndex: 2, address: Sample.gateway4)] },
            reason: .noCarrier),
        VerdictCase(
            testDescription: "the loopback is down", destination: Sample.own4,
            answer: .route(Route(scope: .local, interfaceIndex: 1, source: Sample.own4)),
            network: Sample.network.with {
                $0.interfaces[1] = Interface(index: 1, name: "lo", kind: .loopback, isUp: false)
            }, reason: .noRoute),
        VerdictCase(
            testDescription: "nothing: this machine itself", destination: Sample.own4,
            answer: .route(Route(scope: .local, interfaceIndex: 1, source: Sample.own4)),
            network: Sample.network.with { $0.interfaces = [:] }, reason: nil),
    ])
    func `what stands in the way of a route`(_ row: VerdictCase) { check(row) }

    /// A packet that is bound to a link finds a neighbour there where it finds no route.
    @Test func `a guess is no way where a route is needed`() {
        func reason(_ route: Route, in network: NetworkSnapshot = Sample.network) -> Path.Reason? {
            Path(to: Sample.remote4, by: .route(route), needsRoute: true, in: network).reason
        }
        let guess = Route(interfaceIndex: 2, source: Sample.own4, table: 0)
        #expect(reason(guess) == .noRoute)
        #expect(reason(guess, in: Sample.network.wired { $0.hasCarrier = false }) == .noCarrier)
        #expect(reason(Sample.route4) == nil)
        #expect(reason(Route(scope: .local, interfaceIndex: 1, source: Sample.own4, table: 0)) == nil)
    }

    @Test func `a satisfied path tells the way`() {
        let network = Sample.network.wired {
            $0.isExpensive = true
            $0.isConstrained = true
        }
        let path = Path(to: Sample.remote4, by: .route(Sample.route4), in: network)
        let expected = Path(
            generation: 7, status: .satisfied, interface: network.interfaces[2], gateway: Sample.gateway4,
            source: Sample.own4, destination: Sample.remote4, isExpensive: true, isConstrained: true)
        #expect(path == expected)
    }

    @Test func `a failed path still tells how far it goes`() {
        let network = Sample.network.wired { $0.hasCarrier = false }
        let path = Path(to: Sample.remote4, by: .route(Sample.route4), in: network)
        #expect(path.status == .unsatisfied)
        #expect(path.interface == network.interfaces[2])
        #expect(path.gateway == Sample.gateway4)
        #expect(path.source == Sample.own4)
    }

    @Test(arguments: [
        (Route(interfaceIndex: 2, gateway: Sample.gateway4, source: Sample.own4), false, false),
        (Route(interfaceIndex: 2, source: Sample.own4), true, false),
        (Route(scope: .local, interfaceIndex: 1, source: Sample.own4), true, true),
        (Route(scope: .group, interfaceIndex: 2, source: Sample.own4), true, false),
    ])
    func `direct and local`(route: Route, isDirect: Bool, isLocal: Bool) {
        let path = Path(to: Sample.own4, by: .route(route), in: Sample.network)
        #expect(path.isDirect == isDirect)
        #expect(path.isLocalAddress == isLocal)
    }

    @Test func `a path is as coherent as its snapshot`() {
        let network = Sample.network.with { $0.isCoherent = false }
        #expect(!Path(to: Sample.remote4, by: .route(Sample.route4), in: network).isCoherent)
        #expect(!Path(to: Sample.remote4, by: .refused(.noRoute), in: network).isCoherent)
        #expect(Path(to: Sample.remote4, by: .refused(.noRoute), in: Sample.network).isCoherent)
    }

    private func check(_ row: VerdictCase) {
        let path = Path(to: row.destination, by: row.answer, in: row.network)
        #expect(path.reason == row.reason)
        #expect(path.status == (row.reason == nil ? .satisfied : .unsatisfied))
        #expect(path.generation == row.network.generation)
        #expect(path.destination == row.destination)
    }
}
