// SPDX-License-Identifier: Apache-2.0

internal import COpenSSL
internal import Connection
internal import Glibc
internal import Platform

/// A file that a connection's settings name, read whole, and wiped from memory when it is let go of.
struct SettingsFile: ~Copyable {
    /// What a file is read for, which decides who else may touch it.
    enum Purpose {
        /// Certificates: everybody may read them, but whoever can write them decides who is trusted.
        case certificates
        /// A private key or a password: others than the owner and the group must not even read it. (The group may:
        /// Debian gives the keys of /etc/ssl/private to the group ssl-cert.)
        case secret

        var forbiddenMode: mode_t {
            switch self {
            case .certificates: S_IWGRP | S_IWOTH
            case .secret: S_IWGRP | S_IRWXO
            }
        }
    }

    /// Enough for any chain or key, and for all authorities of a system (some 200 KB).
    static let sizeLimit = 1 << 20

    /// Which file it was, for noticing that it is another one now.
    let stamp: FileStamp
    private let buffer: UnsafeMutableRawBufferPointer
    private let count: Int

    /// Reads a regular file. Blocks on the file system, for as long as a local file of this size takes.
    ///
    /// - Throws: ``TLSFailure/unusableFile(path:problem:)``, which says what to do.
    init(_ path: String, for purpose: Purpose) throws(TLSFailure) {
        // Not to be stopped by a named pipe that nobody writes to.
        let number = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        if number < 0 {
            throw .unusableFile(path: path, problem: "cannot be read: \(SystemError.text(errno))")
        }
        let descriptor = OwnedDescriptor(number)
        var status = stat()
        fstat(descriptor.number, &status)
        if let problem = Self.problem(of: status, for: purpose) {
            throw .unusableFile(path: path, problem: problem)
        }
        stamp = FileStamp(status)
        buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: Self.sizeLimit, alignment: 1)
        var count = 0
        while let base = buffer.baseAddress, count < buffer.count {
            let more = read(descriptor.number, base + count, buffer.count - count)
            if more <= 0 { break }
            count += more
        }
        self.count = count
    }

    deinit {
        OPENSSL_cleanse(buffer.baseAddress, count)
        buffer.deallocate()
    }

    /// Calls `body` with the content.
    borrowing func withBytes<Value, Failure: Error>(
        _ body: (UnsafeRawBufferPointer) throws(Failure) -> Value
    ) throws(Failure) -> Value {
        try body(UnsafeRawBufferPointer(rebasing: UnsafeRawBufferPointer(buffer)[..<count]))
    }

    private static func problem(of status: stat, for purpose: Purpose) -> String? {
        if status.st_mode & S_IFMT != S_IFREG { return "is not a regular file" }
        if status.st_mode & purpose.forbiddenMode != 0 {
            switch purpose {
            case .certificates: return "can be written by others than its owner, who could trust anybody; chmod go-w"
            case .secret: return "can be read by everybody, or written by others than its owner; chmod g-w,o="
            }
        }
        return status.st_size > sizeLimit ? "is larger than \(sizeLimit) bytes" : nil
    }
}

/// What tells one version of a file from the next.
struct FileStamp: Hashable {
    private let device: UInt64
    private let inode: UInt64
    private let size: Int64
    private let seconds: Int
    private let nanoseconds: Int

    init(_ status: stat) {
        device = UInt64(status.st_dev)
        inode = UInt64(status.st_ino)
        size = Int64(status.st_size)
        seconds = status.st_mtim.tv_sec
        nanoseconds = status.st_mtim.tv_nsec
    }

    /// The file or directory as it is now; `nil` if there is none.
    init?(_ path: String) {
        var status = stat()
        guard stat(path, &status) == 0 else { return nil }
        self.init(status)
    }
}
