// SPDX-License-Identifier: Apache-2.0

/// What a server answers when it refuses a login, as far as its protocol has a code or a word for that.
///
/// Its text is made of this program's words alone. What the server wrote beside its code may be anything, a line of a
/// log or the token that it refuses included.
package struct LoginRefusal: Hashable, Sendable {
    /// The name of the protocol's answer, its code and what the code means.
    package let text: String
    /// Whether the same login may be accepted at another time: the server is busy, shuts down or restarts, or somebody
    /// else answers for it.
    package let mayPass: Bool
    /// For how long the server asks to be left alone (`Retry-After`, RFC 9110, section 10.2.3); `nil` if it does not.
    package let pause: Duration?

    /// A refusal.
    package init(_ text: String, mayPass: Bool = false, pause: Duration? = nil) {
        self.text = text
        self.mayPass = mayPass
        self.pause = pause
    }

    /// What the beginning of an answer is.
    enum Reading: Hashable {
        /// A refusal.
        case refusal(LoginRefusal)
        /// It may become one.
        case begun
        /// No refusal that is known here.
        case none
    }

    /// Looks at what has come of an answer that is not the expected one. Each byte may be anything.
    static func read(_ answer: some Collection<UInt8>) -> Reading {
        // A refusal is told in its first bytes.
        let bytes = Array(answer.prefix(mostBytes))
        guard let first = bytes.first else { return .none }
        switch first {
        case 0x20, 0x90, 0xE0: return mqtt(bytes)
        case 0x82, 0x88: return webSocket(bytes)
        case UInt8(ascii: "H"): return http(bytes)
        case UInt8(ascii: "<"): return xmpp(bytes)
        default: return .none
        }
    }

    /// As much as is left unread of an answer that is not recognized.
    private static let mostBytes = OpeningPlay.leftUnread
}

// MARK: - MQTT

extension LoginRefusal {
    /// A CONNACK, a SUBACK or a DISCONNECT with a code that refuses.
    private static func mqtt(_ bytes: [UInt8]) -> Reading {
        // Remaining Length: seven bits a byte, the lowest first (MQTT 5, section 1.5.5).
        var (length, index) = (0, 1)
        while index < 5 {
            guard index < bytes.count else { return .begun }
            length |= Int(bytes[index] & 0x7F) << (7 * (index - 1))
            index += 1
            if bytes[index - 1] < 0x80 { break }
        }
        let content = bytes[index...]
        // Where its code stands; a SUBACK has one for each subscription at its end, behind its properties.
        let (name, place, least): (String, Int, Int) =
            switch bytes[0] {
            case 0x20: ("CONNACK", 1, 2)
            case 0x90: ("SUBACK", length - 1, 3)
            default: ("DISCONNECT", 0, 1)
            }
        guard length >= least, length <= mostBytes else { return .none }
        guard content.count > place else { return .begun }
        let code = content[content.startIndex + place]
        // Of a CONNACK's flags one bit is free (section 3.2.2).
        if bytes[0] == 0x20, content[content.startIndex] > 1 { return .none }
        guard bytes[0] == 0x90 ? code >= 0x80 : code != 0 else { return .none }
        let number = code < 0x80 ? "\(code)" : "0x" + String(code, radix: 16)
        let meaning = mqttMeanings[code].map { ", \($0)" } ?? ""
        return .refusal(LoginRefusal("\(name) \(number)\(meaning)", mayPass: passingMQTTCodes.contains(code)))
    }

    /// The return codes of MQTT 3.1.1 (table 3.1, and section 3.9.3 for 0x80) and the reason codes of MQTT 5 (table
    /// 2-6) that a CONNACK, a SUBACK or a DISCONNECT may have.
    private static let mqttMeanings: [UInt8: String] = [
        1: "unacceptable protocol version", 2: "identifier rejected", 3: "server unavailable",
        4: "bad user name or password", 5: "not authorized", 0x80: "unspecified error", 0x81: "malformed packet",
        0x82: "protocol error", 0x83: "implementation specific error", 0x84: "unsupported protocol version",
        0x85: "client identifier not valid", 0x86: "bad user name or password", 0x87: "not authorized",
        0x88: "server unavailable", 0x89: "server busy", 0x8A: "banned", 0x8B: "server shutting down",
        0x8C: "bad authentication method", 0x8E: "session taken over", 0x8F: "topic filter invalid",
        0x90: "topic name invalid", 0x91: "packet identifier in use", 0x95: "packet too large",
        0x96: "message rate too high", 0x97: "quota exceeded", 0x98: "administrative action",
        0x99: "payload format invalid", 0x9A: "retain not supported", 0x9B: "QoS not supported",
        0x9C: "use another server", 0x9D: "server moved", 0x9E: "shared subscriptions not supported",
        0x9F: "connection rate exceeded", 0xA0: "maximum connect time",
        0xA1: "subscription identifiers not supported", 0xA2: "wildcard subscriptions not supported",
    ]

    /// Of the server's state and not of the login: unavailable, busy, shutting down, a quota or a rate exceeded.
    private static let passingMQTTCodes: Set<UInt8> = [
        3, 0x83, 0x88, 0x89, 0x8B, 0x8E, 0x91, 0x96, 0x97, 0x98, 0x9F, 0xA0,
    ]
}

// MARK: - HTTP and WebSocket

extension LoginRefusal {
    /// The status of an answer to an upgrade (RFC 9112, section 4; RFC 9110, section 15).
    private static func http(_ bytes: [UInt8]) -> Reading {
        let start = Array("HTTP/1.".utf8)
        guard bytes.starts(with: start) || start.starts(with: bytes) else { return .none }
        // HTTP/1.1 401
        guard bytes.count >= 12 else { return .begun }
        let digits = bytes[9..<12].map { Int($0) - 0x30 }
        guard bytes[8] == 0x20, digits.allSatisfy({ (0...9).contains($0) }) else { return .none }
        let status = digits[0] * 100 + digits[1] * 10 + digits[2]
        guard (200...599).contains(status) else { return .none }
        let phrase = phrases[status].map { " \($0)" } ?? ""
        // What is no answer of the server that is meant (2xx, 3xx) may be a portal's, whose user has to log in first.
        let mayPass =
            status < 400 || [408, 425, 429].contains(status) || (status >= 500 && ![501, 505].contains(status))
        return .refusal(LoginRefusal("HTTP \(status)\(phrase)", mayPass: mayPass, pause: pause(in: bytes)))
    }

    private static let phrases: [Int: String] = [
        400: "Bad Request", 401: "Unauthorized", 403: "Forbidden", 404: "Not Found", 405: "Method Not Allowed",
        407: "Proxy Authentication Required", 408: "Request Timeout", 410: "Gone", 426: "Upgrade Required",
        429: "Too Many Requests", 500: "Internal Server Error", 501: "Not Implemented", 502: "Bad Gateway",
        503: "Service Unavailable", 504: "Gateway Timeout", 511: "Network Authentication Required",
    ]

    /// `Retry-After` in seconds. As a date it is not looked at: whose clock it is by nobody knows.
    private static func pause(in bytes: [UInt8]) -> Duration? {
        let lines = bytes.split(separator: 0x0A, omittingEmptySubsequences: false).dropFirst()
        for line in lines {
            let line = line.last == 0x0D ? line.dropLast() : line
            // The end of the head.
            if line.isEmpty { return nil }
            let parts = line.split(separator: UInt8(ascii: ":"), maxSplits: 1)
            guard parts.count == 2, parts[0].map({ $0 | 0x20 }) == Array("retry-after".utf8) else { continue }
            let value = parts[1].split(separator: 0x20).first ?? []
            guard !value.isEmpty, value.allSatisfy({ (0x30...0x39).contains($0) }) else { return nil }
            let longest = Int(BackoffPolicy.longestRequest.components.seconds)
            return .seconds(value.reduce(0) { min($0 * 10 + Int($1) - 0x30, longest) })
        }
        return nil
    }

    /// A close frame, or MQTT inside a frame (RFC 6455, sections 5.2 and 7.4).
    private static func webSocket(_ bytes: [UInt8]) -> Reading {
        guard bytes.count >= 2 else { return .begun }
        // A server masks nothing, and what refuses is short.
        let length = Int(bytes[1])
        guard length < 126 else { return .none }
        let payload = Array(bytes.dropFirst(2).prefix(length))
        if bytes[0] == 0x82 {
            guard let first = payload.first else { return length == 0 ? .none : .begun }
            return [0x20, 0x90, 0xE0].contains(first) ? mqtt(payload) : .none
        }
        guard length >= 2 else { return .refusal(LoginRefusal("WebSocket close", mayPass: true)) }
        guard payload.count >= 2 else { return .begun }
        let code = Int(payload[0]) << 8 | Int(payload[1])
        // Going away, and those of IANA's registry for an error, a restart and being overloaded.
        return .refusal(LoginRefusal("WebSocket close \(code)", mayPass: [1001, 1011, 1012, 1013].contains(code)))
    }
}

// MARK: - XMPP

extension LoginRefusal {
    /// The condition of a SASL failure or of a stream's error (RFC 6120, sections 6.5 and 4.9.3).
    private static func xmpp(_ bytes: [UInt8]) -> Reading {
        let text = String(decoding: bytes.map { $0 < 0x80 ? $0 : 0x3F }, as: UTF8.self)
        for (tag, name) in [("<failure", "SASL failure"), ("<stream:error", "stream error")] {
            if tag.hasPrefix(text) { return .begun }
            guard let start = text.indices.first(where: { text[$0...].hasPrefix(tag) }) else { continue }
            guard let end = text[start...].firstIndex(of: ">") else { return .begun }
            let rest = text[text.index(after: end)...].drop { $0 != "<" }.dropFirst()
            let condition = rest.prefix { $0.isLetter || $0 == "-" }
            if condition.endIndex == text.endIndex { return .begun }
            guard let mayPass = conditions[String(condition)] else { return .refusal(LoginRefusal(name)) }
            return .refusal(LoginRefusal("\(name), \(condition)", mayPass: mayPass))
        }
        return .none
    }

    /// Those that are of the server's state, or of another session of the client, pass.
    private static let conditions: [String: Bool] = [
        "aborted": true, "account-disabled": false, "bad-format": false, "conflict": true, "connection-timeout": true,
        "credentials-expired": false, "encryption-required": false, "host-gone": false, "host-unknown": false,
        "improper-addressing": false, "incorrect-encoding": false, "internal-server-error": true,
        "invalid-authzid": false, "invalid-from": false, "invalid-mechanism": false, "invalid-namespace": false,
        "invalid-xml": false, "malformed-request": false, "mechanism-too-weak": false, "not-authorized": false,
        "not-well-formed": false, "policy-violation": false, "remote-connection-failed": true, "reset": true,
        "resource-constraint": true, "restricted-xml": false, "see-other-host": false, "system-shutdown": true,
        "temporary-auth-failure": true, "undefined-condition": true, "unsupported-encoding": false,
        "unsupported-feature": false, "unsupported-stanza-type": false, "unsupported-version": false,
    ]
}
