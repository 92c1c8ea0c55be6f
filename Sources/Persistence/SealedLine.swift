// SPDX-License-Identifier: Apache-2.0

/// A line of a file with its checksum before it: eight hexadecimal digits of CRC-32, a space, and the text. What a disk
/// or a hand changed in it shows.
enum SealedLine {
    private static let digits = Array("0123456789abcdef".utf8)
    private static let sealSize = 9

    /// The line that holds `text`, with its end. The text has no line end in it.
    static func line(_ text: some Collection<UInt8>) -> [UInt8] {
        var line: [UInt8] = []
        line.reserveCapacity(sealSize + text.count + 1)
        line += seal(of: text)
        line += text
        line.append(UInt8(ascii: "\n"))
        return line
    }

    private static func seal(of text: some Collection<UInt8>) -> [UInt8] {
        let checksum = Checksum.crc32(text)
        return (0..<8).map { digits[Int(checksum >> (28 - 4 * $0) & 0xF)] } + [UInt8(ascii: " ")]
    }

    /// What a line holds; `nil` where it is not as it was written.
    static func open(_ line: ArraySlice<UInt8>) -> ArraySlice<UInt8>? {
        let text = line.dropFirst(sealSize)
        return line.count >= sealSize && line.prefix(sealSize).elementsEqual(seal(of: text)) ? text : nil
    }

    /// A file of the lines of `text`, each of which has an end.
    static func file(_ text: String) -> [UInt8] {
        text.utf8.split(separator: UInt8(ascii: "\n")).flatMap { line($0) }
    }

    /// The lines of such a file that are as they were written, and whether those are all.
    static func text(in file: [UInt8]) -> (text: String, isWhole: Bool) {
        let lines = file.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
        // What follows the last end is nothing, or what is left of a line.
        let texts = lines.dropLast().map { open($0) }
        let whole = texts.compactMap { $0 }.flatMap { $0 + [UInt8(ascii: "\n")] }
        return (String(decoding: whole, as: UTF8.self), lines.last?.isEmpty != false && !texts.contains(nil))
    }
}
