// SPDX-License-Identifier: Apache-2.0

import DialtoneExpectations
import DialtoneLabSupport
import DialtoneNetworkPath
import Reachability
import Testing

/// Containers that come and go make links, bridge ports, addresses and routes by the hundred, and no path any worse.
@Suite(.lab)
struct Case20ContainerChurn {
    @Test(arguments: Family.allCases)
    func `case 20: containers that come and go change no verdict`(family: Family) async throws {
        try await KernelCase.play { it in
            let paths = try await it.watch(.server(family))
            let network = it.watchNetwork()
            try await network.next("the network") { $0.status == .satisfied }
            let path = try #require(paths.all.first)
            for number in 1...30 { try await it.host.ip(batch: Self.container(number)) }
            try await it.expectSilence(on: paths, since: path)
            let report = try await network.nextReport("the same")
            #expect(report.path.isMarked, "nor that on the network: \(report)")
            expect(
                await it.engine.snapshot.interfaces.values.map(\.name).sorted(), is: ["docker0", "lo", "wan0", "wan1"])
        }
    }

    /// The life of one: a veth pair of which one end is a bridge's port, a macvlan, a route, and its end.
    private static func container(_ number: Int) -> [String] {
        let (port, inside, lower) = ("veth\(number)a", "veth\(number)b", "mac\(number)")
        return (number == 1 ? ["link add docker0 type bridge", "address add 172.17.0.1/16 dev docker0"] : []) + [
            "link add name \(port) type veth peer name \(inside)", "link set \(port) master docker0",
            "link set docker0 up", "link set \(port) up", "link set \(inside) up",
            "address add 172.17.0.\(number + 1)/32 dev \(inside)",
            "route add 172.18.0.\(number)/32 via 172.17.0.\(number + 1)",
            "link add link wan0 name \(lower) type macvlan", "link set \(lower) up", "link delete \(lower)",
            "link delete \(port)",
        ]
    }
}
