// SPDX-License-Identifier: Apache-2.0

/// What a server answers when it refuses a login, as far as its protocol has a code or a word for that.
public struct LoginRefusal: Hashable, Sendable {
    /// The server's answer in words: the name of the protocol, the code and what the code means.
    public let text: String
    /// Whether the same login may be accepted at another time: the server is busy, shuts down or restarts.
    public let mayPass: Bool
    /// For how long the server asks to be left alone (`Retry-After`, RFC 9110, section 10.2.3); `nil` if it does not.
    public let pause: Duration?

    /// A refusal.
    public init(_ text: String, mayPass: Bool = false, pause: Duration? = nil) {
        self.text = text
        self.mayPass = mayPass
        self.pause = pause
    }

    /// What an answer refuses by; `nil` for one that is of no protocol known here, or refuses nothing.
    ///
    /// - Parameter answer: how it begins, as far as it has come. Of an unknown server: each byte may be anything.
    init?(of answer: some Collection<UInt8>) {
        // A refusal is told in its first bytes.
        let bytes = Array(answer.prefix(Self.mostBytes))
        guard let refusal = Self.http(bytes) ?? Self.mqtt(bytes) ?? Self.xmpp(bytes) else { return nil }
        self = refusal
    }

    private static let mostBytes = 2048
}

// MARK: - MQTT

extension LoginRefusal {
    /// A CONNACK or a SUBACK with a code that refuses.
    private static func mqtt(_ bytes: [UInt8]) -> LoginRefusal? {
        guard bytes.count >= 4 else { return nil }
        switch bytes[0] {
        case 0x20:
            // Flags, of which one bit is free, and the code (MQTT 3.1.1 and 5, section 3.2.2).
            guard bytes[1] >= 2, bytes[1] < 0x80, bytes[2] <= 1, bytes[3] != 0 else { return nil }
            return mqtt(bytes[3], of: "CONNACK")
        case 0x90:
            // The packet's number and, with MQTT 5, properties; a code for each subscription stands at the end.
            let end = 2 + Int(bytes[1])
            guard bytes[1] >= 3, bytes[1] < 0x80, bytes.count >= end, bytes[end - 1] >= 0x80 else { return nil }
            return mqtt(bytes[end - 1], of: "SUBACK")
        default:
            return nil
        }
    }

    private static func mqtt(_ code: UInt8, of packet: String) -> LoginRefusal {
        let meaning = mqttMeanings[code]
        let number = code < 0x80 ? "\(code)" : "0x" + String(code, radix: 16)
        return LoginRefusal(
            "\(packet) \(number)" + (meaning.map { ", \($0)" } ?? ""), mayPass: passingMQTTCodes.contains(code))
    }

    /// The return codes of MQTT 3.1.1 (table 3.1, and section 3.9.3 for 0x80) and the reason codes of MQTT 5 (table
    /// 2-6) that a CONNACK or a SUBACK may have.
    private static let mqttMeanings: [UInt8: String] = [
        1: "unacceptable protocol version", 2: "identifier rejected", 3: "server unavailable",
        4: "bad user name or password", 5: "not authorized", 0x80: "unspecified error", 0x81: "malformed packet",
        0x82: "protocol error", 0x83: "implementation specific error", 0x84: "unsupported protocol version",
        0x85: "client identifier not valid", 0x86: "bad user name or password", 0x87: "not authorized",
        0x88: "server unavailable", 0x89: "server busy", 0x8A: "banned", 0x8C: "bad authentication method",
        0x8F: "topic filter invalid", 0x90: "topic name invalid", 0x91: "packet identifier in use",
        0x95: "packet too large", 0x97: "quota exceeded", 0x99: "payload format invalid",
        0x9A: "retain not supported", 0x9B: "QoS not supported", 0x9C: "use another server", 0x9D: "server moved",
        0x9E: "shared subscriptions not supported", 0x9F: "connection rate exceeded",
        0xA1: "subscription identifiers not supported", 0xA2: "wildcard subscriptions not supported",
    ]

    /// Of the server's state and not of the login: unavailable, busy, a quota or a rate exceeded, a number in use.
    private static let passingMQTTCodes: Set<UInt8> = [3, 0x83, 0x88, 0x89, 0x91, 0x97, 0x9F]
}

// MARK: - HTTP

extension LoginRefusal {
    /// The status of an answer to an upgrade (RFC 9110, section 15).
    private static func http(_ bytes: [UInt8]) -> LoginRefusal? {
        let lines = text(bytes).split(separator: "\r\n", omittingEmptySubsequences: false)
        guard let first = lines.first, first.hasPrefix("HTTP/1.") else { return nil }
        let words = first.split(separator: " ", maxSplits: 2)
        guard words.count >= 2, words[1].utf8.count == 3, let status = Int(words[1]), (200...599).contains(status)
        else { return nil }
        let phrase = words.count > 2 ? " \(words[2].prefix(mostWord))" : ""
        var pause: Duration?
        for line in lines.dropFirst().prefix(while: { !$0.isEmpty }) {
            let parts = line.split(separator: ":", maxSplits: 1)
            guard parts.count == 2, parts[0].lowercased() == "retry-after" else { continue }
            // A date is another form; which clock it is by nobody knows.
            let seconds = parts[1].split(separator: " ").first.flatMap { UInt32($0) }
            pause = seconds.map { .seconds(min(Int($0), longestPause)) }
        }
        return LoginRefusal("HTTP \(status)\(phrase)", mayPass: passingStatuses.contains(status), pause: pause)
    }

    /// Of the server's state, and not of what was asked: too early, too many, and what a proxy says of a server that is
    /// down (RFC 9110, section 15.6; RFC 6585, section 4; RFC 8470, section 5.2).
    private static let passingStatuses: Set<Int> = [408, 425, 429, 500, 502, 503, 504]

    /// What is above is cut to it anyway.
    private static let longestPause = 86_400
}

// MARK: - XMPP

extension LoginRefusal {
    /// The condition of a SASL failure or of a stream's error (RFC 6120, sections 6.5 and 4.9.3).
    private static func xmpp(_ bytes: [UInt8]) -> LoginRefusal? {
        let text = text(bytes)
        for (tag, kind) in [("<failure", "SASL"), ("<stream:error", "stream error")] {
            guard let start = text.firstRange(of: tag)?.upperBound,
                let end = text[start...].firstIndex(of: ">")
            else { continue }
            let rest = text[text.index(after: end)...].drop { $0 != "<" }.dropFirst()
            let condition = rest.prefix { $0.isASCII && ($0.isLetter || $0 == "-") }
            guard !condition.isEmpty else { continue }
            return LoginRefusal(
                "\(kind) \(condition.prefix(mostWord))", mayPass: passingConditions.contains(String(condition)))
        }
        return nil
    }

    private static let passingConditions: Set<String> = [
        "temporary-auth-failure", "aborted", "connection-timeout", "internal-server-error", "remote-connection-failed",
        "reset", "resource-constraint", "system-shutdown", "undefined-condition",
    ]
}

extension LoginRefusal {
    /// The longest phrase or condition of a server's that is shown.
    private static let mostWord = 60

    /// Printable ASCII and ends of lines; anything else stands as a question mark.
    private static func text(_ bytes: [UInt8]) -> String {
        String(
            decoding: bytes.map { (0x20..<0x7F).contains($0) || $0 == 0x0D || $0 == 0x0A ? $0 : 0x3F }, as: UTF8.self)
    }
}
