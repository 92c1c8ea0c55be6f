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
    /// The process. Only for messages to people: it may be gone, and its number another's.
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
}
