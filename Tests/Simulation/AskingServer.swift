// SPDX-License-Identifier: Apache-2.0

import DialtoneConnection
import DialtoneTestSupport

/// A server that asks its client things, by chance, between messages that are for the client; and what by the book is
/// the reply to each.
struct AskingServer {
    /// What it speaks.
    let speech: Speech

    /// The protocols of which something is answered.
    enum Speech: CaseIterable, Sendable {
        case websocket, xmpp, custom
    }

    /// How many stanzas the client says that it has handled.
    static let handled: UInt32 = 7

    /// Something that it says.
    enum Word: Hashable, Sendable {
        /// Asks, and expects this; `nil` where it only says that it is there.
        case question([UInt8], reply: [UInt8]?)
        /// Something for the client.
        case message([UInt8])

        /// Its bytes.
        var bytes: [UInt8] {
            switch self {
            case .question(let bytes, _), .message(let bytes): bytes
            }
        }
    }

    /// A server.
    init(_ speech: Speech) { self.speech = speech }

    /// What is to be answered.
    var answered: AnsweredMessages {
        switch speech {
        case .websocket: AnsweredMessages([.websocket])
        case .xmpp: AnsweredMessages([.xmpp(handled: Self.handled)])
        case .custom: AnsweredMessages([.custom(receive: BytePattern(Self.receive), send: Self.send)])
        }
    }

    /// What the agent sends by itself on such a connection.
    var keepalive: KeepaliveProtocol {
        switch speech {
        case .websocket: .websocket
        case .xmpp: .xmppPing
        case .custom: .crlf
        }
    }

    private static let receive = Array("PING :server\r\n".utf8)
    private static let send = Array("PONG :server\r\n".utf8)

    /// The next thing that it asks.
    func question(_ random: inout SplitMix64) -> Word {
        switch speech {
        case .websocket:
            let payload = (0..<random.below(126)).map { _ in UInt8(truncatingIfNeeded: random.next()) }
            return .question([0x89, UInt8(payload.count)] + payload, reply: payload)
        case .xmpp:
            let request = random.pick([
                "<r xmlns='urn:xmpp:sm:3'/>", "<r xmlns=\"urn:xmpp:sm:3\" />", "<r xmlns='urn:xmpp:sm:3'></r>",
            ])
            let reply = "<a xmlns='urn:xmpp:sm:3' h='\(Self.handled)'/>"
            return random.chance(80)
                ? .question(Array(request.utf8), reply: Array(reply.utf8))
                : .question([0x20], reply: nil)
        case .custom:
            return .question(Self.receive, reply: Self.send)
        }
    }

    /// Something for the client, which may hold what looks like a question.
    func message(_ random: inout SplitMix64) -> Word {
        let held = question(&random).bytes
        switch speech {
        case .websocket:
            let text: [UInt8] = [0x82] + (held.count < 126 ? [UInt8(held.count)] : [126, 0, UInt8(held.count)]) + held
            let long: [UInt8] = [0x89, 126, 0, 126] + [UInt8](repeating: 0, count: 126)
            // Fragmented, with a bit of an extension, masked; a pong, a close.
            let others: [[UInt8]] = [[0x09, 0], [0xC9, 0], [0x89, 0x80, 1, 2, 3, 4], [0x8A, 0], [0x88, 0]]
            return .message(random.pick([text, long] + others))
        case .xmpp:
            return .message(
                Array(
                    random.pick([
                        "<message><body>\(String(decoding: held, as: UTF8.self))</body></message>",
                        "<r xmlns='urn:xmpp:sm:2'/>", "<r/>", "<rx xmlns='urn:xmpp:sm:3'/>",
                        "<r xmlns='urn:xmpp:sm:3'>x</r>", "<r xmlns='urn:xmpp:sm:3'><x/></r>", "</stream:stream>",
                    ]).utf8))
        case .custom:
            return .message(
                Array(random.pick(["NOTICE PING :server\r\n", "PING :serves\r\n", "ping :server\r\n"]).utf8))
        }
    }

    /// What its client said, as it takes it: a Pong by its payload.
    func heard(_ bytes: [UInt8]) -> [UInt8]? {
        guard speech == .websocket else { return bytes }
        guard bytes.count >= 6, bytes[0] == 0x8A, bytes[1] & 0x80 != 0, bytes.count == 6 + Int(bytes[1] & 0x7F) else {
            return nil
        }
        return bytes[6...].enumerated().map { $1 ^ bytes[2 + $0 % 4] }
    }
}
