// SPDX-License-Identifier: Apache-2.0

internal import Platform
internal import Varlink

/// Connections as clients see them, encoded some at a time: all of a user's take tens of milliseconds, in which nobody
/// else would be served.
@AgentQueue
final class ConnectionListing {
    /// How long some are encoded in a turn: as long as a turn of calls takes (``ServerConnection``).
    private static let stepTime = Duration.microseconds(250)

    private var rest: ArraySlice<RegisteredConnection>
    private var elements = VarlinkElements()

    init(_ connections: [RegisteredConnection]) {
        rest = connections[...]
    }

    /// Encodes some more, and says whether that was the last.
    func step() -> Bool {
        let end = BootClock.now() + Self.stepTime
        while let connection = rest.popFirst() {
            if let wire = connection.wire { elements.append(wire) }
            if BootClock.now() >= end { break }
        }
        return rest.isEmpty
    }

    /// `reply`, with all of them in its array `connections`.
    func message(_ reply: some Encodable, continues: Bool = false) -> VarlinkMessage {
        .reply(reply, continues: continues, "connections", elements)
    }
}
