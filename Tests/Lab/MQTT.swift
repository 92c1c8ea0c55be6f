// SPDX-License-Identifier: Apache-2.0

import DialtoneAPI
import Glibc
import Platform

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
    static func opening(_ client: String, topic: String, password: String = "swordfish") -> [ConnectionsAPI.OpeningStep]
    {
        [
            .init(send: escaped(connect(client, password: password)), expect: .init(bytes: #"\x20\x02\x0?\x00"#)),
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

/// The client's end of a flow that it took, read in packets.
final class MQTTClient {
    private let socket: OwnedDescriptor
    private var rest: [UInt8] = []

    init(_ socket: consuming OwnedDescriptor) {
        // A test that fails does not hang.
        var limit = timeval(tv_sec: 30, tv_usec: 0)
        setsockopt(socket.number, SOL_SOCKET, SO_RCVTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
        self.socket = socket
    }

    func send(_ bytes: [UInt8]) { _ = Glibc.send(socket.number, bytes, bytes.count, CInt(MSG_NOSIGNAL)) }

    /// The next packet; `nil` at the end of the stream.
    func next() -> [UInt8]? {
        while true {
            // All of the test's are shorter than 128 bytes.
            if rest.count >= 2, rest.count >= 2 + Int(rest[1]) {
                defer { rest.removeFirst(2 + Int(rest[1])) }
                return Array(rest.prefix(2 + Int(rest[1])))
            }
            var buffer = [UInt8](repeating: 0, count: 4096)
            let count = recv(socket.number, &buffer, buffer.count, 0)
            if count <= 0 { return nil }
            rest += buffer.prefix(count)
        }
    }

    /// What comes next, up to and with `end`; what came before the stream's end where that is sooner.
    func text(untilIncluding end: String) -> String {
        while true {
            let text = String(decoding: rest, as: UTF8.self)
            if text.contains(end) { return text }
            var buffer = [UInt8](repeating: 0, count: 4096)
            let count = recv(socket.number, &buffer, buffer.count, 0)
            if count <= 0 { return text }
            rest += buffer.prefix(count)
        }
    }

    /// The text of the next PUBLISH, which is acknowledged; other packets are passed over. `nil` at the end.
    func nextMessage() -> String? {
        while let packet = next() {
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

    /// Logs in, as a client does that was not left to sleep.
    func logIn(_ client: String, topic: String) -> Bool {
        send(MQTT.connect(client))
        guard let accepted = next(), accepted[0] == 0x20, accepted[3] == 0 else { return false }
        send(MQTT.subscribe(topic))
        while let packet = next() { if packet[0] == 0x90 { return packet[4] == 1 } }
        return false
    }
}
