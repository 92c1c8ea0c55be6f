// SPDX-License-Identifier: Apache-2.0

package import DialtoneNetworkPath

/// Which network a flow goes through: the same value whenever this machine is in the same network again.
///
/// What holds an idle flow's state is mostly the router at its first hop, or the operator behind it. So a network is
/// known by its gateway's link-layer address (`NDA_LLADDR` of the neighbour that a path's gateway is), by the prefix
/// that the source address is in (of the interface's addresses), and by what kind of network it is. Neither alone will
/// do: half of all homes are 192.168.1.0/24, and a router has one address for its guests and its owners. The family of
/// the prefix keeps IPv4's translation and IPv6's firewall apart.
///
/// Behind a modem or a tunnel there is no such gateway, and the address is another each time. There it is the
/// interface's name that stays.
package struct NetworkIdentity: Hashable, Sendable {
    /// The kind of the interface that the path leaves by.
    package let kind: InterfaceKind
    /// The gateway's link-layer address; empty for a modem or a tunnel.
    package let gateway: [UInt8]
    /// The network that the source address is in, or all of its family.
    package let prefix: IPPrefix?
    /// What else tells it from others: the name of a modem's or a tunnel's interface. Empty otherwise; the name of a
    /// wireless network is not known to the kernel's routing interface.
    package let name: [UInt8]

    /// The longest link-layer address (`MAX_ADDR_LEN` of `linux/netdevice.h`); interfaces' names are shorter.
    static let longestPart = 32

    /// An identity; `nil` where nothing tells the network from another.
    package init?(kind: InterfaceKind, gateway: [UInt8] = [], prefix: IPPrefix? = nil, name: [UInt8] = []) {
        guard !gateway.isEmpty || !name.isEmpty else { return nil }
        guard gateway.count <= Self.longestPart, name.count <= Self.longestPart else { return nil }
        self.kind = kind
        self.gateway = gateway
        self.prefix = prefix.map { $0.network }
        self.name = name
    }

    /// The identity of the network that a path leads through; `nil` for none that could be known again, as the link
    /// that the remote itself is on.
    ///
    /// - Parameter gatewayLinkAddress: of the path's gateway; empty where it is not known.
    package init?(_ path: Path, gatewayLinkAddress: [UInt8]) {
        guard path.status == .satisfied, !path.isLocalAddress, let interface = path.interface, let source = path.source
        else { return nil }
        switch interface.kind {
        case .cellular, .tunnel:
            self.init(kind: interface.kind, prefix: .all(source.family), name: Array(interface.name.utf8))
        case .loopback, .wired, .wifi, .bridge, .virtual, .other:
            let address = interface.addresses.first { $0.address == source }
            self.init(
                kind: interface.kind, gateway: gatewayLinkAddress,
                prefix: address.map { IPPrefix($0.address, length: $0.prefixLength) } ?? .all(source.family))
        }
    }
}

extension NetworkIdentity: LosslessStringConvertible {
    /// Four words: kind, gateway, prefix and name, the bytes in hexadecimal, `-` for what is not known.
    package var description: String {
        let words = [
            kind.rawValue, Self.hexadecimal(gateway), prefix?.description ?? "-", Self.hexadecimal(name),
        ]
        return words.joined(separator: " ")
    }

    /// An identity from its ``description``; `nil` for anything else.
    package init?(_ description: String) {
        let words = description.split(separator: " ", omittingEmptySubsequences: false)
        guard words.count == 4, let kind = InterfaceKind(rawValue: String(words[0])),
            let gateway = Self.bytes(words[1]), let name = Self.bytes(words[3])
        else { return nil }
        var prefix: IPPrefix?
        if words[2] != "-" {
            guard let parsed = Self.prefix(words[2]) else { return nil }
            prefix = parsed
        }
        self.init(kind: kind, gateway: gateway, prefix: prefix, name: name)
    }

    private static func hexadecimal(_ bytes: [UInt8]) -> String {
        bytes.isEmpty ? "-" : bytes.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
    }

    private static func bytes(_ text: Substring) -> [UInt8]? {
        if text == "-" { return [] }
        let digits = text.compactMap { $0.isASCII ? $0.hexDigitValue : nil }
        guard digits.count == text.count, digits.count % 2 == 0, !digits.isEmpty, digits.count <= 2 * longestPart else {
            return nil
        }
        return stride(from: 0, to: digits.count, by: 2).map { UInt8(digits[$0] << 4 | digits[$0 + 1]) }
    }

    private static func prefix(_ text: Substring) -> IPPrefix? {
        let parts = text.split(separator: "/", omittingEmptySubsequences: false)
        guard parts.count == 2, let address = IPAddress(String(parts[0])), let length = Int(parts[1]),
            (0...address.family.bitWidth).contains(length)
        else { return nil }
        return IPPrefix(address, length: length)
    }
}

extension IPPrefix {
    /// The same addresses, named by the first of them.
    fileprivate var network: IPPrefix {
        let bytes = address.bytes.enumerated().map { index, byte in
            let kept = min(max(length - index * 8, 0), 8)
            return byte & UInt8(truncatingIfNeeded: 0xFF00 >> kept)
        }
        return IPAddress(bytes: bytes).map { IPPrefix($0, length: length) } ?? self
    }
}
