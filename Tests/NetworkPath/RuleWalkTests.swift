// SPDX-License-Identifier: Apache-2.0

import DialtoneNetworkPath
import Testing

/// The way through the rules.
@Suite struct RuleWalkTests {
    private static let everywhere = IPPrefix.all(.v4)

    private static func entry(
        _ length: Int, _ kind: RouteEntry.Kind = .unicast, table: UInt32 = 254, metric: UInt32 = 0, by index: Int = 2
    ) -> RouteEntry {
        RouteEntry(
            kind, to: length == 0 ? everywhere : IPPrefix(Sample.remote4, length: length), table: table, metric: metric,
            nextHops: kind.isRefusing ? [] : [.init(interfaceIndex: index, gateway: Sample.gateway4)])
    }

    /// Walks a plain packet for the server.
    private func walk(
        _ rules: [PolicyRule], _ tables: [UInt32: [RouteEntry]], _ selection: RouteSelection = RouteSelection()
    ) -> RuleWalk {
        RuleWalk(RulePacket(RouteQuery(Sample.remote4), user: 0), through: rules, choosing: selection) { table in
            TableReading(table: table, count: tables[table]?.count ?? 0, entries: tables[table] ?? [])
        }
    }

    private static let local = PolicyRule(.v4, priority: 0, .table(255))
    private static let main = PolicyRule(.v4, priority: 32_766, .table(254))

    @Test func `the first table that has a route ends it, and the others are passed`() {
        let entry = Self.entry(0)
        let result = walk([Self.local, Self.main], [254: [entry]])
        #expect(result.end == .entries([entry]))
        #expect(result.rule == Self.main && result.table == 254)
        #expect(result.passed.map(\.rule) == [Self.local])
    }

    @Test func `in a table the longest prefix counts, then the lowest metric, then the kernel's order`() {
        func best(_ entries: RouteEntry...) -> RouteWalkEnd { walk([Self.main], [254: entries]).end }
        let (wide, narrow) = (Self.entry(0), Self.entry(24, metric: 900))
        #expect(best(wide, narrow) == .entries([narrow]))
        let (dear, cheap) = (Self.entry(0, metric: 200), Self.entry(0, metric: 100))
        #expect(best(dear, cheap) == .entries([cheap]))
        let twin = Self.entry(0, metric: 100, by: 3)
        #expect(best(dear, cheap, twin) == .entries([cheap]))
        #expect(best(dear, twin, cheap) == .entries([twin]))
        let refusing = Self.entry(25, .blackhole)
        #expect(best(wide, narrow, refusing) == .entries([refusing]))
    }

    private typealias RouteWalkEnd = RuleWalk.End

    @Test func `a next hop that cannot be used is passed over, and its next-hop object takes the others along`() {
        let dead = Self.entry(0, metric: 1, by: 3)
        let alive = Self.entry(0, metric: 2)
        let selection = RouteSelection(isUsable: { $0.interfaceIndex != 3 })
        #expect(walk([Self.main], [254: [dead, alive]], selection).end == .entries([alive]))
        var object = dead
        object.nextHopObject = 9
        #expect(walk([Self.main], [254: [object, alive]], selection).end == .nothing)
        // Another network is another matter.
        let narrow = Self.entry(24, metric: 5)
        #expect(walk([Self.main], [254: [object, alive, narrow]], selection).end == .entries([narrow]))
    }

    @Test func `a throw route ends the search in its table alone`() {
        let thrown = Self.entry(24, .throw, table: 100)
        let rule = PolicyRule(.v4, priority: 100, .table(100))
        let result = walk([rule, Self.main], [100: [thrown, Self.entry(0, table: 100)], 254: [Self.entry(0)]])
        #expect(result.table == 254)
        #expect(result.passed.first?.entry == thrown)
    }

    @Test func `a rule suppresses the routes that are too short for it, and none that refuse`() {
        var rule = PolicyRule(.v4, priority: 100, .table(254))
        rule.suppressedLength = 0
        let vpn = PolicyRule(.v4, priority: 101, .table(51_820))
        let tunnel = Self.entry(0, table: 51_820)
        #expect(walk([rule, vpn], [254: [Self.entry(0)], 51_820: [tunnel]]).table == 51_820)
        #expect(walk([rule, vpn], [254: [Self.entry(24)], 51_820: [tunnel]]).table == 254)
        #expect(walk([rule, vpn], [254: [Self.entry(0, .prohibit)]]).refusal == .prohibited)
    }

    @Test func `a jump goes on at its target, and one to nowhere does not count`() {
        let blocked = PolicyRule(.v4, priority: 200, .prohibit)
        let routes = [UInt32(254): [Self.entry(0)]]
        #expect(walk([PolicyRule(.v4, priority: 100, .goto(32_766)), blocked, Self.main], routes).table == 254)
        #expect(walk([PolicyRule(.v4, priority: 100, .goto(300)), blocked, Self.main], routes).refusal == .prohibited)
    }

    @Test(arguments: [
        (PolicyRule.Action.blackhole, RouteRefusal.blackhole), (.prohibit, .prohibited),
        // As the kernel has it: no different from there being no route.
        (.unreachable, .noRoute),
    ])
    func `a rule that refuses ends it`(action: PolicyRule.Action, refusal: RouteRefusal) {
        let rule = PolicyRule(.v4, priority: 100, action)
        let result = walk([rule, Self.main], [254: [Self.entry(0)]])
        #expect(result.end == .refusedByRule && result.rule == rule && result.refusal == refusal)
    }

    @Test func `without a route in any table it ends nowhere`() {
        let result = walk([Self.local, Self.main], [:])
        #expect(result.end == .nothing && result.rule == nil && result.refusal == .noRoute)
        #expect(result.passed.map(\.reading.table) == [255, 254])
    }

    @Test func `IPv6 passes over a router that does not answer as long as there is another way`() {
        func entry(_ metric: UInt32, by index: Int) -> RouteEntry {
            RouteEntry(
                to: .all(.v6), metric: metric, nextHops: [.init(interfaceIndex: index, gateway: Sample.gateway6)])
        }
        let packet = RulePacket(RouteQuery(Sample.remote6), user: 0)
        func end(_ entries: RouteEntry...) -> RuleWalk.End {
            RuleWalk(
                packet, through: [PolicyRule(.v6, priority: 1, .table(254))],
                choosing: RouteSelection(isAvoided: { $0.interfaceIndex == 3 })
            ) { table in TableReading(table: table, count: entries.count, entries: entries) }.end
        }
        let (silent, other) = (entry(1, by: 3), entry(2, by: 2))
        #expect(end(silent, other) == .entries([other]))
        #expect(end(silent) == .entries([silent]))
    }
}
