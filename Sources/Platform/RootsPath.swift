// SPDX-License-Identifier: Apache-2.0

internal import Glibc

/// Whether a file can have been put where it is by root alone. What root runs, or is told what to run by, must be so.
package enum RootsPath {
    /// The first of the directories above a file that somebody else can write to, and what to do about it; `nil` for
    /// none. The file itself is not looked at.
    package static func obstacle(to path: String) -> (directory: String, text: String)? {
        // Where it really is, whatever links lead there.
        let resolved = realpath(path, nil)
        defer { free(resolved) }
        var directory = (resolved.map { String(cString: $0) } ?? path)[...]
        while let slash = directory.lastIndex(of: "/") {
            directory = directory[..<slash]
            let name = directory.isEmpty ? "/" : String(directory)
            var status = stat()
            // One that is not there holds no file.
            guard stat(name, &status) == 0 else { continue }
            if status.st_uid != 0 || status.st_mode & (S_IWGRP | S_IWOTH) != 0 {
                return (name, "only root may be able to write to it; chown root and chmod go-w")
            }
        }
        return nil
    }
}
