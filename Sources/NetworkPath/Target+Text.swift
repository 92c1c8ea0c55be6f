// SPDX-License-Identifier: Apache-2.0

extension Target {
    /// A target as people write it: `HOST`, `HOST:PORT`, `ADDRESS` or `[ADDRESS]:PORT`; `nil` for anything else.
    ///
    /// An IPv6 address without brackets has colons of its own and so no port.
    public init?(text: String) {
        guard let (host, port) = Self.split(text) else { return nil }
        self.init(Host(host), port: port)
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
        guard let host = parts.first, Host.isName(host) else { return nil }
        guard parts.count == 2 else { return (String(host), nil) }
        guard let port = port(parts[1]) else { return nil }
        return (String(host), port)
    }

    private static func port(_ text: Substring) -> UInt16? {
        guard text.utf8.allSatisfy({ (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }),
            let port = UInt16(text), port > 0
        else { return nil }
        return port
    }
}

extension Target.Host {
    /// Whether it is an address, or a name that can be looked up.
    public var isWellFormed: Bool {
        switch self {
        case .address: true
        case .name(let name): Self.isName(name)
        }
    }

    /// Letters, digits, dots, hyphens and underscores, 253 at most (RFC 1035, section 2.3.4): what can be looked up.
    fileprivate static func isName(_ text: some StringProtocol) -> Bool {
        (1...253).contains(text.utf8.count)
            && text.allSatisfy { $0.isASCII && ($0.isLetter || $0.isNumber || "-._".contains($0)) }
    }
}
