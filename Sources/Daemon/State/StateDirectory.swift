// SPDX-License-Identifier: Apache-2.0

internal import Glibc
internal import Platform

/// Where the daemon keeps what is to outlive it. It belongs to one daemon at a time, and to nobody else's eyes.
struct StateDirectory: ~Copyable {
    /// Its path.
    let path: String
    /// Held open for the lock on it, and so that files are found in it whatever its path leads to by then.
    private let descriptor: OwnedDescriptor

    /// Where it is by default: what the service manager names (`StateDirectory=`), else the system's place for root and
    /// the user's own (XDG Base Directory Specification) for others; `nil` where nothing says where that is.
    static func standard(user: uid_t, environment: (String) -> String?) -> String? {
        // Of several the first; a service has one.
        if let named = environment("STATE_DIRECTORY")?.split(separator: ":").first { return String(named) }
        if user == 0 { return "/var/lib/dialtone" }
        // A relative one is to be ignored.
        if let home = environment("XDG_STATE_HOME"), home.hasPrefix("/") { return "\(home)/dialtone" }
        return environment("HOME").flatMap { $0.hasPrefix("/") ? "\($0)/.local/state/dialtone" : nil }
    }

    /// How many milliseconds a daemon waits for the directory, at its start: a child of the one before, between its
    /// fork and its exec, may hold what its parent held. On a machine under load that takes some tenths of a second.
    private static let patience = 500

    /// Takes the directory, and makes it with those above it where they are missing.
    ///
    /// - Throws: why it cannot be had; `EWOULDBLOCK` where another daemon has it.
    init(_ path: String) throws(SystemError) {
        try Self.make(path)
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
        self.descriptor = descriptor
    }

    private static func make(_ path: String) throws(SystemError) {
        if mkdir(path, 0o700) == 0 || errno == EEXIST { return }
        guard errno == ENOENT, let slash = path.lastIndex(of: "/"), slash != path.startIndex else {
            throw .last("making \(path)")
        }
        try make(String(path[..<slash]))
        if mkdir(path, 0o700) != 0, errno != EEXIST { throw .last("making \(path)") }
    }

    /// Opens a file of it, which is made if it is not there.
    borrowing func open(_ name: String, _ flags: CInt) throws(SystemError) -> OwnedDescriptor {
        let number = openat(descriptor.number, name, flags | O_CREAT | O_CLOEXEC | O_NOFOLLOW, mode_t(0o600))
        if number < 0 { throw .last("opening \(path)/\(name)") }
        let file = OwnedDescriptor(number)
        giveToOwner(file)
        return file
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

    /// The content of a file; `nil` where it is not there.
    borrowing func read(_ name: String, atMost limit: Int) throws(SystemError) -> [UInt8]? {
        let number = openat(descriptor.number, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW)
        if number < 0 {
            if errno == ENOENT { return nil }
            throw .last("opening \(path)/\(name)")
        }
        let file = OwnedDescriptor(number)
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
