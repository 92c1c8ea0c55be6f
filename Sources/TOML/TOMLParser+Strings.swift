// SPDX-License-Identifier: Apache-2.0

extension TOMLParser {
    /// `"…"`, on one line, with escapes.
    mutating func basicString() throws(TOMLError) -> String {
        let start = scanner.position
        scanner.take()
        var bytes: [UInt8] = []
        while !scanner.skip(.quote) {
            if scanner.next == UInt8(ascii: "\\") { try escape(into: &bytes) } else { try plain(into: &bytes, start) }
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    /// `'…'`, on one line, without escapes.
    mutating func literalString() throws(TOMLError) -> String {
        let start = scanner.position
        scanner.take()
        var bytes: [UInt8] = []
        while !scanner.skip(.apostrophe) { try plain(into: &bytes, start) }
        return String(decoding: bytes, as: UTF8.self)
    }

    /// `"""…"""`, over several lines, with escapes.
    mutating func longBasicString() throws(TOMLError) -> String {
        try longString(.quote) { (parser, bytes) throws(TOMLError) in
            guard parser.scanner.next == UInt8(ascii: "\\") else { return false }
            if parser.skipFoldedLines() { return true }
            try parser.escape(into: &bytes)
            return true
        }
    }

    /// `'''…'''`, over several lines, without escapes.
    mutating func longLiteralString() throws(TOMLError) -> String {
        try longString(.apostrophe) { _, _ in false }
    }

    private mutating func longString(
        _ quote: UInt8, _ takeEscape: (inout TOMLParser, inout [UInt8]) throws(TOMLError) -> Bool
    ) throws(TOMLError) -> String {
        let start = scanner.position
        scanner.skip(3)
        // A line end right after the quotes is no part of the string.
        _ = scanner.skipLineEnd()
        var bytes: [UInt8] = []
        while true {
            if scanner.next == quote, scanner.peek(1) == quote, scanner.peek(2) == quote {
                scanner.skip(3)
                // Up to two more are the string's last characters.
                for _ in 0..<2 where scanner.skip(quote) { bytes.append(quote) }
                return String(decoding: bytes, as: UTF8.self)
            }
            if try takeEscape(&self, &bytes) { continue }
            if scanner.skipLineEnd() { bytes.append(.lineFeed) } else { try plain(into: &bytes, start) }
        }
    }

    /// One byte that stands for itself.
    private mutating func plain(into bytes: inout [UInt8], _ start: TOMLPosition) throws(TOMLError) {
        guard let byte = scanner.next, !scanner.isAtLineEnd else {
            throw error("the string that begins at \(start.line):\(start.column) has no end before \(scanner.found)")
        }
        if byte.isControl { throw error("\(scanner.found) may not stand in a string") }
        bytes.append(byte)
        scanner.take()
    }

    /// A backslash at the end of a line takes all blanks and line ends after it away. Whether it was one.
    private mutating func skipFoldedLines() -> Bool {
        var ahead = scanner
        ahead.take()
        ahead.skipBlanks()
        guard ahead.skipLineEnd() else { return false }
        repeat { ahead.skipBlanks() } while ahead.skipLineEnd()
        scanner = ahead
        return true
    }

    private mutating func escape(into bytes: inout [UInt8]) throws(TOMLError) {
        let start = scanner.position
        scanner.take()
        let letter = scanner.next
        switch letter {
        case UInt8(ascii: "b"): bytes.append(0x08)
        case UInt8(ascii: "t"): bytes.append(.tab)
        case UInt8(ascii: "n"): bytes.append(.lineFeed)
        case UInt8(ascii: "f"): bytes.append(0x0C)
        case UInt8(ascii: "r"): bytes.append(.carriageReturn)
        case .quote, UInt8(ascii: "\\"): bytes += letter.map { [$0] } ?? []
        case UInt8(ascii: "u"): return try scalar(digits: 4, into: &bytes, start)
        case UInt8(ascii: "U"): return try scalar(digits: 8, into: &bytes, start)
        default:
            throw error(
                "a backslash before \(scanner.found) is no escape; write \\\\ for a backslash, or use '…'", at: start)
        }
        scanner.take()
    }

    private mutating func scalar(digits count: Int, into bytes: inout [UInt8], _ start: TOMLPosition) throws(TOMLError)
    {
        let letter = scanner.take().map { Character(Unicode.Scalar($0)) } ?? "u"
        var left = count
        let digits = scanner.takeWhile { byte in
            left -= 1
            return left >= 0 && Character(Unicode.Scalar(byte)).isHexDigit
        }
        guard digits.utf8.count == count, let number = UInt32(digits, radix: 16), let scalar = Unicode.Scalar(number)
        else {
            throw error("\"\\\(letter)\(digits)\" is no character; it takes \(count) hexadecimal digits", at: start)
        }
        bytes += Array(String(Character(scalar)).utf8)
    }
}
