// SPDX-License-Identifier: Apache-2.0

internal import DialtonePlatform
internal import DialtoneVarlink

/// An answer with connections as clients see them, encoded some at a time: all of a user's take tens of milliseconds,
/// in which nobody else would be served, and megabytes, for which there may be no room.
@AgentQueue
final class ConnectionListing {
    /// How long some are encoded in a turn: as long as a turn of calls takes (``ServerConnection``).
    private static let stepTime = Duration.microseconds(250)
    /// So many bytes of an answer nobody is asked for: some ten connections. Beyond them there is to be memory for
    /// twice what is there, again and again.
    private static let least = 4 * 1024
    /// The room in which the next connection is encoded: a long name, and the longest remote.
    private static let most = 8 * 1024

    private var rest: ArraySlice<RegisteredConnection>
    private let show: @AgentQueue (RegisteredConnection, inout VarlinkLongReply) -> Void
    private var reply: VarlinkLongReply
    private let user: UInt32
    private let memory: MemoryGuard?
    private var admitted = 2 * least

    /// `connections`, in the array `connections` of `reply`, for a user.
    ///
    /// - Parameter show: appends what is shown of one; nothing before it is at work.
    init(
        _ connections: [RegisteredConnection], in reply: some VarlinkWritable, continues: Bool = false,
        for user: UInt32,
        _ memory: MemoryGuard?,
        showing show: @escaping @AgentQueue (RegisteredConnection, inout VarlinkLongReply) -> Void = {
            if let wire = $0.wire { $1.append(wire) }
        }
    ) {
        self.show = show
        rest = connections[...]
        self.reply = VarlinkLongReply(reply, continues: continues, "connections")
        self.user = user
        self.memory = memory
    }

    /// Encodes it all, some in each turn, and answers.
    func answer(_ exchange: VarlinkExchange<some VarlinkMethod>) {
        if let message = step() { return exchange.reply(message) }
        exchange.inTurn(isGoingOn: true) { self.answer(exchange) }
    }

    /// Encodes some more; gives the answer once that was the last, or the error where there is no memory for more.
    func step() -> VarlinkMessage? {
        let end = BootClock.now() + Self.stepTime
        while let connection = rest.popFirst() {
            show(connection, &reply)
            do throws(VarlinkFailure) {
                if !rest.isEmpty, reply.count > max(admitted / 2, admitted - Self.most) { try makeRoom() }
            } catch {
                return error.message
            }
            if BootClock.now() >= end { break }
        }
        return rest.isEmpty ? reply.finish() : nil
    }

    private func makeRoom() throws(VarlinkFailure) {
        try memory?.admitOrFail(.answer(bytes: 2 * admitted), for: user)
        admitted *= 2
        reply.reserve(admitted)
    }
}
