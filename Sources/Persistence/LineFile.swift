// SPDX-License-Identifier: Apache-2.0

import DialtonePlatform
internal import Glibc

/// Lines in two files, the older of which is given up when the newer one is full: the last of what was written, in
/// bounded room. A line is written by one call, so another process that is killed, or this one, leaves whole lines.
/// Each has a checksum.
@AgentQueue
final class LineFile {
    /// The longest line, many times that of an event. What is longer was not written here, and is not collected in
    /// memory to be read.
    nonisolated static let longestLine = 65_536

    private let state: SavedState
    private let name: String
    private let limit: Int
    private var older: OwnedDescriptor
    private var newer: OwnedDescriptor
    private var size: Int

    /// The files `name` and `name.1`. One that is larger than it can have become is put aside.
    ///
    /// - Parameter limit: how many bytes each of them may have.
    init(_ name: String, in state: SavedState, limit: Int) throws(SystemError) {
        self.state = state
        self.name = name
        self.limit = limit
        older = try Self.open("\(name).1", in: state, limit)
        newer = try Self.open(name, in: state, limit)
        size = Self.endOfLines(newer)
        // What a loss of power, or a full disk, left of a line.
        if ftruncate(newer.number, off_t(size)) != 0 { throw .last("mending \(name)") }
    }

    private static func open(
        _ name: String, in state: SavedState, _ limit: Int
    ) throws(SystemError) -> OwnedDescriptor {
        let file = try state.open(name)
        if length(file) <= limit + longestLine { return file }
        try state.putAside(name, because: "it is larger than \(limit) bytes")
        return try state.open(name)
    }

    /// Appends a line.
    ///
    /// - Throws: what the file system says, or that the line is too long; nothing is left of the line then.
    func append(_ line: [UInt8]) throws(SystemError) {
        let bytes = SealedLine.line(line)
        guard bytes.count <= Self.longestLine else { throw SystemError("writing \(name)", code: EMSGSIZE) }
        if size > 0, size + bytes.count > limit { try turnOver() }
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

    /// The newest line that is as it was written.
    var newest: ArraySlice<UInt8>? {
        Self.lastLine(newer, count: size) ?? Self.lastLine(older, count: Self.length(older))
    }

    private static func lastLine(_ file: borrowing OwnedDescriptor, count: Int) -> ArraySlice<UInt8>? {
        let start = max(count - 2 * longestLine, 0)
        let lines = LineReader.read(file, from: start, count: count - start).split(separator: UInt8(ascii: "\n"))
        return lines.reversed().lazy.compactMap { SealedLine.open($0) }.first
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

    /// Where the last whole line ends. From the end on, in pieces: no further than the file may be long.
    private static func endOfLines(_ file: borrowing OwnedDescriptor) -> Int {
        var end = length(file)
        while end > 0 {
            let start = max(end - LineReader.piece, 0)
            let piece = LineReader.read(file, from: start, count: end - start)
            if let last = piece.lastIndex(of: UInt8(ascii: "\n")) { return start + last + 1 }
            end = start
        }
        return 0
    }
}

/// Reads the lines of a ``LineFile`` as it was, piece by piece.
@AgentQueue
final class LineReader {
    /// What comes next.
    enum Line {
        /// A line as it was written, without its end.
        case whole(ArraySlice<UInt8>)
        /// One that is not as it was written.
        case damaged
    }

    fileprivate static let piece = 16_384

    private let older: OwnedDescriptor
    private let newer: OwnedDescriptor
    private let counts: (older: Int, newer: Int)
    private var isInNewer = false
    private var offset = 0
    private var buffer: ArraySlice<UInt8> = []
    /// Whether the line that the buffer begins with is longer than any that was written, and its beginning dropped.
    private var isInLongLine = false

    fileprivate init(
        older: consuming OwnedDescriptor, count olderCount: Int, newer: consuming OwnedDescriptor,
        count newerCount: Int
    ) {
        self.older = older
        self.newer = newer
        counts = (olderCount, newerCount)
    }

    /// The next line; `nil` after the last one.
    func next() -> Line? {
        while true {
            if let end = buffer.firstIndex(of: UInt8(ascii: "\n")) {
                let line = buffer[..<end]
                buffer = buffer[(end + 1)...]
                defer { isInLongLine = false }
                if !isInLongLine, let text = SealedLine.open(line) { return .whole(text) }
                return .damaged
            }
            if buffer.count > LineFile.longestLine { (buffer, isInLongLine) = ([], true) }
            guard fill() else { return nil }
        }
    }

    private func fill() -> Bool {
        while true {
            let rest = (isInNewer ? counts.newer : counts.older) - offset
            let count = min(rest, Self.piece)
            let piece =
                isInNewer
                ? Self.read(newer, from: offset, count: count) : Self.read(older, from: offset, count: count)
            if !piece.isEmpty {
                offset += piece.count
                buffer = buffer.isEmpty ? piece[...] : (Array(buffer) + piece)[...]
                return true
            }
            // A line without an end is none.
            (buffer, isInLongLine) = ([], false)
            if isInNewer { return false }
            (isInNewer, offset) = (true, 0)
        }
    }

    fileprivate static func read(_ file: borrowing OwnedDescriptor, from offset: Int, count: Int) -> [UInt8] {
        guard count > 0 else { return [] }
        return [UInt8](unsafeUninitializedCapacity: count) { buffer, filled in
            filled = max(pread(file.number, buffer.baseAddress, count, off_t(offset)), 0)
        }
    }
}
