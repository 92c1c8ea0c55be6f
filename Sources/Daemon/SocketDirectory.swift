// SPDX-License-Identifier: Apache-2.0

internal import Glibc
internal import Platform

/// The directory of the daemon's socket.
enum SocketDirectory {
    /// Makes the directory of `socket` if it is not there. Its parent (`/run`, `$XDG_RUNTIME_DIR`) is the system's to make.
    ///
    /// For root it is open to all, since the socket is; for a user it is that user's alone.
    static func make(for socket: String) throws(SystemError) {
        guard let slash = socket.lastIndex(of: "/") else { return }
        let directory = String(socket[..<slash])
        if mkdir(directory, geteuid() == 0 ? 0o755 : 0o700) != 0, errno != EEXIST {
            throw .last("making the socket's directory \(directory)")
        }
    }
}
