// SPDX-License-Identifier: Apache-2.0

/// How a protocol cuts its byte stream into messages.
enum StreamFraming: Hashable, Sendable {
    /// Not known. Between messages is only where somebody says so.
    case opaque
    /// SIP over a stream: headers, an empty line, and as many bytes as `Content-Length` says (RFC 3261, section 18.3).
    case sip
    /// MQTT: a type, a length, and so many bytes (section 2.2 of MQTT 3.1.1, 2.1 of 5.0).
    case mqtt
    /// Frames of RFC 6455, section 5.2, behind the handshake.
    case websocket
    /// Elements of an XML stream (RFC 6120, section 4.1).
    case xmpp
}

/// One direction of a flow, as far as it is seen: knows whether the next byte begins a message.
///
/// Two readings of one stream that differ (ours and the peer's) would put a keepalive into the middle of a message. So
/// nothing is guessed: what a protocol forbids, or allows and nobody does, makes the tracker *lost* for good. Memory is
/// constant, whatever flows.
struct MessageTracker: Sendable {
    private enum Reader: Sendable {
        case opaque(OpaqueFraming)
        case sip(SIPFraming)
        case mqtt(MQTTFraming)
        case websocket(WebSocketFraming)
        case xmpp(XMPPFraming)
    }

    private var reader: Reader

    /// A tracker that begins between two messages.
    init(_ framing: StreamFraming, isFromServer: Bool) {
        reader =
            switch framing {
            case .opaque: .opaque(OpaqueFraming())
            case .sip: .sip(SIPFraming())
            case .mqtt: .mqtt(MQTTFraming())
            case .websocket: .websocket(WebSocketFraming(isMasked: !isFromServer))
            case .xmpp: .xmpp(XMPPFraming())
            }
    }

    /// Whether the next byte may be the first of a keepalive or of its answer.
    var isBetweenMessages: Bool {
        switch reader {
        case .opaque(let reader): reader.isBetweenMessages
        case .sip(let reader): reader.isBetweenMessages
        case .mqtt(let reader): reader.isBetweenMessages
        case .websocket(let reader): reader.isBetweenMessages
        case .xmpp(let reader): reader.isBetweenMessages
        }
    }

    /// Whether it will never again be known where messages begin.
    var isLost: Bool {
        switch reader {
        case .opaque(let reader): reader.isLost
        case .sip(let reader): reader.isLost
        case .mqtt(let reader): reader.isLost
        case .websocket(let reader): reader.isLost
        case .xmpp(let reader): reader.isLost
        }
    }

    /// Reads up to and including the byte before the next boundary, at least one byte; says how many that were.
    mutating func advance(_ bytes: ArraySlice<UInt8>) -> Int {
        switch reader {
        case .opaque(var framing): return framing.advance(bytes, &reader) { .opaque($0) }
        case .sip(var framing): return framing.advance(bytes, &reader) { .sip($0) }
        case .mqtt(var framing): return framing.advance(bytes, &reader) { .mqtt($0) }
        case .websocket(var framing): return framing.advance(bytes, &reader) { .websocket($0) }
        case .xmpp(var framing): return framing.advance(bytes, &reader) { .xmpp($0) }
        }
    }

    /// Reads all of it.
    mutating func skip(_ bytes: ArraySlice<UInt8>) {
        var rest = bytes
        while !rest.isEmpty { rest = rest.dropFirst(advance(rest)) }
    }
}

/// What tells the messages of one protocol apart.
protocol MessageFraming: Sendable {
    /// Whether the next byte begins a message.
    var isBetweenMessages: Bool { get }
    /// Whether that will never be known again.
    var isLost: Bool { get }
    /// Takes the next byte.
    mutating func take(_ byte: UInt8)
    /// How many of the next bytes are known to be the inside of a message, with at least one of it to follow.
    var skippable: Int { get }
    /// Takes so many of these at once.
    mutating func skip(_ count: Int)
}

extension MessageFraming {
    /// Reads up to and including the byte before the next boundary; says how many bytes that were.
    mutating func advance(_ bytes: ArraySlice<UInt8>) -> Int {
        var index = bytes.startIndex
        while index < bytes.endIndex {
            if isLost { return bytes.count }
            let inside = min(skippable, bytes.endIndex - index)
            if inside > 0 {
                skip(inside)
                index += inside
            } else {
                take(bytes[index])
                index += 1
                if isBetweenMessages { break }
            }
        }
        return index - bytes.startIndex
    }

    /// The same for the tracker that holds it.
    fileprivate mutating func advance<Holder>(
        _ bytes: ArraySlice<UInt8>, _ holder: inout Holder, _ wrapped: (Self) -> Holder
    ) -> Int {
        let count = advance(bytes)
        holder = wrapped(self)
        return count
    }
}

/// A stream of which nothing is known: between messages until the first byte, and never again.
struct OpaqueFraming: MessageFraming {
    private(set) var isLost = false
    var isBetweenMessages: Bool { !isLost }
    var skippable: Int { 0 }

    mutating func take(_ byte: UInt8) { isLost = true }
    mutating func skip(_ count: Int) { isLost = true }
}
