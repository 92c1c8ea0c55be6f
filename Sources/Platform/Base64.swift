// SPDX-License-Identifier: Apache-2.0

/// Texts in base64 (RFC 4648 section 4). The C library's decoder is in libresolv, which nothing else here needs.
package enum Base64 {
    private static let digits = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)

    /// The bytes that `text` stands for; `nil` where it is no base64.
    package static func bytes(of text: String) -> [UInt8]? {
        let characters = Array(text.utf8)
        let padding = characters.reversed().prefix { $0 == UInt8(ascii: "=") }.count
        guard characters.count.isMultiple(of: 4), padding <= 2 else { return nil }
        var bytes: [UInt8] = []
        var bits: UInt32 = 0
        for (place, character) in characters.dropLast(padding).enumerated() {
            guard let digit = digits.firstIndex(of: character) else { return nil }
            bits = bits << 6 | UInt32(digit)
            // The first of four completes no byte.
            if place % 4 > 0 { bytes.append(UInt8(truncatingIfNeeded: bits >> (6 - 2 * UInt32(place % 4)))) }
        }
        return bytes
    }

    /// The bytes that `text` stands for in the alphabet for URLs, without padding or with it (RFC 4648 section 5);
    /// `nil` where it is no base64.
    package static func bytes(ofURLSafe text: String) -> [UInt8]? {
        let digits = text.utf8.reversed().drop { $0 == UInt8(ascii: "=") }.reversed()
        let usual = String(
            decoding: digits.map { byte in
                switch byte {
                case UInt8(ascii: "-"): UInt8(ascii: "+")
                case UInt8(ascii: "_"): UInt8(ascii: "/")
                // Of the other alphabet.
                case UInt8(ascii: "+"), UInt8(ascii: "/"): 0
                default: byte
                }
            }, as: UTF8.self)
        return bytes(of: usual + String(repeating: "=", count: (4 - digits.count % 4) % 4))
    }

    /// The text for `bytes`, padded.
    package static func text(of bytes: [UInt8]) -> String {
        var text: [UInt8] = []
        for start in stride(from: 0, to: bytes.count, by: 3) {
            let group = bytes[start..<min(start + 3, bytes.count)]
            let bits = group.reduce(UInt32(0)) { $0 << 8 | UInt32($1) } << UInt32(8 * (3 - group.count))
            for place in 0..<4 {
                text.append(place <= group.count ? digits[Int(bits >> UInt32(18 - 6 * place) & 63)] : UInt8(ascii: "="))
            }
        }
        return String(decoding: text, as: UTF8.self)
    }
}
