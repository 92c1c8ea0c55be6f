// SPDX-License-Identifier: Apache-2.0

import DialtoneNetworkPath
import DialtoneTestSupport
import Testing

/// Policy rules.
@Suite struct PolicyRuleTests {
    /// A packet for the server: TCP to port 5060 of user 1000, without a mark.
    private static func packet(
        _ destination: IPAddress = Sample.remote4, outbound: String? = nil, tableOfVRF: UInt32? = nil,
        _ change: (inout RouteQuery) -> Void = { _ in }
    ) -> RulePacket {
        var query = RouteQuery(destination)
        (query.transport, query.port) = (.tcp, 5060)
        change(&query)
        return RulePacket(query, user: 1000, outbound: outbound, tableOfVRF: tableOfVRF)
    }

    private static func rule(
        _ family: IPAddress.Family = .v4, _ change: (inout PolicyRule) -> Void = { _ in }
    ) -> PolicyRule {
        var rule = PolicyRule(family, priority: 100, .table(100))
        change(&rule)
        return rule
    }

    private static let near = IPPrefix(Sample.remote4, length: 24)
    private static let far = IPPrefix(Sample.own4, length: 24)

    /// Each selector: a rule that it is in, how `ip rule` writes that, whether it selects the packet.
    @Test(arguments: [
        (rule(), "from all", true),
        (rule { $0.destination = near }, "from all to 198.51.100.7/24", true),
        (rule { $0.destination = far }, "from all to 192.0.2.10/24", false),
        (rule { $0.destination = IPPrefix(Sample.remote4, length: 32) }, "from all to 198.51.100.7", true),
        (rule { $0.source = far }, "from 192.0.2.10/24", false),
        (rule { $0.source = .all(.v4) }, "from all", true),
        (rule { $0.inbound = "lo" }, "from all iif lo", true),
        (rule { $0.inbound = "eth0" }, "from all iif eth0", false),
        (rule { $0.outbound = "eth0" }, "from all oif eth0", false),
        (rule { ($0.mark, $0.markMask) = (7, .max) }, "from all fwmark 0x7", false),
        (rule { ($0.mark, $0.markMask) = (0, 0xFF) }, "from all fwmark 0/0xff", true),
        (rule { $0.users = 1000...1000 }, "from all uidrange 1000-1000", true),
        (rule { $0.users = 0...999 }, "from all uidrange 0-999", false),
        (rule { $0.transport = 6 }, "from all ipproto tcp", true),
        (rule { $0.transport = 17 }, "from all ipproto udp", false),
        (rule { $0.destinationPorts = .init(5060...5060) }, "from all dport 5060", true),
        (rule { $0.destinationPorts = .init(5061...5070) }, "from all dport 5061-5070", false),
        (rule { $0.destinationPorts = .init(5061...5061, mask: 0xFFFE) }, "from all dport 5061/0xfffe", true),
        (rule { $0.sourcePorts = .init(1...1023) }, "from all sport 1-1023", false),
        (rule { $0.trafficClass = 0x10 }, "from all tos 0x10", false),
        (rule { $0.tunnel = 9 }, "from all tun_id 9", false),
        (rule { ($0.isInverted, $0.mark, $0.markMask) = (true, 7, .max) }, "not from all fwmark 0x7", true),
        (rule { $0.isInverted = true }, "not from all", false),
        (rule(.v6), "from all", false),
    ])
    func `a rule selects what all of its selectors fit, or with "not" what they do not`(
        rule: PolicyRule, words: String, selects: Bool
    ) {
        #expect(rule.description == "100: \(words) lookup 100")
        #expect(rule.selects(Self.packet()) == selects)
    }

    @Test func `a mark is compared in the bits of the mask`() {
        let rule = Self.rule { ($0.mark, $0.markMask) = (0x6, 0x2) }
        #expect(rule.selects(Self.packet { $0.mark = 2 }))
        #expect(rule.selects(Self.packet { $0.mark = 0xFF }))
        #expect(!rule.selects(Self.packet { $0.mark = 4 }))
    }

    @Test func `a rule for a source selects packets that have one: in IPv4 0.0.0.0 stands for none`() {
        let v4 = Self.rule { $0.source = Self.far }
        #expect(v4.selects(Self.packet { $0.source = Sample.own4 }))
        #expect(!v4.selects(Self.packet { $0.source = Sample.remote4 }))
        #expect(Self.rule { $0.source = IPPrefix(IPAddress(v4: 0), length: 8) }.selects(Self.packet()))
        let v6 = Self.rule(.v6) { $0.source = IPPrefix(IPAddress(v6: 0), length: 8) }
        #expect(!v6.selects(Self.packet(Sample.remote6)))
        #expect(v6.selects(Self.packet(Sample.remote6) { $0.source = IPAddress.loopbackV6 }))
    }

    @Test func `a lookup without a protocol is for UDP in IPv4, and for none in IPv6`() {
        func udp(_ family: IPAddress.Family) -> PolicyRule { Self.rule(family) { $0.transport = 17 } }
        #expect(udp(.v4).selects(RulePacket(RouteQuery(Sample.remote4), user: 0)))
        #expect(!udp(.v6).selects(RulePacket(RouteQuery(Sample.remote6), user: 0)))
    }

    @Test func `a packet that is bound to an interface fits the rules for it, and those of its VRF`() {
        #expect(Self.rule { $0.outbound = "eth0" }.selects(Self.packet(outbound: "eth0")))
        let vrf = Self.rule { $0.isForVRF = true }
        #expect(!vrf.selects(Self.packet(outbound: "eth0")))
        #expect(vrf.selects(Self.packet(outbound: "eth0", tableOfVRF: 10)))
    }

    @Test(arguments: [
        (PolicyRule.Action.table(254), "lookup main"), (.table(255), "lookup local"), (.table(253), "lookup default"),
        (.goto(200), "goto 200"), (.nop, "nop"), (.blackhole, "blackhole"), (.unreachable, "unreachable"),
        (.prohibit, "prohibit"), (.other(99), "action 99"),
    ])
    func `an action is written as ip writes it`(action: PolicyRule.Action, words: String) {
        #expect(PolicyRule(.v4, priority: 1, action).description == "1: from all \(words)")
    }

    @Test func `what a rule suppresses is written behind its action`() {
        let rule = Self.rule { ($0.suppressedLength, $0.suppressedGroup) = (0, 3) }
        #expect(rule.description == "100: from all lookup 100 suppress_prefixlength 0 suppress_ifgroup 3")
    }
}
