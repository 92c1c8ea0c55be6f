// SPDX-License-Identifier: Apache-2.0

import DialtoneAPI

/// The few packets of MQTT 3.1.1 that a subscriber needs.
enum MQTT {
    /// A CONNECT with a user's name and password that keeps the session (clean session 0).
    static func connect(_ client: String, password: String = "swordfish", keepAlive: UInt8 = 60) -> [UInt8] {
        let payload = text(client) + text("user") + text(password)
        return packet(0x10, text("MQTT") + [4, 0xC0, 0, keepAlive] + payload)
    }

    /// A SUBSCRIBE at quality of service 1, number 1.
    static func subscribe(_ topic: String) -> [UInt8] { packet(0x82, [0, 1] + text(topic) + [1]) }

    /// The acknowledgement of a PUBLISH.
    static func acknowledgement(of number: [UInt8]) -> [UInt8] { packet(0x40, number) }

    private static func packet(_ type: UInt8, _ content: [UInt8]) -> [UInt8] { [type, UInt8(content.count)] + content }

    private static func text(_ text: String) -> [UInt8] { [0, UInt8(text.utf8.count)] + Array(text.utf8) }

    /// What a client leaves to log in again: CONNECT, and SUBSCRIBE, whose answer messages may overtake.
    static func opening(
        _ client: String, topic: String, password: String = "swordfish", keepAlive: UInt8 = 60
    ) -> [ConnectionsAPI.OpeningStep] {
        let connect = connect(client, password: password, keepAlive: keepAlive)
        return [
            .init(send: escaped(connect), expect: .init(bytes: #"\x20\x02\x0?\x00"#)),
            .init(
                send: escaped(subscribe(topic)), expect: .init(bytes: #"\x90\x03\x00\x01\x01"#),
                overtakenBy: [#"\x3?"#, #"\x62"#]),
        ]
    }

    /// Bytes as an opening has them.
    static func escaped(_ bytes: [UInt8]) -> String {
        bytes.map { byte in
            let digits = String(byte, radix: 16)
            return "\\x" + (digits.count < 2 ? "0" : "") + digits
        }.joined()
    }
}

extension ClientSocket {
    /// The next packet; `nil` at the end of the stream.
    func nextPacket() -> [UInt8]? {
        // All of the tests' are shorter than 128 bytes.
        guard let head = bytes(2), let content = bytes(Int(head[1])) else { return nil }
        return head + content
    }

    /// The text of the next PUBLISH, which is acknowledged; other packets are passed over. `nil` at the end.
    func nextMessage() -> String? {
        while let packet = nextPacket() {
            guard packet[0] >> 4 == 3 else { continue }
            let topic = 4 + Int(packet[2]) << 8 + Int(packet[3])
            send(MQTT.acknowledgement(of: Array(packet[topic..<topic + 2])))
            return String(decoding: packet[(topic + 2)...], as: UTF8.self)
        }
        return nil
    }

    /// The texts of the next so many PUBLISHes that differ, or of fewer at the end: what was on its way when a line was
    /// cut comes twice, marked as such.
    func distinctMessages(_ count: Int) -> [String] {
        var messages: [String] = []
        while messages.count < count, let message = nextMessage() {
            if !messages.contains(message) { messages.append(message) }
        }
        return messages
    }

    /// Logs in to a broker, as a client does that was not left to sleep.
    func logIn(_ client: String, topic: String, keepAlive: UInt8 = 60) -> Bool {
        send(MQTT.connect(client, keepAlive: keepAlive))
        guard let accepted = nextPacket(), accepted[0] == 0x20, accepted[3] == 0 else { return false }
        send(MQTT.subscribe(topic))
        while let packet = nextPacket() { if packet[0] == 0x90 { return packet[4] == 1 } }
        return false
    }
}
