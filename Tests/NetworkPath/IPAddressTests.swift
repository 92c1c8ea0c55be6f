// SPDX-License-Identifier: Apache-2.0

import DialtoneTestSupport
import Foundation
import Testing

@testable import DialtoneNetworkPath

struct IPAddressTests {
    /// RFC 4291, section 2.2, and RFC 5952, sections 1, 2 and 4, example by example.
    @Test(arguments: [
        ("0.0.0.0", "0.0.0.0"),
        ("192.0.2.1", "192.0.2.1"),
        ("255.255.255.255", "255.255.255.255"),
        ("ABCD:EF01:2345:6789:ABCD:EF01:2345:6789", "abcd:ef01:2345:6789:abcd:ef01:2345:6789"),
        ("2001:DB8:0:0:8:800:200C:417A", "2001:db8::8:800:200c:417a"),
        ("FF01:0:0:0:0:0:0:101", "ff01::101"),
        ("0:0:0:0:0:0:0:1", "::1"),
        ("0:0:0:0:0:0:0:0", "::"),
        ("::", "::"),
        ("0:0:0:0:0:0:13.1.68.3", "::d01:4403"),
        ("::13.1.68.3", "::d01:4403"),
        ("0:0:0:0:0:FFFF:129.144.52.38", "::ffff:129.144.52.38"),
        ("::ffff:8190:3426", "::ffff:129.144.52.38"),
        ("64:ff9b::192.0.2.33", "64:ff9b::c000:221"),
        ("2001:0db8::0001", "2001:db8::1"),
        ("2001:db8:0:0:0:0:2:1", "2001:db8::2:1"),
        ("2001:db8::1:1:1:1:1", "2001:db8:0:1:1:1:1:1"),
        ("2001:0:0:1:0:0:0:1", "2001:0:0:1::1"),
        ("2001:db8:0:0:1:0:0:1", "2001:db8::1:0:0:1"),
        ("2001:db8::aaaa:0:0:1", "2001:db8::aaaa:0:0:1"),
        ("::2:3:4:5:6:7:8", "0:2:3:4:5:6:7:8"),
        ("1:2:3:4:5:6:7::", "1:2:3:4:5:6:7:0"),
        ("1:2:3:4:5:6::", "1:2:3:4:5:6::"),
        ("1::", "1::"),
    ])
    func `every form is read and written canonically`(text: String, canonical: String) throws {
        let address = try #require(IPAddress(text))
        #expect(address.description == canonical)
        #expect(IPAddress(canonical) == address)
    }

    @Test(arguments: [
        "", " ", "1", "1.2.3", "1.2.3.4.5", "1.2.3.", ".1.2.3", "1..2.3", "256.0.0.1", "1.2.3.-4", "+1.2.3.4",
        "01.2.3.4", "1.2.3.00", "0x1.2.3.4", "1.2.3.4 ", " 1.2.3.4", "1.2.3.4\n", "127.1", "2130706433",
        "１.2.3.4", "1.2.3.٤", "1\u{301}.2.3.4",
        ":", ":::", "1:", "1:2:3:4:5:6:7", "1:2:3:4:5:6:7:8:9", "1:2:3:4:5:6:7:8::", "::1:2:3:4:5:6:7:8",
        "1::2::3", ":1:2:3:4:5:6:7", "1:2:3:4:5:6:7:", "12345::", "::g", "::+1", "::-1", "::Ａ",
        "1.2.3.4::", "1:1.2.3.4::5", "::1.2.3.4:5", "1:2:3:4:5:6:7:1.2.3.4", "::1.2.3", "::1.2.3.04", "::256.1.1.1",
        "fe80::1%eth0", "[::1]", "::1/128", "example.com",
    ])
    func `what is no address is refused`(text: String) {
        #expect(IPAddress(text) == nil)
    }

    @Test(arguments: seeds(4))
    func `text round trips through the c library`(seed: UInt64) throws {
        var random = SplitMix64(seed: seed)
        for _ in 0..<2000 {
            let address = IPAddress.random(using: &random)
            #expect(IPAddress(address.description) == address)
            #expect(parsedByLibrary(address.description) == address.bytes)
            // RFC 5952 leaves the deprecated IPv4-compatible form (::a.b.c.d) to hexadecimal; the C library does not.
            if address.family == .v4 || address.bytes[..<12].contains(where: { $0 != 0 }) {
                #expect(address.description == writtenByLibrary(address))
            }
        }
    }

    /// The C library's inet_pton(3) keeps the same rules: no octal, no short forms, no zone.
    @Test(arguments: seeds(4))
    func `damaged text is read exactly as by the c library`(seed: UInt64) {
        var random = SplitMix64(seed: seed)
        let alphabet = Array("0123456789abcfF:.:.")
        for _ in 0..<20_000 {
            var text = Array(IPAddress.random(using: &random).description)
            for _ in 0..<Int.random(in: 1...4, using: &random) {
                let position = Int.random(in: 0...text.count, using: &random)
                let length = min(Int.random(in: 0...2, using: &random), text.count - position)
                let patch = (0..<Int.random(in: 0...2, using: &random)).compactMap { _ in
                    alphabet.randomElement(using: &random)
                }
                text.replaceSubrange(position..<position + length, with: patch)
            }
            let damaged = String(text)
            #expect(IPAddress(damaged)?.bytes == parsedByLibrary(damaged), "\(damaged)")
        }
    }

    @Test func `bytes are four or sixteen`() {
        #expect(IPAddress(bytes: [192, 0, 2, 1])?.description == "192.0.2.1")
        let v6: [UInt8] = [0x20, 0x01, 0x0D, 0xB8] + Array(repeating: 0, count: 11) + [1]
        #expect(IPAddress(bytes: v6)?.description == "2001:db8::1")
        #expect(IPAddress(bytes: v6)?.bytes == v6)
        for count in [0, 1, 3, 5, 8, 15, 17, 32] {
            #expect(IPAddress(bytes: [UInt8](repeating: 1, count: count)) == nil)
        }
    }

    @Test func `the same bits in two families are two addresses`() {
        #expect(IPAddress(v4: 1) != IPAddress(v6: 1))
    }

    @Test(arguments: [
        ("127.0.0.1", true, false, false), ("127.255.255.255", true, false, false),
        ("126.255.255.255", false, false, false), ("128.0.0.0", false, false, false),
        ("::1", true, false, false), ("::2", false, false, false), ("0.0.0.1", false, false, false),
        ("169.254.0.1", false, true, false), ("169.255.0.1", false, false, false),
        ("fe80::1", false, true, false), ("febf::1", false, true, false), ("fec0::1", false, false, false),
        ("fe7f::1", false, false, false),
        ("0.0.0.0", false, false, true), ("::", false, false, true),
    ])
    func `classes of addresses`(text: String, isLoopback: Bool, isLinkLocal: Bool, isUnspecified: Bool) throws {
        let address = try #require(IPAddress(text))
        #expect(address.isLoopback == isLoopback)
        #expect(address.isLinkLocal == isLinkLocal)
        #expect(address.isUnspecified == isUnspecified)
    }

    @Test(arguments: [
        ("192.0.2.1", "192.0.2.254", 24, true), ("192.0.2.1", "192.0.3.1", 24, false),
        ("192.0.2.1", "192.0.3.1", 23, true), ("192.0.2.1", "192.0.2.1", 32, true),
        ("192.0.2.1", "192.0.2.0", 32, false), ("0.0.0.0", "255.255.255.255", 0, true),
        ("2001:db8::1", "2001:db8::2", 64, true), ("2001:db8::1", "2001:db8:0:1::1", 64, false),
        ("2001:db8::1", "2001:db8::1", 128, true), ("2001:db8::", "2001:db8::1", 128, false),
        ("::", "ffff::", 0, true), ("0.0.0.1", "::1", 0, false),
    ])
    func `prefixes`(left: String, right: String, length: Int, shared: Bool) throws {
        let (left, right) = (try #require(IPAddress(left)), try #require(IPAddress(right)))
        #expect(left.sharesPrefix(with: right, length: length) == shared)
        #expect(right.sharesPrefix(with: left, length: length) == shared)
    }

    private func parsedByLibrary(_ text: String) -> [UInt8]? {
        let (family, count) = text.contains(":") ? (AF_INET6, 16) : (AF_INET, 4)
        var bytes = [UInt8](repeating: 0, count: count)
        return inet_pton(family, text, &bytes) == 1 ? bytes : nil
    }

    private func writtenByLibrary(_ address: IPAddress) -> String {
        var text = [CChar](repeating: 0, count: Int(INET6_ADDRSTRLEN))
        _ = inet_ntop(address.family == .v4 ? AF_INET : AF_INET6, address.bytes, &text, socklen_t(text.count))
        return text.withUnsafeBufferPointer { $0.baseAddress.map { String(cString: $0) } ?? "" }
    }
}

extension IPAddress {
    /// An address of either family; half of an IPv6 address's groups are zero, so that `::` finds all its places.
    fileprivate static func random(using random: inout SplitMix64) -> IPAddress {
        if random.chance(30) { return IPAddress(v4: UInt32(truncatingIfNeeded: random.next())) }
        if random.chance(10) { return IPAddress(v6: 0xFFFF << 32 | UInt128(UInt32(truncatingIfNeeded: random.next()))) }
        var bits: UInt128 = 0
        for _ in 0..<8 {
            let group = random.chance(50) ? 0 : random.next() >> UInt64.random(in: 48..<64, using: &random)
            bits = bits << 16 | UInt128(group)
        }
        return IPAddress(v6: bits)
    }
}
