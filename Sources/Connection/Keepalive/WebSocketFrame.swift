// SPDX-License-Identifier: Apache-2.0

/// A control frame of a WebSocket's client (RFC 6455, section 5.2).
enum WebSocketFrame {
    /// The opcodes of sections 5.5.2 and 5.5.3.
    enum Opcode: UInt8 {
        case ping = 0x9
        case pong = 0xA
    }

    /// The most bytes that a control frame carries (section 5.5).
    static let longestControl = 125

    /// Its first byte: FIN, no bit of an extension, and the opcode.
    static func first(_ opcode: Opcode) -> UInt8 { 0x80 | opcode.rawValue }

    /// Four bytes that nobody can foresee (section 5.3).
    static func mask(using random: inout some RandomNumberGenerator) -> [UInt8] {
        Array(bytes(of: random.next()).prefix(4))
    }

    /// A frame with a payload of at most ``longestControl`` bytes.
    static func control(_ opcode: Opcode, _ payload: some Collection<UInt8>, mask: [UInt8]) -> [UInt8] {
        let masked = payload.enumerated().map { $1 ^ mask[$0 % 4] }
        return [first(opcode), 0x80 | UInt8(payload.count)] + mask + masked
    }

    /// The lowest byte first.
    static func bytes(of number: UInt64) -> [UInt8] {
        (0..<8).map { UInt8(truncatingIfNeeded: number >> ($0 * 8)) }
    }
}
