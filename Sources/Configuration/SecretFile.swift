// SPDX-License-Identifier: Apache-2.0

internal import DialtonePlatform
internal import Glibc

/// Why a file that holds a secret is not read; `problem` ends a sentence that begins with its name.
struct SecretFileError: Error, Hashable {
    let problem: String
}

/// Files that hold a secret which the configuration does not.
enum SecretFile {
    /// All of a regular file that is root's or the daemon's own user's, that others than its owner and its group cannot
    /// read, and that nobody but its owner can write. Such is what systemd makes of a credential
    /// (`$CREDENTIALS_DIRECTORY`), and what `install -m 0640 -g dialtone` makes.
    ///
    /// It blocks on the file system.
    static func read(_ path: String, atMost limit: Int) throws(SecretFileError) -> [UInt8] {
        guard path.hasPrefix("/") else { throw SecretFileError(problem: "is not an absolute path") }
        // Not to be stopped by a named pipe that nobody writes to.
        let number = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        if number < 0 { throw SecretFileError(problem: "cannot be read: \(SystemError.text(errno))") }
        let descriptor = OwnedDescriptor(number)
        var status = stat()
        fstat(descriptor.number, &status)
        if let problem = problem(of: status, limit) { throw SecretFileError(problem: problem) }
        return [UInt8](unsafeUninitializedCapacity: limit) { buffer, count in
            while count < buffer.count {
                let more = Glibc.read(descriptor.number, buffer.baseAddress.map { $0 + count }, buffer.count - count)
                if more <= 0 { break }
                count += more
            }
        }
    }

    private static func problem(of status: stat, _ limit: Int) -> String? {
        if status.st_mode & S_IFMT != S_IFREG { return "is not a regular file" }
        if status.st_uid != 0, status.st_uid != geteuid() {
            return "is owned by user \(status.st_uid); it must be owned by root or user \(geteuid())"
        }
        if status.st_mode & (S_IWGRP | S_IRWXO) != 0 {
            return "can be read by everybody, or written by others than its owner; chmod g-w,o="
        }
        if status.st_size == 0 { return "is empty" }
        return status.st_size > limit ? "is larger than \(limit) bytes" : nil
    }
}
