// SPDX-License-Identifier: Apache-2.0

import LabSupport
import NetworkPath
import Testing

/// Where IPv6 is off, the loss of a carrier and a link taken down are told in the link group and in no other.
@Suite("Kernel case 2: without the link group one is deaf", .lab)
struct Case02LinkGroup {
    @Test func `case 2: with IPv6 off, a cable that is pulled and plugged back is noticed`() async throws {
        try await KernelCase.play(prepare: Self.withoutIPv6) { it in
            let paths = try await it.watch()
            let others = try await KernelNotices.of(Self.otherGroups, on: it.host)
            try await it.lab.cut(.wan0)
            #expect(try others.pending().isEmpty, "the other groups have nothing to tell")
            let report = try await paths.nextReport("the pulled cable")
            #expect(report.path.reason == .noCarrier)
            #expect(report.path.interface?.name == "wan0" && report.path.interface?.hasCarrier == false)
            #expect(report.changes == [.status, .reason, .interface, .ipv4])
            try await it.lab.plug(.wan0)
            try await paths.next("the carrier") { $0.status == .satisfied && $0.interface?.name == "wan0" }
        }
    }

    @Test func `case 2: with IPv6 off, a link that is taken down is noticed`() async throws {
        try await KernelCase.play(prepare: Self.withoutIPv6) { it in
            let paths = try await it.watch()
            let others = try await KernelNotices.of(Self.otherGroups, on: it.host)
            try await it.lab.takeDown(.wan0)
            #expect(try others.pending().isEmpty, "the other groups have nothing to tell")
            let path = try await paths.next("the other uplink") { $0.interface?.name == "wan1" }
            #expect(path.status == .satisfied)
            try await it.expectAgreement(path, on: .server(.v4))
        }
    }

    private static let otherGroups: Set<KernelNotices.Group> = [
        .v4Address, .v6Address, .v4Route, .v6Route, .v4Rule, .v6Rule,
    ]

    @Sendable private static func withoutIPv6(_ lab: LabNetwork) async throws {
        try await lab.host.sysctl(
            ["all", "default", "lo", "wan0", "wan1"].map { ("net.ipv6.conf.\($0).disable_ipv6", "1") })
    }
}
