// SPDX-License-Identifier: Apache-2.0

import DialtoneLabSupport
import DialtoneNetlink
import DialtoneNetworkPath
import Testing

/// What is read of the kernel's rules and tables, beside what `ip` shows of them.
@Suite(.lab)
struct KernelInspectorTests {
    @Test(arguments: Family.allCases)
    func `rules are read as ip shows them`(family: Family) async throws {
        let machine = try await Namespace.island()
        let (near, host) = family == .v4 ? ("192.0.2.0/24", "192.0.2.7") : ("2001:db8:a::/64", "2001:db8:a::7")
        for rule in [
            "from \(near) lookup 100", "to \(host) lookup 101", "from \(near) to \(near) lookup main",
            "fwmark 0x7 lookup 100", "fwmark 0x0/0xff lookup 100", "not from all fwmark 0xca6c lookup 51820",
            "iif lo lookup 100", "oif lo lookup 100", "uidrange 0-0 lookup 100",
            "ipproto tcp dport 5060 prohibit",
            "ipproto udp sport 1-1023 blackhole", "tos 0x10 unreachable",
            "lookup main suppress_prefixlength 0", "goto 32766", "nop", "lookup 4000000000",
        ] {
            try await machine.ip("\(family.rawValue) rule add \(rule)")
        }
        let shown = try await machine.ip("\(family.rawValue) rule").split(separator: "\n").map { line in
            // A tab behind the priority, blanks at the end; `ip` knows tos 0x10 by a name and resolves jumps.
            line.split(whereSeparator: \.isWhitespace).joined(separator: " ").replacing("lowdelay", with: "0x10")
        }
        let read = try await machine.run {
            try KernelInspector().rules(family == .v4 ? .v4 : .v6).map(\.description)
        }
        #expect(read == shown)
        #expect(read.count > 16)
    }

    @Test(arguments: Family.allCases)
    func `entries are read as ip shows them`(family: Family) async throws {
        try await LabNetwork.with { lab in
            let server = LabNetwork.serverAddress(family)
            let (gateway, other) = (Uplink.wan0.gateway(family), Uplink.wan1.gateway(family))
            let source = Uplink.wan0.address(family)
            let tail = family == .v4 ? "" : " pref medium"
            for kind in RefusingRoute.allCases.map(\.rawValue) {
                try await lab.host.ip("route add \(kind) \(server) table 100 metric \(kind.utf8.count)")
            }
            try await lab.host.ip(batch: [
                "nexthop add id 9 via \(gateway) dev wan0",
                "route add \(server) nhid 9 table 100 metric 20 proto static",
                "route add \(server) via \(other) dev wan1 table 100 metric 21 src \(source) proto dhcp",
            ])
            let names = [Uplink.wan0.index: "wan0", Uplink.wan1.index: "wan1"]
            let destination = try #require(IPAddress(server))
            let reading = try await lab.host.run {
                try KernelInspector().reading(of: 100, covering: [destination])
            }
            #expect(reading.count == 6 && reading.isComplete)
            let texts = reading.entries.map { $0.text { names[$0] ?? "?" } }
            let shown = try await lab.host.ip("\(family.rawValue) route show table 100").split(separator: "\n").map {
                // The order of words is of no account.
                Set($0.replacing(tail, with: "").replacing("dev lo", with: "").split(separator: " "))
            }
            #expect(texts.map { Set($0.replacing(" table 100", with: "").split(separator: " ")) } == shown)
        }
    }

    @Test func `of a table as large as a router's, only what refuses is looked for, and the socket goes on`()
        async throws
    {
        let machine = try await Namespace.island()
        let routes = (0..<6000).map { "route add unicast 10.\($0 / 250 % 250).\($0 % 250).0/24 dev lo table 77" }
        try await machine.ip(batch: routes + ["route add prohibit 198.51.0.0/16 table 77"])
        let (large, none, links) = try await machine.run {
            let inspector = try KernelInspector()
            let target = IPAddress(v4: 0xC633_6407)
            return (
                try inspector.reading(of: 77, covering: [target]), try inspector.reading(of: 78, covering: [target]),
                try inspector.links().snapshot.interfaces.count
            )
        }
        #expect(!large.isComplete && large.count == KernelInspector.mostRoutes)
        #expect(large.entries.map(\.kind) == [.prohibit])
        #expect(none == TableReading(table: 78, count: 0))
        #expect(links == 1)
    }

    @Test func `next hops are found where routes name only their objects`() async throws {
        try await LabNetwork.with { lab in
            try await lab.host.sysctl([("net.ipv4.nexthop_compat_mode", "0")])
            try await lab.host.ip(batch: [
                "nexthop add id 7 via 192.0.2.1 dev wan0", "nexthop add id 8 via 198.51.100.1 dev wan1",
                "nexthop add id 9 group 7,3/8", "route add 10.1.0.0/16 nhid 7", "route add 10.2.0.0/16 nhid 9",
            ])
            let hops = try await lab.host.run {
                let inspector = try KernelInspector()
                return try ["10.1.0.1", "10.2.0.1"].map { text in
                    let destination = try #require(IPAddress(text))
                    return try inspector.reading(of: 254, covering: [destination]).entries.last?.nextHops
                }
            }
            let first = RouteEntry.NextHop(interfaceIndex: Uplink.wan0.index, gateway: IPAddress("192.0.2.1"))
            var heavy = first
            heavy.weight = 3
            let second = RouteEntry.NextHop(interfaceIndex: Uplink.wan1.index, gateway: IPAddress("198.51.100.1"))
            #expect(hops == [[first], [heavy, second]])
        }
    }
}
