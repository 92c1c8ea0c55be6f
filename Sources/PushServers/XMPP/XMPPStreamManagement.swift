// SPDX-License-Identifier: Apache-2.0

/// What both ends of a session count so that it outlives its sockets (XEP-0198). The counts are modulo 2^32 (section
/// 4).
struct XMPPStreamManagement: Hashable, Sendable {
    /// By what the session is resumed; `nil` where it cannot be.
    var resumption: String?
    /// How many stanzas of the server were handled.
    var handled: UInt32
    /// How many of ours the server said that it handled.
    private(set) var acknowledged: UInt32
    /// Those of ours that it did not, in their order.
    private(set) var unacknowledged: [[UInt8]]
    /// The bytes of those.
    private(set) var size: Int

    /// A session with these counts; a new one with none.
    init(
        resumption: String? = nil, handled: UInt32 = 0, acknowledged: UInt32 = 0, unacknowledged: [[UInt8]] = []
    ) {
        (self.resumption, self.handled) = (resumption, handled)
        (self.acknowledged, self.unacknowledged) = (acknowledged, unacknowledged)
        size = unacknowledged.reduce(0) { $0 + $1.count }
    }

    /// How many stanzas were sent.
    var sent: UInt32 { acknowledged &+ UInt32(truncatingIfNeeded: unacknowledged.count) }

    /// A stanza is sent, or will be as soon as the session is resumed.
    mutating func send(_ stanza: [UInt8]) {
        unacknowledged.append(stanza)
        size += stanza.count
    }

    /// The server says how many it handled.
    ///
    /// - Returns: whether that can be: no fewer than it said before, and no more than were sent.
    mutating func acknowledge(_ count: UInt32) -> Bool {
        let new = count &- acknowledged
        guard Int(new) <= unacknowledged.count else { return false }
        size -= unacknowledged.prefix(Int(new)).reduce(0) { $0 + $1.count }
        unacknowledged.removeFirst(Int(new))
        acknowledged = count
        return true
    }
}

extension UInt32 {
    /// Whether this count is beyond another one. Both are modulo 2^32, and far less than half of that apart.
    func isBeyond(_ other: UInt32) -> Bool { Int32(bitPattern: self &- other) > 0 }
}
