// SPDX-License-Identifier: Apache-2.0

internal import CDialtonePlatform
internal import DialtonePlatform
internal import Glibc

/// Who is at the other end of a connection, as the kernel noted it when the connection was made (`SO_PEERCRED`).
package struct VarlinkPeer: Hashable, Sendable {
    /// The effective user.
    package var uid: UInt32
    /// The effective group.
    package var gid: UInt32
    /// The process. Only for messages to people: it may be gone, and its number another's. What is to be done to it
    /// goes through ``VarlinkExchange/openPeerProcess()``.
    package var pid: Int32
    /// The user whose share of the server it uses: ``uid``, or another one who stands for several.
    package var account: UInt32
    /// Whether its socket was made in the network namespace in which this process makes its own; `nil` where the kernel
    /// does not tell (before Linux 5.14).
    package var isInSameNetwork: Bool?

    /// A peer with these numbers, in the same network.
    package init(uid: UInt32, gid: UInt32, pid: Int32) {
        self.uid = uid
        self.gid = gid
        self.pid = pid
        account = uid
        isInSameNetwork = true
    }

    /// Asks the kernel who is connected to a Unix socket.
    init(of socket: borrowing OwnedDescriptor) throws(SystemError) {
        guard let credentials = UnixSocket.credentials(of: socket.number) else {
            throw .last("asking who is connected")
        }
        self.init(uid: credentials.uid, gid: credentials.gid, pid: credentials.pid)
        // The socket that is accepted belongs to the namespace of the one that connected (unix_stream_connect in
        // net/unix/af_unix.c). To compare the processes' namespaces takes the right to trace the other one.
        isInSameNetwork = Self.namespace(of: socket.number).map { $0 == Self.ownNamespace }
    }

    /// That of the process. It changes its network namespace in no thread but those that tests keep for it.
    private static let ownNamespace: UInt64? = {
        do throws(SystemError) {
            let socket = try UnixSocket.make()
            return namespace(of: socket.number)
        } catch {
            return nil
        }
    }()

    private static func namespace(of socket: CInt) -> UInt64? {
        var cookie: UInt64 = 0
        var length = socklen_t(MemoryLayout.size(ofValue: cookie))
        return getsockopt(socket, SOL_SOCKET, CInt(platform_SO_NETNS_COOKIE), &cookie, &length) == 0 ? cookie : nil
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
