// SPDX-License-Identifier: Apache-2.0

internal import Glibc

/// What a file says, all of it: read, or replaced.
package enum FileContent {
    /// So much of a file of the kernel's is read: a machine with containers has a thousand mounts, in hundreds of
    /// kilobytes.
    package static let mostOfKernel = 4 << 20

    /// The first bytes of the file of a path, as many as `limit`; `nil` where it cannot be opened. A named pipe that
    /// nobody writes to is not waited for, and a terminal does not become this process's.
    package static func bytes(of path: String, limit: Int = mostOfKernel) -> [UInt8]? {
        let number = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)
        guard number >= 0 else { return nil }
        return bytes(of: OwnedDescriptor(number), limit: limit)
    }

    /// The same of a file that is open, from where it stands.
    package static func bytes(of file: borrowing OwnedDescriptor, limit: Int = mostOfKernel) -> [UInt8] {
        let number = file.number
        var status = stat()
        // A byte more than there is, so that one read finds the end as well; files of /proc have no size.
        let expected = fstat(number, &status) == 0 ? min(Int(clamping: status.st_size), limit - 1) + 1 : 0
        var content: [UInt8] = []
        while content.count < limit {
            let room = min(max(expected - content.count, 16 * 1024), limit - content.count)
            var count = 0
            let piece = [UInt8](unsafeUninitializedCapacity: room) { buffer, initialized in
                count = read(number, buffer.baseAddress, room)
                initialized = max(0, count)
            }
            guard count > 0 else { break }
            if content.isEmpty { content = piece } else { content += piece }
        }
        return content
    }

    /// Puts `bytes` in the place of a file, which its user alone can read then. After a crash the file has them, or
    /// what was there before. `PATH.new` is used for that.
    package static func replace(_ path: String, with bytes: [UInt8]) throws(SystemError) {
        let scratch = "\(path).new"
        // One that is left over from a crash may have other permissions.
        unlink(scratch)
        let number = try retryingInterrupts("making \(scratch)") {
            open(scratch, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0o600)
        }
        do throws(SystemError) {
            let file = OwnedDescriptor(number)
            let count = try retryingInterrupts("writing \(scratch)") { Glibc.write(number, bytes, bytes.count) }
            guard count == bytes.count else { throw SystemError("writing \(scratch)", code: ENOSPC) }
            // Before it takes the other's place: else the loss of power might leave neither.
            try retryingInterrupts("writing \(scratch)") { fsync(number) }
            file.close()
            try retryingInterrupts("renaming \(scratch)") { rename(scratch, path) }
        } catch {
            unlink(scratch)
            throw error
        }
    }

    /// What the file of a path says, as text; `nil` where it cannot be opened.
    package static func text(of path: String, limit: Int = mostOfKernel) -> String? {
        bytes(of: path, limit: limit).map { String(decoding: $0, as: UTF8.self) }
    }
}
