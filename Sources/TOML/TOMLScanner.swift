// SPDX-License-Identifier: Apache-2.0

/// The bytes of a text, one after the other, with the place of the next one.
struct TOMLScanner {
    private let bytes: [UInt8]
    private var index = 0
    /// Where the next byte stands.
    private(set) var position = TOMLPosition(line: 1, column: 1)

    init(_ text: String) {
        bytes = Array(text.utf8)
        // A byte order mark is no part of the text.
        if bytes.starts(with: [0xEF, 0xBB, 0xBF]) { index = 3 }
    }

    /// The next byte; `nil` at the end.
    var next: UInt8? { peek(0) }

    /// The byte after `count` others; `nil` past the end.
    func peek(_ count: Int) -> UInt8? {
        index + count < bytes.count ? bytes[index + count] : nil
    }

    /// Whether the text goes on with these characters.
    func isAt(_ text: StaticString) -> Bool {
        text.withUTF8Buffer { bytes[index...].starts(with: $0) }
    }

    /// Whether a line ends here, by a line feed with or without a carriage return before it.
    var isAtLineEnd: Bool { next == .lineFeed || next == .carriageReturn && peek(1) == .lineFeed }

    /// Passes over the next byte and returns it; `nil` at the end.
    @discardableResult
    mutating func take() -> UInt8? {
        guard let byte = next else { return nil }
        index += 1
        if byte == .lineFeed {
            position = TOMLPosition(line: position.line + 1, column: 1)
        } else if peek(0).map({ $0 & 0xC0 != 0x80 }) ?? true {
            // A column is a code point: the bytes that go on with one are not counted.
            position.column += 1
        }
        return byte
    }

    /// Passes over `count` bytes.
    mutating func skip(_ count: Int) {
        for _ in 0..<count { take() }
    }

    /// Passes over `byte`, if it is the next one.
    mutating func skip(_ byte: UInt8) -> Bool {
        guard next == byte else { return false }
        take()
        return true
    }

    /// Passes over the end of a line, if one is here.
    mutating func skipLineEnd() -> Bool {
        guard isAtLineEnd else { return false }
        skip(next == .lineFeed ? 1 : 2)
        return true
    }

    /// Passes over spaces and tabs.
    mutating func skipBlanks() {
        while next == .space || next == .tab { take() }
    }

    /// Takes the bytes up to the first that does not qualify.
    mutating func takeWhile(_ qualifies: (UInt8) -> Bool) -> String {
        let start = index
        while let next, qualifies(next) { take() }
        return String(decoding: bytes[start..<index], as: UTF8.self)
    }

    /// What is next, for the end of a sentence.
    var found: String {
        guard let next else { return "the end of the file" }
        if isAtLineEnd { return "the end of the line" }
        if next.isControl { return controlName(next) }
        var count = 1
        while let more = peek(count), more & 0xC0 == 0x80 { count += 1 }
        return "\"\(String(decoding: bytes[index..<index + count], as: UTF8.self))\""
    }

    /// A control character by its number.
    func controlName(_ byte: UInt8) -> String {
        let digits = String(byte, radix: 16, uppercase: true)
        return "U+\(String(repeating: "0", count: 4 - digits.count))\(digits)"
    }
}

extension UInt8 {
    static let tab = UInt8(ascii: "\t")
    static let lineFeed = UInt8(ascii: "\n")
    static let carriageReturn = UInt8(ascii: "\r")
    static let space = UInt8(ascii: " ")
    static let quote = UInt8(ascii: "\"")
    static let apostrophe = UInt8(ascii: "'")

    /// Whether TOML has it in no comment and no string; tabs are no such character.
    var isControl: Bool { self < 0x20 && self != .tab || self == 0x7F }

    var isDigit: Bool { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(self) }

    /// Whether a key may hold it without quotes.
    var isBareKey: Bool {
        let lower = self | 0x20
        return isDigit || (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(lower)
            || self == UInt8(ascii: "_") || self == UInt8(ascii: "-")
    }
}
