// SPDX-License-Identifier: Apache-2.0

/// SIP messages on a stream: a start line and headers up to an empty line, then a body of `Content-Length` bytes, which
/// is mandatory there (RFC 3261, section 20.14). Between messages there may be CRLFs (section 7.5; RFC 5626, 3.5.1).
struct SIPFraming: MessageFraming {
    private enum State: Sendable {
        case between
        /// Behind a CR between messages.
        case betweenCR
        /// In the head. `isCR`: behind a CR there.
        case head(isCR: Bool)
        case body(remaining: Int)
        case lost
    }

    /// The longest head to follow: the largest UDP datagram, which no SIP head comes near.
    private static let longestHead = 65_535
    /// As much of a line as it takes to read `Content-Length` and its figure, with some blanks.
    private static let keptOfLine = 48
    /// The longest body to follow, 256 MiB. A longer one is an attempt at something.
    private static let longestBody = 1 << 28

    private var state = State.between
    private var headLength = 0
    private var lineLength = 0
    private var line: [UInt8] = []
    private var contentLength: Int?

    var isBetweenMessages: Bool { if case .between = state { true } else { false } }
    var isLost: Bool { if case .lost = state { true } else { false } }

    var skippable: Int {
        if case .body(let remaining) = state { remaining - 1 } else { 0 }
    }

    mutating func skip(_ count: Int) {
        guard case .body(let remaining) = state else { return }
        state = .body(remaining: remaining - count)
    }

    mutating func take(_ byte: UInt8) {
        switch state {
        case .between where byte == .carriageReturn:
            state = .betweenCR
        case .between:
            (headLength, lineLength, contentLength) = (0, 0, nil)
            line.removeAll(keepingCapacity: true)
            state = .head(isCR: false)
            readHead(byte)
        case .betweenCR:
            state = byte == .lineFeed ? .between : .lost
        case .head(isCR: false):
            readHead(byte)
        case .head(isCR: true):
            // Lines end with CRLF (section 7); a CR alone some take for the end of a line and others do not.
            if byte == .lineFeed { endLine() } else { state = .lost }
        case .body(let remaining):
            state = remaining == 1 ? .between : .body(remaining: remaining - 1)
        case .lost:
            break
        }
    }

    private mutating func readHead(_ byte: UInt8) {
        headLength += 1
        if headLength > Self.longestHead || byte == .lineFeed || byte == 0 {
            state = .lost
        } else if byte == .carriageReturn {
            state = .head(isCR: true)
        } else {
            lineLength += 1
            if line.count < Self.keptOfLine { line.append(byte) }
        }
    }

    private mutating func endLine() {
        guard lineLength > 0 else {
            guard let contentLength else { return state = .lost }
            return state = contentLength == 0 ? .between : .body(remaining: contentLength)
        }
        state = .head(isCR: false)
        readContentLength()
        lineLength = 0
        line.removeAll(keepingCapacity: true)
    }

    /// Takes note of the line if it is a `Content-Length`, by its long or its compact name, in any case.
    private mutating func readContentLength() {
        guard let colon = line.firstIndex(of: UInt8(ascii: ":")) else { return }
        let name = line[..<colon].reversed().drop { $0 == 0x20 || $0 == 0x09 }.reversed().map { $0 | 0x20 }
        guard name.elementsEqual("content-length".utf8) || name == [UInt8(ascii: "l")] else { return }
        let value = line[(colon + 1)...].filter { $0 != 0x20 && $0 != 0x09 }
        // Two figures that differ, or a figure on a line of its own (folded), are read in more ways than one.
        guard lineLength < Self.keptOfLine, (1...9).contains(value.count),
            value.allSatisfy({ (0x30...0x39).contains($0) })
        else { return state = .lost }
        let length = value.reduce(0) { $0 * 10 + Int($1 - 0x30) }
        guard length <= Self.longestBody, contentLength.map({ $0 == length }) ?? true else { return state = .lost }
        contentLength = length
    }
}

extension UInt8 {
    static let carriageReturn: UInt8 = 0x0D
    static let lineFeed: UInt8 = 0x0A
}
