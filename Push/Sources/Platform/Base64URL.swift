// SPDX-License-Identifier: Apache-2.0

/// Texts in base64url without padding (RFC 4648 section 5; RFC 7515 section 2), as Web Push and JSON Web Tokens have
/// them.
package enum Base64URL {
    private static let digits = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_".utf8)

    /// The text that stands for `bytes`.
    package static func text(of bytes: some Collection<UInt8>) -> String {
        var text: [UInt8] = []
        var (bits, count) = (UInt32(0), 0)
        for byte in bytes {
            // No more than six bits are left of the bytes before.
            bits = bits << 8 | UInt32(byte)
            count += 8
            while count >= 6 {
                count -= 6
                text.append(digits[Int(bits >> UInt32(count) & 0x3F)])
            }
            bits &= 0x3F
        }
        if count > 0 { text.append(digits[Int(bits << UInt32(6 - count) & 0x3F)]) }
        return String(decoding: text, as: UTF8.self)
    }

    /// The bytes that `text` stands for; `nil` where it is no base64url, has padding, or is not the one text that
    /// stands for them: a signature must not have a second spelling.
    package static func bytes(of text: some StringProtocol) -> [UInt8]? {
        var characters: [UInt8] = []
        for character in text.utf8 {
            switch character {
            case UInt8(ascii: "-"): characters.append(UInt8(ascii: "+"))
            case UInt8(ascii: "_"): characters.append(UInt8(ascii: "/"))
            case UInt8(ascii: "+"), UInt8(ascii: "/"), UInt8(ascii: "="): return nil
            default: characters.append(character)
            }
        }
        while !characters.count.isMultiple(of: 4) { characters.append(UInt8(ascii: "=")) }
        guard let bytes = Base64.bytes(of: String(decoding: characters, as: UTF8.self)),
            self.text(of: bytes).utf8.elementsEqual(text.utf8)
        else { return nil }
        return bytes
    }
}
