// SPDX-License-Identifier: Apache-2.0

/// A line of a file with its checksum before it: eight hexadecimal digits of CRC-32, a space, and the text. What a disk
/// or a hand changed in it shows.
enum SealedLine {
    private static let digits = Array("0123456789abcdef".utf8)
    private static let sealSize = 9

    /// The line that holds `text`, which has no line end in it.
    static func seal(_ text: some Collection<UInt8>) -> [UInt8] {
        let checksum = Checksum.crc32(text)
        let seal = (0..<8).map { digits[Int(checksum >> (28 - 4 * $0) & 0xF)] }
        return seal + [UInt8(ascii: " ")] + text
    }

    /// What a line holds; `nil` where it is not as it was written.
    static func open(_ line: ArraySlice<UInt8>) -> ArraySlice<UInt8>? {
        let text = line.dropFirst(sealSize)
        return line.count >= sealSize && line.prefix(sealSize).elementsEqual(seal(text).prefix(sealSize)) ? text : nil
    }
}
