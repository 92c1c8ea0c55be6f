// SPDX-License-Identifier: Apache-2.0

import DialtoneExpectations
import DialtoneLabSupport
import DialtoneNetlink
import DialtoneNetworkPath
import DialtonePlatform
import Reachability
import Testing

/// A dump shows no single moment. So: subscribe first, dump on a second socket, replay what came meanwhile over it.
@Suite(.lab)
struct Case15Dumps {
    /// The sockets are subscribed before the engine reads anything, so these changes are both in the dump and among the
    /// notices that are replayed over it.
    @Test func `case 15: what came before the dump and is replayed after it leaves the state as it is`() async throws {
        try await LabNetwork.with { lab in
            let sockets = try await lab.host.run { try KernelSockets() }
            try await lab.host.ip(batch: [
                "address add 192.0.2.7/24 dev wan0", "address add 192.0.2.8/24 dev wan0",
                "address delete 192.0.2.7/24 dev wan0",
                "link add name gone0 type veth peer name gone1", "link delete gone0",
                // Without the address that comes a while after the carrier, and is told of later still.
                "link set wan1 addrgenmode none", "link set wan1 down", "link set wan1 up",
            ])
            let engine = await NetworkState(sockets)
            let paths = PathRecorder(.server(.v4), by: engine)
            try await paths.next("the present path") { $0.status == .satisfied }
            try await KernelCase(lab: lab, engine: engine).catchUp(paths)
            let snapshot = await engine.snapshot
            try await lab.host.expectAgreement(snapshot)
            #expect(snapshot.isCoherent)
        }
    }

    @Test func `case 15: dumps that are interrupted again and again end with the right state`() async throws {
        try await LabNetwork.with { lab in
            // Enough that a dump takes many datagrams: the kernel looks whether it was interrupted at each.
            try await lab.host.ip(batch: (0..<1000).map { "address add 198.18.\($0 / 250).\($0 % 250)/32 dev wan1" })
            let sockets = try await lab.host.run { try KernelSockets() }
            // Begins before the first dump and ends some time after it.
            let churn = Task {
                try await lab.host.ip(
                    batch: (0..<4000).flatMap { number in
                        let address = "198.19.\(number / 250).\(number % 250)/32 dev wan1"
                        return ["address add \(address)"] + (number % 10 == 0 ? [] : ["address delete \(address)"])
                    })
            }
            let engine = await NetworkState(sockets)
            let paths = PathRecorder(.server(.v4), by: engine)
            // Each start reads everything once more, on other sockets, while it goes on.
            for _ in 1...20 {
                let sockets = try await lab.host.run { try KernelSockets() }
                let other = await NetworkState(sockets)
                expect(await other.snapshot.interfaces.isEmpty, is: false)
            }
            try await churn.value
            try await KernelCase(lab: lab, engine: engine).catchUp(paths)
            try await lab.host.expectAgreement(await engine.snapshot)
        }
    }
}

extension Namespace {
    /// Holds that a snapshot has each interface, its state and its addresses as `ip` shows them.
    fileprivate func expectAgreement(
        _ snapshot: NetworkSnapshot, _ location: SourceLocation = #_sourceLocation
    ) async throws {
        for interface in snapshot.interfaces.values {
            let link = try await link(interface.name)
            #expect(link.ifindex == interface.index, sourceLocation: location)
            #expect(link.isUp == interface.isUp, "\(interface.name)", sourceLocation: location)
            #expect(
                link.addresses.map(\.local).sorted() == interface.addresses.map(\.address.description).sorted(),
                "\(interface.name)", sourceLocation: location)
        }
        let count = try await ip("-o link show").split(separator: "\n").count
        #expect(snapshot.interfaces.count == count, sourceLocation: location)
    }
}
