// SPDX-License-Identifier: Apache-2.0

/// The little of WebSocket that a client of a broker needs.
enum WebSocket {
    /// The handshake, with the key of RFC 6455, section 1.3.
    static let upgrade = Array(
        [
            "GET /mqtt HTTP/1.1", "Host: lab", "Upgrade: websocket", "Connection: Upgrade",
            "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==", "Sec-WebSocket-Version: 13", "Sec-WebSocket-Protocol: mqtt",
            "", "",
        ].joined(separator: "\r\n").utf8)

    /// What answers that key.
    static let acceptance = "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="

    /// A frame with a packet of MQTT. A client's are masked; by zeros, they read as they are (RFC 6455, section 5.3).
    static func frame(_ packet: [UInt8]) -> [UInt8] { [0x82, 0x80 | UInt8(packet.count), 0, 0, 0, 0] + packet }

    /// What an answer to a ping begins with (RFC 6455, section 5.5.3).
    static let pong: UInt8 = 0x8A
}

extension ClientSocket {
    /// The server's next frame; of fewer than 126 bytes, which its second byte counts.
    func frame() -> [UInt8]? {
        guard let head = bytes(2), let payload = bytes(Int(head[1])) else { return nil }
        return head + payload
    }
}
