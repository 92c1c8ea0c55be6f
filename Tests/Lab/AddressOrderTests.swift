// SPDX-License-Identifier: Apache-2.0

import DialtoneExpectations
import DialtoneLabSupport
import DialtoneNetworkPath
import DialtoneTestSupport
import Reachability
import Testing

/// The messages about addresses do not tell where in its list the kernel has put them.
@Suite(.lab)
struct AddressOrderTests {
    @Test func `addresses that come and go are in the kernel's order`() async throws {
        try await LabNetwork.with { lab in
            let engine = try await lab.engine()
            for command in [
                "add 192.0.2.9/24", "add 198.18.0.1/24 scope link", "add 192.0.2.10/24", "add 198.18.1.1/24",
                // The second of its network takes the place of the first.
                "delete 192.0.2.2/24", "add 192.0.2.2/24",
                "add 2001:db8:a::9/64 nodad", "add fe80::9/64 nodad", "add fec0::9/64 nodad",
                "delete 2001:db8:a::2/64", "add 2001:db8:a::2/64 nodad", "add 198.18.2.1/24 scope link",
            ] {
                try await lab.host.ip("address \(command) dev wan0")
                let kernel = try await lab.host.link("wan0").addresses.map(\.local)
                try await eventually("the kernel's order after \(command): \(kernel)") {
                    let known = engine.snapshot.interfaces[Uplink.wan0.index]?.addresses ?? []
                    return known.map(\.address.description) == kernel
                }
            }
            // Of one that begins now the list comes from a dump.
            let newcomer = try await lab.engine()
            let order = await engine.snapshot.interfaces.mapValues { $0.addresses.map(\.address) }
            expect(await newcomer.snapshot.interfaces.mapValues { $0.addresses.map(\.address) }, is: order)
        }
    }
}
