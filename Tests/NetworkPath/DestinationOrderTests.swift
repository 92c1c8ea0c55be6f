// SPDX-License-Identifier: Apache-2.0

import DialtoneNetworkPath
import Testing

/// RFC 6724, section 10.2, and what it does not show.
struct DestinationOrderTests {
    /// A destination and the source that its packets would carry.
    private typealias Pair = (destination: String, source: String?)

    private func order(_ pairs: [Pair], _ adjust: (inout DestinationOrder.Candidate) -> Void = { _ in }) throws
        -> [String]
    {
        let candidates = try pairs.map { pair in
            var candidate = DestinationOrder.Candidate(
                try #require(IPAddress(pair.destination)), source: try pair.source.map { try #require(IPAddress($0)) })
            adjust(&candidate)
            return candidate
        }
        return DestinationOrder.sorted(candidates).map(\.destination.description)
    }

    @Test func `a matching scope comes first`() throws {
        #expect(
            try order([("198.51.100.121", "169.254.13.78"), ("2001:db8:1::1", "2001:db8:1::2")])
                == ["2001:db8:1::1", "198.51.100.121"])
        #expect(
            try order([("2001:db8:1::1", "fe80::1"), ("198.51.100.121", "198.51.100.117")])
                == ["198.51.100.121", "2001:db8:1::1"])
    }

    @Test func `IPv6 is preferred where both are as good`() throws {
        #expect(
            try order([("10.1.2.3", "10.1.2.4"), ("2001:db8:1::1", "2001:db8:1::2")])
                == ["2001:db8:1::1", "10.1.2.3"])
    }

    @Test func `a smaller scope comes before a larger`() throws {
        #expect(
            try order([("2001:db8:1::1", "2001:db8:1::2"), ("fe80::1", "fe80::2")])
                == ["fe80::1", "2001:db8:1::1"])
    }

    @Test func `a source that is deprecated comes last`() throws {
        let ordered = try order([("2001:db8:1::1", "2001:db8:1::2"), ("fe80::1", "fe80::2")]) {
            $0.isDeprecated = $0.destination.isLinkLocal
        }
        #expect(ordered == ["2001:db8:1::1", "fe80::1"])
    }

    @Test func `a source of the same kind beats one of another`() throws {
        // 6to4 speaks to 6to4: the rule that keeps a relay out of the way.
        #expect(
            try order([("2001:db8:1::1", "2002:c633:6401::2"), ("2002:c633:6401::1", "2002:c633:6401::2")])
                == ["2002:c633:6401::1", "2001:db8:1::1"])
    }

    @Test func `native IPv6 comes before IPv4, and IPv4 before unique local`() throws {
        #expect(
            try order([("2002:c633:6401::1", "2002:c633:6401::2"), ("2001:db8:1::1", "2001:db8:1::2")])
                == ["2001:db8:1::1", "2002:c633:6401::1"])
        #expect(
            try order([("fd00::1", "fd00::2"), ("198.51.100.7", "198.51.100.8")]) == ["198.51.100.7", "fd00::1"])
    }

    @Test func `the longer common prefix comes first, among IPv6 addresses`() throws {
        #expect(
            try order([("2001:db8:3ffe::1", "2001:db8:1::2"), ("2001:db8:1::1", "2001:db8:1::2")])
                == ["2001:db8:1::1", "2001:db8:3ffe::1"])
        // Bits behind the 64th say nothing about the way.
        #expect(
            try order([("2001:db8::8:1", "2001:db8::2"), ("2001:db8::1", "2001:db8::2")])
                == ["2001:db8::8:1", "2001:db8::1"])
        #expect(
            try order([("198.51.100.7", "192.0.2.1"), ("192.0.2.7", "192.0.2.1")]) == ["198.51.100.7", "192.0.2.7"])
    }

    @Test func `what cannot be reached comes last, and as it was given`() throws {
        let given: [Pair] = [("2001:db8::1", nil), ("2001:db8::2", nil), ("198.51.100.7", "192.0.2.1")]
        #expect(try order(given) == ["198.51.100.7", "2001:db8::1", "2001:db8::2"])
    }

    @Test func `a tunnel comes after what needs none`() throws {
        let ordered = try order([("2001:db8:1::1", "2001:db8:1::2"), ("2001:db8:2::1", "2001:db8:2::2")]) {
            $0.isTunnelled = $0.destination == IPAddress("2001:db8:1::1")
        }
        #expect(ordered == ["2001:db8:2::1", "2001:db8:1::1"])
    }

    @Test func `a path gives its source, whether that is deprecated, and whether it tunnels`() throws {
        var interface = Sample.wired
        interface.kind = .tunnel
        interface.addresses[0].isDeprecated = true
        let path = Path(status: .satisfied, interface: interface, source: Sample.own4)
        #expect(
            DestinationOrder.Candidate(Sample.remote4, by: path)
                == .init(Sample.remote4, source: Sample.own4, isDeprecated: true, isTunnelled: true))
        let broken = Path(status: .unsatisfied, reason: .noCarrier, interface: Sample.wired, source: Sample.own4)
        #expect(DestinationOrder.Candidate(Sample.remote4, by: broken) == .init(Sample.remote4, source: nil))
    }
}
