// SPDX-License-Identifier: Apache-2.0

/// An IPv4 or IPv6 address, without zone and port.
public struct IPAddress: Hashable, Sendable {
    /// The two families of the Internet.
    public enum Family: Hashable, Sendable {
        /// 32-bit addresses (RFC 791).
        case v4
        /// 128-bit addresses (RFC 4291).
        case v6

        /// How many bits an address has.
        public var bitWidth: Int { self == .v4 ? 32 : 128 }
    }

    /// Which family the address is of.
    public let family: Family
    // In two halves: a UInt128 is aligned to sixteen bytes, and an agent keeps many addresses in many structures.
    private let high: UInt64
    private let low: UInt64

    /// The address as a number; an IPv4 address fills the low 32 bits.
    var bits: UInt128 { UInt128(high) << 64 | UInt128(low) }

    /// An IPv4 address from its number: `0xC000_0201` is 192.0.2.1.
    public init(v4 bits: UInt32) {
        family = .v4
        high = 0
        low = UInt64(bits)
    }

    /// An IPv6 address from its number.
    public init(v6 bits: UInt128) {
        family = .v6
        high = UInt64(truncatingIfNeeded: bits >> 64)
        low = UInt64(truncatingIfNeeded: bits)
    }

    /// An address from its bytes in network order: four for IPv4, sixteen for IPv6, `nil` for any other count.
    ///
    /// Inlinable, so that it is compiled for the callers' buffers: as generic code it costs a call through a table for
    /// each byte of each message of the kernel.
    @inlinable
    public init?(bytes: some Collection<UInt8>) {
        let bits = bytes.reduce(UInt128(0)) { $0 << 8 | UInt128($1) }
        switch bytes.count {
        case 4: self.init(v4: UInt32(truncatingIfNeeded: bits))
        case 16: self.init(v6: bits)
        default: return nil
        }
    }

    /// The bytes in network order.
    public var bytes: [UInt8] {
        let bits = bits
        return stride(from: family.bitWidth - 8, through: 0, by: -8).map { UInt8(truncatingIfNeeded: bits >> $0) }
    }

    /// Whether the first `length` bits are those of `other`, which is of the same family.
    public func sharesPrefix(with other: IPAddress, length: Int) -> Bool {
        guard family == other.family else { return false }
        let ignored = family.bitWidth - length
        return ignored >= family.bitWidth || (bits ^ other.bits) >> ignored == 0
    }

    private func isIn(_ prefix: UInt128, _ length: Int) -> Bool {
        bits >> (family.bitWidth - length) == prefix >> (family.bitWidth - length)
    }
}

extension IPAddress {
    /// 0.0.0.0 or `::`.
    public var isUnspecified: Bool { bits == 0 }

    /// 127.0.0.0/8 (RFC 1122, 3.2.1.3) or `::1`.
    public var isLoopback: Bool { family == .v4 ? isIn(0x7F00_0000, 8) : bits == 1 }

    /// 169.254.0.0/16 (RFC 3927) or fe80::/10 (RFC 4291, 2.5.6).
    public var isLinkLocal: Bool {
        family == .v4 ? isIn(0xA9FE_0000, 16) : isIn(UInt128(0xFE80) << 112, 10)
    }

    /// 10.0.0.0/8, 172.16.0.0/12 and 192.168.0.0/16 (RFC 1918), 100.64.0.0/10 (RFC 6598), fc00::/7 (RFC 4193), or
    /// link-local: another machine's in the next network.
    public var isPrivate: Bool {
        if isLinkLocal { return true }
        guard family == .v4 else { return isIn(UInt128(0xFC00) << 112, 7) }
        return isIn(0x0A00_0000, 8) || isIn(0xAC10_0000, 12) || isIn(0xC0A8_0000, 16) || isIn(0x6440_0000, 10)
    }

    /// The IPv4 address that an IPv6 socket shows as ::ffff:0:0/96 (RFC 4291, 2.5.5.2); any other as it is.
    public var unmapped: IPAddress {
        guard family == .v6, isIn(UInt128(0xFFFF) << 32, 96) else { return self }
        return IPAddress(v4: UInt32(truncatingIfNeeded: bits))
    }
}

extension IPAddress: CustomStringConvertible {
    /// Dotted decimal, or the canonical form of RFC 5952.
    public var description: String {
        guard family == .v6 else { return "\(low >> 24).\(low >> 16 & 0xFF).\(low >> 8 & 0xFF).\(low & 0xFF)" }
        // RFC 5952, section 5: an embedded IPv4 address under the well-known prefix is written as one.
        if bits >> 32 == 0xFFFF { return "::ffff:\(IPAddress(v4: UInt32(truncatingIfNeeded: bits)))" }
        let groups = stride(from: 112, through: 0, by: -16).map { UInt16(truncatingIfNeeded: bits >> $0) }
        func text(_ range: Range<Int>) -> String {
            groups[range].map { String($0, radix: 16) }.joined(separator: ":")
        }
        guard let zeros = Self.longestZeroRun(in: groups) else { return text(0..<8) }
        return "\(text(0..<zeros.lowerBound))::\(text(zeros.upperBound..<8))"
    }

    /// The run that RFC 5952, section 4.2, writes as `::`: the longest, the first of equals, never a single group.
    private static func longestZeroRun(in groups: [UInt16]) -> Range<Int>? {
        var best: Range<Int>?
        var start = 0
        while start < groups.count {
            let end = groups[start...].firstIndex { $0 != 0 } ?? groups.count
            if end - start > max(1, best?.count ?? 0) { best = start..<end }
            start = end + 1
        }
        return best
    }
}

extension IPAddress: LosslessStringConvertible {
    /// An address from dotted decimal or any form of RFC 4291, section 2.2. No zone, no octal, no brackets.
    public init?(_ text: String) {
        if text.utf8.contains(UInt8(ascii: ":")) {
            self.init(v6Text: text)
        } else {
            guard let bits = Self.dottedDecimal(text[...]) else { return nil }
            self.init(v4: bits)
        }
    }

    private static func dottedDecimal(_ text: Substring) -> UInt32? {
        var (bits, parts) = (UInt32(0), 1)
        // Of the part that is read; `nil` before its first digit.
        var byte: UInt8?
        for character in text.utf8 {
            if character == UInt8(ascii: ".") {
                guard let part = byte, parts < 4 else { return nil }
                bits = bits << 8 | UInt32(part)
                parts += 1
                byte = nil
            } else {
                // A leading zero means octal to inet_aton(3) and decimal to others: refused, so that nobody is misled.
                guard character.isASCIIDigit, byte != 0 else { return nil }
                let number = UInt16(byte ?? 0) * 10 + UInt16(character - UInt8(ascii: "0"))
                guard let next = UInt8(exactly: number) else { return nil }
                byte = next
            }
        }
        guard let last = byte, parts == 4 else { return nil }
        return bits << 8 | UInt32(last)
    }

    private init?(v6Text text: String) {
        var halves = [text[...]]
        if let gap = text.firstRange(ofDoubleColon: ()) {
            halves = [text[..<gap.lowerBound], text[gap.upperBound...]]
        }
        let parsed = halves.enumerated().compactMap { position, half in
            Self.groups(half, endsAddress: position == halves.count - 1)
        }
        guard parsed.count == halves.count else { return nil }
        let count = parsed.reduce(0) { $0 + $1.count }
        guard halves.count == 1 ? count == 8 : count <= 7 else { return nil }
        let zeros = [UInt16](repeating: 0, count: 8 - count)
        let groups = parsed.count == 1 ? parsed[0] : parsed[0] + zeros + parsed[1]
        self.init(v6: groups.reduce(UInt128(0)) { $0 << 16 | UInt128($1) })
    }

    /// The groups of one side of a `::`. The last of an address may be an IPv4 address.
    private static func groups(_ text: Substring, endsAddress: Bool) -> [UInt16]? {
        guard !text.isEmpty else { return [] }
        var groups: [UInt16] = []
        let parts = text.split(separator: ":", omittingEmptySubsequences: false)
        for (position, part) in parts.enumerated() {
            if endsAddress, position == parts.count - 1, part.contains("."), let bits = dottedDecimal(part) {
                groups += [UInt16(bits >> 16), UInt16(truncatingIfNeeded: bits)]
            } else {
                guard (1...4).contains(part.count), part.allSatisfy(\.isHexDigit), let group = UInt16(part, radix: 16)
                else { return nil }
                groups.append(group)
            }
        }
        return groups
    }
}

extension UInt8 {
    /// Whether it is a digit in ASCII.
    var isASCIIDigit: Bool { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(self) }
}

extension String {
    /// Where the first `::` stands.
    fileprivate func firstRange(ofDoubleColon: Void) -> Range<Index>? {
        guard let first = indices.first(where: { self[$0...].hasPrefix("::") }) else { return nil }
        return first..<index(first, offsetBy: 2)
    }
}
