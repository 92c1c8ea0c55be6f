// SPDX-License-Identifier: Apache-2.0

extension String {
    /// The text without control characters: `\u{1b}` in place of an escape. Servers, clients and files of others have
    /// their word in texts (names, refusals); a line feed would let them forge a line, an escape sequence reach the
    /// terminal of who reads.
    package var printable: String {
        guard unicodeScalars.contains(where: Self.isControl) else { return self }
        return unicodeScalars.reduce(into: "") { result, scalar in
            result += Self.isControl(scalar) ? "\\u{\(String(scalar.value, radix: 16))}" : String(scalar)
        }
    }

    /// C0, delete and C1.
    private static func isControl(_ scalar: Unicode.Scalar) -> Bool {
        scalar.value < 0x20 || (0x7F..<0xA0).contains(scalar.value)
    }
}
