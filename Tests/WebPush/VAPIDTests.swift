// SPDX-License-Identifier: Apache-2.0

import DialtoneExpectations
import DialtonePlatform
import DialtoneTestSupport
import DialtoneWebPush
import Testing

/// VAPID.
@Suite struct VAPIDTests {
    /// The example of RFC 8292 section 2.4.
    private static let token = """
        eyJ0eXAiOiJKV1QiLCJhbGciOiJFUzI1NiJ9.eyJhdWQiOiJodHRwczovL3B1c2guZXhhbXBsZS5uZXQiLCJleHAiOjE0NTM1MjM3NjgsInN1\
        YiI6Im1haWx0bzpwdXNoQGV4YW1wbGUuY29tIn0.i3CYb7t4xfxCDquptFOepC9GAu_HLGkMlMuCGSK2rpiUfnK9ojFwDXb1JrErtmysazNjjv\
        W2L9OkSSHzvoD1oA
        """
    private static let key = "BA1Hxzyi1RUM1b5wjxsn7nGxAszw2u61m164i3MrAIxHF6YK5h4SDYic-dRuU_RCPCfA5aq9ojSwk5Y2EmClBPs"
    private static let field = "vapid t=\(token), k=\(key)"
    private static let audience = "https://push.example.net"
    private static let end = 1_453_523_768.0

    private static func check(
        _ field: String, key: String? = nil, audience: String = audience, now: Double = end - 60
    ) throws(VAPID.Refusal) -> VAPID.Statement {
        try VAPID.check(field, key: key, audience: audience, now: now)
    }

    @Test(arguments: [
        field, "VAPID   t=\(token) ,\tk=\(key)", "vapid k=\(key),t=\(token)", "vapid T=\"\(token)\", k=\"\(key)\"",
        "vapid t=\(token), k=\(key), x=y",
    ])
    func `the statement of the RFC holds`(field: String) throws {
        let statement = try Self.check(field, key: Self.key)
        #expect(statement.key == Self.key)
        #expect(statement.contact == "mailto:push@example.com")
        #expect(statement.expiration == Self.end)
    }

    @Test func `a statement holds for its time, its push service and its key`() {
        let (end, audience) = (Self.end, Self.audience)
        #expect(throws: Never.self) { try Self.check(Self.field, now: end - 86_400) }
        for now in [end, end + 1, end - 86_401, -.infinity, .nan] {
            #expect(throws: VAPID.Refusal.wrongExpiration(end), "\(now)") { try Self.check(Self.field, now: now) }
        }
        for other in ["https://push.example.net:444", "http://push.example.net", audience + "/", ""] {
            #expect(throws: VAPID.Refusal.wrongAudience(audience)) { try Self.check(Self.field, audience: other) }
        }
        let other = Appendix.otherKey
        #expect(throws: VAPID.Refusal.wrongKey) { try Self.check(Self.field, key: other) }
        #expect(throws: VAPID.Refusal.wrongSignature) { try Self.check("vapid t=\(Self.token), k=\(other)") }
    }

    @Test(arguments: [
        "", "vapid", "vapid ", "vapid t=a", "vapid k=b", "Bearer \(token)", "vapid t=a, t=b, k=c", "vapid t, k",
        "vapid ,,,",
        "vapid =, =", "vapid t=\(token); k=\(key)", "WebPush \(token)",
    ])
    func `a field that is something else is none`(field: String) {
        #expect(throws: VAPID.Refusal.noCredentials) { try Self.check(field) }
    }

    @Test(arguments: [
        "..", "a.b", "\(token).x", ".\(token)", String(token.dropFirst()),
        // alg: none; alg: HS256; a header that is no object.
        "eyJhbGciOiJub25lIn0.eyJhdWQiOiJ4In0.", "eyJhbGciOiJIUzI1NiJ9.eyJhdWQiOiJ4In0.AAAA", "W10.W10.AAAA",
    ])
    func `a token of another kind is none`(token: String) {
        #expect(throws: VAPID.Refusal.noToken) { try Self.check("vapid t=\(token), k=\(Self.key)") }
    }

    @Test func `a token with any character changed or missing is refused`() {
        let characters = Array(Self.token)
        for place in characters.indices {
            var changed = characters
            changed[place] = changed[place] == "A" ? "B" : "A"
            #expect(throws: VAPID.Refusal.self, "character \(place)") {
                try Self.check("vapid t=\(String(changed)), k=\(Self.key)")
            }
            changed.remove(at: place)
            #expect(throws: VAPID.Refusal.self, "without \(place)") {
                try Self.check("vapid t=\(String(changed)), k=\(Self.key)")
            }
        }
    }

    @Test(arguments: seeds(100))
    func `a field of any kind is refused`(seed: UInt64) {
        var random = SplitMix64(seed: seed)
        var bytes = Array(Self.field.utf8)
        random.damage(&bytes, upTo: 4)
        let field = String(decoding: bytes, as: UTF8.self)
        guard field != Self.field else { return }
        // A blank more, or a letter in upper case, says the same: only what it states is to be the same, then.
        do throws(VAPID.Refusal) {
            expect(try Self.check(field).key, is: Self.key)
        } catch {
            #expect(!"\(error)".isEmpty)
        }
    }

    @Test func `a key's text is read and written`() {
        let point = VAPID.key(of: Self.key)
        #expect(point?.count == 65)
        #expect(point.flatMap { VAPID.text(ofKey: $0) } == Self.key)
        #expect(VAPID.text(ofKey: [UInt8](repeating: 4, count: 65)) == nil)
        #expect(VAPID.text(ofKey: []) == nil)
        for text in ["", String(Self.key.dropLast()), Self.key + "A", "A" + Self.key.dropFirst(), Self.key + "="] {
            #expect(VAPID.key(of: text) == nil, "\(text)")
        }
    }
}

extension Appendix {
    /// The receiver's public key as text: one of P-256 that signed nothing.
    static var otherKey: String { Base64URL.text(of: stored[32..<97]) }
}
