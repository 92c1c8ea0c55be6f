// SPDX-License-Identifier: Apache-2.0

internal import DialtonePlatform
internal import Glibc

/// The database's file, before SQLite opens it.
enum StoreFile {
    /// Makes the directory, and those above it that are missing; only its owner can read it. A link of the same user
    /// is followed: from version 254 on, systemd makes one for a user who has a configuration directory and no state
    /// directory (`setup_exec_directory`).
    static func makeDirectory(_ path: String) throws(SystemError) {
        try StatePath.make(path)
        var status = stat()
        if lstat(path, &status) != 0 { throw .last("looking at \(path)") }
        if status.st_mode & S_IFMT == S_IFLNK, status.st_uid == geteuid(), stat(path, &status) != 0 {
            throw .last("looking at what \(path) leads to")
        }
        guard status.st_mode & S_IFMT == S_IFDIR else {
            throw SystemError("using \(path), which is no directory", code: ENOTDIR)
        }
        guard status.st_uid == geteuid() else {
            throw SystemError("using \(path), which belongs to another user", code: EPERM)
        }
        if status.st_mode & 0o777 != 0o700, chmod(path, 0o700) != 0 { throw .last("closing \(path) to others") }
    }

    /// Makes the file where it is missing, for its owner alone; SQLite gives its log the same mode.
    ///
    /// - Returns: whether there is a regular file now; not where something else has its name.
    static func makeFile(_ path: String) throws(SystemError) -> Bool {
        let number = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY, mode_t(0o600))
        if number < 0 {
            if errno == ELOOP || errno == ENXIO || errno == EISDIR { return false }
            throw .last("opening \(path)")
        }
        let file = OwnedDescriptor(number)
        var status = stat()
        guard fstat(file.number, &status) == 0 else { throw .last("looking at \(path)") }
        guard status.st_mode & S_IFMT == S_IFREG else { return false }
        if status.st_mode & 0o777 != 0o600, fchmod(file.number, 0o600) != 0 { throw .last("closing \(path) to others") }
        return true
    }

    /// How many damaged files are kept beside the one in use. There is one after each damage, which somebody may want
    /// to look at; more than that is a disk that fails.
    private static let mostDamaged = 16

    /// Renames a file that cannot be used, with its log, to a name that is free.
    ///
    /// - Returns: the new name.
    static func setAside(_ path: String) throws(SystemError) -> String {
        for number in 1...mostDamaged {
            let new = "\(path).damaged-\(number)"
            var status = stat()
            // Nobody else makes files in the directory: what is free now is free a moment later.
            guard lstat(new, &status) != 0, errno == ENOENT else { continue }
            guard rename(path, new) == 0 else { throw .last("renaming \(path)") }
            for suffix in ["-wal", "-shm"] where rename(path + suffix, new + suffix) != 0 && errno != ENOENT {
                throw .last("renaming \(path)\(suffix)")
            }
            return new
        }
        throw SystemError("renaming \(path): there are \(mostDamaged) damaged ones; remove some", code: EEXIST)
    }
}
