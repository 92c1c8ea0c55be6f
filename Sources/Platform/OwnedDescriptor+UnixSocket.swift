// SPDX-License-Identifier: Apache-2.0

internal import CDialtonePlatform
internal import Glibc

// Of a Unix socket, into which its peer can send descriptors. The kernel closes those for which a read has no room
// there and then, on the thread that reads; and so it does with what waits unread when the socket is closed.

extension OwnedDescriptor {
    /// Two Unix sockets that are connected with each other, close-on-exec, for the caller to own.
    package static func socketPair(
        keepingMessagesApart: Bool = false, isBlocking: Bool = true
    ) throws(SystemError) -> (CInt, CInt) {
        var ends: [CInt] = [-1, -1]
        let kind = keepingMessagesApart ? SOCK_SEQPACKET : SOCK_STREAM
        let type = kind.rawValue | SOCK_CLOEXEC.rawValue | (isBlocking ? 0 : SOCK_NONBLOCK.rawValue)
        guard socketpair(AF_UNIX, CInt(type), 0, &ends) == 0 else { throw .last("making a pair of sockets") }
        return (ends[0], ends[1])
    }

    /// Whether the peer may send descriptors from now on. Where not, it is refused (`EPERM`); before Linux 6.16 the
    /// kernel knows no such option (`SO_PASSRIGHTS`), and they come all the same.
    package borrowing func acceptDescriptors(_ isOn: Bool) {
        number.setSocketOption(CInt(platform_SO_PASSRIGHTS), to: isOn ? 1 : 0)
    }

    /// Has what comes out of band (`MSG_OOB`) read in its turn: a read that comes to it drops it otherwise, with the
    /// descriptors that ride on it.
    package borrowing func readUrgentInTurn() { number.setSocketOption(SO_OOBINLINE, to: 1) }

    /// Reads what is there (recv(2)); descriptors that ride on it are closed as this one will be.
    package borrowing func receiveBytes(into buffer: UnsafeMutableRawBufferPointer) -> Int {
        withUnsafeTemporaryAllocation(of: CInt.self, capacity: Int(platform_descriptors_max)) { numbers in
            var (riding, flags): (CInt, CInt) = (0, 0)
            let count = platform_receive(
                number, buffer.baseAddress, buffer.count, numbers.baseAddress, &riding, &flags)
            for number in numbers.prefix(Int(riding)) { OwnedDescriptor(number, sharedWith: user).close() }
            return count
        }
    }

    /// Ends the connection, even if another process has a descriptor of it, and closes this one: at once where its
    /// peer sent nothing that was not read.
    package consuming func endConnection() {
        // From here on nothing is added.
        shutdown(number, CInt(SHUT_RDWR))
        if number.unreadBytes == 0 { unshared().close() } else { close() }
    }
}
