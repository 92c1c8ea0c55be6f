// SPDX-License-Identifier: Apache-2.0

internal import Glibc
internal import Platform

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
