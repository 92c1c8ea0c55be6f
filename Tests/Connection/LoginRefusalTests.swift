// SPDX-License-Identifier: Apache-2.0

import DialtoneTestSupport
import Testing

@testable import DialtoneConnection

/// What of a server's answer is a refusal, in this program's words.
@Suite struct LoginRefusalTests {
    private static let longReason = [UInt8](repeating: 0x61, count: 200)

    @Test(
        arguments: [
            ([0x20, 2, 0, 4], "CONNACK 4, bad user name or password", false),
            ([0x20, 2, 0, 3], "CONNACK 3, server unavailable", true),
            ([0x20, 2, 0, 77], "CONNACK 77", false),
            ([0x20, 3, 0, 0x87, 0], "CONNACK 0x87, not authorized", false),
            ([0x20, 3, 0, 0x89, 0], "CONNACK 0x89, server busy", true),
            ([0x20, 0xCB, 1, 0, 0x88] + longReason, "CONNACK 0x88, server unavailable", true),
            ([0x90, 4, 0, 1, 0, 0x87], "SUBACK 0x87, not authorized", false),
            ([0x90, 4, 0, 1, 0, 0x97, 0x30], "SUBACK 0x97, quota exceeded", true),
            ([0xE0, 2, 0x8B, 0], "DISCONNECT 0x8b, server shutting down", true),
            ([0x82, 4, 0x20, 2, 0, 5], "CONNACK 5, not authorized", false),
            ([0x88, 2, 3, 0xF4], "WebSocket close 1012", true),
            ([0x88, 2, 3, 0xF0], "WebSocket close 1008", false),
        ] as [([UInt8], String, Bool)])
    func `a code`(answer: [UInt8], text: String, mayPass: Bool) {
        #expect(LoginRefusal.read(answer) == .refusal(LoginRefusal(text, mayPass: mayPass)))
    }

    @Test(
        arguments: [
            ("HTTP/1.1 401 Unauthorized\r\nServer: x\r\n\r\n", "HTTP 401 Unauthorized", false, nil),
            ("HTTP/1.1 503 x\r\nretry-after:  120 \r\n\r\n", "HTTP 503 Service Unavailable", true, 120),
            ("HTTP/1.1 502 Slow\r\nRetry-After: 99999999999999999999\r\n\r\n", "HTTP 502 Bad Gateway", true, 86_400),
            ("HTTP/1.1 502 \r\nRetry-After: soon\r\n\r\nRetry-After: 5\r\n", "HTTP 502 Bad Gateway", true, nil),
            ("HTTP/1.1 429 \r\n", "HTTP 429 Too Many Requests", true, nil),
            ("HTTP/1.0 302", "HTTP 302", true, nil),
            ("HTTP/1.1 511 ", "HTTP 511 Network Authentication Required", true, nil),
            ("HTTP/1.1 501 ", "HTTP 501 Not Implemented", false, nil),
            ("HTTP/1.1 403 a token\nforged line\r\n", "HTTP 403 Forbidden", false, nil),
            ("<failure xmlns='urn:x:xmpp-sasl'><not-authorized/>", "SASL failure, not-authorized", false, nil),
            ("<failure><temporary-auth-failure/></failure>", "SASL failure, temporary-auth-failure", true, nil),
            ("<failure><my-secret/></failure>", "SASL failure", false, nil),
            ("<stream:error><system-shutdown xmlns='x'/>", "stream error, system-shutdown", true, nil),
        ] as [(String, String, Bool, Int?)])
    func `a status or a condition`(answer: String, text: String, mayPass: Bool, pause: Int?) {
        let expected = LoginRefusal(text, mayPass: mayPass, pause: pause.map { .seconds($0) })
        #expect(LoginRefusal.read(Array(answer.utf8)) == .refusal(expected))
    }

    @Test(arguments: [
        "H", "HTTP/1.1 4", "<", "<fail", "<failure", "<failure x='1'><not-auth", "\u{20}", "\u{20}\u{02}\u{00}",
    ])
    func `what has only begun is waited for`(answer: String) {
        #expect(LoginRefusal.read(Array(answer.utf8)) == .begun)
    }

    @Test(arguments: [
        "", "HTTP/1.1 101 Switching Protocols\r\n", "HTTP/1.1 999 x", "HTTP/1.1 -40 x", "HELLO", "<stream>", "-ERR no",
        "NO LOGIN failed", "\u{20}\u{02}\u{00}\u{00}", "\u{20}\u{02}\u{07}\u{05}",
    ])
    func `anything else is no refusal that is known`(answer: String) {
        #expect(LoginRefusal.read(Array(answer.utf8)) == .none)
    }

    @Test(arguments: seeds(500))
    func `nothing that a server sends is shown, and nothing does harm`(seed: UInt64) {
        var random = SplitMix64(seed: seed)
        let heads: [[UInt8]] = [
            [0x20], [0x90], [0xE0], [0x82], [0x88], Array("HTTP/1.1 403 ".utf8), Array("HTTP/1.1 ".utf8),
            Array("HTTP/1.1 503 x\r\nRetry-After:".utf8), Array("<failure><".utf8), Array("<stream:error ".utf8), [],
        ]
        let tail = (0..<random.below(64)).map { _ in
            random.chance(50) ? UInt8(0x30 + random.below(64)) : UInt8(truncatingIfNeeded: random.next())
        }
        let answer = heads[random.below(heads.count)] + tail
        guard case .refusal(let refusal) = LoginRefusal.read(answer) else { return }
        #expect(refusal.text.utf8.allSatisfy { (0x20..<0x7F).contains($0) }, "\(answer)")
        #expect(refusal.text.utf8.count < 80, "\(answer)")
        #expect(refusal.pause.map { $0 <= BackoffPolicy.longestRequest && $0 >= .zero } ?? true, "\(answer)")
    }
}
