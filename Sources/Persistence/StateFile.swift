// SPDX-License-Identifier: Apache-2.0

import DialtonePlatform
internal import Glibc

/// The file that the state lies in, in memory: records are appended, and when they take twice the room of what they
/// come to, they are written anew.
///
/// There are two files, of which one counts. The new one gets its header last, with a higher number: a process that is
/// killed in between leaves the old one. Neither ever touches a disk, so what clients left in confidence does not
/// either.
@AgentQueue
final class StateFile {
    /// Below this it is not worth the while to write the records anew.
    private static let leastToCompact = 64 * 1024
    /// Ten thousand connections and their events take forty megabytes, and twice that before they are written anew.
    private static let largest = 1 << 29

    /// So many bytes of the records are rewritten at a time: few calls of the kernel, and little memory.
    private static let mostAtOnce = 64 * 1024

    private var active: OwnedDescriptor
    private var spare: OwnedDescriptor
    private var generation: UInt64
    private var size: Int
    /// What the records took when they were last written anew.
    private var compactSize: Int
    private var hasFailed = false

    /// Two new files, in which nothing is known.
    init() throws(SystemError) {
        active = try .fileInMemory("dialtone-state")
        spare = try .fileInMemory("dialtone-state")
        (generation, size, compactSize) = (0, 0, 0)
        try compact([])
    }

    private init(
        active: consuming OwnedDescriptor, spare: consuming OwnedDescriptor, _ reading: StateLog.Reading
    ) throws(SystemError) {
        (generation, size, compactSize) = (reading.generation, reading.end, reading.compactEnd)
        self.active = active
        self.spare = spare
        // What a killed process left of a record.
        if ftruncate(self.active.number, off_t(size)) != 0 { throw .last("mending the state") }
    }

    /// The files that an earlier process left, and what the newer one says.
    ///
    /// - Returns: `nil` where neither can be read.
    static func takeOver(
        _ first: consuming OwnedDescriptor, _ second: consuming OwnedDescriptor
    ) throws(SystemError) -> (file: StateFile, reading: StateLog.Reading)? {
        let readings = (try? StateLog.read(try content(of: first)), try? StateLog.read(try content(of: second)))
        switch readings {
        case (nil, nil): return nil
        case (let one?, let other) where one.generation > (other?.generation ?? 0):
            return (try StateFile(active: first, spare: second, one), one)
        case (_, let other?): return (try StateFile(active: second, spare: first, other), other)
        case (let one?, nil): return (try StateFile(active: first, spare: second, one), one)
        }
    }

    private static func content(of file: borrowing OwnedDescriptor) throws(SystemError) -> [UInt8] {
        var status = stat()
        guard fstat(file.number, &status) == 0 else { throw .last("reading the state") }
        guard status.st_mode & S_IFMT == S_IFREG, status.st_size <= largest else {
            throw SystemError("reading the state", code: EFBIG)
        }
        let count = Int(status.st_size)
        var result = 0
        let bytes = [UInt8](unsafeUninitializedCapacity: count) { buffer, filled in
            result = pread(file.number, buffer.baseAddress, count, 0)
            filled = max(result, 0)
        }
        if result < 0 { throw .last("reading the state") }
        return bytes
    }

    /// Calls `body` with both files, for the store.
    func withFiles(_ body: (borrowing OwnedDescriptor, borrowing OwnedDescriptor) throws(SystemError) -> Void)
        throws(SystemError)
    {
        try body(active, spare)
    }

    /// Whether the records are to be written anew: they take twice the room, or one could not be appended.
    var isDueForCompaction: Bool { hasFailed || size > max(2 * compactSize, Self.leastToCompact) }

    /// Appends a record. It is in the file when this returns.
    ///
    /// - Throws: the kernel's refusal (`ENOMEM`, `ENOSPC`). What is in the file would be out of date then, so there is
    ///   nothing in it until ``compact(_:)``.
    func append(_ record: [UInt8]) throws(SystemError) {
        let bytes = StateLog.frame(record)
        do throws(SystemError) {
            try write(bytes, to: active, at: size)
        } catch {
            _ = ftruncate(active.number, 0)
            hasFailed = true
            throw error
        }
        size += bytes.count
    }

    /// Whether what was appended is all in the file.
    var isWhole: Bool { !hasFailed }

    /// Puts `records`, which come to the whole state, in the place of all that was appended. They are drawn and written
    /// some at a time: all of them at once would take as much memory as the file.
    ///
    /// - Throws: the kernel's refusal. The records that were appended stay, where all of them are there, and are not
    ///   rewritten before they take twice the room.
    func compact(_ records: some Sequence<[UInt8]>) throws(SystemError) {
        // An earlier process may have been killed in the middle of this.
        _ = ftruncate(spare.number, 0)
        // What does not count any more, or came to nothing: its memory is given back.
        defer { _ = ftruncate(spare.number, 0) }
        do throws(SystemError) {
            var (waiting, end) = ([UInt8](), StateLog.headerSize)
            for record in records {
                waiting += StateLog.frame(record)
                if waiting.count >= Self.mostAtOnce { try writeNext(&waiting, to: spare, at: &end) }
            }
            // Says to the next process how large the compact state is.
            waiting += StateLog.frame(StateLog.mark)
            try writeNext(&waiting, to: spare, at: &end)
            try write(StateLog.header(generation: generation + 1), to: spare, at: 0)
            generation += 1
            swap(&active, &spare)
            (size, compactSize) = (end, end)
            hasFailed = false
        } catch {
            compactSize = size
            throw error
        }
    }

    private func writeNext(
        _ bytes: inout [UInt8], to file: borrowing OwnedDescriptor, at end: inout Int
    ) throws(SystemError) {
        try write(bytes, to: file, at: end)
        end += bytes.count
        bytes.removeAll(keepingCapacity: true)
    }

    private func write(_ bytes: [UInt8], to file: borrowing OwnedDescriptor, at offset: Int) throws(SystemError) {
        let count = pwrite(file.number, bytes, bytes.count, off_t(offset))
        if count == bytes.count { return }
        throw SystemError("writing the state", code: count < 0 ? errno : ENOSPC)
    }
}
