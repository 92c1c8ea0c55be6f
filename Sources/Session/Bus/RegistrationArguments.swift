// SPDX-License-Identifier: Apache-2.0

internal import DialtoneBus
internal import DialtoneDistributor

/// What an app gave to Register, held against the specification's limits (UnifiedPush, `dbus.md`, "Resources").
struct RegistrationArguments: Hashable, Sendable {
    /// What is wrong with them, for a person.
    struct Fault: Error, Hashable {
        let text: String
    }

    /// The longest description, in bytes.
    private static let longestSummary = 100
    /// A point of P-256, uncompressed (65 bytes), in base64url without padding.
    private static let lengthOfKey = 87
    /// The key of our own by which an app says what kind of push it registers for.
    static let kindKey = "org.dialtone.type"

    let service: String
    let token: String
    let version: ConnectorVersion
    let kind: PushKind
    let summary: String
    let vapid: String?

    /// The dictionary of `Distributor2.Register`. Keys that are not known are for others.
    init(_ entries: [String: BusValue]) throws(Fault) {
        func text(_ key: String) throws(Fault) -> String? {
            guard let value = entries[key] else { return nil }
            guard let text = value.text else { throw Fault(text: "\"\(key)\" is no string") }
            return text
        }
        guard let service = try text("service") else { throw Fault(text: "\"service\" is missing") }
        guard let token = try text("token") else { throw Fault(text: "\"token\" is missing") }
        self.service = service
        self.token = try Self.checked(token)
        version = .v2
        let kind = try text(Self.kindKey) ?? PushKind.standard.rawValue
        guard let kind = PushKind(rawValue: kind) else {
            throw Fault(text: "\"\(Self.kindKey)\" is neither \"standard\" nor \"voip\"")
        }
        self.kind = kind
        summary = try text("description") ?? ""
        guard summary.utf8.count <= Self.longestSummary else {
            throw Fault(text: "\"description\" is longer than \(Self.longestSummary) bytes")
        }
        // An empty one says the same as none.
        let vapid = try text("vapid") ?? ""
        guard vapid.isEmpty || Self.isKey(vapid) else {
            throw Fault(text: "\"vapid\" is no public key in base64url, \(Self.lengthOfKey) bytes that begin with B")
        }
        self.vapid = vapid.isEmpty ? nil : vapid
    }

    /// The arguments of `Distributor1.Register`, whose specification has no limit for the description: it is cut.
    init(service: String, token: String, description: String) throws(Fault) {
        self.service = service
        self.token = try Self.checked(token)
        version = .v1
        kind = .standard
        vapid = nil
        var summary = description
        // By the scalar, so that no character costs more than a look at it.
        while summary.utf8.count > Self.longestSummary {
            summary = String(summary.unicodeScalars.prefix(min(summary.unicodeScalars.count - 1, Self.longestSummary)))
        }
        self.summary = summary
    }

    private static func checked(_ token: String) throws(Fault) -> String {
        guard DistributorLimits.token.contains(token.utf8.count) else {
            throw Fault(text: "\"token\" has \(token.utf8.count) bytes, and not 1 to 100")
        }
        return token
    }

    /// The first byte of an uncompressed point is 4 (SEC 1, section 2.3.3).
    private static func isKey(_ text: String) -> Bool {
        text.utf8.count == lengthOfKey && text.hasPrefix("B")
            && text.utf8.allSatisfy { byte in
                switch byte {
                case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"): true
                case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "_"): true
                default: false
                }
            }
    }
}
