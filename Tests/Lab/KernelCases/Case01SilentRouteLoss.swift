// SPDX-License-Identifier: Apache-2.0

import DialtoneLabSupport
import DialtoneNetworkPath
import Testing

/// Taking a link down, removing the last address on it or deleting a next-hop object drops IPv4 routes with no
/// `RTM_DELROUTE` for them. IPv6 tells more, and is held to the same.
@Suite(.lab)
struct Case01SilentRouteLoss {
    @Test(arguments: Family.allCases)
    func `case 1: with a link that is taken down, the other uplink's route counts`(family: Family) async throws {
        try await KernelCase.play { it in
            let paths = try await it.watch(.server(family))
            let routes = try await KernelNotices.of([.v4Route], on: it.host)
            try await it.lab.takeDown(.wan0)
            #expect(try routes.pending().allSatisfy { $0.prefixLength != 0 }, "the kernel keeps it to itself")
            let path = try await paths.next("the other uplink") {
                $0.interface?.name == "wan1" && $0.source == IPAddress(Uplink.wan1.address(family))
            }
            #expect(path.status == .satisfied)
            #expect(path.gateway == IPAddress(Uplink.wan1.gateway(family)))
            try await it.expectAgreement(path, on: .server(family))
        }
    }

    @Test(arguments: Family.allCases)
    func `case 1: with the only link that leads there, no route is left`(family: Family) async throws {
        try await KernelCase.play {
            try await $0.removeDefaultRoute(via: .wan1)
        } _: { it in
            let paths = try await it.watch(.server(family))
            try await it.lab.takeDown(.wan0)
            let path = try await paths.next("the loss") { $0.status == .unsatisfied && $0.interface == nil }
            #expect(path.reason == .noRoute)
            #expect(path.gateway == nil && path.source == nil)
            try await it.expectAgreement(path, on: .server(family))
            try await it.lab.bringUp(.wan0)
            let back = try await paths.next("the return") { $0.status == .satisfied }
            try await it.expectAgreement(back, on: .server(family))
        }
    }

    @Test func `case 1: with the last IPv4 address of a link, its default route is gone`() async throws {
        try await KernelCase.play { it in
            let paths = try await it.watch()
            let routes = try await KernelNotices.of([.v4Route], on: it.host)
            try await it.lab.removeAddress(Uplink.wan0.prefix(.v4), from: .wan0)
            #expect(try routes.pending().allSatisfy { $0.prefixLength != 0 }, "the kernel keeps it to itself")
            let report = try await paths.nextReport("the other uplink")
            #expect(report.path.status == .satisfied)
            #expect(report.path.interface?.name == "wan1")
            #expect(report.changes == [.interface, .addresses, .gateway, .source])
            try await it.expectAgreement(report.path, on: .server(.v4))
        }
    }

    @Test func `case 1: with the last IPv6 address of a link its source is gone`() async throws {
        try await KernelCase.play {
            // The kernel would lend the other link's.
            try await $0.takeDown(.wan1)
        } _: { it in
            let paths = try await it.watch(.server(.v6))
            try await it.lab.removeAddress(Uplink.wan0.prefix(.v6), from: .wan0)
            let path = try await paths.next("the loss") { $0.status == .unsatisfied }
            #expect(path.reason == .noAddress)
        }
    }

    @Test(arguments: Family.allCases)
    func `case 1: with a next-hop object, the routes through it are gone`(family: Family) async throws {
        try await KernelCase.play {
            try await $0.removeDefaultRoute(via: .wan0)
            try await $0.host.ip(
                batch: [
                    "nexthop add id 9 via \(Uplink.wan0.gateway(family)) dev wan0",
                    "route add default nhid 9 metric 10",
                ], family)
        } _: { it in
            let paths = try await it.watch(.server(family))
            let routes = try await KernelNotices.of([.v4Route], on: it.host)
            try await it.host.ip("nexthop delete id 9")
            #expect(try routes.pending().isEmpty, "the kernel keeps it to itself")
            let report = try await paths.nextReport("the other uplink")
            #expect(report.path.interface?.name == "wan1")
            #expect(report.changes == [.interface, .addresses, .gateway, .source])
            try await it.expectAgreement(report.path, on: .server(family))
        }
    }
}
