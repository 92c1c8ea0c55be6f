// SPDX-License-Identifier: Apache-2.0

/// How the answer to a step of an opening exchange is recognized: where it ends, how it begins and what it holds.
///
/// - MQTT's CONNACK is four bytes, of which one bit is free; with MQTT 5 a message that begins so.
/// - A WebSocket's handshake is answered by what ends in an empty line and begins with the status line; what follows
///   comes in frames.
/// - XMPP's features, its success and the result of a bind end with their end tag.
/// - An answer of a line ends with the line.
package struct ExpectedAnswer: Hashable, Sendable {
    /// Where the answer ends.
    package enum Extent: Hashable, Sendable {
        /// After so many bytes.
        case length(Int)
        /// With the first of these. Not empty.
        case delimiter([UInt8])
        /// With the message, as the protocol tells its messages apart.
        case message(MessageFormat)
    }

    /// A protocol whose messages say how long they are.
    package enum MessageFormat: String, Hashable, Sendable, CaseIterable {
        /// A control packet (MQTT 3.1.1, section 2.2).
        case mqtt
        /// A frame, of a server (RFC 6455, section 5.2).
        case websocket
    }

    /// The longest answer. Servers and proxies hold the head of an HTTP message to 8 or 16 KiB (nginx's
    /// `large_client_header_buffers`, Node's `--max-http-header-size`), and it is a record of TLS; every other answer
    /// to a login is shorter.
    package static let longestAnswer = 16 * 1024

    /// Where it ends.
    package let extent: Extent
    /// How it begins.
    package let beginning: BytePattern
    /// What it holds somewhere; empty for anything.
    package let content: [UInt8]

    /// An answer that ends there, begins so and holds that.
    package init(_ extent: Extent, beginning: BytePattern = BytePattern([]), content: [UInt8] = []) {
        self.extent = extent
        self.beginning = beginning
        self.content = content
    }

    /// These bytes and no others.
    package init(_ pattern: BytePattern) { self.init(.length(pattern.count), beginning: pattern) }

    /// How what has come compares with an expectation.
    enum Match: Hashable, Sendable {
        /// The first so many bytes are the answer, whole.
        case whole(length: Int)
        /// They may become it.
        case beginning
        /// They are something else.
        case mismatch
        /// They may be it, and are longer than an answer can be.
        case tooLong
    }

    /// Compares. The first byte is the first one after the answer to the step before.
    func match(_ input: ArraySlice<UInt8>) -> Match {
        guard beginning.agrees(with: input) else { return .mismatch }
        switch end(in: input) {
        case .none: return .mismatch
        case .ahead: return input.count < Self.longestAnswer ? .beginning : .tooLong
        case .after(let length) where length > Self.longestAnswer: return .tooLong
        case .after(let length):
            let answer = input.prefix(length)
            return beginning.begins(answer) && answer.holds(content) ? .whole(length: length) : .mismatch
        }
    }

    private enum End {
        /// So many bytes are the answer.
        case after(Int)
        /// It has not come.
        case ahead
        /// The protocol has no such message.
        case none
    }

    private func end(in input: ArraySlice<UInt8>) -> End {
        switch extent {
        case .length(let length):
            return input.count < length ? .ahead : .after(length)
        case .delimiter(let delimiter):
            return input.firstEnd(of: delimiter).map { .after($0 - input.startIndex) } ?? .ahead
        case .message(let kind):
            return switch kind {
            case .mqtt: Self.packetEnd(in: Array(input.prefix(Self.longestHeader)), of: input.count)
            case .websocket: Self.frameEnd(in: Array(input.prefix(Self.longestHeader)), of: input.count)
            }
        }
    }

    /// The longest header of such a message: a server's frame with a length of eight bytes.
    private static let longestHeader = 10

    /// The end of a control packet: a type and flags, a length of one to four bytes with seven bits each, the rest.
    private static func packetEnd(in header: [UInt8], of count: Int) -> End {
        guard let first = header.first else { return .ahead }
        // Type 0 is reserved and forbidden (MQTT 3.1.1, section 2.2.1).
        if first >> 4 == 0 { return .none }
        var length = 0
        // A fourth byte is the last one (section 2.2.3).
        for (index, byte) in header.dropFirst().prefix(4).enumerated() {
            length |= Int(byte & 0x7F) << (7 * index)
            if byte & 0x80 == 0 { return 2 + index + length <= count ? .after(2 + index + length) : .ahead }
        }
        return header.count < 5 ? .ahead : .none
    }

    /// The end of a frame of a server's, which begins no later than the message that it is of.
    private static func frameEnd(in header: [UInt8], of count: Int) -> End {
        guard let first = header.first else { return .ahead }
        let isControl = first & 0x08 != 0
        // What goes on with a message follows none here, and control frames are never fragmented (RFC 6455, section
        // 5.5); all other numbers are reserved (section 5.2).
        guard [0x1, 0x2, 0x8, 0x9, 0xA].contains(first & 0x0F), !isControl || first & 0x80 != 0 else { return .none }
        guard header.count > 1 else { return .ahead }
        // A server's frames have no mask (section 5.1).
        guard header[1] & 0x80 == 0, !isControl || header[1] <= 125 else { return .none }
        let size = header[1] == 127 ? 8 : header[1] == 126 ? 2 : 0
        guard header.count >= 2 + size else { return .ahead }
        let length = size == 0 ? UInt64(header[1]) : header[2..<2 + size].reduce(0) { $0 << 8 | UInt64($1) }
        // The highest bit must be zero (section 5.2).
        if length >> 63 != 0 { return .none }
        return UInt64(count - 2 - size) >= length ? .after(2 + size + Int(length)) : .ahead
    }

    /// How many bytes of its owner's it takes.
    var size: Int {
        let delimiter = if case .delimiter(let bytes) = extent { bytes.count } else { 0 }
        return beginning.count + content.count + delimiter
    }

    /// What is wrong with it, for the end of a sentence; `nil` if nothing is.
    var problem: String? {
        switch extent {
        case .length(let length):
            guard (1...Self.longestAnswer).contains(length) else {
                return "an answer has from 1 to \(Self.longestAnswer) bytes"
            }
            if length < max(beginning.count, content.count) { return "is shorter than what it holds" }
        case .delimiter(let delimiter):
            if delimiter.isEmpty { return "ends with nothing" }
        case .message:
            // Any message at all would do, a refusal too.
            if beginning.count == 0, content.isEmpty { return "says nothing of the message" }
        }
        return nil
    }
}

extension ExpectedAnswer.Extent: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// Its kind. A delimiter may be a secret.
    package var description: String {
        switch self {
        case .length(let length): "an answer of \(length) bytes"
        case .delimiter: "an answer up to its delimiter"
        case .message(let kind): "a message of \(kind.rawValue)"
        }
    }
    /// The same.
    package var debugDescription: String { description }
    /// The same.
    package var customMirror: Mirror { Mirror(self, children: ["extent": description]) }
}

extension ExpectedAnswer: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// Its kind. What it holds may be a secret.
    package var description: String { extent.description }
    /// The same.
    package var debugDescription: String { description }
    /// The same.
    package var customMirror: Mirror { Mirror(self, children: ["extent": description]) }
}

extension ArraySlice<UInt8> {
    /// The index behind the first occurrence of `part`, which is not empty. No byte is looked at again for each place
    /// where it may begin (Knuth, Morris and Pratt): what is looked for may be of somebody who wants it to take long,
    /// and is looked for whenever another byte has come.
    fileprivate func firstEnd(of part: [UInt8]) -> Index? {
        guard !part.isEmpty, count >= part.count else { return nil }
        let borders = part.borders
        var (index, found) = (startIndex, 0)
        while index < endIndex {
            if found == 0 {
                guard let next = self[index...].firstIndex(of: part[0]) else { return nil }
                (index, found) = (next + 1, 1)
            } else if part[found] == self[index] {
                (index, found) = (index + 1, found + 1)
            } else {
                found = borders[found - 1]
            }
            if found == part.count { return index }
        }
        return nil
    }

    /// Whether `part` is somewhere in it.
    func holds(_ part: [UInt8]) -> Bool { part.isEmpty || firstEnd(of: part) != nil }
}

extension [UInt8] {
    /// Of each of its beginnings, how many of the first bytes are the last ones, too, without being all of them.
    fileprivate var borders: [Int] {
        var borders = [Int](repeating: 0, count: count)
        var length = 0
        for index in indices.dropFirst() {
            while length > 0, self[index] != self[length] { length = borders[length - 1] }
            if self[index] == self[length] { length += 1 }
            borders[index] = length
        }
        return borders
    }
}
