// SPDX-License-Identifier: Apache-2.0

internal import DialtonePlatform
internal import Glibc

/// The directory of the daemon's socket.
enum SocketDirectory {
    /// Makes the directory of `socket` if it is not there. Its parent (`/run`, `$XDG_RUNTIME_DIR`) is the system's to
    /// make.
    ///
    /// For root it is open to all, since the socket is; for a user it is that user's alone.
    static func make(for socket: String) throws(SystemError) {
        guard let slash = socket.lastIndex(of: "/") else { return }
        let directory = String(socket[..<slash])
        let mode: mode_t = geteuid() == 0 ? 0o755 : 0o700
        if mkdir(directory, mode) != 0 {
            if errno == EEXIST { return }
            throw .last("making the socket's directory \(directory)")
        }
        // The umask of whoever starts the daemon by hand must not shut the users out.
        if chmod(directory, mode) != 0 { throw .last("setting the mode of the socket's directory \(directory)") }
    }
}

/// Who may connect to a socket of the daemon's own making.
enum SocketAccess: CustomStringConvertible {
    /// The user of the daemon, and root.
    case user
    /// Besides, the members of a group.
    case group(gid_t)
    /// Everybody.
    case all

    /// The group that the shipped socket unit gives the machine's socket to, and that sysusers makes.
    static let groupName = "dialtone"

    /// A user's own daemon is for that user. The machine's is for its group, as with the shipped unit; where that group
    /// is not, on a machine that nothing was installed on, there is nobody to give it to but everybody.
    static var standard: SocketAccess {
        guard geteuid() == 0 else { return .user }
        guard let entry = getgrnam(groupName) else { return .all }
        return .group(entry.pointee.gr_gid)
    }

    var mode: UInt32 {
        switch self {
        case .user: 0o600
        case .group: 0o660
        case .all: 0o666
        }
    }

    var group: gid_t? { if case .group(let number) = self { number } else { nil } }

    var description: String {
        switch self {
        case .user: "its user"
        case .group: "the group \(Self.groupName)"
        case .all: "every user: there is no group \(Self.groupName)"
        }
    }
}
