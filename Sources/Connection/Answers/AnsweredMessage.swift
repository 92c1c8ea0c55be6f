// SPDX-License-Identifier: Apache-2.0

/// A message of the server's that the agent answers itself while a flow is parked, so that the client sleeps on.
package enum AnsweredMessage: Hashable, Sendable {
    /// A Ping frame, which a Pong with the same payload answers (RFC 6455, sections 5.5.2 and 5.5.3).
    case websocket
    /// A request for an acknowledgement, `<r/>`, which `<a h='…'/>` answers (XEP-0198, section 4), and blanks between
    /// stanzas, which nothing does (RFC 6120, section 4.6.1). `handled` is what `h` says: while nobody but the agent
    /// reads the flow, nothing comes that counts. `nil` where that is not known: then a request is the client's.
    case xmpp(handled: UInt32?)
    /// These bytes are answered by those; by nothing where `send` is empty.
    case custom(receive: BytePattern, send: [UInt8])
}

extension AnsweredMessage {
    /// What is sent for a message that has come.
    enum Reply {
        /// These bytes, none for a message that asks nothing.
        case bytes([UInt8])
        /// A Pong with this payload.
        case pong(ArraySlice<UInt8>)

        /// The bytes to send: the client's part in a WebSocket is masked, in each frame otherwise (RFC 6455, section
        /// 5.3).
        func bytes(using random: inout some RandomNumberGenerator) -> [UInt8] {
            switch self {
            case .bytes(let bytes): return bytes
            case .pong(let payload):
                let mask = WebSocketFrame.mask(using: &random)
                return WebSocketFrame.control(.pong, payload, mask: mask)
            }
        }
    }

    /// How the bytes that begin at the boundary between two messages compare with it.
    enum Match {
        /// The first so many are the message, whole.
        case whole(length: Int, Reply)
        /// They may become it.
        case beginning
        /// They are something else.
        case mismatch
    }

    /// Compares; `bytes` are at least one.
    func match(_ bytes: ArraySlice<UInt8>) -> Match {
        switch self {
        case .websocket: Self.matchPing(bytes)
        case .xmpp(let handled): Self.matchXMPP(bytes, handled)
        case .custom(let receive, let send):
            if receive.begins(bytes) {
                .whole(length: receive.count, .bytes(send))
            } else {
                bytes.count < receive.count && receive.agrees(with: bytes) ? .beginning : .mismatch
            }
        }
    }

    /// A Ping is one frame with no bit of an extension, is not masked by a server, and has 125 bytes at most (sections
    /// 5.1, 5.2 and 5.5). Any other frame is for the client, who knows what to make of it.
    private static func matchPing(_ bytes: ArraySlice<UInt8>) -> Match {
        guard bytes.first == WebSocketFrame.first(.ping) else { return .mismatch }
        guard let length = bytes.dropFirst().first else { return .beginning }
        guard length <= WebSocketFrame.longestControl else { return .mismatch }
        let payload = bytes.dropFirst(2).prefix(Int(length))
        return payload.count == length ? .whole(length: 2 + payload.count, .pong(payload)) : .beginning
    }

    private static func matchXMPP(_ bytes: ArraySlice<UInt8>, _ handled: UInt32?) -> Match {
        let blanks = bytes.prefix { $0.isXMLBlank }.count
        if blanks > 0 { return .whole(length: blanks, .bytes([])) }
        guard let handled else { return .mismatch }
        let request = XMPPElement.match(bytes, name: "r") { tag in
            tag.attributes.count == 1 && tag.value(of: "xmlns") == Array(acknowledgements.utf8)
        }
        switch request {
        case .beginning: return .beginning
        case .mismatch: return .mismatch
        case .whole(let length):
            // With anything in it, it is none.
            let element = bytes.prefix(length)
            let tags = element.count { $0 == UInt8(ascii: "<") }
            let end = tags == 1 ? "/>" : "></r>"
            guard tags <= 2, element.suffix(end.utf8.count).elementsEqual(end.utf8) else { return .mismatch }
            return .whole(length: length, .bytes(Array("<a xmlns='\(acknowledgements)' h='\(handled)'/>".utf8)))
        }
    }

    /// XEP-0198, section 14.1.
    private static let acknowledgements = "urn:xmpp:sm:3"
}

/// The messages that are answered on the flows of a connection.
///
/// A custom message may hold a secret. So its description shows none of its bytes.
package struct AnsweredMessages: Hashable, Sendable {
    /// The most of them. Servers ask in one way or two.
    package static let most = 8
    /// The most bytes that a custom one receives or sends: those of a custom keepalive.
    package static let longestCustom = KeepaliveProtocol.longestCustom

    /// Which. Of two that begin alike, the first one that has come whole is answered.
    package let messages: [AnsweredMessage]

    /// These; empty for none.
    package init(_ messages: [AnsweredMessage] = []) { self.messages = messages }

    /// Whether there is none.
    package var isEmpty: Bool { messages.isEmpty }

    /// What a request of XMPP is answered by; `nil` where it is not known, or not answered.
    package var handled: UInt32? {
        for case .xmpp(let handled?) in messages { return handled }
        return nil
    }

    /// The same where the client has handled so many stanzas.
    func counting(_ handled: UInt32?) -> AnsweredMessages {
        AnsweredMessages(messages.map { if case .xmpp = $0 { .xmpp(handled: handled) } else { $0 } })
    }

    /// What is wrong with them; `nil` if nothing is. `index` is of the one that is wrong.
    package var problem: (index: Int, field: String, reason: String)? {
        guard messages.count <= Self.most else {
            return (Self.most, "protocol", "\(messages.count) messages are more than \(Self.most)")
        }
        for (index, message) in messages.enumerated() {
            guard case .custom(let receive, let send) = message else { continue }
            guard (1...Self.longestCustom).contains(receive.count) else {
                return (index, "receive", "\(receive.count) bytes are not from 1 to \(Self.longestCustom)")
            }
            // Every message would be answered, and the client never woken again.
            guard !receive.isFree else { return (index, "receive", "any bytes at all would be answered") }
            guard send.count <= Self.longestCustom else {
                return (index, "send", "\(send.count) bytes are more than \(Self.longestCustom)")
            }
        }
        return nil
    }
}

extension AnsweredMessage: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// Its protocol. What a custom one holds may be a secret.
    package var description: String {
        switch self {
        case .websocket: "websocket"
        case .xmpp: "xmpp"
        case .custom: "custom"
        }
    }
    /// The same.
    package var debugDescription: String { description }
    /// The same.
    package var customMirror: Mirror { Mirror(self, children: ["message": description]) }
}

extension Opening {
    /// Whether it resumes a stream (XEP-0198, section 5), of which the server counts on. A session that it begins has
    /// handled no stanza yet.
    var resumesStream: Bool { steps.contains { $0.send[...].holds(Array("<resume".utf8)) } }
}
