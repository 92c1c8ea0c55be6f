// SPDX-License-Identifier: Apache-2.0

/// Reads the frames of a server (RFC 6455, section 5) and puts its messages together.
///
/// What it keeps is at most one message with its largest size, and one control frame.
struct WebSocketReader: Sendable {
    /// The largest message. autopush's are under 8 KiB (4,096 bytes in base64, and their names), ntfy's under 16.
    static let largestMessage = 64 * 1024
    /// The most frames of one message, so that empty ones do not go on for ever.
    static let mostFragments = 4096

    /// What came whole.
    enum Item: Hashable, Sendable {
        /// A message of text, which is UTF-8.
        case text([UInt8])
        /// A message of bytes.
        case binary([UInt8])
        /// A ping with this content.
        case ping([UInt8])
        /// The server's goodbye: its code, 1005 for none, and its reason.
        case close(UInt16, String)
    }

    /// Why the server's bytes cannot be read on: the code to close with (section 7.4.1), and why, for a person.
    struct Fault: Error, Hashable {
        let code: UInt16
        let reason: String

        static func broken(_ reason: String) -> Fault { Fault(code: 1002, reason: reason) }
        static let notUTF8 = Fault(code: 1007, reason: "a text is not UTF-8")
        static let tooLarge = Fault(
            code: 1009, reason: "a message is larger than \(largestMessage) bytes, or has over \(mostFragments) frames")
    }

    private enum Opcode: UInt8 {
        case continuation = 0
        case text = 1
        case binary = 2
        case close = 8
        case ping = 9
        case pong = 10

        var isControl: Bool { rawValue >= 8 }
    }

    private struct Head {
        let isLast: Bool
        let opcode: Opcode
    }

    /// A frame of which the head has come.
    private var frame: Head?
    /// What has come of the head, up to ten bytes; then of a control frame's content.
    private var part: [UInt8] = []
    /// The kind of the message whose first frame has come.
    private var kind: Opcode?
    private var message: [UInt8] = []
    private var fragments = 0
    /// What is still to come of the frame's content.
    private var rest = 0

    /// Whether the stream is between two messages, with no part of one read.
    var isBetweenMessages: Bool { frame == nil && part.isEmpty && kind == nil }

    /// Reads on; `nil` where the bytes are used up without another item.
    ///
    /// - Parameter bytes: loses what was read.
    mutating func next(_ bytes: inout ArraySlice<UInt8>) throws(Fault) -> Item? {
        while true {
            if frame == nil { frame = try readHead(&bytes) }
            guard let head = frame else { return nil }
            let piece = bytes.prefix(rest)
            bytes = bytes.dropFirst(piece.count)
            rest -= piece.count
            if head.opcode.isControl { part += piece } else { message += piece }
            guard rest == 0 else { return nil }
            frame = nil
            if head.opcode.isControl {
                defer { part = [] }
                if let item = try control(head.opcode) { return item }
            } else if head.isLast {
                return try whole()
            }
        }
    }

    /// Reads a head (section 5.2), byte by byte; `nil` where it has not come whole. What is wrong is told by the first
    /// byte that shows it.
    private mutating func readHead(_ bytes: inout ArraySlice<UInt8>) throws(Fault) -> Head? {
        while let byte = bytes.popFirst() {
            part.append(byte)
            guard let opcode = Opcode(rawValue: part[0] & 0x0F), part[0] & 0x70 == 0 else {
                throw .broken("a frame has an opcode or a reserved bit that nobody agreed on")
            }
            guard part.count >= 2 else { continue }
            guard part[1] < 0x80 else { throw .broken("a frame of the server is masked") }
            let size = part[1] == 127 ? 10 : part[1] == 126 ? 4 : 2
            let isLast = part[0] & 0x80 != 0
            if opcode.isControl, size > 2 || !isLast { throw .broken("a control frame is long, or in fragments") }
            guard part.count == size else { continue }
            let length = size == 2 ? UInt64(part[1]) : part[2...].reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
            guard size == 2 || length >= (size == 4 ? 126 : 65536), length >> 63 == 0 else {
                throw .broken("a frame's length has more bytes than it needs")
            }
            part = []
            try begin(opcode, length)
            return Head(isLast: isLast, opcode: opcode)
        }
        return nil
    }

    /// Begins a frame's content.
    private mutating func begin(_ opcode: Opcode, _ length: UInt64) throws(Fault) {
        if !opcode.isControl {
            guard (opcode == .continuation) == (kind != nil) else {
                throw .broken("a message begins inside another one, or goes on without having begun")
            }
            fragments += 1
            guard length <= Self.largestMessage - message.count, fragments <= Self.mostFragments else {
                throw .tooLarge
            }
            if kind == nil { kind = opcode }
        }
        rest = Int(length)
    }

    private mutating func whole() throws(Fault) -> Item {
        let (content, isText) = (message, kind == .text)
        (message, kind, fragments) = ([], nil, 0)
        guard isText else { return .binary(content) }
        guard String(validating: content, as: UTF8.self) != nil else { throw .notUTF8 }
        return .text(content)
    }

    private func control(_ opcode: Opcode) throws(Fault) -> Item? {
        switch opcode {
        case .ping: return .ping(part)
        case .close: return try close()
        case .continuation, .text, .binary, .pong: return nil
        }
    }

    private func close() throws(Fault) -> Item {
        if part.isEmpty { return .close(1005, "") }
        guard part.count >= 2 else { throw .broken("a close frame has half a code") }
        let code = UInt16(part[0]) << 8 | UInt16(part[1])
        // Those that stand for no frame at all do not come in one (section 7.4).
        guard (1000...1003).contains(code) || (1007...1014).contains(code) || (3000...4999).contains(code) else {
            throw .broken("a close frame has the code \(code), which none may have")
        }
        guard let reason = String(validating: part[2...], as: UTF8.self) else { throw .notUTF8 }
        return .close(code, reason)
    }
}
