// SPDX-License-Identifier: Apache-2.0

package import Connection

/// What is wrong with a part of an opening as it is written: under which key, and what, for the end of a sentence.
package struct OpeningTextError: Error, Hashable {
    package let key: String
    package let reason: String

    package init(key: String, reason: String) { (self.key, self.reason) = (key, reason) }

    /// What is said of a backslash that is none of these. Not which: it may stand in a password.
    package static let noEscape =
        #"a backslash in it is no escape; there are \r, \n, \t, \0, \\ and \xNN with two hexadecimal digits, and in "#
        + #"what is expected \? and \x2? and \x?0"#
}

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

extension ExpectedAnswer {
    /// An answer as users describe it; what is `nil` was not said.
    package init(
        bytes: String?, length: Int?, until: String?, message: String?, contains: String?
    ) throws(OpeningTextError) {
        let beginning = try Self.read(bytes, "bytes") { text throws(EscapeError) in
            try BytePattern(escapedText: text)
        }
        let content = try Self.bytes(contains, "contains")
        let delimiter = try Self.bytes(until, "until")
        var extents: [(key: String, extent: Extent)] = []
        if let length { extents.append(("length", .length(length))) }
        if let delimiter { extents.append(("until", .delimiter(delimiter))) }
        if let message {
            guard let kind = Protocol(rawValue: message) else {
                let kinds = Protocol.allCases.map(\.rawValue).joined(separator: ", ")
                throw OpeningTextError(key: "message", reason: "unknown value “\(message)”; one of \(kinds)")
            }
            extents.append(("message", .message(kind)))
        }
        guard extents.count < 2 else {
            throw OpeningTextError(key: extents[1].key, reason: "the answer ends by \(extents[0].key) already")
        }
        if let extent = extents.first?.extent {
            self.init(extent, beginning: beginning ?? BytePattern([]), content: content ?? [])
            return
        }
        guard let beginning, content == nil else {
            let missing = "where the answer ends is not said: give length, until or message, or bytes for all of it"
            throw OpeningTextError(key: bytes == nil && contains == nil ? "bytes" : "contains", reason: missing)
        }
        self.init(beginning)
    }

    private static func bytes(_ text: String?, _ key: String) throws(OpeningTextError) -> [UInt8]? {
        try read(text, key) { text throws(EscapeError) in try [UInt8](escapedText: text) }
    }

    private static func read<Value>(
        _ text: String?, _ key: String, _ make: (String) throws(EscapeError) -> Value
    ) throws(OpeningTextError) -> Value? {
        guard let text else { return nil }
        do throws(EscapeError) {
            return try make(text)
        } catch {
            throw OpeningTextError(key: key, reason: OpeningTextError.noEscape)
        }
    }
}
