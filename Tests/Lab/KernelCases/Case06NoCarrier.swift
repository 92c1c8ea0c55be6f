// SPDX-License-Identifier: Apache-2.0

import DialtoneLabSupport
import DialtoneNetworkPath
import Testing

/// A plain lookup succeeds with no carrier; unless `ignore_routes_with_linkdown` is set, the kernel sends the packet
/// into a link with nothing at its end.
@Suite(.lab)
struct Case06NoCarrier {
    @Test(arguments: Family.allCases)
    func `case 6: a link without carrier is no way, though the lookup succeeds`(family: Family) async throws {
        try await KernelCase.play { it in
            let paths = try await it.watch(.server(family))
            try await it.lab.cut(.wan0)
            let route = try await it.host.kernelRoute(LabNetwork.serverAddress(family)).found
            #expect(route?.device == "wan0", "the kernel would still send it there")
            let path = try await paths.next("the lost carrier") { $0.status == .unsatisfied }
            #expect(path.reason == .noCarrier)
            #expect(path.interface?.isUp == true && path.interface?.hasCarrier == false)
            try await it.expectAgreement(path, on: .server(family))
            try await it.lab.plug(.wan0)
            let back = try await paths.next("the carrier") { $0.status == .satisfied }
            #expect(back.interface?.name == "wan0")
        }
    }

    @Test(arguments: Family.allCases)
    func `case 6: where the kernel ignores routes with the link down, it is followed to the other uplink`(
        family: Family
    ) async throws {
        try await KernelCase.play { lab in
            try await lab.ignoreRoutesWithLinkDown(true, family)
        } _: { it in
            let paths = try await it.watch(.server(family))
            try await it.lab.cut(.wan0)
            let path = try await paths.next("the other uplink") { $0.interface?.name == "wan1" }
            #expect(path.status == .satisfied)
            try await it.expectAgreement(path, on: .server(family))
            try await it.lab.plug(.wan0)
            let back = try await paths.next("the carrier") { $0.interface?.name == "wan0" }
            try await it.expectAgreement(back, on: .server(family))
        }
    }

    /// The setting itself is told of in groups of its own (`RTNLGRP_IPV4_NETCONF` and its like).
    @Test(arguments: Family.allCases)
    func `case 6: the setting counts as soon as it is made, and unmade`(family: Family) async throws {
        try await KernelCase.play { lab in
            try await lab.cut(.wan0)
        } _: { it in
            let paths = try await it.watch(.server(family), isSatisfied: false)
            try await it.lab.ignoreRoutesWithLinkDown(true, family)
            let path = try await paths.next("the other uplink") { $0.status == .satisfied }
            #expect(path.interface?.name == "wan1")
            try await it.expectAgreement(path, on: .server(family))
            try await it.lab.ignoreRoutesWithLinkDown(false, family)
            let back = try await paths.next("the link without carrier") { $0.status == .unsatisfied }
            #expect(back.reason == .noCarrier)
            try await it.expectAgreement(back, on: .server(family))
        }
    }

    @Test func `case 6: with no carrier anywhere that is the reason, not the missing route`() async throws {
        try await KernelCase.play { lab in
            for uplink in Uplink.allCases { try await lab.ignoreRoutesWithLinkDown(true, .v4, on: uplink.name) }
        } _: { it in
            let paths = try await it.watch()
            for uplink in Uplink.allCases { try await it.lab.cut(uplink) }
            let path = try await paths.next("the last carrier's loss") { $0.status == .unsatisfied }
            #expect(path.reason == .noCarrier)
            #expect(path.interface == nil)
        }
    }
}

extension LabNetwork {
    fileprivate func ignoreRoutesWithLinkDown(
        _ isOn: Bool, _ family: Family, on interface: String = Uplink.wan0.name
    ) async throws {
        let version = family == .v4 ? "ipv4" : "ipv6"
        try await host.sysctl([("net.\(version).conf.\(interface).ignore_routes_with_linkdown", isOn ? "1" : "0")])
    }
}
