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
}
