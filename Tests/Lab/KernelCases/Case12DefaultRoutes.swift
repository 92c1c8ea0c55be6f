// SPDX-License-Identifier: Apache-2.0

import DialtoneExpectations
import DialtoneLabSupport
import DialtoneNetworkPath
import Testing

/// "Has a default route" is not reachability. Networks without one that work, and one with one that does not.
@Suite(.lab)
struct Case12DefaultRoutes {
    @Test(arguments: Family.allCases)
    func `case 12: two halves make a whole`(family: Family) async throws {
        try await KernelCase.play(prepare: Self.withoutDefaultRoutes) { it in
            let network = it.watchNetwork()
            try await network.next("no network") { $0.status == .unsatisfied }
            let gateway = Uplink.wan0.gateway(family)
            let halves = family == .v4 ? ["0.0.0.0/1", "128.0.0.0/1"] : ["::/1", "8000::/1"]
            try await it.host.ip(batch: halves.map { "route add \($0) via \(gateway)" })
            let path = try await network.next("the halves") { $0.status == .satisfied }
            #expect(path.supportsIPv4 == (family == .v4) && path.supportsIPv6 == (family == .v6))
            #expect(path.interface?.name == "wan0" && path.gateway == IPAddress(gateway))
            try await it.expectAgreement(await it.path(to: .server(family)), on: .server(family))
        }
    }

    @Test(arguments: Family.allCases)
    func `case 12: a rule may lead to another table`(family: Family) async throws {
        try await KernelCase.play(prepare: Self.withoutDefaultRoutes) { it in
            let network = it.watchNetwork()
            try await network.next("no network") { $0.status == .unsatisfied }
            try await it.host.ip("route add default via \(Uplink.wan1.gateway(family)) dev wan1 table 1000")
            try await it.lab.addRule(family, "lookup 1000")
            let path = try await network.next("the rule") { $0.status == .satisfied }
            #expect(path.interface?.name == "wan1")
            try await it.expectAgreement(await it.path(to: .server(family)), on: .server(family))
        }
    }

    @Test(arguments: Family.allCases)
    func `case 12: a default route in a table that no rule names is none`(family: Family) async throws {
        try await KernelCase.play(prepare: Self.withoutDefaultRoutes) { it in
            let target = Target.server(family)
            let paths = try await it.watch(target, isSatisfied: false)
            let path = try #require(paths.all.first)
            #expect(path.reason == .noRoute)
            try await it.host.ip("route add default via \(Uplink.wan0.gateway(family)) dev wan0 table 1000")
            expect(await it.path(to: target).status, is: .unsatisfied)
            expect(try await it.expectSilence(on: paths, since: path)) { $0 >= 1 }
        }
    }

    /// RFC 8950; a router that has no IPv4 address of its own.
    @Test func `case 12: IPv4 goes over an IPv6 next hop`() async throws {
        try await KernelCase.play(prepare: Self.withoutDefaultRoutes) { it in
            let target = Target.server(.v4)
            let paths = try await it.watch(target, isSatisfied: false)
            try await it.host.ip("-4 route add default via inet6 \(Uplink.wan0.gateway(.v6)) dev wan0")
            let path = try await paths.next("the next hop") { $0.status == .satisfied }
            #expect(path.gateway == IPAddress(Uplink.wan0.gateway(.v6)))
            #expect(path.source == IPAddress(Uplink.wan0.address(.v4)))
            try await it.expectAgreement(path, on: target)
            // Its neighbour entry is an IPv6 one.
            try await it.lab.setNeighbours([Uplink.wan0.gateway(.v6)], on: .wan0, answering: false)
            try await paths.next("the next hop's failure") { $0.reason == .gatewayUnreachable }
        }
    }

    @Test func `case 12: an IPv6-only network is a network`() async throws {
        try await KernelCase.play { lab in
            try await lab.host.ip(batch: Uplink.allCases.map { "address flush dev \($0.name)" }, .v4)
        } _: { it in
            let path = try await it.watchNetwork().next("the network") { _ in true }
            #expect(path.status == .satisfied)
            #expect(path.supportsIPv6 && !path.supportsIPv4)
            #expect(path.gateway == IPAddress(Uplink.wan0.gateway(.v6)))
            expect(await it.path(to: .server(.v6)).status, is: .satisfied)
            let other = await it.path(to: .server(.v4))
            #expect(other.status == .unsatisfied && other.reason == .noAddress)
        }
    }

    @Test(arguments: Family.allCases)
    func `case 12: a host on the link needs no route to anywhere else`(family: Family) async throws {
        try await KernelCase.play(prepare: Self.withoutDefaultRoutes) { it in
            let target = Target(.init(Uplink.wan1.gateway(family)))
            let paths = try await it.watch(target)
            let path = try #require(paths.all.first)
            #expect(path.isDirect && path.gateway == nil && path.interface?.name == "wan1")
        }
    }

    /// What wg-quick(8) sets up: all packets but the tunnel's own, by a table of its own, unless the main table has a
    /// route better than the default.
    @Test(arguments: Family.allCases)
    func `case 12: a VPN's rules are followed, each packet its own way`(family: Family) async throws {
        try await KernelCase.play { it in
            let target = Target.server(family)
            let paths = try await it.watch(target)
            let tunnels = target.with { $0.mark = 51_820 }
            try await it.host.ip(
                batch: [
                    "route add default via \(Uplink.wan1.gateway(family)) dev wan1 table 51820",
                    "rule add not fwmark 51820 lookup 51820", "rule add lookup main suppress_prefixlength 0",
                ], family)
            let path = try await paths.next("the other way") { $0.interface?.name == "wan1" }
            try await it.expectAgreement(path, on: target)
            for target in [tunnels, Target(.init(Uplink.wan0.gateway(family)))] {
                let path = await it.path(to: target)
                #expect(path.status == .satisfied && path.interface?.name == "wan0", "\(path)")
                try await it.expectAgreement(path, on: target)
            }
        }
    }

    @Test(arguments: Family.allCases)
    func `case 12: a group of next hops is followed, also when it is replaced`(family: Family) async throws {
        try await KernelCase.play { lab in
            try await Self.withoutDefaultRoutes(lab)
            try await lab.host.ip(
                batch: Uplink.allCases.map {
                    "nexthop add id \($0.index) via \($0.gateway(family)) dev \($0.name)"
                } + [
                    "nexthop add id 100 group \(Uplink.wan0.index)/\(Uplink.wan1.index)"
                ])
            try await lab.host.ip("\(family.rawValue) route add default nhid 100")
        } _: { it in
            let target = Target.server(family)
            let paths = try await it.watch(target)
            // Which member a packet takes is the kernel's choice, by its addresses.
            let first = try #require(paths.all.first?.interface.flatMap { Uplink(rawValue: $0.name) })
            let second = first == .wan0 ? Uplink.wan1 : .wan0
            for uplink in [second, first] {
                try await it.host.ip("nexthop replace id 100 group \(uplink.index)")
                let path = try await paths.next("the group's only member") { $0.interface?.name == uplink.name }
                try await it.expectAgreement(path, on: target)
            }
            // The last member takes the group along, and the group its routes.
            try await it.host.ip("nexthop delete id \(first.index)")
            let path = try await paths.next("the end of the group") { $0.status == .unsatisfied }
            #expect(path.reason == .noRoute)
            try await it.expectAgreement(path, on: target)
        }
    }

    @Sendable private static func withoutDefaultRoutes(_ lab: LabNetwork) async throws {
        for uplink in Uplink.allCases { try await lab.removeDefaultRoute(via: uplink) }
    }
}
