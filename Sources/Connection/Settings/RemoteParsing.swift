// SPDX-License-Identifier: Apache-2.0

internal import DialtoneNetworkPath

/// Why a text is not a remote. The description says what is wrong and what would be right.
package enum RemoteError: Error, Hashable, Sendable, CustomStringConvertible {
    /// It has more bytes than ``Remote/mostBytes``.
    case tooLong(Int)
    /// There is no `scheme://` in front.
    case missingScheme
    /// The scheme is none of ``Remote/Scheme``.
    case unknownScheme(String)
    /// Nothing stands where the host should.
    case emptyHost
    /// The host is neither a name (RFC 1123, section 2.1) nor an address; with why.
    case invalidHost(String, reason: String)
    /// The scheme has no port of its own and none is written.
    case missingPort(Remote.Scheme)
    /// The port is not a number from 1 to 65535.
    case invalidPort(String)
    /// `user@` or `user:password@` stands before the host.
    case userInformation
    /// Something follows the host, and the scheme has no use for it.
    case unexpectedResource(Remote.Scheme, String)
    /// The resource holds a character that a request line cannot carry, or a fragment.
    case invalidResource(String)

    /// What is wrong, for the end of a sentence.
    package var description: String {
        switch self {
        case .tooLong(let count):
            "it has \(count) bytes, and may have \(Remote.mostBytes)"
        case .missingScheme:
            "the scheme is missing: write tcp://host:port or another scheme (\(Self.knownSchemes))"
        case .unknownScheme(let scheme):
            "unknown scheme \"\(scheme)\": known are \(Self.knownSchemes)"
        case .emptyHost:
            "the host is missing"
        case .invalidHost(let host, let reason):
            "\"\(host)\" is not a host: \(reason)"
        case .missingPort(let scheme):
            "the port is missing: \(scheme.rawValue) has no port of its own, write \(scheme.rawValue)://host:port"
        case .invalidPort(let port):
            "invalid port \"\(port)\" (1–65535)"
        case .userInformation:
            "a user or password has no place in a remote: the client logs in, not the agent"
        case .unexpectedResource(let scheme, let resource):
            "\"\(resource)\" follows the host: \(scheme.rawValue) takes a host and a port only"
        case .invalidResource(let resource):
            "\"\(resource)\" is not a WebSocket resource: printable ASCII without a fragment is (RFC 6455, section 3)"
        }
    }

    private static var knownSchemes: String {
        Remote.Scheme.allCases.map(\.rawValue).joined(separator: ", ")
    }
}

extension Remote {
    /// The most bytes of a remote's text: a WebSocket's resource with a token in it has one or two thousand. It stands
    /// in the connection, its events and its settings, some thirteen times in all, so that a user's 1,024 connections
    /// take 50 MB with it and not 800.
    package static let mostBytes = 4096

    /// A remote from a URL. The scheme's case does not matter (RFC 3986, section 3.1).
    ///
    /// - Throws: what is wrong with it.
    package init(_ text: String) throws(RemoteError) {
        guard text.utf8.count <= Self.mostBytes else { throw .tooLong(text.utf8.count) }
        let (scheme, rest) = try Self.splitScheme(text)
        let end = rest.utf8.firstIndex { "/?#".utf8.contains($0) } ?? rest.endIndex
        let authority = rest[..<end]
        if authority.utf8.contains(UInt8(ascii: "@")) { throw .userInformation }
        let (host, port) = try Self.splitPort(authority)
        self.init(
            scheme: scheme, host: try Self.host(host), port: try Self.port(port, of: scheme),
            isPortWritten: port?.isEmpty == false, resource: try Self.resource(rest[end...], of: scheme))
    }

    // Looked for among the bytes: a URL's delimiters are ASCII (RFC 3986, section 2.2), whatever follows them.
    private static let (colon, bracket) = (UInt8(ascii: ":"), UInt8(ascii: "["))

    private static func splitScheme(_ text: String) throws(RemoteError) -> (Scheme, Substring) {
        guard let end = text.utf8.firstIndex(of: colon), text.utf8[end...].starts(with: "://".utf8) else {
            throw .missingScheme
        }
        guard let scheme = Scheme(rawValue: text[..<end].lowercased()) else {
            throw .unknownScheme(String(text[..<end]))
        }
        return (scheme, text[text.utf8.index(end, offsetBy: 3)...])
    }

    /// Takes `host:port` apart; the host keeps its brackets, so that the caller can tell an address by them.
    private static func splitPort(_ authority: Substring) throws(RemoteError) -> (Substring, Substring?) {
        let bytes = authority.utf8
        var end = bytes.lastIndex(of: colon)
        if bytes.first == bracket {
            guard let close = bytes.firstIndex(of: UInt8(ascii: "]")) else {
                throw .invalidHost(String(authority), reason: "the closing bracket is missing")
            }
            let after = bytes.index(after: close)
            guard after == bytes.endIndex || bytes[after] == colon else {
                throw .invalidHost(String(authority), reason: "only a port may follow the bracket")
            }
            end = after == bytes.endIndex ? nil : after
        } else if let last = end, bytes[..<last].contains(colon) {
            throw .invalidHost(String(authority), reason: "an IPv6 address stands in brackets, as in [2001:db8::7]")
        }
        guard let end else { return (authority, nil) }
        return (authority[..<end], authority[bytes.index(after: end)...])
    }

    private static func port(_ text: Substring?, of scheme: Scheme) throws(RemoteError) -> UInt16 {
        guard let text, !text.isEmpty else {
            guard let port = scheme.defaultPort else { throw .missingPort(scheme) }
            return port
        }
        guard text.utf8.allSatisfy(isDigit), let port = UInt16(text), port != 0 else {
            throw .invalidPort(String(text))
        }
        return port
    }

    private static func host(_ text: Substring) throws(RemoteError) -> Target.Host {
        let plain = String(text)
        if text.isEmpty || text == "[]" { throw .emptyHost }
        if text.utf8.first == bracket {
            let inner = String(Substring(text.utf8.dropFirst().dropLast()))
            if inner.contains("%") { throw .invalidHost(plain, reason: "a zone has no place here, the path gives it") }
            guard let address = IPAddress(inner), address.family == .v6 else {
                throw .invalidHost(plain, reason: "what stands in brackets is not an IPv6 address")
            }
            return .address(try dialable(address))
        }
        if let address = IPAddress(plain) { return .address(try dialable(address)) }
        return .name(try name(text))
    }

    /// What is wrong with the name or address of a host; `nil` if nothing is.
    static func hostProblem(_ text: String) -> String? {
        if IPAddress(text) != nil { return nil }
        do throws(RemoteError) {
            _ = try name(text[...])
            return nil
        } catch {
            guard case .invalidHost(_, let reason) = error else { return error.description }
            return reason
        }
    }

    private static func dialable(_ address: IPAddress) throws(RemoteError) -> IPAddress {
        if address.isUnspecified {
            throw .invalidHost(address.description, reason: "the unspecified address names no host")
        }
        return address
    }

    /// A host name by RFC 1123, section 2.1, with the underscore that real names have.
    private static func name(_ text: Substring) throws(RemoteError) -> String {
        let text = text.hasSuffix(".") ? text.dropLast() : text
        func wrong(_ reason: String) -> RemoteError { .invalidHost(String(text), reason: reason) }
        // 253 characters are what fits into the 255 octets of a name on the wire (RFC 1035, section 2.3.4).
        if text.utf8.count > 253 { throw wrong("a name has at most 253 characters") }
        let labels = text.utf8.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
        for label in labels {
            if label.isEmpty { throw wrong("a part between two dots is empty") }
            if label.count > 63 { throw wrong("a part between two dots has at most 63 characters") }
            if let byte = label.first(where: { !isNameByte($0) }) {
                throw wrong(
                    byte < 0x80
                        ? "\"\(Character(UnicodeScalar(byte)))\" cannot stand in a name"
                        : "write an international name in its ASCII form (xn--…)")
            }
            if label.first == UInt8(ascii: "-") || label.last == UInt8(ascii: "-") {
                throw wrong("no part of a name begins or ends with a hyphen")
            }
        }
        // Top-level names are alphabetic (RFC 1123, section 2.1), so this was meant as an address: 300.1.1.1, 10.1.
        if let last = labels.last, last.allSatisfy(isDigit) { throw wrong("it is not a complete IPv4 address") }
        return text.lowercased()
    }

    private static func resource(_ text: Substring, of scheme: Scheme) throws(RemoteError) -> String {
        guard scheme.takesResource else {
            // A lone slash says nothing, and people write it.
            guard text.isEmpty || text == "/" else { throw .unexpectedResource(scheme, String(text)) }
            return ""
        }
        guard text.utf8.allSatisfy({ (0x21...0x7E).contains($0) && $0 != UInt8(ascii: "#") }) else {
            throw .invalidResource(String(text))
        }
        return text.hasPrefix("?") ? "/\(text)" : String(text)
    }

    private static func isDigit(_ byte: UInt8) -> Bool {
        (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte)
    }

    private static func isNameByte(_ byte: UInt8) -> Bool {
        let lowered = byte | 0x20
        return isDigit(byte) || (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(lowered)
            || byte == UInt8(ascii: "-") || byte == UInt8(ascii: "_")
    }
}
