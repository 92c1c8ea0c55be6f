// SPDX-License-Identifier: Apache-2.0

internal import Glibc
internal import Platform

/// Lines in two files, the older of which is given up when the newer one is full: the last of what was written, in
/// bounded room. A line is written by one call, so another process that is killed, or this one, leaves whole lines.
@AgentQueue
final class LineFile {
    private let state: KeptState
    private let name: String
    private let limit: Int
    private var older: OwnedDescriptor
    private var newer: OwnedDescriptor
    private var size: Int

    /// The files `name` and `name.1`.
    ///
    /// - Parameter limit: how many bytes each of them may have.
    init(_ name: String, in state: KeptState, limit: Int) throws(SystemError) {
        self.state = state
        self.name = name
        self.limit = limit
        older = try state.open("\(name).1")
        newer = try state.open(name)
        size = Self.endOfLines(newer)
        // What a loss of power, or a full disk, left of a line.
        if ftruncate(newer.number, off_t(size)) != 0 { throw .last("mending \(name)") }
    }

    /// Appends a line.
    ///
    /// - Throws: what the file system says; nothing is left of the line then.
    func append(_ line: [UInt8]) throws(SystemError) {
        if size > 0, size + line.count + 1 > limit { try turnOver() }
        let bytes = line + [UInt8(ascii: "\n")]
        // In memory nothing else writes; in a file, O_APPEND puts it at the end anyway.
        let count = pwrite(newer.number, bytes, bytes.count, off_t(size))
        let code = errno
        guard count == bytes.count else {
            _ = ftruncate(newer.number, off_t(size))
            throw SystemError("writing \(name)", code: count < 0 ? code : ENOSPC)
        }
        size += count
    }

    /// All lines as they are now, the oldest first; what is appended later is not among them.
    func reader() throws(SystemError) -> LineReader {
        LineReader(
            older: try older.duplicate(), count: Self.length(older), newer: try newer.duplicate(), count: size)
    }

    private func turnOver() throws(SystemError) {
        do throws(SystemError) {
            try state.rename(name, to: "\(name).1")
        } catch {
            // Renamed by a try before this one, for which there was no descriptor or no room; or somebody removed it.
            guard error.code == ENOENT else { throw error }
        }
        let fresh = try state.open(name)
        swap(&older, &newer)
        newer = fresh
        size = 0
    }

    private static func length(_ file: borrowing OwnedDescriptor) -> Int {
        var status = stat()
        return fstat(file.number, &status) == 0 ? Int(status.st_size) : 0
    }

    /// Where the last whole line ends.
    private static func endOfLines(_ file: borrowing OwnedDescriptor) -> Int {
        var end = length(file)
        var byte: UInt8 = 0
        while end > 0, pread(file.number, &byte, 1, off_t(end - 1)) == 1, byte != UInt8(ascii: "\n") { end -= 1 }
        return end
    }
}

/// Reads the lines of a ``LineFile`` as it was, piece by piece.
@AgentQueue
final class LineReader {
    private static let piece = 16_384

    private let older: OwnedDescriptor
    private let newer: OwnedDescriptor
    private let counts: (older: Int, newer: Int)
    private var isInNewer = false
    private var offset = 0
    private var buffer: ArraySlice<UInt8> = []

    fileprivate init(
        older: consuming OwnedDescriptor, count olderCount: Int, newer: consuming OwnedDescriptor,
        count newerCount: Int
    ) {
        self.older = older
        self.newer = newer
        counts = (olderCount, newerCount)
    }

    /// The next line without its end; `nil` after the last one.
    func next() -> ArraySlice<UInt8>? {
        while true {
            if let end = buffer.firstIndex(of: UInt8(ascii: "\n")) {
                defer { buffer = buffer[(end + 1)...] }
                return buffer[..<end]
            }
            guard fill() else { return nil }
        }
    }

    private func fill() -> Bool {
        while true {
            let rest = (isInNewer ? counts.newer : counts.older) - offset
            var bytes = Array(buffer)
            let count = rest > 0 ? read(min(rest, Self.piece), into: &bytes) : 0
            if count > 0 {
                offset += count
                buffer = bytes[...]
                return true
            }
            // A line without an end is none.
            buffer = []
            if isInNewer { return false }
            (isInNewer, offset) = (true, 0)
        }
    }

    private func read(_ count: Int, into bytes: inout [UInt8]) -> Int {
        let number = isInNewer ? newer.number : older.number
        let piece = [UInt8](unsafeUninitializedCapacity: count) { buffer, filled in
            filled = max(pread(number, buffer.baseAddress, count, off_t(offset)), 0)
        }
        bytes += piece
        return piece.count
    }
}
