// SPDX-License-Identifier: Apache-2.0

import DialtoneExpectations
import DialtonePlatform
import DialtoneTestSupport
import DialtoneWebPush
import Testing

/// What app servers send with: PyPI's `http-ece`, `pywebpush` and `py-vapid`.
@Suite(
    "Senders", .enabled(if: PyPI.python != nil, "PyPI's http-ece and pywebpush could not be installed"),
    .timeLimit(.minutes(3)))
struct SenderTests {
    private static func run(_ script: String, _ arguments: [String]) throws -> [Substring] {
        let result = Program.run(PyPI.python ?? "", ["-c", script] + arguments)
        try #require(result.status == 0, "\(result.error)")
        return result.output.split(separator: "\n")
    }

    @Test func `what http-ece and pywebpush encrypt is read`() throws {
        let keys = try PushKeys()
        // The most that is left of 4096 bytes is 3993 (RFC 8291 section 4). Of none the library makes no record.
        let lines = try Self.run(
            """
            import base64, os, sys, http_ece, pywebpush
            from cryptography.hazmat.primitives.asymmetric import ec
            key, secret = sys.argv[1:]
            text = lambda data: base64.urlsafe_b64encode(data).decode().rstrip("=")
            data = lambda text: base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
            keys = {"p256dh": key, "auth": secret}
            pusher = pywebpush.WebPusher({"endpoint": "https://push.example.net/x", "keys": keys})
            for size in [1, 2, 15, 16, 17, 100, 1000, 3993]:
                content = os.urandom(size)
                sender = ec.generate_private_key(ec.SECP256R1())
                by_library = http_ece.encrypt(
                    content, private_key=sender, dh=data(key), auth_secret=data(secret), version="aes128gcm")
                print(text(content), text(by_library))
                print(text(content), text(pusher.encode(content, "aes128gcm")["body"]))
            """, [Base64URL.text(of: keys.publicKey), Base64URL.text(of: keys.secret)])
        try #require(lines.count == 16)
        for line in lines {
            let words = line.split(separator: " ")
            let content = try #require(Base64URL.bytes(of: words[0]))
            let body = try #require(Base64URL.bytes(of: words[1]))
            expect(try keys.decrypt(body), is: content, "\(content.count) bytes in \(body.count)")
        }
    }

    @Test func `what py-vapid states holds`() throws {
        let lines = try Self.run(
            """
            import time, py_vapid
            vapid = py_vapid.Vapid02()
            vapid.generate_keys()
            claims = {"aud": "https://push.example.net", "sub": "mailto:a@example.net"}
            print(vapid.sign(claims)["Authorization"])
            print(vapid.sign(dict(claims, exp=int(time.time()) - 1))["Authorization"])
            print(time.time())
            """, [])
        try #require(lines.count == 3)
        let now = try #require(Double(lines[2]))
        let statement = try VAPID.check(String(lines[0]), audience: "https://push.example.net", now: now)
        #expect(statement.contact == "mailto:a@example.net")
        #expect(throws: VAPID.Refusal.self) {
            try VAPID.check(String(lines[1]), audience: "https://push.example.net", now: now)
        }
    }
}
