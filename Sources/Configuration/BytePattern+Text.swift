// SPDX-License-Identifier: Apache-2.0

package import DialtoneConnection

extension BytePattern {
    /// Bytes as users write them (`[UInt8].init(escapedText:)`), and beside that `\?` for any byte, and `\x2?` and
    /// `\x?0` for a byte of which one half is given.
    package init(escapedText text: String) throws(EscapeError) {
        var (bytes, mask): ([UInt8], [UInt8]) = ([], [])
        var rest = text[...]
        while let backslash = rest.firstIndex(of: "\\") {
            Self.append(try [UInt8](escapedText: String(rest[..<backslash])), to: &bytes, &mask)
            rest = rest[backslash...]
            if rest.hasPrefix("\\?") {
                (bytes, mask) = (bytes + [0], mask + [0])
                rest = rest.dropFirst(2)
            } else if let (byte, bits) = Self.half(rest) {
                (bytes, mask) = (bytes + [byte], mask + [bits])
                rest = rest.dropFirst(4)
            } else {
                let length = rest.hasPrefix("\\x") ? 4 : 2
                Self.append(try [UInt8](escapedText: String(rest.prefix(length))), to: &bytes, &mask)
                rest = rest.dropFirst(length)
            }
        }
        Self.append(try [UInt8](escapedText: String(rest)), to: &bytes, &mask)
        self.init(bytes, mask: mask)
    }

    private static func append(_ plain: [UInt8], to bytes: inout [UInt8], _ mask: inout [UInt8]) {
        bytes += plain
        mask += [UInt8](repeating: 0xFF, count: plain.count)
    }

    /// A byte of which one half is any.
    private static func half(_ text: Substring) -> (byte: UInt8, mask: UInt8)? {
        let digits = text.dropFirst(2).prefix(2)
        guard text.hasPrefix("\\x"), digits.count == 2, let high = digits.first, let low = digits.last else {
            return nil
        }
        switch (high, low) {
        case ("?", "?"): return nil
        case (_, "?"): return UInt8(String(high), radix: 16).map { ($0 << 4, 0xF0) }
        case ("?", _): return UInt8(String(low), radix: 16).map { ($0, 0x0F) }
        default: return nil
        }
    }
}
