// SPDX-License-Identifier: Apache-2.0

internal import DialtonePlatform

/// The request by which a connection becomes a WebSocket, and the check of its answer (RFC 6455, section 4.1).
struct WebSocketUpgrade: Sendable {
    /// The host and, where it is not the default one, the port, as the `Host` field has them.
    var host: String
    /// The path and the query.
    var path: String
    /// Further fields, such as `Authorization`. Their texts have no control characters: the caller checked that.
    var fields: [Field] = []

    /// A field of the request. Its value may be a password, and is in no description.
    struct Field: Hashable, Sendable, CustomStringConvertible, CustomReflectable {
        let name: String
        let value: String

        var description: String { name }
        var customMirror: Mirror { Mirror(self, children: ["name": name]) }
    }

    /// The longest head of an answer: what the machine's agent allows in an opening, too.
    static let longestHead = 16 * 1024

    /// What ends a head (RFC 9112, section 2.1).
    static let endOfHead: [UInt8] = [13, 10, 13, 10]

    /// How the answer begins that accepts the upgrade.
    static let accepted = Array("HTTP/1.1 101 ".utf8)

    /// A nonce for the request, 16 random bytes in base64.
    static func key(using random: inout some RandomNumberGenerator) -> String {
        Base64.text(of: (0..<16).map { _ in UInt8.random(in: .min ... .max, using: &random) })
    }

    /// What the server makes of a nonce (section 4.2.2).
    static func acceptance(of key: String) -> String {
        Base64.text(of: SHA1.digest(Array("\(key)258EAFA5-E914-47DA-95CA-C5AB0DC85B11".utf8)))
    }

    /// The request with this nonce.
    func request(key: String) -> [UInt8] {
        var lines = [
            "GET \(path) HTTP/1.1", "Host: \(host)", "Upgrade: websocket", "Connection: Upgrade",
            "Sec-WebSocket-Key: \(key)", "Sec-WebSocket-Version: 13",
        ]
        lines += fields.map { "\($0.name): \($0.value)" }
        return Array(lines.map { $0 + "\r\n" }.joined().utf8) + [13, 10]
    }

    /// What the head of an answer says.
    enum Answer: Hashable, Sendable {
        /// The connection is a WebSocket from here on.
        case accepted
        /// The server gives something else. A redirect is not followed: the machine's agent dials what the
        /// configuration names.
        case refused(WebSocketRefusal)
        /// It is no answer that the protocol has; why.
        case broken(String)
    }

    /// Reads a head with its end, the answer to the request with this nonce.
    static func answer(_ head: [UInt8], to key: String) -> Answer {
        guard let text = String(validating: head, as: UTF8.self) else { return .broken("the head is not UTF-8") }
        // By bytes: "\r\n" is one character to Swift.
        let lines = text.utf8.split(separator: 10).map { line in
            String(decoding: line.last == 13 ? line.dropLast() : line[...], as: UTF8.self)
        }
        guard let first = lines.first, let status = status(of: first) else {
            return .broken("the answer to the upgrade does not begin with HTTP/1.1 and a status")
        }
        var fields: [String: String] = [:]
        for line in lines.dropFirst() where !line.isEmpty {
            let parts = line.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
            guard parts.count == 2, !parts[0].isEmpty, !parts[0].contains(where: \.isWhitespace) else {
                return .broken("a line of the head is no field")
            }
            let (name, value) = (parts[0].lowercased(), trimmed(parts[1]))
            // Fields of one name are one list (RFC 9110, section 5.3).
            fields[name] = fields[name].map { "\($0), \(value)" } ?? value
        }
        guard status == 101 else {
            return .refused(
                WebSocketRefusal(status: status, location: fields["location"], retryAfter: fields["retry-after"]))
        }
        if let problem = problem(fields, key) { return .broken(problem) }
        return .accepted
    }

    private static func problem(_ fields: [String: String], _ key: String) -> String? {
        guard fields["upgrade"]?.lowercased() == "websocket" else { return "the answer's Upgrade is not websocket" }
        let tokens = (fields["connection"] ?? "").lowercased().split(separator: ",").map(trimmed)
        guard tokens.contains("upgrade") else { return "the answer's Connection is not Upgrade" }
        guard fields["sec-websocket-accept"] == acceptance(of: key) else {
            return "the answer's Sec-WebSocket-Accept belongs to another request"
        }
        // Neither was asked for.
        if let name = ["sec-websocket-extensions", "sec-websocket-protocol"].first(where: { fields[$0] != nil }) {
            return "the answer has a \(name) that nobody asked for"
        }
        return nil
    }

    private static func status(of line: String) -> Int? {
        let bytes = Array(line.utf8)
        guard bytes.starts(with: "HTTP/1.1 ".utf8), bytes.count >= 12, bytes.count == 12 || bytes[12] == 0x20 else {
            return nil
        }
        let digits = bytes[9..<12]
        guard digits.allSatisfy({ (0x30...0x39).contains($0) }), digits.first != 0x30 else { return nil }
        return digits.reduce(0) { $0 * 10 + Int($1 - 0x30) }
    }

    private static func trimmed(_ text: Substring) -> String {
        let blanks: (Character) -> Bool = { $0 == " " || $0 == "\t" }
        let start = text.drop(while: blanks)
        return String(start.reversed().drop(while: blanks).reversed())
    }
}

/// An answer of HTTP that is no upgrade.
struct WebSocketRefusal: Hashable, Sendable {
    /// From 100 to 999.
    let status: Int
    /// Where the server would rather have the client go; not followed.
    let location: String?
    /// For how many seconds the server asks to be left alone (RFC 9110, section 10.2.3), up to an hour; `nil` if it
    /// does not, or names a time of its own clock.
    let pause: Duration?

    init(status: Int, location: String? = nil, retryAfter: String? = nil) {
        self.status = status
        self.location = location
        pause = retryAfter.flatMap { Int($0) }.flatMap { $0 > 0 ? .seconds(min($0, 3600)) : nil }
    }

    /// Whether the server means the account: it wants another one, or none (RFC 9110, sections 15.5.2 and 15.5.4).
    var isOfAccount: Bool { status == 401 || status == 403 }

    /// Whether somebody else may have answered, such as a captive portal: the next network may have none.
    var mayBeOfAnother: Bool { status < 400 || status == 407 || status == 511 }

    /// For a person.
    var text: String {
        guard let location, (300..<400).contains(status) else { return "HTTP status \(status)" }
        return "HTTP status \(status), a redirect to \(String(location.prefix(200)).printable)"
    }
}
