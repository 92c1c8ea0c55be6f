// SPDX-License-Identifier: Apache-2.0

/// A backslash in a text for bytes that means nothing.
package struct EscapeError: Error, Hashable, CustomStringConvertible {
    /// The backslash with what follows it.
    let escape: String

    package var description: String {
        #""\#(escape)" is no escape; there are \r, \n, \t, \0, \\ and \xNN with two hexadecimal digits"#
    }
}

extension [UInt8] {
    /// Bytes as users write them, in the configuration, over the socket and on the command line: `\r`, `\n`, `\t`,
    /// `\0`, `\\`, and `\xNN` for any byte. Everything else stands for itself, in UTF-8.
    package init(escapedText text: String) throws(EscapeError) {
        self = []
        var rest = Array(text.utf8)[...]
        while let byte = rest.popFirst() {
            guard byte == UInt8(ascii: "\\") else {
                append(byte)
                continue
            }
            guard let escape = rest.popFirst() else { throw EscapeError(escape: "\\") }
            switch escape {
            case UInt8(ascii: "r"): append(0x0D)
            case UInt8(ascii: "n"): append(0x0A)
            case UInt8(ascii: "t"): append(0x09)
            case UInt8(ascii: "0"): append(0x00)
            case UInt8(ascii: "\\"): append(escape)
            case UInt8(ascii: "x"):
                let digits = String(decoding: rest.prefix(2), as: UTF8.self)
                guard digits.allSatisfy(\.isHexDigit), digits.count == 2, let value = UInt8(digits, radix: 16) else {
                    throw EscapeError(escape: "\\x\(digits)")
                }
                append(value)
                rest = rest.dropFirst(2)
            default:
                // All of the character, of which this may be the first byte.
                let character = String(decoding: [escape] + rest, as: UTF8.self).prefix(1)
                throw EscapeError(escape: "\\\(character)")
            }
        }
    }
}

extension [UInt8] {
    /// A text that stands for these bytes.
    var escapedText: String {
        reduce(into: "") { text, byte in
            let isPlain = (0x20...0x7E).contains(byte) && byte != UInt8(ascii: "\\")
            text += isPlain ? String(UnicodeScalar(byte)) : "\\x" + (byte < 16 ? "0" : "") + String(byte, radix: 16)
        }
    }
}
