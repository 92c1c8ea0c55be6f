// SPDX-License-Identifier: Apache-2.0

extension Target {
    /// A target as people write it: `HOST`, `HOST:PORT`, `ADDRESS` or `[ADDRESS]:PORT`; `nil` for anything else. A
    /// link-local address may name its link: `fe80::1%eth0` (RFC 4007, section 11).
    ///
    /// An IPv6 address without brackets has colons of its own and so no port.
    public init?(text: String) {
        guard let (text, zone) = Self.withoutZone(text), let (host, port) = Self.split(text) else { return nil }
        self.init(Host(host), port: port, interface: zone)
        if zone != nil, !isLinkLocal { return nil }
    }

    /// Whether it is an IPv6 address that every link has a network for: without a link it means none.
    package var isLinkLocal: Bool {
        guard case .address(let address) = host else { return false }
        return address.family == .v6 && address.isLinkLocal
    }

    /// `fe80::1%eth0` and `[fe80::1%eth0]:53` without the zone, and the zone.
    private static func withoutZone(_ text: String) -> (String, String?)? {
        guard let start = text.firstIndex(of: "%") else { return (text, nil) }
        let end = text[start...].firstIndex(of: "]") ?? text.endIndex
        let zone = text[text.index(after: start)..<end]
        // A name of an interface has fifteen bytes at most (IFNAMSIZ).
        guard (1...15).contains(zone.utf8.count), !zone.contains(where: { $0.isWhitespace || $0 == "/" }) else {
            return nil
        }
        return (String(text[..<start] + text[end...]), String(zone))
    }

    private static func split(_ text: String) -> (host: String, port: UInt16?)? {
        if text.hasPrefix("[") {
            guard let end = text.firstIndex(of: "]") else { return nil }
            let host = String(text[text.index(after: text.startIndex)..<end])
            guard IPAddress(host)?.family == .v6 else { return nil }
            let rest = text[text.index(after: end)...]
            if rest.isEmpty { return (host, nil) }
            guard rest.first == ":", let port = port(rest.dropFirst()) else { return nil }
            return (host, port)
        }
        // An IPv6 address without brackets has colons of its own and so no port.
        if IPAddress(text) != nil { return (text, nil) }
        let parts = text.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
        guard let host = parts.first, Host.isName(host) || IPAddress(String(host)) != nil else { return nil }
        guard parts.count == 2 else { return (String(host), nil) }
        guard let port = port(parts[1]) else { return nil }
        return (String(host), port)
    }

    private static func port(_ text: Substring) -> UInt16? {
        guard text.utf8.allSatisfy(\.isASCIIDigit), let port = UInt16(text), port > 0 else { return nil }
        return port
    }
}

extension Target.Host {
    /// Whether it is an address, or a name that can be looked up.
    package var isWellFormed: Bool {
        switch self {
        case .address: true
        case .name(let name): Self.isName(name)
        }
    }

    /// Labels of letters, digits, hyphens and underscores, 253 bytes at most (RFC 1035, section 2.3.4): what can be
    /// looked up. With digits alone in the last it would be an address that somebody mistyped (RFC 1123, section 2.1).
    fileprivate static func isName(_ text: some StringProtocol) -> Bool {
        var labels = text.split(separator: ".", omittingEmptySubsequences: false)
        if labels.count > 1, labels.last?.isEmpty == true { labels.removeLast() }
        return (1...253).contains(text.utf8.count)
            && labels.allSatisfy { label in
                (1...63).contains(label.utf8.count)
                    && label.allSatisfy { $0.isASCII && ($0.isLetter || $0.isNumber || "-_".contains($0)) }
            } && labels.last?.allSatisfy(\.isNumber) == false
    }
}
