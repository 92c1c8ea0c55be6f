// SPDX-License-Identifier: Apache-2.0

/// Texts in base64url without padding (RFC 4648 section 5; RFC 7515 section 2), as Web Push and JSON Web Tokens have
/// them.
package enum Base64URL {
    /// The text that stands for `bytes`.
    package static func text(of bytes: some Collection<UInt8>) -> String {
        let usual = Base64.text(of: Array(bytes)).utf8.prefix { $0 != UInt8(ascii: "=") }
        return String(
            decoding: usual.map { digit in
                switch digit {
                case UInt8(ascii: "+"): UInt8(ascii: "-")
                case UInt8(ascii: "/"): UInt8(ascii: "_")
                default: digit
                }
            }, as: UTF8.self)
    }

    /// The bytes that `text` stands for; `nil` where it is no base64url, has padding, or is not the one text that
    /// stands for them: a signature must not have a second spelling.
    package static func bytes(of text: some StringProtocol) -> [UInt8]? {
        guard let bytes = Base64.bytes(ofURLSafe: String(text)), self.text(of: bytes).utf8.elementsEqual(text.utf8)
        else { return nil }
        return bytes
    }
}
