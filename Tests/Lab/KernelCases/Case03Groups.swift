// SPDX-License-Identifier: Apache-2.0

import DialtoneExpectations
import DialtoneLabSupport
import DialtoneNetworkPath
import Testing

/// One change for each group of notices, such that no other group leads to the right verdict.
@Suite(.lab)
struct Case03Groups {
    @Test(arguments: KernelNotices.Group.allCases)
    func `case 3: what is told in one group alone is noticed`(group: KernelNotices.Group) async throws {
        let trial = Trial(group)
        try await KernelCase.play(prepare: trial.prepare) { it in
            let target = Target.server(trial.family)
            let paths = try await it.watch(target, isSatisfied: trial.isSatisfiedAtFirst)
            let notices = try await KernelNotices.of([group], on: it.host)
            try await trial.change(it.lab)
            #expect(try !notices.pending().isEmpty, "the kernel says it in this group")
            let path = try await paths.next("the change", where: trial.isDone)
            try await it.expectAgreement(path, on: target)
        }
    }

    /// kernel.md asks for the neighbour group to be cut down in the kernel; the filter itself is tested instruction by
    /// instruction (NeighbourFilterTests). Here: strangers' failures, however many, are neither told nor counted.
    @Test func `case 3: of the neighbours only the gateways in use count`() async throws {
        try await KernelCase.play { it in
            let paths = try await it.watch()
            let path = try #require(paths.all.first)
            try await it.lab.setNeighbours((20..<220).map { "192.0.2.\($0)" }, on: .wan0, answering: false)
            // A gateway, but not one in use.
            try await it.lab.setNeighbours([Uplink.wan1.gateway(.v4)], on: .wan1, answering: false)
            expect(try await it.expectSilence(on: paths, since: path), is: 1)
        }
    }
}

/// A change that one group alone tells of.
private struct Trial: Sendable {
    var family = Family.v4
    var isSatisfiedAtFirst = true
    var prepare: @Sendable (LabNetwork) async throws -> Void = { _ in }
    let change: @Sendable (LabNetwork) async throws -> Void
    var isDone: @Sendable (Path) -> Bool = { $0.interface?.name == "wan1" }

    init(_ group: KernelNotices.Group) {
        switch group {
        case .link:
            change = { try await $0.cut(.wan0) }
            isDone = { $0.reason == .noCarrier }
        case .v4Address:
            change = { try await $0.removeAddress(Uplink.wan0.prefix(.v4), from: .wan0) }
        case .v6Address:
            family = .v6
            change = { try await $0.removeAddress(Uplink.wan0.prefix(.v6), from: .wan0) }
            // The route stays, and the other link lends its address.
            isDone = { $0.source == IPAddress(Uplink.wan1.address(.v6)) }
        case .v4Route:
            change = { try await $0.preferDefaultRoute(via: .wan1, families: [.v4]) }
        case .v6Route:
            family = .v6
            change = { try await $0.preferDefaultRoute(via: .wan1, families: [.v6]) }
        case .v4Rule:
            change = { try await $0.addRule(.v4, "to 203.0.113.0/24 prohibit") }
            isDone = { $0.reason == .prohibited }
        case .v6Rule:
            family = .v6
            change = { try await $0.addRule(.v6, "to 2001:db8:c::/64 prohibit") }
            isDone = { $0.reason == .prohibited }
        case .nextHop:
            prepare = { lab in
                // Otherwise each route through a replaced object is told of as well.
                try await lab.host.sysctl([("net.ipv4.nexthop_compat_mode", "0")])
                try await lab.host.ip(batch: [
                    "nexthop add id 9 via \(Uplink.wan0.gateway(.v4)) dev wan0", "route add 203.0.113.0/24 nhid 9",
                ])
            }
            change = { try await $0.host.ip("nexthop replace id 9 via \(Uplink.wan1.gateway(.v4)) dev wan1") }
        case .neighbour:
            change = { try await $0.setNeighbours([Uplink.wan0.gateway(.v4)], on: .wan0, answering: false) }
            isDone = { $0.reason == .gatewayUnreachable }
        case .v4Configuration:
            isSatisfiedAtFirst = false
            prepare = { try await $0.cut(.wan0) }
            change = { try await $0.host.sysctl([("net.ipv4.conf.wan0.ignore_routes_with_linkdown", "1")]) }
        case .v6Configuration:
            family = .v6
            isSatisfiedAtFirst = false
            prepare = { try await $0.cut(.wan0) }
            change = { try await $0.host.sysctl([("net.ipv6.conf.wan0.ignore_routes_with_linkdown", "1")]) }
        }
    }
}
