// SPDX-License-Identifier: Apache-2.0

/// MQTT control packets: one byte of type and flags, a length of one to four bytes with seven bits each, the rest.
struct MQTTFraming: MessageFraming {
    private enum State: Sendable {
        case between
        /// In the length, which is so much so far; the next seven bits go there.
        case length(UInt32, shift: UInt32)
        case inside(remaining: Int)
        case lost
    }

    private var state = State.between

    var isBetweenMessages: Bool { if case .between = state { true } else { false } }
    var isLost: Bool { if case .lost = state { true } else { false } }

    var skippable: Int {
        if case .inside(let remaining) = state { remaining - 1 } else { 0 }
    }

    mutating func skip(_ count: Int) {
        guard case .inside(let remaining) = state else { return }
        state = .inside(remaining: remaining - count)
    }

    mutating func take(_ byte: UInt8) {
        switch state {
        case .between:
            // Type 0 is reserved and forbidden (section 2.2.1 of 3.1.1, 2.1.2 of 5.0).
            state = byte >> 4 == 0 ? .lost : .length(0, shift: 0)
        case .length(let value, let shift):
            let value = value | UInt32(byte & 0x7F) << shift
            if byte & 0x80 == 0 {
                state = value == 0 ? .between : .inside(remaining: Int(value))
            } else {
                // A fourth byte is the last one (section 2.2.3 of 3.1.1, 1.5.5 of 5.0).
                state = shift == 21 ? .lost : .length(value, shift: shift + 7)
            }
        case .inside(let remaining):
            state = remaining == 1 ? .between : .inside(remaining: remaining - 1)
        case .lost:
            break
        }
    }
}

/// WebSocket frames (RFC 6455, section 5.2). A control frame may stand between the fragments of a message (section
/// 5.4), so what counts as the boundary here is that between frames.
struct WebSocketFraming: MessageFraming {
    private enum State: Sendable {
        case between
        /// Behind the first byte.
        case length(isControl: Bool)
        /// In the long form of the length: so many bytes of it are missing.
        case longLength(UInt64, missing: Int)
        /// In the mask and the payload.
        case inside(remaining: UInt64)
        case lost
    }

    /// Whether the frames carry a mask: those of the client do, those of the server do not (section 5.1).
    private let isMasked: Bool
    private var state = State.between
    /// A message has begun and its last fragment has not.
    private var isInFragments = false

    init(isMasked: Bool) { self.isMasked = isMasked }

    var isBetweenMessages: Bool { if case .between = state { true } else { false } }
    var isLost: Bool { if case .lost = state { true } else { false } }

    var skippable: Int {
        if case .inside(let remaining) = state { Int(clamping: remaining - 1) } else { 0 }
    }

    mutating func skip(_ count: Int) {
        guard case .inside(let remaining) = state else { return }
        state = .inside(remaining: remaining - UInt64(count))
    }

    mutating func take(_ byte: UInt8) {
        switch state {
        case .between: begin(byte)
        case .length(let isControl): readLength(byte, isControl)
        case .longLength(let value, let missing):
            let value = value << 8 | UInt64(byte)
            if missing > 1 {
                state = .longLength(value, missing: missing - 1)
            } else {
                // The highest bit must be zero (section 5.2).
                state = value >> 63 == 0 ? inside(value) : .lost
            }
        case .inside(let remaining):
            state = remaining == 1 ? .between : .inside(remaining: remaining - 1)
        case .lost: break
        }
    }

    /// The first byte: FIN, three bits for extensions, the opcode.
    private mutating func begin(_ byte: UInt8) {
        let isLast = byte & 0x80 != 0
        switch byte & 0x0F {
        case 0x0:
            state = isInFragments ? .length(isControl: false) : .lost
            isInFragments = !isLast
        case 0x1, 0x2:
            state = isInFragments ? .lost : .length(isControl: false)
            isInFragments = !isLast
        case 0x8, 0x9, 0xA:
            // Control frames are never fragmented (section 5.5).
            state = isLast ? .length(isControl: true) : .lost
        default:
            state = .lost
        }
    }

    private mutating func readLength(_ byte: UInt8, _ isControl: Bool) {
        let length = byte & 0x7F
        guard (byte & 0x80 != 0) == isMasked, !isControl || length <= 125 else {
            state = .lost
            return
        }
        state =
            switch length {
            case 127: .longLength(0, missing: 8)
            case 126: .longLength(0, missing: 2)
            default: inside(UInt64(length))
            }
    }

    private func inside(_ payload: UInt64) -> State {
        let remaining = payload + (isMasked ? 4 : 0)
        return remaining == 0 ? .between : .inside(remaining: remaining)
    }
}
