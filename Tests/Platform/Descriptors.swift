// SPDX-License-Identifier: Apache-2.0

import DialtonePlatform
import DialtoneTestSupport
import Glibc

/// A descriptor to own, and its other end, which tells whether it is still open.
final class WatchedDescriptor: Sendable {
    /// The number of the watched end; its owner is whom the test makes it.
    let number: CInt
    private let other: OwnedDescriptor

    init() throws {
        let ends = socketPair(isBlocking: false)
        number = ends.0
        other = OwnedDescriptor(ends.1)
    }

    /// Whether some descriptor of the watched end is open.
    var isOpen: Bool { !isClosed(within: 0) }

    /// Whether no descriptor of the watched end is open any more. Waits for it: a process that another test is just
    /// starting has a copy of every descriptor until it begins its own program.
    var isClosed: Bool { isClosed(within: 30_000) }

    private func isClosed(within milliseconds: CInt) -> Bool {
        var request = pollfd(fd: other.number, events: 0, revents: 0)
        return poll(&request, 1, milliseconds) == 1 && CInt(request.revents) & POLLHUP != 0
    }
}

/// Two connected stream sockets.
final class SocketPair: Sendable {
    let near: OwnedDescriptor
    let far: OwnedDescriptor

    init() throws {
        let ends = socketPair(isBlocking: false)
        near = OwnedDescriptor(ends.0)
        far = OwnedDescriptor(ends.1)
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
