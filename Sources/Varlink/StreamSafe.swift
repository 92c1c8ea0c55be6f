// SPDX-License-Identifier: Apache-2.0

/// Whether texts can be compared and hashed in time that their length is worth.
///
/// Swift takes texts for equal that are canonically equivalent, and so puts each run of combining marks in order first:
/// by insertion, which takes the square of the run's length, ten seconds for the 60 KB of one call. No language has
/// more than a few marks on a letter; a stream-safe text has no more than ``mostMarks`` (UAX #15, section 13).
struct StreamSafe {
    /// The most marks in a row.
    static let mostMarks = 30

    private var marks = 0
    /// The first half of a character beyond U+FFFF that is written as two escapes (RFC 8259, section 7).
    private var surrogate: UInt32?

    /// Whether the strings of a JSON text are stream-safe, those with their marks written as escapes too.
    static func holds(of json: [UInt8]) -> Bool {
        var run = StreamSafe()
        var scalars = String(decoding: json, as: UTF8.self).unicodeScalars.makeIterator()
        while let scalar = scalars.next() {
            guard scalar == "\\", let escaped = scalars.next() else {
                guard run.adds(scalar.value) else { return false }
                continue
            }
            var value = escaped.value
            if escaped == "u" {
                // What is no such number is no JSON, which is for the decoder to say.
                value = (0..<4).reduce(0) { sum, _ in sum << 4 | (scalars.next()?.hexadecimalDigit ?? 0) }
            }
            guard run.adds(value) else { return false }
        }
        return true
    }

    /// Goes on by a character, or half of one, and says whether there are few marks still.
    private mutating func adds(_ value: UInt32) -> Bool {
        var value = value
        if (0xD800..<0xDC00).contains(value) {
            surrogate = value
            return true
        }
        if (0xDC00..<0xE000).contains(value), let first = surrogate {
            value = 0x10000 + (first - 0xD800) << 10 + (value - 0xDC00)
        }
        surrogate = nil
        let isMark = Unicode.Scalar(value).map { $0.properties.canonicalCombiningClass != .notReordered } ?? false
        marks = isMark ? marks + 1 : 0
        return marks <= Self.mostMarks
    }
}

extension Unicode.Scalar {
    fileprivate var hexadecimalDigit: UInt32 {
        properties.isASCIIHexDigit ? UInt32(Character(self).hexDigitValue ?? 0) : 0
    }
}
