// SPDX-License-Identifier: Apache-2.0

/// The keepalives of one parked flow: what to send when, and which of the unread bytes are the answer and not the
/// client's.
///
/// ## Run loop
///
/// A new one for each time the flow is parked, which is between two messages by the client's word.
///
/// 1. ``ping(isVerification:using:)`` gives the bytes of a keepalive, or says why none may be sent now. What it gives
///    must be sent whole before anything else.
/// 2. ``peeked(_:)`` judges what is unread. It is an answer only if it stands first, one is awaited, and it is exactly
///    that. All other bytes are the client's and stay where they are.
/// 3. ``giveUp()`` when the answer's deadline has passed and the flow lives on: then a late answer is the client's.
///    Each protocol bids it ignore one (RFC 3261, section 7.5; RFC 6455, section 5.5.3; RFC 6120, section 8.2.3), or
///    it is one that its own pings bring as well (PINGRESP).
package struct KeepaliveDialogue: Sendable {
    /// Why no keepalive may be sent now.
    package enum Obstacle: Error, Hashable, Sendable {
        /// The last keepalive has no answer yet.
        case unanswered
        /// The kernel sends its probes by itself.
        case kernelsOwn
    }

    /// What the unread bytes of a parked socket are.
    package enum Unread: Hashable, Sendable {
        /// The first so many are an answer. Read exactly these.
        case answer(length: Int, answers: Int)
        /// They may become the answer: look again when there are more.
        case undecided
        /// The client's: wake it, and read nothing.
        case forClient
    }

    /// Which keepalive.
    package let keepalive: KeepaliveProtocol
    /// In the order of the keepalives: one, or two after a change of the path in the middle of the wait for the first.
    private var awaited: [AnswerPattern] = []

    /// A dialogue that begins between two messages.
    package init(_ keepalive: KeepaliveProtocol) { self.keepalive = keepalive }

    /// Whether an answer in the stream is awaited.
    package var isAwaitingAnswer: Bool { !awaited.isEmpty }

    // MARK: Sending

    /// The bytes of a keepalive. Whether one may be sent in the hands that the flow is in is not its business
    /// (``FlowOwnership``).
    ///
    /// - Parameter isVerification: after a change of the path or a resume, when the answer to an earlier one that is
    ///   still awaited will prove nothing (``Liveness``).
    /// - Throws: what stands in the way.
    package mutating func ping(
        isVerification: Bool = false, using random: inout some RandomNumberGenerator
    ) throws(Obstacle) -> [UInt8] {
        guard awaited.count < (isVerification ? Liveness.mostProbes : 1) else { throw .unanswered }
        let (bytes, answer) = try draw(using: &random)
        if let answer { awaited.append(answer) }
        return bytes
    }

    private func draw(
        using random: inout some RandomNumberGenerator
    ) throws(Obstacle) -> (bytes: [UInt8], answer: AnswerPattern?) {
        switch keepalive {
        case .kernel:
            throw .kernelsOwn
        case .crlf:
            return (Array("\r\n\r\n".utf8), .bytes(Array("\r\n".utf8)))
        case .whitespace:
            return ([0x20], nil)
        case .xmppPing:
            // Without `to`: the server answers for the account (RFC 6120, section 10.3.3).
            let id = Self.hexadecimal(random.next())
            let ping = "<iq type='get' id='\(id)'><ping xmlns='urn:xmpp:ping'/></iq>"
            return (Array(ping.utf8), .xmppResult(id: Array(id.utf8)))
        case .mqtt:
            return ([0xC0, 0x00], .bytes([0xD0, 0x00]))
        case .websocket:
            let payload = WebSocketFrame.bytes(of: random.next())
            let ping = WebSocketFrame.control(.ping, payload, mask: WebSocketFrame.mask(using: &random))
            return (ping, .bytes([WebSocketFrame.first(.pong), UInt8(payload.count)] + payload))
        case .custom(let send, let expect):
            return (send, expect.isEmpty ? nil : .bytes(expect))
        }
    }

    /// Sixteen digits, led by a letter.
    private static func hexadecimal(_ number: UInt64) -> String {
        let digits = String(number, radix: 16)
        return "ka" + String(repeating: "0", count: 16 - digits.count) + digits
    }

    // MARK: Receiving

    /// Judges the unread bytes of a parked socket, all of them from the first on. After
    /// ``Unread/answer(length:answers:)`` the answer has come; the rest is judged by the next call.
    package mutating func peeked(_ unread: [UInt8]) -> Unread { match(unread[...]) }

    /// Compares with each awaited answer. A server may answer the later of two WebSocket pings only (RFC 6455, section
    /// 5.5.3), so the later answer stands for the earlier.
    private mutating func match(_ bytes: ArraySlice<UInt8>) -> Unread {
        var isUndecided = false
        for (index, pattern) in awaited.enumerated() {
            switch pattern.match(bytes) {
            case .whole(let length):
                awaited.removeFirst(index + 1)
                return .answer(length: length, answers: index + 1)
            case .beginning: isUndecided = true
            case .mismatch: break
            }
        }
        return isUndecided ? .undecided : .forClient
    }

    /// Awaits no answer any more.
    package mutating func giveUp() { awaited = [] }
}
