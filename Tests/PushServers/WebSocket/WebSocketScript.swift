// SPDX-License-Identifier: Apache-2.0

import DialtoneDistributor
import DialtonePlatform
import DialtoneTestSupport

@testable import DialtonePushServers

/// The server's end of a WebSocket, by hand.
enum WebSocketScript {
    /// A frame as a server sends it.
    static func frame(_ head: UInt8, _ content: [UInt8]) -> [UInt8] {
        switch content.count {
        case ..<126: [head, UInt8(content.count)] + content
        case ..<65536: [head, 126, UInt8(content.count >> 8), UInt8(content.count & 0xFF)] + content
        default: [head, 127] + (0..<8).map { UInt8(truncatingIfNeeded: content.count >> (56 - 8 * $0)) } + content
        }
    }

    /// A message of text.
    static func text(_ text: String) -> [UInt8] { frame(0x81, Array(text.utf8)) }

    /// The answer that accepts a request.
    static func acceptance(of request: [UInt8], more: String = "") -> [UInt8] {
        let key = String(decoding: request, as: UTF8.self).split(separator: "\r\n")
            .first { $0.hasPrefix("Sec-WebSocket-Key: ") }?.dropFirst(19)
        let acceptance = WebSocketUpgrade.acceptance(of: String(key ?? "none"))
        return Array(
            """
            HTTP/1.1 101 Switching Protocols\r
            upgrade: WebSocket\r
            connection: keep-alive, Upgrade\r
            sec-websocket-accept: \(acceptance)\r
            \(more)\r

            """.utf8)
    }

    /// The frames that a client sent, unmasked: the first byte and the content. Anything else is left out.
    static func frames(_ bytes: [UInt8]) -> [(head: UInt8, content: [UInt8])] {
        var (frames, rest) = ([(head: UInt8, content: [UInt8])](), bytes[...])
        while let head = rest.popFirst(), let second = rest.popFirst(), second & 0x80 != 0 {
            var length = Int(second & 0x7F)
            if length == 126 {
                length = rest.prefix(2).reduce(0) { $0 << 8 | Int($1) }
                rest = rest.dropFirst(2)
            }
            let mask = Array(rest.prefix(4))
            let content = rest.dropFirst(4).prefix(length)
            rest = rest.dropFirst(4 + length)
            frames.append((head, content.enumerated().map { $0.element ^ mask[$0.offset % 4] }))
        }
        return frames
    }

    /// The texts that a client sent; others are shown by their first byte, and a close by its code.
    static func texts(_ bytes: [UInt8]) -> [String] {
        frames(bytes).map { frame in
            switch frame.head {
            case 0x81: String(decoding: frame.content, as: UTF8.self)
            case 0x88: "close \(frame.content.reduce(0) { $0 << 8 | Int($1) })"
            default: "frame \(String(frame.head, radix: 16)) \(String(decoding: frame.content, as: UTF8.self))"
            }
        }
    }

    /// Reads what a server sends on an open WebSocket, cut into pieces of that size; all at once for 0.
    static func read(_ bytes: [UInt8], cut: Int = 0) -> (events: [WebSocketClient.Event], sent: [String]) {
        var client = WebSocketClient(WebSocketUpgrade(host: "push.test", path: "/"), random: SplitMix64(seed: 1))
        client.adopt()
        var (events, output) = ([WebSocketClient.Event](), [UInt8]())
        for piece in pieces(of: bytes, cut) {
            var rest = piece[...]
            while let event = client.next(&rest, &output) { events.append(event) }
        }
        return (events, texts(output))
    }

    /// The bytes in pieces of that size.
    static func pieces(of bytes: [UInt8], _ cut: Int) -> [[UInt8]] {
        guard cut > 0 else { return [bytes] }
        return stride(from: 0, to: bytes.count, by: cut).map { Array(bytes[$0..<min($0 + cut, bytes.count)]) }
    }
}

/// So many seconds after the machine's start, on 2026-01-01.
func moment(_ seconds: Int) -> Moment {
    Moment(uptime: .seconds(seconds), wall: WallTime(milliseconds: (1_767_225_600 + Int64(seconds)) * 1000))
}

/// A registration of that number.
func registration(_ number: Int) -> RegistrationID {
    let digits = String(number, radix: 16)
    return known(RegistrationID(String(repeating: "0", count: 32 - digits.count) + digits))
}

extension PushServerTurn {
    /// Adds what a later turn says.
    mutating func append(_ turn: PushServerTurn) {
        memory = turn.memory ?? memory
        arrived += turn.arrived
        output += turn.output
        reports += turn.reports
        redial = redial ?? turn.redial
    }
}

extension PushServer {
    /// Gives bytes to a value, cut into pieces of that size.
    mutating func receive(_ bytes: [UInt8], cut: Int = 0, at now: Moment) -> PushServerTurn {
        var whole = PushServerTurn()
        for piece in WebSocketScript.pieces(of: bytes, cut) { whole.append(take(.received(piece), at: now)) }
        return whole
    }
}
