// SPDX-License-Identifier: Apache-2.0

import DialtoneConnection
import DialtoneTestSupport
import Testing

/// Streams drawn from seeds: of honest servers, whose messages hold what looks like an answer, and of hostile ones.
@Suite struct KeepaliveStreamProperties {
    static let protocols: [KeepaliveProtocol] = [.crlf, .xmppPing, .mqtt, .websocket]

    @Test(arguments: [1, 2, 3] + seeds(2)) func `only the answer is taken however the stream is cut`(seed: UInt64)
        throws
    {
        var random = SplitMix64(seed: seed)
        for keepalive in Self.protocols {
            for _ in 0..<100 {
                var dialogue = KeepaliveDialogue(keepalive)
                let answer = Speech.answer(to: try dialogue.ping(using: &random), keepalive)
                var stream: [UInt8] = []
                var messages: [UInt8] = []
                let place = random.below(6)
                for index in 0..<6 {
                    if index == place { stream += answer }
                    let message = Speech.message(keepalive, holding: answer, &random)
                    stream += message
                    messages += message
                }
                var (forClient, answers): ([UInt8], Int) = ([], 0)
                for piece in Speech.cut(stream, &random) {
                    let received = dialogue.received(piece)
                    forClient += received.forClient
                    answers += received.answers
                }
                #expect(forClient == messages, "\(keepalive), answer before message \(place)")
                #expect(answers == 1, "\(keepalive), answer before message \(place)")
            }
        }
    }

    @Test(arguments: [1, 2, 3] + seeds(2)) func `the client's own messages are followed to their ends`(seed: UInt64)
        throws
    {
        var random = SplitMix64(seed: seed)
        for keepalive in Self.protocols {
            for _ in 0..<30 {
                var dialogue = KeepaliveDialogue(keepalive)
                let message = Speech.message(keepalive, holding: [0x0D, 0x0A], fromServer: false, &random)
                // Where the daemon may write: before the first byte, and behind the last.
                for (index, byte) in message.enumerated() {
                    var copy = dialogue
                    let isFree = (try? copy.ping(using: &random)) != nil
                    #expect(isFree == (index == 0), "\(keepalive): \(message) at \(index)")
                    dialogue.sent([byte])
                }
                _ = try dialogue.ping(using: &random)
            }
        }
    }

    @Test(arguments: [1, 2, 3] + seeds(3)) func `noise neither traps nor grows nor is lost`(seed: UInt64) {
        var random = SplitMix64(seed: seed)
        for round in 0..<200 {
            let keepalive = Self.protocols[round % Self.protocols.count]
            var dialogue = KeepaliveDialogue(keepalive)
            let answer = (try? dialogue.ping(using: &random)).map { Speech.answer(to: $0, keepalive) } ?? []
            let noise = Speech.noise(keepalive, answer, &random)
            var whole = dialogue
            var (forClient, isAnswered, longestHeld, fed): ([UInt8], Bool, Int, Int) = ([], false, 0, 0)
            for piece in Speech.cut(noise, &random) {
                dialogue.sent(piece)
                let received = dialogue.received(piece)
                forClient += received.forClient
                isAnswered = isAnswered || received.answers > 0
                fed += piece.count
                longestHeld = max(longestHeld, fed - forClient.count - (isAnswered ? answer.count : 0))
            }
            forClient += dialogue.giveUp()
            #expect(longestHeld <= 2048)
            if !isAnswered { #expect(forClient == noise) }
            // The same in one piece.
            let received = whole.received(noise)
            #expect((received.answers > 0) == isAnswered)
            #expect(received.forClient + whole.giveUp() == forClient)
        }
    }
}

/// What servers and clients say.
enum Speech {
    /// The answer to a keepalive as a server by the book gives it.
    static func answer(to ping: [UInt8], _ keepalive: KeepaliveProtocol) -> [UInt8] {
        switch keepalive {
        case .crlf: return Array("\r\n".utf8)
        case .mqtt: return [0xD0, 0x00]
        case .websocket: return [0x8A, 0x08] + ping[6...].enumerated().map { $1 ^ ping[2 + $0 % 4] }
        case .xmppPing:
            let id = String(decoding: ping, as: UTF8.self).split(separator: "'")[3]
            return Array("<iq from='example.com' id='\(id)' type='result'/>".utf8)
        case .kernel, .whitespace, .custom: return []
        }
    }

    /// A message whose content looks like an answer.
    static func message(
        _ keepalive: KeepaliveProtocol, holding answer: [UInt8], fromServer: Bool = true, _ random: inout SplitMix64
    ) -> [UInt8] {
        var body = answer + bytes(random.below(300), &random) + answer
        switch keepalive {
        case .crlf:
            let name = ["Content-Length", "l", "CONTENT-LENGTH ", "L"][random.below(4)]
            let head =
                "SIP/2.0 200 OK\r\nVia: SIP/2.0/TCP 192.0.2.1\r\n\(name): \(body.count)\r\nCSeq: 1 INVITE\r\n\r\n"
            return Array(head.utf8) + body
        case .mqtt:
            var (length, digits) = (body.count, [UInt8]())
            repeat {
                digits.append(UInt8(length & 0x7F) | (length > 127 ? 0x80 : 0))
                length >>= 7
            } while length > 0
            return [UInt8(1 + random.below(15)) << 4] + digits + body
        case .websocket:
            if random.chance(30) { body = Array(body.prefix(125)) }
            let size: [UInt8] =
                body.count < 126 ? [UInt8(body.count)] : [126, UInt8(body.count >> 8), UInt8(body.count & 0xFF)]
            let mask: [UInt8] = fromServer ? [] : [1, 2, 3, 4]
            return [0x82, size[0] | (fromServer ? 0 : 0x80)] + size.dropFirst() + mask + body
        case .xmppPing, .whitespace:
            let inner = String(decoding: answer, as: UTF8.self)
            let text = String(repeating: "x>", count: random.below(20))
            return Array(
                ("<message from='a>\"b'><forwarded><![CDATA[]]\(text)]]>\(inner)</forwarded>"
                    + "<body>\(text)</body></message>").utf8)
        case .kernel, .custom: return body
        }
    }

    /// Bytes that may be anything: noise, the protocol's own marks, beginnings of answers and of messages.
    static func noise(_ keepalive: KeepaliveProtocol, _ answer: [UInt8], _ random: inout SplitMix64) -> [UInt8] {
        let marks = Array("<>/?!'\" \r\n:=[]l0iq".utf8) + [0xD0, 0x8A, 0x00, 0x08, 0xFF]
        var noise: [UInt8] = []
        for _ in 0..<random.below(60) {
            switch random.below(5) {
            case 0: noise += bytes(random.below(40), &random)
            case 1: noise += (0..<random.below(20)).map { _ in marks[random.below(marks.count)] }
            case 2: noise += answer.prefix(random.below(answer.count + 1))
            case 3: noise += Array("<iq a='".utf8) + [UInt8](repeating: 0x61, count: random.below(3000))
            default:
                let message = message(keepalive, holding: answer, random)
                noise += message.prefix(random.below(message.count * 2))
            }
        }
        return noise
    }

    private static func message(
        _ keepalive: KeepaliveProtocol, holding answer: [UInt8], _ random: SplitMix64
    ) -> [UInt8] {
        var random = random
        return message(keepalive, holding: answer, &random)
    }

    static func cut(_ stream: [UInt8], _ random: inout SplitMix64) -> [[UInt8]] {
        var (pieces, rest) = ([[UInt8]](), stream[...])
        while !rest.isEmpty {
            let piece = rest.prefix(1 + random.below([1, 3, 50, 5000][random.below(4)]))
            pieces.append(Array(piece))
            rest = rest.dropFirst(piece.count)
        }
        return pieces
    }

    private static func bytes(_ count: Int, _ random: inout SplitMix64) -> [UInt8] {
        (0..<count).map { _ in UInt8(truncatingIfNeeded: random.next()) }
    }
}
