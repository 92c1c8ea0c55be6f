// SPDX-License-Identifier: Apache-2.0

/// What an MQTT client said in its CONNECT (MQTT 3.1.1 and 5.0, section 3.1) that binds whoever keeps its flow alive.
struct MQTTConnect: Hashable, Sendable {
    /// The longest silence that the client allowed itself; `nil` for any.
    let keepAlive: Duration?

    /// Reads the packet that `bytes` begin with; `nil` where that is no CONNECT.
    init?(_ bytes: [UInt8]) {
        var rest = bytes[...]
        guard rest.popFirst() == 0x10 else { return nil }
        // The remaining length: up to four bytes, of which all but the last have the highest bit set.
        guard let end = rest.prefix(4).firstIndex(where: { $0 & 0x80 == 0 }) else { return nil }
        rest = rest[(end + 1)...]
        // The protocol's name with its length, its level, the flags, and the seconds. `MQIsdp` was the name in 3.1.
        guard let name = ["MQTT", "MQIsdp"].first(where: { rest.starts(with: [0, UInt8($0.utf8.count)] + $0.utf8) })
        else { return nil }
        let seconds = rest.dropFirst(2 + name.utf8.count + 2).prefix(2)
        guard let high = seconds.first, let low = seconds.last, seconds.count == 2 else { return nil }
        let value = Int(high) << 8 | Int(low)
        keepAlive = value == 0 ? nil : .seconds(value)
    }
}

extension Opening {
    /// The longest silence that its client promised the server; `nil` where it promised nothing.
    var promisedKeepAlive: Duration? {
        steps.lazy.map(\.send).first { !$0.isEmpty }.flatMap { MQTTConnect($0)?.keepAlive }
    }
}
