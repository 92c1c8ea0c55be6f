// SPDX-License-Identifier: Apache-2.0

internal import DialtoneBus
internal import DialtonePlatform
internal import DialtoneWebPush

/// One registration of the app: what it is known by, and what its pushes are read with.
struct Registration: Hashable, Sendable {
    /// The longest that a distributor may send (UnifiedPush's D-Bus specification: 1000 bytes).
    static let longestEndpoint = 1000

    let type: PushType
    /// The app's own name for it, which nobody can guess.
    let token: String
    let keys: PushKeys
    /// The bus name of the distributor that has it, or was asked last.
    var distributor: String
    /// Where the app's server posts to; `nil` until the distributor says.
    var endpoint: String?

    /// A new one.
    init(_ type: PushType, at distributor: String) throws(WebPushError) {
        self.type = type
        self.distributor = distributor
        token = Self.newToken()
        keys = try PushKeys()
    }

    fileprivate init?(line: Substring) {
        let words = line.split(separator: " ", omittingEmptySubsequences: false).map(String.init)
        guard words.count == 5, let type = PushType(rawValue: words[0]), (1...100).contains(words[1].utf8.count),
            let keys = Base64URL.bytes(of: words[2]).flatMap(PushKeys.init(stored:)), isBusName(words[3]),
            words[4] == "-" || Self.isEndpoint(words[4])
        else { return nil }
        (self.type, token, self.keys, distributor) = (type, words[1], keys, words[3])
        endpoint = words[4] == "-" ? nil : words[4]
    }

    fileprivate var line: String {
        "\(type.rawValue) \(token) \(Base64URL.text(of: keys.stored)) \(distributor) \(endpoint ?? "-")"
    }

    /// What the app's server needs; `nil` until there is an endpoint.
    var credentials: PushCredentials? {
        endpoint.map {
            PushCredentials(type: type, endpoint: $0, publicKey: keys.publicKey, authenticationSecret: keys.secret)
        }
    }

    /// Whether it is a URL that can be posted to: printable ASCII without blanks (RFC 3986), of a length that the
    /// specification allows.
    static func isEndpoint(_ text: String) -> Bool {
        text.utf8.count <= longestEndpoint && (text.hasPrefix("https://") || text.hasPrefix("http://"))
            && text.utf8.allSatisfy { (0x21...0x7E).contains($0) }
    }

    /// A UUID of version 4 (RFC 9562 section 5.4), as the specification suggests.
    private static func newToken() -> String {
        var random = SystemRandomNumberGenerator()
        let high = random.next() & ~0xF000 | 0x4000
        let low = random.next() & ~(0xC000 << 48) | 0x8000 << 48
        let digits = [high, low].map { number in
            let text = String(number, radix: 16)
            return String(repeating: "0", count: max(0, 16 - text.count)) + text
        }.joined()
        var (token, rest) = ("", digits[...])
        for count in [8, 4, 4, 4, 12] {
            token += (token.isEmpty ? "" : "-") + rest.prefix(count)
            rest = rest.dropFirst(count)
        }
        return token
    }
}

/// The app's registrations as they are kept: a line for each, below a line that says what the file is.
struct Registrations: Hashable, Sendable {
    private static let head = "dialtone-push 1"
    /// A file of two registrations has some 3 KB.
    static let mostBytes = 64 * 1024

    private(set) var byType: [PushType: Registration] = [:]

    /// None.
    init() {}

    /// What was kept.
    ///
    /// - Returns: `nil` for what is not, as a whole, what ``bytes`` was.
    init?(_ bytes: [UInt8]) {
        guard let text = String(validating: bytes, as: UTF8.self), text.hasSuffix("\n") else { return nil }
        let lines = text.dropLast().split(separator: "\n", omittingEmptySubsequences: false)
        guard lines.first?.utf8.elementsEqual(Self.head.utf8) == true else { return nil }
        for line in lines.dropFirst() {
            guard let registration = Registration(line: line),
                byType.updateValue(registration, forKey: registration.type) == nil
            else { return nil }
        }
    }

    /// What to keep.
    var bytes: [UInt8] {
        let lines = [Self.head] + PushType.allCases.compactMap { byType[$0]?.line }
        return Array(lines.map { "\($0)\n" }.joined().utf8)
    }

    /// The registration for a type.
    subscript(type: PushType) -> Registration? {
        get { byType[type] }
        set { byType[type] = newValue }
    }

    /// The registration that a distributor names by its token. By bytes: the bus's texts are no more than that.
    func named(_ token: String) -> Registration? {
        byType.values.first { $0.token.utf8.elementsEqual(token.utf8) }
    }
}

/// Whether a text is a well-known bus name (D-Bus specification, "Bus names"). It has no slash, so it is a file's name,
/// too.
func isBusName(_ name: String) -> Bool { !name.hasPrefix(":") && BusConnection.isServiceName(name) }
