// SPDX-License-Identifier: Apache-2.0

package import DialtonePlatform
internal import Glibc

/// Why a path could not be listened on.
package enum VarlinkSocketError: Error, Hashable, Sendable, CustomStringConvertible {
    /// A service answers there, or is about to.
    case inUse(path: String)
    /// Something that is no socket has the name.
    case notASocket(path: String)
    /// The kernel refused.
    case system(SystemError)

    /// What was found, and what to do.
    package var description: String {
        switch self {
        case .inUse(let path): "another service listens on \(path): stop it, or choose another path"
        case .notASocket(let path): "\(path) exists and is not a socket: remove it, or choose another path"
        case .system(let error): "\(error)"
        }
    }
}

/// The right to listen on a path.
///
/// Two services that start at the same moment both find a dead socket, and whoever unlinks and binds last would make
/// the other one unreachable without its noticing. So a lock is taken first, on `PATH.lock`, and kept as long as the
/// socket: exactly one gets it. The lock file is left behind, because removing it would let two services hold locks on
/// two files of one name. The socket is bound under another name, given its mode, made to listen and only then moved
/// into place: clients find either the old socket, or one that already accepts and has its permissions.
struct SocketFile: ~Copyable {
    private let path: String
    private let lock: OwnedDescriptor

    /// Claims `path`, unless somebody listens on it or it is no socket.
    init(claiming path: String) throws(VarlinkSocketError) {
        do throws(SystemError) {
            guard let lock = try Self.lock(path + ".lock") else { throw SystemError(path, code: EADDRINUSE) }
            try Self.requireDead(path)
            self.lock = lock
            self.path = path
        } catch {
            switch error.code {
            case EADDRINUSE: throw .inUse(path: path)
            case ENOTSOCK: throw .notASocket(path: path)
            default: throw .system(error)
            }
        }
    }

    /// A socket that listens on the path, in place of a dead one.
    borrowing func listen(mode: UInt32, group: UInt32? = nil, backlog: CInt) throws(SystemError) -> OwnedDescriptor {
        // One byte longer than the path, so that the longest path allowed is one byte shorter than the kernel's.
        let temporary = path + "~"
        unlink(temporary)
        let socket = try UnixSocket.bind(to: temporary)
        do {
            if let group {
                try retryingInterrupts("giving \(path) to its group") { lchown(temporary, uid_t.max, group) }
            }
            try retryingInterrupts("setting the mode of \(path)") { chmod(temporary, mode) }
            try retryingInterrupts("listening on \(path)") { Glibc.listen(socket.number, backlog) }
            try retryingInterrupts("moving the socket to \(path)") { rename(temporary, path) }
        } catch {
            unlink(temporary)
            throw error
        }
        return socket
    }

    deinit {
        // Not left to the closing: a child process that has been forked and has not reached its exec yet has a copy of
        // the descriptor, and would keep the claim.
        flock(lock.number, LOCK_UN)
    }

    /// Removes the name and gives the claim up.
    consuming func remove() {
        // Ours, unless somebody moved it away by hand: the lock kept every other service off.
        unlink(path)
    }

    private static func lock(_ path: String) throws(SystemError) -> OwnedDescriptor? {
        let lock = OwnedDescriptor(
            try retryingInterrupts("opening \(path)") {
                open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0o600)
            })
        if flock(lock.number, LOCK_EX | LOCK_NB) == 0 { return lock }
        let error = SystemError.last("locking \(path)")
        if error.code == EWOULDBLOCK { return nil }
        throw error
    }

    /// Throws `EADDRINUSE` if somebody listens on `path`, `ENOTSOCK` if it is another kind of file.
    private static func requireDead(_ path: String) throws(SystemError) {
        var status = stat()
        if lstat(path, &status) == 0, status.st_mode & S_IFMT != S_IFSOCK {
            throw SystemError("binding \(path)", code: ENOTSOCK)
        }
        do {
            _ = try UnixSocket.connect(to: path)
        } catch {
            switch error.code {
            case ENOENT, ECONNREFUSED: return
            // Its queue of waiting clients is full, or it is a datagram socket: in either case somebody has it.
            case EAGAIN, EPROTOTYPE: break
            default: throw error
            }
        }
        throw SystemError("binding \(path)", code: EADDRINUSE)
    }
}
