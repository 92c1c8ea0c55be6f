// SPDX-License-Identifier: Apache-2.0

internal import DialtonePlatform
internal import Glibc
internal import Logging

/// Where the daemon keeps what is to outlive it. It belongs to one daemon at a time, and to nobody else's eyes.
struct StateDirectory: ~Copyable {
    /// Its path.
    let path: String
    /// Held open for the lock on it, and so that files are found in it whatever its path leads to by then.
    private let descriptor: OwnedDescriptor
    private let logger: Logger

    /// How many milliseconds a daemon waits for the directory, at its start: a child of the one before, between its
    /// fork and its exec, may hold what its parent held. On a machine under load that takes some tenths of a second.
    private static let patience = 500

    /// Takes the directory, and makes it with those above it where they are missing.
    ///
    /// - Throws: why it cannot be had; `EWOULDBLOCK` where another daemon has it.
    init(_ path: String, _ logger: Logger) throws(SystemError) {
        try StatePath.make(path)
        let number = Glibc.open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        if number < 0 { throw .last("opening \(path)") }
        let descriptor = OwnedDescriptor(number)
        if faccessat(number, ".", W_OK | X_OK, AT_EACCESS) != 0 { throw .last("writing to \(path)") }
        // Two daemons would turn over each other's files.
        var patience = Self.patience
        while flock(number, LOCK_EX | LOCK_NB) != 0 {
            guard errno == EWOULDBLOCK, patience > 0 else { throw .last("locking \(path)") }
            usleep(1000)
            patience -= 1
        }
        self.path = path
        self.logger = logger
        self.descriptor = descriptor
    }

    /// Opens a file of it, which is made if it is not there. Something else of that name, such as a named pipe or a
    /// link, is put aside.
    borrowing func open(_ name: String, _ flags: CInt) throws(SystemError) -> OwnedDescriptor {
        try putAsideUnlessFile(name)
        guard let file = try openFile(name, flags | O_CREAT) else {
            throw SystemError("opening \(path)/\(name)", code: ENOENT)
        }
        giveToOwner(file)
        return file
    }

    /// Opens a regular file; `nil` where nothing has its name.
    private borrowing func openFile(_ name: String, _ flags: CInt) throws(SystemError) -> OwnedDescriptor? {
        // Not to be stopped by a named pipe that nobody writes to.
        let number = openat(
            descriptor.number, name, flags | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY, mode_t(0o600))
        if number < 0 {
            if errno == ENOENT { return nil }
            throw .last("opening \(path)/\(name)")
        }
        let file = OwnedDescriptor(number)
        var status = stat()
        guard fstat(number, &status) == 0, status.st_mode & S_IFMT == S_IFREG else {
            throw SystemError("opening \(path)/\(name), which is no regular file", code: EINVAL)
        }
        return file
    }

    /// A directory stays where it is: somebody made it, and it may be full.
    private borrowing func putAsideUnlessFile(_ name: String) throws(SystemError) {
        var status = stat()
        guard fstatat(descriptor.number, name, &status, AT_SYMLINK_NOFOLLOW) == 0 else { return }
        if status.st_mode & S_IFMT != S_IFREG, status.st_mode & S_IFMT != S_IFDIR {
            try putAside(name, because: "it is no regular file")
        }
    }

    /// Under what is found that could not be used. Always the same name, so that it is one file at most.
    static let damaged = "damaged"

    /// Gives what has this name another one, where somebody may look at it and nothing reads it.
    borrowing func putAside(_ name: String, because reason: String) throws(SystemError) {
        // What was put aside before.
        remove(Self.damaged)
        try rename(name, to: Self.damaged)
        logger.warning(
            "a file of the state cannot be used and is put aside",
            metadata: ["file": "\(path)/\(name)", "reason": "\(reason)", "now": "\(path)/\(Self.damaged)"])
    }

    /// Removes a file; one that is not there is as good.
    borrowing func remove(_ name: String) {
        _ = unlinkat(descriptor.number, name, 0)
    }

    /// How many entries of the directory are looked at: many times what is made here.
    private static let mostNames = 4096

    /// The files whose names begin so, the one changed last at the end.
    borrowing func names(beginning prefix: String) -> [String] {
        guard let entries = try? DirectoryStream(descriptor) else { return [] }
        var found: [(name: String, changed: timespec)] = []
        for _ in 0..<Self.mostNames {
            guard let name = entries.next() else { break }
            var status = stat()
            guard name.hasPrefix(prefix), fstatat(descriptor.number, name, &status, AT_SYMLINK_NOFOLLOW) == 0 else {
                continue
            }
            found.append((name, status.st_mtim))
        }
        return found.sorted { ($0.changed.tv_sec, $0.changed.tv_nsec) < ($1.changed.tv_sec, $1.changed.tv_nsec) }
            .map(\.name)
    }

    /// A file that root makes by hand in a service's directory is still the service's.
    private borrowing func giveToOwner(_ file: borrowing OwnedDescriptor) {
        var status = stat()
        guard geteuid() == 0, fstat(descriptor.number, &status) == 0, status.st_uid != 0 else { return }
        _ = fchown(file.number, status.st_uid, status.st_gid)
    }

    /// Renames a file over another one.
    borrowing func rename(_ old: String, to new: String) throws(SystemError) {
        if renameat(descriptor.number, old, descriptor.number, new) != 0 {
            throw .last("renaming \(path)/\(old) to \(new)")
        }
    }

    /// The content of a regular file, as far as `limit`; `nil` where it is not there.
    borrowing func read(_ name: String, atMost limit: Int) throws(SystemError) -> [UInt8]? {
        guard let file = try openFile(name, O_RDONLY) else { return nil }
        var count = 0
        let bytes = [UInt8](unsafeUninitializedCapacity: limit) { buffer, filled in
            count = Glibc.read(file.number, buffer.baseAddress, buffer.count)
            filled = max(count, 0)
        }
        if count < 0 { throw .last("reading \(path)/\(name)") }
        return bytes
    }

    /// Puts `bytes` in the place of a file's content, at once or not at all.
    ///
    /// Not synchronised with the disk: after a loss of power the old content, or a damaged file, costs no more than
    /// what was learned since.
    borrowing func replace(_ name: String, with bytes: [UInt8]) throws(SystemError) {
        let scratch = "\(name).new"
        let file = try open(scratch, O_WRONLY | O_TRUNC)
        let count = Glibc.write(file.number, bytes, bytes.count)
        if count < 0 { throw .last("writing \(path)/\(scratch)") }
        guard count == bytes.count else { throw SystemError("writing \(path)/\(scratch)", code: ENOSPC) }
        try rename(scratch, to: name)
    }
}
