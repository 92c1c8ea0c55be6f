// SPDX-License-Identifier: Apache-2.0

import DialtonePlatform
import DialtoneTestSupport
import Testing

@testable import DialtonePushServers

/// A client's end of a WebSocket.
@Suite struct WebSocketTests {
    typealias Event = WebSocketClient.Event

    @Test
    func `knows the acceptance of RFC 6455, section 1.3, and the digest of RFC 3174, section 7.3`() {
        #expect(WebSocketUpgrade.acceptance(of: "dGhlIHNhbXBsZSBub25jZQ==") == "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=")
        let digest = SHA1.digest(Array("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq".utf8))
        #expect(digest.prefix(4) == [0x84, 0x98, 0x3E, 0x44])
        #expect(digest.suffix(4) == [0xE5, 0x46, 0x70, 0xF1])
        // Around the end of a block.
        let digests = (54...66).map { SHA1.digest([UInt8](repeating: 0x61, count: $0)).prefix(2).map(Int.init) }
        #expect(Set(digests).count == digests.count)
    }

    @Test(arguments: 0..<70)
    func `writes and reads base64 in both alphabets`(length: Int) {
        let bytes = (0..<length).map { UInt8(truncatingIfNeeded: $0 * 37 &+ 251) }
        let text = Base64.text(of: bytes)
        #expect(Base64.bytes(of: text) == bytes)
        let safe = String(text.map { $0 == "+" ? "-" : $0 == "/" ? "_" : $0 })
        #expect(Base64.bytes(ofURLSafe: safe) == bytes)
        #expect(Base64.bytes(ofURLSafe: String(safe.filter { $0 != "=" })) == bytes)
        #expect(Base64.bytes(ofURLSafe: safe + "+") == nil)
    }

    @Test(arguments: 0..<9)
    func `reads the frames of RFC 6455, section 5.7, however they are cut`(cut: Int) {
        let hello = Array("Hello".utf8)
        #expect(WebSocketScript.read([0x81, 5] + hello, cut: cut).events == [.text(hello)])
        let fragments: [UInt8] = [0x01, 3, 0x48, 0x65, 0x6C, 0x89, 1, 0x21, 0x80, 2, 0x6C, 0x6F]
        let read = WebSocketScript.read(fragments, cut: cut)
        #expect(read.events == [.text(hello)])
        #expect(read.sent == ["frame 8a !"])
        let bytes = [UInt8](repeating: 7, count: 256)
        #expect(WebSocketScript.read([0x82, 0x7E, 1, 0] + bytes, cut: cut).events == [.binary(bytes)])
        let many = [UInt8](repeating: 7, count: 65536)
        #expect(
            WebSocketScript.read([0x82, 0x7F, 0, 0, 0, 0, 0, 1, 0, 0] + many, cut: cut * 999).events == [.binary(many)])
    }

    @Test
    func `masks what it sends, as in section 5.7`() {
        let pong = WebSocketScript.read([0x89, 5] + Array("Hello".utf8))
        #expect(pong.sent == ["frame 8a Hello"])
        var client = WebSocketClient(WebSocketUpgrade(host: "push.test", path: "/"), random: SplitMix64(seed: 1))
        #expect(client.message([1]) == [], "before the upgrade")
        client.adopt()
        let sizes = [0, 1, 125, 126, 65535].map {
            WebSocketScript.frames(client.message([UInt8](repeating: 65, count: $0)))
        }
        #expect(sizes.map { $0.first?.content.count } == [0, 1, 125, 126, 65535])
        #expect(client.message([65, 65, 65, 65]) != client.message([65, 65, 65, 65]), "two masks")
    }

    @Test(
        arguments: [
            ([0xC1, 0], 1002), ([0x83, 0], 1002), ([0x8B, 0], 1002), ([0x81, 0x80], 1002), ([0x09, 0], 1002),
            ([0x89, 126], 1002), ([0x80, 0], 1002), ([0x01, 0, 0x01, 0], 1002), ([0x81, 126, 0, 125], 1002),
            ([0x81, 127, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF], 1002), ([0x81, 127, 0x80, 0, 0, 0, 0, 1, 0, 0], 1002),
            ([0x88, 1, 3], 1002), ([0x88, 2, 3, 237], 1002), ([0x88, 3, 3, 232, 0xFF], 1007),
            ([0x81, 2, 0xC3, 0x28], 1007), ([0x81, 127, 0, 0, 0, 0, 0, 1, 0, 1], 1009),
            ([0x81, 127, 0x7F, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF], 1009),
        ] as [([UInt8], Int)])
    func `closes with the code of what the server broke, and reads no more`(bytes: [UInt8], code: Int) {
        for cut in 0..<4 {
            let read = WebSocketScript.read(bytes + WebSocketScript.text("more"), cut: cut)
            #expect(read.sent == ["close \(code)"], "\(read)")
            guard read.events.count == 1, case .broken = read.events[0] else {
                Issue.record("\(read.events)")
                return
            }
        }
    }

    @Test
    func `gives up a message of endless fragments, by size and by number`() {
        let fragment = WebSocketScript.frame(0x00, [UInt8](repeating: 65, count: 1000))
        let large = WebSocketScript.frame(0x01, []) + Array(repeatElement(fragment, count: 66).joined())
        #expect(WebSocketScript.read(large).sent == ["close 1009"])
        let empty = WebSocketScript.frame(0x01, []) + Array(repeatElement([0x00, 0] as [UInt8], count: 4096).joined())
        #expect(WebSocketScript.read(empty).sent == ["close 1009"])
    }

    @Test(arguments: 0..<4)
    func `answers a close with its code`(cut: Int) {
        let read = WebSocketScript.read(
            WebSocketScript.frame(0x88, [3, 233] + Array("later".utf8)) + [0x89, 0], cut: cut)
        #expect(read.events == [.closed(1001, "later")])
        #expect(read.sent == ["close 1001"])
        #expect(WebSocketScript.read([0x88, 0]).events == [.closed(1005, "")])
    }

    @Test(arguments: 0..<9)
    func `opens by the right answer, and takes frames right behind it`(cut: Int) {
        var client = WebSocketClient(WebSocketUpgrade(host: "push.test", path: "/p?q"), random: SplitMix64(seed: 1))
        let request = client.begin()
        #expect(String(decoding: request, as: UTF8.self).hasPrefix("GET /p?q HTTP/1.1\r\nHost: push.test\r\n"))
        var (events, output) = ([Event](), [UInt8]())
        let bytes = WebSocketScript.acceptance(of: request) + WebSocketScript.text("hi")
        for piece in WebSocketScript.pieces(of: bytes, cut) {
            var rest = piece[...]
            while let event = client.next(&rest, &output) { events.append(event) }
        }
        #expect(events == [.opened, .text(Array("hi".utf8))])
    }

    @Test(arguments: [
        (
            "HTTP/1.1 302 Found\r\nLocation: https://else.test/\r\n\r\n",
            "HTTP status 302, a redirect to https://else.test/"
        ),
        ("HTTP/1.1 429 Slow\r\nRetry-After: 99999999999\r\n\r\n", "HTTP status 429"),
        ("HTTP/1.1 401\r\n\r\n", "HTTP status 401"),
    ])
    func `tells an answer that is no upgrade`(answer: String, text: String) {
        guard case .refused(let refusal) = WebSocketUpgrade.answer(Array(answer.utf8), to: "k") else {
            Issue.record("\(WebSocketUpgrade.answer(Array(answer.utf8), to: "k"))")
            return
        }
        #expect(refusal.text == text)
        #expect(refusal.pause == (text.contains("429") ? .seconds(3600) : nil))
    }

    @Test(arguments: [
        "HTTP/1.0 101 Switching\r\n\r\n", "HTTP/1.1 1O1 X\r\n\r\n", "SSH-2.0\r\n\r\n", "\r\n\r\n",
        "HTTP/1.1 101 X\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: A\r\n\r\n",
        "HTTP/1.1 101 X\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: A\r\n\r\n",
        "HTTP/1.1 101 X\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n",
        "HTTP/1.1 101 X\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: wrong\r\n\r\n",
        "HTTP/1.1 101 X\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n folded: A\r\n\r\n",
        "HTTP/1.1 101 X\r\nno field\r\n\r\n",
    ])
    func `does not open by a wrong answer`(answer: String) {
        guard case .broken = WebSocketUpgrade.answer(Array(answer.utf8), to: "k") else {
            Issue.record("\(WebSocketUpgrade.answer(Array(answer.utf8), to: "k"))")
            return
        }
    }

    @Test
    func `gives up an answer that has no end, and one with an extension`() {
        var client = WebSocketClient(WebSocketUpgrade(host: "push.test", path: "/"), random: SplitMix64(seed: 1))
        let request = client.begin()
        var (rest, output) = ([UInt8](repeating: 65, count: 20000)[...], [UInt8]())
        guard case .broken = client.next(&rest, &output) else {
            Issue.record("the head goes on")
            return
        }
        let answer = WebSocketScript.acceptance(of: request, more: "Sec-WebSocket-Extensions: permessage-deflate\r\n")
        var again = WebSocketClient(WebSocketUpgrade(host: "push.test", path: "/"), random: SplitMix64(seed: 1))
        _ = again.begin()
        rest = answer[...]
        expectBroken(again.next(&rest, &output))
    }

    private func expectBroken(_ event: Event?) {
        guard case .broken = event else {
            Issue.record("\(String(describing: event))")
            return
        }
    }

    @Test(arguments: seeds(40))
    func `survives whatever comes`(seed: UInt64) {
        var random = SplitMix64(seed: seed)
        let honest =
            WebSocketScript.text("a text") + WebSocketScript.frame(0x01, [65]) + [0x89, 1, 33]
            + WebSocketScript.frame(0x80, [UInt8](repeating: 66, count: 300)) + WebSocketScript.frame(0x88, [3, 232])
        for _ in 0..<200 {
            var bytes = honest
            random.damage(&bytes, upTo: 6)
            let whole = WebSocketScript.read(bytes)
            #expect(whole.sent.count <= bytes.count)
            let cut = WebSocketScript.read(bytes, cut: 1 + random.below(9))
            #expect(whole.events == cut.events && whole.sent == cut.sent, "\(bytes)")
        }
    }
}
