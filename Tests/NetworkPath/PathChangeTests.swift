// SPDX-License-Identifier: Apache-2.0

import DialtoneNetworkPath
import Testing

/// One difference between two paths, and the names it is to have.
struct ChangeCase: CustomTestStringConvertible, Sendable {
    let testDescription: String
    let changes: [PathChange]
    let change: @Sendable (inout Path) -> Void

    init(_ description: String, _ changes: [PathChange], _ change: @escaping @Sendable (inout Path) -> Void) {
        testDescription = description
        self.changes = changes
        self.change = change
    }
}

struct PathChangeTests {
    static let base = Path(to: Sample.remote4, by: .route(Sample.route4), in: Sample.network)

    static let rows = [
        ChangeCase("status", [.status]) { $0.status = .unknown },
        ChangeCase("reason", [.reason]) { $0.reason = .noRoute },
        ChangeCase("coherence", [.coherent]) { $0.isCoherent = false },
        ChangeCase("another interface", [.interface]) { $0.interface?.index = 9 },
        ChangeCase("a new name", [.interface]) { $0.interface?.name = "lan0" },
        ChangeCase("another kind", [.interface]) { $0.interface?.kind = .bridge },
        ChangeCase("link state", [.interface]) { $0.interface?.hasCarrier = false },
        ChangeCase("no interface", [.interface, .addresses]) { $0.interface = nil },
        ChangeCase("an address less", [.addresses]) { $0.interface?.addresses.removeLast() },
        ChangeCase("an address's flag", [.addresses]) { $0.interface?.addresses[1].isDeprecated = true },
        ChangeCase("gateway", [.gateway]) { $0.gateway = Sample.gateway6 },
        ChangeCase("source", [.source]) { $0.source = Sample.own6 },
        ChangeCase("destination", [.destination]) { $0.destination = Sample.remote6 },
        ChangeCase("direct", [.direct]) { $0.isDirect = true },
        ChangeCase("local", [.direct]) { $0.isLocalAddress = true },
        ChangeCase("IPv4", [.ipv4]) { $0.supportsIPv4 = true },
        ChangeCase("IPv6", [.ipv6]) { $0.supportsIPv6 = true },
        ChangeCase("DNS", [.dns]) { $0.supportsDNS = true },
        ChangeCase("who says what it costs", [.expensive]) { $0.interface?.costSource = .guess },
        ChangeCase("cost, told of by path and interface", [.expensive]) {
            $0.isExpensive = true
            $0.interface?.isExpensive = true
        },
        ChangeCase("constraint, told of by path and interface", [.constrained]) {
            $0.isConstrained = true
            $0.interface?.isConstrained = true
        },
    ]

    @Test(arguments: rows)
    func `a difference has its name`(_ row: ChangeCase) {
        var path = Self.base
        row.change(&path)
        #expect(path.changes(from: Self.base) == row.changes)
        #expect(Self.base.changes(from: path) == row.changes)
        #expect(!path.differsOnlyInGeneration(from: Self.base))
        path = Self.base
        path.generation += 1
        #expect(path.differsOnlyInGeneration(from: Self.base))
    }

    @Test func `every change is in the table`() {
        #expect(Set(Self.rows.flatMap(\.changes)) == Set(PathChange.allCases))
    }

    /// A lease that is renewed may change no more than that.
    @Test func `the order of the addresses is no change`() {
        var path = Self.base
        path.interface?.addresses.reverse()
        #expect(path != Self.base)
        #expect(path.changes(from: Self.base) == [])
        #expect(path.differsOnlyInGeneration(from: Self.base))
    }

    /// Neither where detection is skipped nor how the kernel sorts an address is shown to anybody.
    @Test func `what nobody sees of an address is no change`() {
        var path = Self.base
        path.interface?.addresses[0].skipsDetection = true
        path.interface?.addresses[0].isSecondary = true
        #expect(path.changes(from: Self.base) == [])
        #expect(path.differsOnlyInGeneration(from: Self.base))
    }

    @Test func `the generation alone is no change`() {
        var path = Self.base
        path.generation += 1
        #expect(path != Self.base)
        #expect(path.changes(from: Self.base).isEmpty)
    }

    @Test func `several changes come in the order of their declaration`() {
        let mobile = Interface(index: 4, name: "wwan0", kind: .cellular, isExpensive: true)
        let path = Path(
            generation: 9, status: .satisfied, interface: mobile, source: Sample.own6, destination: Sample.remote4,
            isDirect: true, isExpensive: true)
        #expect(
            path.changes(from: Self.base) == [.interface, .addresses, .gateway, .source, .direct, .expensive])
    }

    /// The socket publishes them; scripts match on them.
    @Test func `the names are those of the socket`() {
        let names = [
            "status", "reason", "coherent", "interface", "addresses", "gateway", "source", "destination", "direct",
            "ipv4", "ipv6", "dns", "expensive", "constrained",
        ]
        #expect(PathChange.allCases.map(\.rawValue) == names)
    }
}
