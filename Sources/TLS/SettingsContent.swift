// SPDX-License-Identifier: Apache-2.0

internal import CDialtoneOpenSSL
internal import DialtoneConnection
internal import DialtonePlatform
internal import Glibc

/// The content of a file of a connection's settings, wiped from memory when it is let go of.
struct SettingsContent: ~Copyable {
    /// Enough for any chain or key, and for all authorities of a system (some 200 KB).
    static let sizeLimit = 1 << 20

    private let buffer: UnsafeMutableRawBufferPointer
    private let count: Int

    /// Reads a file from its beginning; blocks for as long as a local file of this size takes.
    ///
    /// - Parameter path: what it is called in the settings.
    /// - Throws: ``TLSFailure/unusableFile(path:problem:)``.
    init(of file: borrowing OwnedDescriptor, _ path: String) throws(TLSFailure) {
        var status = stat()
        guard fstat(file.number, &status) == 0, status.st_size <= Self.sizeLimit else {
            throw .unusableFile(path: path, problem: "is larger than \(Self.sizeLimit) bytes")
        }
        buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: max(Int(status.st_size), 1), alignment: 1)
        var count = 0
        while let base = buffer.baseAddress, count < buffer.count {
            let more = pread(file.number, base + count, buffer.count - count, off_t(count))
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
}

/// What tells one version of a file from the next.
struct FileStamp: Hashable {
    private let device: UInt64
    private let inode: UInt64
    private let size: Int64
    private let seconds: Int
    private let nanoseconds: Int

    /// The file behind a descriptor.
    init(_ file: borrowing OwnedDescriptor) {
        var status = stat()
        fstat(file.number, &status)

        device = UInt64(status.st_dev)
        inode = UInt64(status.st_ino)
        size = Int64(status.st_size)
        seconds = status.st_mtim.tv_sec
        nanoseconds = status.st_mtim.tv_nsec
    }
}
