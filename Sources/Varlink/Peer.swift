// SPDX-License-Identifier: Apache-2.0

internal import CPlatform
internal import Glibc
internal import Platform

/// Who is at the other end of a connection, as the kernel noted it when the connection was made (`SO_PEERCRED`).
public struct VarlinkPeer: Hashable, Sendable {
    /// The effective user.
    public var uid: UInt32
    /// The effective group.
    public var gid: UInt32
    /// The process. Only for messages to people: it may be gone, and its number another's. What is to be done to it
    /// goes through ``VarlinkExchange/openPeerProcess()``.
    public var pid: Int32

    /// A peer with these numbers.
    public init(uid: UInt32, gid: UInt32, pid: Int32) {
        self.uid = uid
        self.gid = gid
        self.pid = pid
    }

    /// Asks the kernel who is connected to a Unix socket.
    init(of socket: borrowing OwnedDescriptor) throws(SystemError) {
        var credentials = platform_credentials()
        var length = socklen_t(MemoryLayout.size(ofValue: credentials))
        guard getsockopt(socket.number, SOL_SOCKET, SO_PEERCRED, &credentials, &length) == 0 else {
            throw .last("asking who is connected")
        }
        self.init(uid: credentials.uid, gid: credentials.gid, pid: credentials.pid)
    }

    /// A pidfd of the process that connected to the socket with this number.
    ///
    /// Linux keeps the process itself in the socket and gives it out since 6.5 (`SO_PEERPIDFD`). An older kernel is
    /// asked by number: if the process died since it connected, and its number was given to another, that is opened.
    func openProcess(connectedTo socket: CInt) throws(SystemError) -> OwnedDescriptor {
        if let number = socket.socketOption(CInt(platform_SO_PEERPIDFD)) { return OwnedDescriptor(number) }
        let code = errno
        guard code == ENOPROTOOPT else { throw SystemError("opening process \(pid)", code: code) }
        return try openProcessByNumber()
    }

    /// A pidfd of the process that has the peer's number now.
    func openProcessByNumber() throws(SystemError) -> OwnedDescriptor {
        OwnedDescriptor(try retryingInterrupts("opening process \(pid)") { platform_pidfd_open(pid) })
    }
}
