// SPDX-License-Identifier: Apache-2.0

package import DialtonePlatform
internal import Glibc

/// A recording that was read: what a ``Recorder`` wrote, as values.
package struct Recording: Sendable {
    /// One record.
    package struct Entry: Sendable {
        /// When it was made, on the boot clock of the machine that made it.
        package let time: Duration
        /// What it is.
        package let content: Content
    }

    /// What a record holds.
    package enum Content: Sendable {
        /// A datagram of the kernel's.
        case received(RecordingChannel, ArraySlice<UInt8>)
        /// Requests that were sent to it.
        case sent(RecordingChannel, ArraySlice<UInt8>)
        /// A mark.
        case mark(RecordingMark)
    }

    /// The records in the order in which they were made.
    package private(set) var entries: [Entry] = []
    /// Where the file ends in the middle of a record, as after a crash; `nil` for one that is whole.
    package private(set) var cutAt: Int?
    /// The wall clock of the machine, in nanoseconds since 1970, at the boot clock's zero, as it was at the start.
    package private(set) var wallAtBoot = Duration.zero

    /// The largest file that is read: well above what is written, and below what a machine has memory for.
    private static let sizeLimit = 1 << 30

    private var channels: [RecordingChannel?] = []
    private var hasBegun = false

    /// Reads a recording from a file.
    ///
    /// - Throws: why it cannot be read, or what makes it none.
    package init(contentsOf path: String) throws(RecordingError) {
        let bytes: [UInt8]
        do throws(SystemError) {
            bytes = try Self.bytes(of: path)
        } catch {
            throw .unreadable(error)
        }
        try self.init(bytes)
    }

    private static func bytes(of path: String) throws(SystemError) -> [UInt8] {
        let file = OwnedDescriptor(try retryingInterrupts("opening it") { open(path, O_RDONLY | O_CLOEXEC) })
        var status = stat()
        try retryingInterrupts("looking at its size") { fstat(file.number, &status) }
        guard status.st_size <= sizeLimit else { throw SystemError("reading it", code: EFBIG) }
        var bytes: [UInt8] = []
        while true {
            let room = 1 << 20
            let start = bytes.count
            bytes.append(contentsOf: [UInt8](repeating: 0, count: room))
            let count = try retryingInterrupts("reading it") {
                bytes.withUnsafeMutableBytes { Glibc.read(file.number, $0.baseAddress?.advanced(by: start), room) }
            }
            bytes.removeLast(room - count)
            // A pipe's size is not known beforehand.
            guard bytes.count <= sizeLimit else { throw SystemError("reading it", code: EFBIG) }
            if count == 0 { return bytes }
        }
    }

    /// Reads a recording.
    ///
    /// - Throws: what makes the bytes no recording, with the place. A file that merely ends too early is read up to
    ///   there, see ``cutAt``.
    package init(_ bytes: [UInt8]) throws(RecordingError) {
        var reader = BlockReader(bytes[...])
        var isFirst = true
        while let block = try reader.next() {
            if isFirst, block.type != RecordingFormat.sectionHeader { throw .notARecording }
            isFirst = false
            var body = block.body
            switch block.type {
            case RecordingFormat.sectionHeader:
                // Two recordings that were merged have different clocks.
                if block.offset > 0 { throw .malformed(offset: block.offset, "a second section") }
            case RecordingFormat.interfaceDescription: try describe(&body, at: block.offset)
            case RecordingFormat.enhancedPacket: try read(&body, at: block.offset)
            // Statistics, names, whatever a tool that saved the file anew has added.
            default: break
            }
        }
        guard !isFirst else { throw .notARecording }
        guard hasBegun else { throw .notARecording }
        cutAt = reader.cutAt
    }

    private mutating func describe(_ body: inout ByteReader, at offset: Int) throws(RecordingError) {
        guard let linkType = body.uint16(), body.uint16() != nil, body.uint32() != nil else {
            throw .malformed(offset: offset, "a description of an interface that is too short")
        }
        var channel: RecordingChannel?
        var resolution: UInt8?
        for (code, value) in body.options() {
            switch code {
            case RecordingFormat.interfaceName:
                channel = RecordingChannel(rawValue: String(decoding: value, as: UTF8.self))
            case RecordingFormat.timestampResolution: resolution = value.first
            default: break
            }
        }
        if channel != nil, linkType != RecordingFormat.linkType || resolution != RecordingFormat.nanoseconds {
            throw .malformed(offset: offset, "an interface of another link type or resolution than a recording's")
        }
        channels.append(channel)
    }

    private mutating func read(_ body: inout ByteReader, at offset: Int) throws(RecordingError) {
        guard let number = body.uint32(), let high = body.uint32(), let low = body.uint32(),
            let captured = body.uint32(), body.uint32() != nil, let packet = body.bytes(Int(captured)),
            Int(number) < channels.count
        else { throw .malformed(offset: offset, "a packet that does not fit its block") }
        guard let channel = channels[Int(number)] else { return }
        var cooked = ByteReader(packet)
        guard let direction = cooked.uint16(), cooked.bytes(RecordingFormat.cookedHeaderSize - 2) != nil else {
            throw .malformed(offset: offset, "a packet without its header")
        }
        let timestamp = Duration.nanoseconds(Int64(clamping: UInt64(high) << 32 | UInt64(low)))
        if channel == .agent {
            body.align()
            guard let comment = body.options().first(where: { $0.code == RecordingFormat.comment })?.value,
                let mark = RecordingMark(text: String(decoding: comment, as: UTF8.self))
            else { throw .malformed(offset: offset, "a mark that cannot be read") }
            if mark.word == "recording" { try begin(mark, at: offset) }
            entries.append(Entry(time: timestamp - wallAtBoot, content: .mark(mark)))
        } else {
            let isSent = direction.bigEndian == RecordingFormat.toKernel
            entries.append(
                Entry(
                    time: timestamp - wallAtBoot,
                    content: isSent ? .sent(channel, cooked.rest) : .received(channel, cooked.rest)))
        }
        if !hasBegun { throw .notARecording }
    }

    private mutating func begin(_ mark: RecordingMark, at offset: Int) throws(RecordingError) {
        guard let version = mark["version"].flatMap({ Int($0) }), let boot = mark["boot"].flatMap({ Int64($0) }),
            let wall = mark["wall"].flatMap({ Int64($0) })
        else { throw .malformed(offset: offset, "a first mark that cannot be read") }
        guard version <= RecordingFormat.version else { throw .tooNew(version: version) }
        wallAtBoot = .nanoseconds(wall) - .nanoseconds(boot)
        hasBegun = true
    }
}

/// Why bytes are no recording.
package enum RecordingError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The file system refused it.
    case unreadable(SystemError)
    /// Something else altogether, or nothing.
    case notARecording
    /// It was made on a machine of the other byte order; the kernel's messages are in that order, too.
    case otherByteOrder
    /// A later version of the program made it.
    case tooNew(version: Int)
    /// It was a recording once: `offset` bytes into the file stands something that cannot be.
    case malformed(offset: Int, String)

    /// What was found.
    package var description: String {
        switch self {
        case .unreadable(let error): "\(error)"
        case .notARecording: "this is not a recording of dialtoned (docs/recording.md says what one is)"
        case .otherByteOrder: "it was recorded on a machine of the other byte order; replay it on one of that order"
        case .tooNew(let version):
            "it has version \(version) of the format, and this program knows \(RecordingFormat.version); "
                + "use the version that recorded it, or a later one"
        case .malformed(let offset, let text): "it is damaged: at byte \(offset) stands \(text)"
        }
    }
}

/// Takes values from the front of bytes; `nil` where there are not enough.
struct ByteReader {
    private(set) var rest: ArraySlice<UInt8>
    private let start: Int

    init(_ bytes: ArraySlice<UInt8>) {
        rest = bytes
        start = bytes.startIndex
    }

    mutating func bytes(_ count: Int) -> ArraySlice<UInt8>? {
        guard count >= 0, count <= rest.count else { return nil }
        defer { rest = rest.dropFirst(count) }
        return rest.prefix(count)
    }

    mutating func uint16() -> UInt16? {
        bytes(2).map { $0.withUnsafeBytes { $0.loadUnaligned(as: UInt16.self) } }
    }

    mutating func uint32() -> UInt32? {
        bytes(4).map { $0.withUnsafeBytes { $0.loadUnaligned(as: UInt32.self) } }
    }

    /// Skips the padding behind a value.
    mutating func align() {
        rest = rest.dropFirst((4 - (rest.startIndex - start) % 4) % 4)
    }

    /// The options from here to the end; as many as are whole.
    mutating func options() -> [(code: UInt16, value: ArraySlice<UInt8>)] {
        var options: [(code: UInt16, value: ArraySlice<UInt8>)] = []
        while let code = uint16(), let length = uint16(), code != RecordingFormat.endOfOptions,
            let value = bytes(Int(length))
        {
            options.append((code, value))
            align()
        }
        return options
    }
}

/// Takes block after block of a pcapng file.
private struct BlockReader {
    struct Block {
        let offset: Int
        let type: UInt32
        let body: ByteReader
    }

    /// Type, length, and the length again.
    private static let frame = 12

    private let bytes: ArraySlice<UInt8>
    private var offset = 0
    /// Where the bytes end within a block.
    private(set) var cutAt: Int?

    init(_ bytes: ArraySlice<UInt8>) { self.bytes = bytes }

    mutating func next() throws(RecordingError) -> Block? {
        guard offset < bytes.count else { return nil }
        var header = ByteReader(bytes[offset...])
        guard let type = header.uint32(), let length = header.uint32() else { return cut() }
        if type == RecordingFormat.sectionHeader, let magic = header.uint32() {
            if magic == RecordingFormat.byteOrderMagic.byteSwapped { throw .otherByteOrder }
            if magic != RecordingFormat.byteOrderMagic { throw .notARecording }
        } else if offset == 0 {
            throw .notARecording
        }
        guard length >= Self.frame, length.isMultiple(of: 4) else {
            throw .malformed(offset: offset, "a block of \(length) bytes")
        }
        guard Int(length) <= bytes.count - offset else { return cut() }
        let end = offset + Int(length)
        var trailer = ByteReader(bytes[(end - 4)..<end])
        guard trailer.uint32() == length else {
            throw .malformed(offset: end - 4, "another length than at the block's beginning")
        }
        defer { offset = end }
        return Block(offset: offset, type: type, body: ByteReader(bytes[(offset + 8)..<(end - 4)]))
    }

    private mutating func cut() -> Block? {
        cutAt = offset
        offset = bytes.count
        return nil
    }
}
