// SPDX-License-Identifier: Apache-2.0

internal import Glibc

/// Cuts a stream of bytes, split or run together at any point, into messages: each ends with a NUL.
///
/// Every byte is looked at once, however small the pieces it comes in. Held is at most one incomplete message of
/// ``limit`` bytes and what was appended since the last message was taken; when nothing is pending, no memory at all.
package struct VarlinkFramer: Sendable {
    /// The most bytes of a message, its NUL not counted.
    package let limit: Int

    private var bytes: [UInt8] = []
    /// Where the next message begins.
    private var start = 0
    /// How far there is no NUL, so that a message in a thousand pieces is not searched a thousand times.
    private var searched = 0

    /// How many messages were taken: the ordinal of the next one.
    private(set) var taken = 0

    /// An empty framer.
    package init(limit: Int) {
        self.limit = limit
    }

    /// Whether nothing is pending, not even the beginning of a message.
    package var isEmpty: Bool { bytes.isEmpty }

    /// How many bytes are pending.
    var count: Int { bytes.count - start }

    /// The ordinal of the message that the last byte belongs to; a NUL belongs to the message it ends.
    var ordinalOfLastByte: Int {
        taken + bytes[start...].dropLast().count { $0 == 0 }
    }

    /// Takes bytes as they came.
    package mutating func append(_ chunk: UnsafeRawBufferPointer) {
        if start > 0 {
            bytes.removeFirst(start)
            searched -= start
            start = 0
        }
        bytes.append(contentsOf: chunk)
    }

    /// Takes bytes as they came.
    package mutating func append(_ chunk: [UInt8]) {
        chunk.withUnsafeBytes { append($0) }
    }

    /// The next complete message without its NUL; `nil` until more bytes come.
    ///
    /// - Throws: ``VarlinkViolation/messageTooLong(limit:)``, as soon as it is certain and not only at the message's
    ///   end.
    package mutating func next() throws(VarlinkViolation) -> [UInt8]? {
        let end = bytes.withUnsafeBytes { buffer -> Int? in
            guard searched < buffer.count, let base = buffer.baseAddress else { return nil }
            guard let found = memchr(base + searched, 0, buffer.count - searched) else { return nil }
            return UnsafeRawPointer(found) - base
        }
        guard (end ?? bytes.count) - start <= limit else { throw .messageTooLong(limit: limit) }
        guard let end else {
            searched = bytes.count
            return nil
        }
        let message = Array(bytes[start..<end])
        taken += 1
        start = end + 1
        searched = start
        if start == bytes.count {
            bytes = []
            start = 0
            searched = 0
        }
        return message
    }
}
