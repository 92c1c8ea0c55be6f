// SPDX-License-Identifier: Apache-2.0

extension PolicyRule: CustomStringConvertible {
    /// The rule as `ip rule` writes it: `32766: from all lookup main`.
    package var description: String {
        var words = ["\(priority):"]
        if isInverted { words.append("not") }
        words += ["from", source.map { $0.length == 0 ? "all" : $0.short } ?? "all"]
        if let destination { words += ["to", destination.short] }
        if trafficClass != 0 { words += ["tos", "0x" + String(trafficClass, radix: 16)] }
        if markMask != 0 { words += ["fwmark", markText] }
        if let inbound { words += ["iif", inbound] }
        if let outbound { words += ["oif", outbound] }
        if isForVRF { words.append("lookup [l3mdev-table]") }
        if let users { words += ["uidrange", "\(users.lowerBound)-\(users.upperBound)"] }
        if let transport { words += ["ipproto", Self.name(ofTransport: transport)] }
        if let sourcePorts { words += ["sport", sourcePorts.description] }
        if let destinationPorts { words += ["dport", destinationPorts.description] }
        if tunnel != 0 { words += ["tun_id", "\(tunnel)"] }
        words += actionWords
        if let suppressedLength { words += ["suppress_prefixlength", "\(suppressedLength)"] }
        if let suppressedGroup { words += ["suppress_ifgroup", "\(suppressedGroup)"] }
        return words.joined(separator: " ")
    }

    private var markText: String {
        let value = mark == 0 ? "0" : "0x" + String(mark, radix: 16)
        return markMask == .max ? value : value + "/0x" + String(markMask, radix: 16)
    }

    private var actionWords: [String] {
        switch action {
        case .table(let table): isForVRF ? [] : ["lookup", RouteEntry.name(ofTable: table)]
        case .goto(let priority): ["goto", "\(priority)"]
        case .nop: ["nop"]
        case .blackhole: ["blackhole"]
        case .unreachable: ["unreachable"]
        case .prohibit: ["prohibit"]
        case .other(let number): ["action", "\(number)"]
        }
    }

    private static func name(ofTransport number: UInt8) -> String {
        switch number {
        case 1: "icmp"
        case 6: "tcp"
        case 17: "udp"
        case 58: "ipv6-icmp"
        default: "\(number)"
        }
    }
}

extension PolicyRule.Ports: CustomStringConvertible {
    /// `5060`, `5060-5070` or `5060/0xfffe`.
    package var description: String {
        if let mask { return "\(range.lowerBound)/0x\(String(mask, radix: 16))" }
        return range.count == 1 ? "\(range.lowerBound)" : "\(range.lowerBound)-\(range.upperBound)"
    }
}

extension IPPrefix {
    /// As `ip` writes it: a single address without its length, `default` for all of them.
    package var short: String {
        switch length {
        case 0: "default"
        case address.family.bitWidth: address.description
        default: description
        }
    }
}
