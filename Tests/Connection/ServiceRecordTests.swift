// SPDX-License-Identifier: Apache-2.0

import DialtoneConnection
import DialtoneNetworkPath
import DialtoneTestSupport
import Testing

struct ServiceRecordTests {
    private func record(_ priority: UInt16, _ weight: UInt16, _ target: String) -> ServiceRecord {
        ServiceRecord(priority: priority, weight: weight, port: 5060, target: target)
    }

    @Test func `a lower priority number comes first, whatever the weights`() {
        var random = SplitMix64(seed: 1)
        let records = [record(20, 65_535, "c"), record(10, 0, "b"), record(5, 1, "a")]
        for _ in 0..<50 {
            #expect(ServiceRecord.ordered(records, using: &random).map(\.target) == ["a", "b", "c"])
        }
    }

    @Test func `within a priority each is first as often as its weight says`() {
        var random = SplitMix64(seed: 2)
        let records = [record(1, 60, "a"), record(1, 30, "b"), record(1, 10, "c"), record(1, 0, "d")]
        var first: [String: Int] = [:]
        for _ in 0..<10_000 {
            let ordered = ServiceRecord.ordered(records, using: &random)
            #expect(Set(ordered) == Set(records))
            first[ordered[0].target, default: 0] += 1
        }
        // The lot falls on one of 101 numbers: 60, 30 and 10 of them, and one for the weight of zero.
        #expect((5640...6240).contains(first["a", default: 0]))
        #expect((2770...3170).contains(first["b", default: 0]))
        #expect((860...1120).contains(first["c", default: 0]))
        #expect((60...140).contains(first["d", default: 0]))
    }

    @Test func `a target of the root says that there is no such service`() {
        var random = SplitMix64(seed: 3)
        #expect(ServiceRecord.ordered([record(0, 0, "")], using: &random).isEmpty)
    }

    @Test func `a domain's rules name the SRV records of the protocol that is asked for, the preferred first`() {
        let rules = [
            NamingAuthorityPointer(
                order: 50, preference: 50, flags: "s", service: "SIPS+D2T", replacement: "_sips._tcp.example.com"),
            NamingAuthorityPointer(
                order: 100, preference: 50, flags: "S", service: "sip+d2t", replacement: "_sip._tcp.b.example.com"),
            NamingAuthorityPointer(
                order: 90, preference: 60, flags: "s", service: "SIP+D2T", replacement: "_sip._tcp.second.example.com"),
            NamingAuthorityPointer(
                order: 90, preference: 50, flags: "s", service: "SIP+D2T", replacement: "_sip._tcp.example.com"),
            NamingAuthorityPointer(
                order: 10, preference: 50, flags: "s", service: "SIP+D2U", replacement: "_sip._udp.example.com"),
            NamingAuthorityPointer(
                order: 1, preference: 1, flags: "u", service: "SIP+D2T", replacement: "x.example.com"),
            NamingAuthorityPointer(order: 1, preference: 1, flags: "s", service: "SIP+D2T", replacement: ""),
        ]
        #expect(
            NamingAuthorityPointer.serviceNames(in: rules, offering: "SIP+D2T") == [
                "_sip._tcp.example.com", "_sip._tcp.second.example.com", "_sip._tcp.b.example.com",
            ])
        #expect(NamingAuthorityPointer.serviceNames(in: [], offering: "SIP+D2T").isEmpty)
    }
}
