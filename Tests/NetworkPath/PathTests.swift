// SPDX-License-Identifier: Apache-2.0

import DialtoneNetworkPath
import Testing

struct PathTests {
    /// The best of several failures is the one that came furthest.
    @Test func `of several failures the furthest is told`() {
        let byDistance: [Path] = [
            .unknown(generation: 1, destination: nil),
            failed(.noCarrier), failed(.noAddress), failed(.noRoute), failed(.unreachable),
            failed(.noCarrier, on: Sample.wired), failed(.noAddress, on: Sample.wired),
            failed(.noRoute, on: Sample.wired), failed(.gatewayUnreachable, on: Sample.wired),
        ]
        for (position, further) in byDistance.enumerated() {
            for nearer in byDistance[..<position] {
                #expect(Path.best(of: [nearer, further]) == further)
                #expect(Path.best(of: [further, nearer]) == further)
            }
        }
    }

    @Test func `a satisfied candidate beats every failure`() {
        let good = Path(status: .satisfied, destination: Sample.remote6)
        #expect(Path.best(of: [failed(.gatewayUnreachable, on: Sample.wired), good]) == good)
    }

    @Test func `of several satisfied candidates the first is taken`() {
        let paths = [Sample.remote6, Sample.remote4].map { Path(status: .satisfied, destination: $0) }
        #expect(Path.best(of: [failed(.noRoute)] + paths) == paths[0])
    }

    @Test func `of equal failures the first is taken`() {
        let first = Path(status: .unsatisfied, reason: .prohibited, destination: Sample.remote4)
        let second = Path(status: .unsatisfied, reason: .blackhole, destination: Sample.remote6)
        #expect(Path.best(of: [first, second]) == first)
    }

    @Test func `no candidates have no best`() {
        #expect(Path.best(of: []) == nil)
    }

    @Test(arguments: [true, false], [true, false])
    func `facts are filled in`(v4: Bool, v6: Bool) {
        let facts = NetworkFacts(supportsIPv4: v4, supportsIPv6: v6, supportsDNS: v4 != v6)
        let path = failed(.noRoute).with(facts)
        #expect(path.supportsIPv4 == v4)
        #expect(path.supportsIPv6 == v6)
        #expect(path.supportsDNS == (v4 != v6))
        #expect(path.status == .unsatisfied)
        #expect(path.reason == .noRoute)
    }

    @Test(arguments: [(Sample.remote4, true, false), (Sample.remote6, false, true)])
    func `a satisfied path proves its own family`(destination: IPAddress, v4: Bool, v6: Bool) {
        let satisfied = Path(status: .satisfied, destination: destination).with(NetworkFacts())
        #expect(satisfied.supportsIPv4 == v4)
        #expect(satisfied.supportsIPv6 == v6)
        let unsatisfied = Path(status: .unsatisfied, destination: destination).with(NetworkFacts())
        #expect(!unsatisfied.supportsIPv4)
        #expect(!unsatisfied.supportsIPv6)
    }

    /// Facts change while the path stands, and that of the network goes without its destination by then.
    @Test(arguments: [(Sample.remote4, Sample.route4), (Sample.remote6, Sample.route6)])
    func `the proof outlives the destination`(destination: IPAddress, route: Route) {
        var path = Path(to: destination, by: .route(route), in: Sample.network).with(NetworkFacts())
        let proven = path
        path.destination = nil
        path = path.with(NetworkFacts())
        #expect(path.supportsIPv4 == proven.supportsIPv4)
        #expect(path.supportsIPv6 == proven.supportsIPv6)
    }

    @Test func `a name without address on a working network is unresolved`() {
        let network = Path(to: Sample.remote4, by: .route(Sample.route4), in: Sample.network)
        let path = Path.unresolved(network: network)
        #expect(path.status == .unsatisfied)
        #expect(path.reason == .nameUnresolved)
        #expect(path.destination == nil)
        #expect(path.interface == network.interface)
        #expect(path.generation == network.generation)
    }

    @Test func `a name without address on a dead network is the network's fault`() {
        let path = Path.unresolved(network: failed(.noCarrier))
        #expect(path.status == .unsatisfied)
        #expect(path.reason == .noCarrier)
    }

    /// It was asked for all the same, and no other network would help.
    @Test func `a name that does not exist is to blame whatever the network`() {
        let path = Path.unresolved(network: failed(.noRoute), isFinal: true)
        #expect(path.status == .unsatisfied)
        #expect(path.reason == .nameUnresolved)
        let unknown = Path.unknown(generation: 3, destination: nil)
        #expect(Path.unresolved(network: unknown, isFinal: true).status == .unknown)
    }

    /// kernel.md, 22: never "offline" where nobody could be asked.
    @Test func `what cannot be asked is unknown`() {
        let unknown = Path.unknown(generation: 3, destination: Sample.remote4)
        #expect(unknown.status == .unknown)
        #expect(unknown.reason == nil)
        #expect(!unknown.isCoherent)
        #expect(Path.unresolved(network: unknown).status == .unknown)
    }

    private func failed(_ reason: Path.Reason, on interface: Interface? = nil) -> Path {
        Path(status: .unsatisfied, reason: reason, interface: interface)
    }
}
