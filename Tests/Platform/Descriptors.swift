// SPDX-License-Identifier: Apache-2.0

import Glibc
import Platform

/// A pipe, whose read end tells whether the write end is still open.
final class Pipe: Sendable {
    let reader: OwnedDescriptor
    /// The number of the write end; its owner is whom the test makes it.
    let writer: CInt

    init() throws {
        var ends: [CInt] = [0, 0]
        try retryingInterrupts("making a pipe") { pipe(&ends) }
        for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
        _ = fcntl(ends[0], F_SETFL, O_NONBLOCK)
        reader = OwnedDescriptor(ends[0])
        writer = ends[1]
    }

    /// Whether some descriptor of the write end is open.
    var isWriterOpen: Bool {
        var byte: UInt8 = 0
        return read(reader.number, &byte, 1) != 0
    }
}

/// Two connected stream sockets.
final class SocketPair: Sendable {
    let near: OwnedDescriptor
    let far: OwnedDescriptor

    init() throws {
        var ends: [CInt] = [0, 0]
        let type = CInt(SOCK_STREAM.rawValue | SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue)
        try retryingInterrupts("making a socket pair") { socketpair(AF_UNIX, type, 0, &ends) }
        near = OwnedDescriptor(ends[0])
        far = OwnedDescriptor(ends[1])
    }

    /// Makes the near end readable.
    func send() { _ = write(far.number, "x", 1) }

    /// Takes what makes the near end readable.
    func receive() {
        var bytes = [UInt8](repeating: 0, count: 16)
        _ = read(near.number, &bytes, bytes.count)
    }
}

/// A collector of what handlers on the agent's queue did, in order.
@AgentQueue
final class Log<Entry: Sendable> {
    private(set) var entries: [Entry] = []

    func append(_ entry: Entry) { entries.append(entry) }
}
