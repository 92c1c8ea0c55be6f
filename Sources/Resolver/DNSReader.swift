// SPDX-License-Identifier: Apache-2.0

internal import DialtoneNetworkPath

/// Reads a DNS message from its front. The bytes come from the network: each read is checked against their end.
struct DNSReader {
    /// What was read goes beyond the end, or is not what must stand there.
    struct Malformed: Error {}

    /// A name has 255 octets at most (RFC 1035, section 3.1).
    private static let longestName = 255

    /// How many pointers a name follows: it has 127 labels at most, and each pointer stands for one or more (RFC 1035,
    /// section 4.1.4). A message has room for 8,000 that lead to nothing but the next.
    private static let mostPointers = 127

    private let bytes: [UInt8]
    private var position = 0

    init(_ bytes: [UInt8]) { self.bytes = bytes }

    mutating func take(_ count: Int) throws(Malformed) -> ArraySlice<UInt8> {
        guard count <= bytes.count - position else { throw Malformed() }
        defer { position += count }
        return bytes[position..<position + count]
    }

    mutating func number<Number: FixedWidthInteger>(_: Number.Type = Number.self) throws(Malformed) -> Number {
        try take(Number.bitWidth / 8).reduce(0) { $0 << 8 | Number($1) }
    }

    /// A name, in lower case.
    mutating func name() throws(Malformed) -> DNSMessage.Name {
        try spelledName().map(\.lowercased)
    }

    /// The next `count` records, without those that mean nothing here.
    mutating func records(_ count: UInt16) throws(Malformed) -> [DNSMessage.Record] {
        var records: [DNSMessage.Record] = []
        for _ in 0..<count {
            let owner = try name()
            let type = RecordType(rawValue: try number())
            let isInternet = try number(UInt16.self) == 1
            let timeToLive = try number(UInt32.self)
            let length = Int(try number(UInt16.self))
            guard let type, isInternet else {
                _ = try take(length)
                continue
            }
            let end = position + length
            let content = try content(type)
            guard position == end else { throw Malformed() }
            if let content {
                records.append(.init(owner: owner, type: type, timeToLive: timeToLive, content: content))
            }
        }
        return records
    }

    /// What a record of this type says; `nil` where it is in order and cannot be told.
    private mutating func content(_ type: RecordType) throws(Malformed) -> DNSMessage.Content? {
        switch type {
        case .a:
            return .address(IPAddress(v4: try number()))
        case .aaaa:
            return .address(IPAddress(v6: try number()))
        case .cname:
            return .alias(try name())
        case .soa:
            // Two names, then serial, refresh, retry and expire before the minimum (RFC 1035, section 3.3.13).
            _ = try spelledName()
            _ = try spelledName()
            _ = try take(16)
            return .authority(minimum: try number())
        case .srv:
            let (priority, weight, port): (UInt16, UInt16, UInt16) = (try number(), try number(), try number())
            guard let target = Self.text(of: try spelledName()) else { return nil }
            return .service(ServiceLocation(priority: priority, weight: weight, port: port, target: target))
        case .naptr:
            let (order, preference): (UInt16, UInt16) = (try number(), try number())
            let (flags, service, regexp) = (try string(), try string(), try string())
            let replacement = Self.text(of: try spelledName())
            guard let flags, let service, let regexp, let replacement else { return nil }
            return .rule(
                NamingRule(
                    order: order, preference: preference, flags: flags, service: service, regexp: regexp,
                    replacement: replacement))
        }
    }

    /// A character-string (RFC 1035, section 3.3); `nil` where it is no UTF-8, which RFC 3403 has in NAPTR records.
    private mutating func string() throws(Malformed) -> String? {
        String(validating: try take(Int(try number(UInt8.self))), as: UTF8.self)
    }

    /// A name in the case that it has there, with pointers to what stood before followed (RFC 1035, section 4.1.4).
    /// They are followed in every record: servers write them in types that came later, too (RFC 3597, section 4).
    private mutating func spelledName() throws(Malformed) -> [UInt8] {
        var name: [UInt8] = []
        var end: Int?
        // Each pointer leads further to the front than the one before, so there is a last.
        var earliest = position
        var pointers = 0
        while true {
            let length = try number(UInt8.self)
            switch length >> 6 {
            case 0b00:
                name.append(length)
                if length == 0 {
                    position = end ?? position
                    return name
                }
                guard name.count + Int(length) < Self.longestName else { throw Malformed() }
                name += try take(Int(length))
            case 0b11:
                let target = Int(length & 0x3F) << 8 | Int(try number(UInt8.self))
                pointers += 1
                guard target < earliest, pointers <= Self.mostPointers else { throw Malformed() }
                end = end ?? position
                earliest = target
                position = target
            default:
                throw Malformed()
            }
        }
    }

    /// A name as text without the final dot, empty for the root; `nil` for one that text would make another: with a
    /// dot or a backslash within a label, white space, a control character, or what is no UTF-8. No host has it.
    private static func text(of name: [UInt8]) -> String? {
        var text: [UInt8] = []
        var rest = name[...]
        while let length = rest.popFirst(), length > 0 {
            let label = rest.prefix(Int(length))
            guard !label.contains(where: { $0 <= 0x20 || $0 == 0x7F || $0 == dot || $0 == backslash }) else {
                return nil
            }
            if !text.isEmpty { text.append(dot) }
            text += label
            rest = rest.dropFirst(label.count)
        }
        return String(validating: text, as: UTF8.self)
    }

    private static let dot = UInt8(ascii: ".")
    private static let backslash = UInt8(ascii: "\\")
}

extension UInt8 {
    /// DNS compares names without regard to the case of ASCII's letters, and of no others (RFC 4343).
    var lowercased: UInt8 { self >= UInt8(ascii: "A") && self <= UInt8(ascii: "Z") ? self + 32 : self }
}
