// SPDX-License-Identifier: Apache-2.0

internal import Platform
internal import Varlink

/// An answer with connections as clients see them, encoded some at a time: all of a user's take tens of milliseconds,
/// in which nobody else would be served, and megabytes, for which there may be no room.
@AgentQueue
final class ConnectionListing {
    /// How long some are encoded in a turn: as long as a turn of calls takes (``ServerConnection``).
    private static let stepTime = Duration.microseconds(250)
    /// So many bytes are made before it is asked whether there is memory for as many more: some hundred connections.
    private static let portion = 64 * 1024

    private var rest: ArraySlice<RegisteredConnection>
    private var reply: VarlinkLongReply
    private let user: UInt32
    private let memory: MemoryGuard?
    private var admitted = portion

    /// `connections`, in the array `connections` of `reply`, for a user.
    init(
        _ connections: [RegisteredConnection], in reply: some Encodable, continues: Bool = false, for user: UInt32,
        _ memory: MemoryGuard?
    ) {
        rest = connections[...]
        self.reply = VarlinkLongReply(reply, continues: continues, "connections")
        self.user = user
        self.memory = memory
    }

    /// Encodes some more; gives the answer once that was the last, or the error where there is no memory for more.
    func step() -> VarlinkMessage? {
        let end = BootClock.now() + Self.stepTime
        while let connection = rest.popFirst() {
            if let wire = connection.wire { reply.append(wire) }
            do throws(VarlinkFailure) {
                if reply.count > admitted {
                    try memory?.admitOrFail(.answer(bytes: Self.portion), for: user)
                    admitted += Self.portion
                }
            } catch {
                return error.message
            }
            if BootClock.now() >= end { break }
        }
        return rest.isEmpty ? reply.message() : nil
    }
}
