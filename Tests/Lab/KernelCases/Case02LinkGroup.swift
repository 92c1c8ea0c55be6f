// SPDX-License-Identifier: Apache-2.0

import DialtoneExpectations
import DialtoneLabSupport
import DialtoneNetworkPath
import DialtonePlatform
import Dispatch
import Glibc
import Reachability
import Testing

/// Where IPv6 is off, the loss of a carrier and a link taken down are told in the link group and in no other.
@Suite(.lab)
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

    @Test func `case 2: a link is up again before that is read: its route is no missing one`() async throws {
        try await KernelCase.play { it in
            try await it.lab.takeDown(.wan0)
            let paths = try await it.watch()
            expect(paths.all.map(\.interface?.name), is: ["wan1"])
            let freed = DispatchSemaphore(value: 0)
            // The engine's queue stands still until the kernel has made all changes, and evaluates before it reads.
            await withCheckedContinuation { isHeld in
                AgentQueue.async {
                    isHeld.resume()
                    freed.wait()
                    it.engine.setCosts(CostPolicy(expensive: ["wan0"]))
                }
            }
            let commands = "ip link set wan0 up && ip route add default via 192.0.2.1 dev wan0 metric 1"
            let status = try await it.host.run { system(commands) }
            freed.signal()
            expect(status, is: 0)
            try await paths.next("the first uplink") { $0.status == .satisfied && $0.interface?.name == "wan0" }
            let reasons = paths.all.map(\.reason)
            #expect(!reasons.contains(.noRoute), "\(reasons)")
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
