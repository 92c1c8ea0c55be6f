// SPDX-License-Identifier: Apache-2.0

internal import DialtonePlatform

/// The state as bytes of a file: a header, and records one after the other.
///
/// A record has its length and its checksum before it. A process that is killed in the middle of writing leaves a
/// record that is too short or does not match: it was the last one, nobody was told of what stands in it, and it is
/// dropped.
enum StateLog {
    /// How many bytes the header takes.
    static let headerSize = 24
    private static let frameSize = 8
    private static let magic = Array("dialtone".utf8)
    /// Raised by whoever changes the meaning of what is there. What is merely added has numbers of its own.
    private static let version: UInt32 = 1

    /// What a file holds.
    struct Reading {
        /// What its records come to.
        var state: AgentState
        /// The higher of two files is the newer.
        let generation: UInt64
        /// Where the next record goes.
        var end: Int
        /// Where the last compaction ends.
        var compactEnd = headerSize
        /// Whether a record was not written to its end.
        var isTorn = false
        /// Whether records in the middle cannot be read.
        var isDamaged = false
    }

    /// The record that ends a compaction.
    static let mark = AgentState.record([.compacted])

    /// The beginning of a file.
    static func header(generation: UInt64) -> [UInt8] {
        let fields = magic + bytes(version) + bytes(generation)
        return fields + bytes(Checksum.crc32(fields))
    }

    /// A record with what goes before it.
    static func frame(_ record: [UInt8]) -> [UInt8] {
        bytes(UInt32(record.count)) + bytes(Checksum.crc32(record)) + record
    }

    /// Reads a file.
    ///
    /// - Throws: where it has no header of this version.
    static func read(_ file: [UInt8]) throws(DamagedState) -> Reading {
        guard file.count >= headerSize, Array(file[..<8]) == magic, number(file[8..<12]) == version,
            Checksum.crc32(file[..<20]) == number(file[20..<24])
        else { throw DamagedState() }
        var reading = Reading(state: AgentState(), generation: number(file[12..<20]), end: headerSize)
        while reading.end < file.count {
            let rest = file[reading.end...]
            guard rest.count >= frameSize else { break }
            let length: UInt32 = number(rest.prefix(4))
            guard rest.count >= frameSize + Int(length) else { break }
            let record = rest.dropFirst(frameSize).prefix(Int(length))
            guard Checksum.crc32(record) == number(rest.dropFirst(4).prefix(4)) else {
                reading.isDamaged = rest.count > frameSize + Int(length)
                break
            }
            reading.state.apply(record)
            reading.end += frameSize + Int(length)
            if record.elementsEqual(mark) { reading.compactEnd = reading.end }
        }
        reading.isTorn = reading.end < file.count
        // An event takes more than a byte.
        if reading.isDamaged { reading.state.skip(events: file.count - reading.end) }
        return reading
    }

    private static func bytes(_ number: some FixedWidthInteger) -> [UInt8] {
        withUnsafeBytes(of: number.littleEndian) { Array($0) }
    }

    private static func number<T: FixedWidthInteger & UnsignedInteger>(_ bytes: ArraySlice<UInt8>) -> T {
        bytes.reversed().reduce(0) { $0 << 8 | T($1) }
    }
}
