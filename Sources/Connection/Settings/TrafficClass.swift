// SPDX-License-Identifier: Apache-2.0

/// How packets are marked for those who forward them: a code point of Differentiated Services (RFC 2474, section 3).
package struct TrafficClass: Hashable, Sendable, CustomStringConvertible {
    /// The code point, 0 to 63.
    package let codePoint: UInt8

    /// Signaling, by RFC 4594, section 4.2.
    package static let signaling = TrafficClass(valid: 40)
    /// No mark, which is best effort.
    package static let unmarked = TrafficClass(valid: 0)

    private init(valid codePoint: UInt8) { self.codePoint = codePoint }

    /// The class with this code point; `nil` for a number that is none.
    package init?(codePoint: Int) {
        guard (0...63).contains(codePoint) else { return nil }
        self.init(valid: UInt8(codePoint))
    }

    /// The class of this name, in small letters, or of this number: `cs5`, `ef`, `af41`, `none`, `46`, `0x2e`.
    package init?(_ text: String) {
        if let named = Self.names[text] {
            self.init(valid: named)
        } else if let number = text.hasPrefix("0x") ? Int(text.dropFirst(2), radix: 16) : Int(text) {
            self.init(codePoint: number)
        } else {
            return nil
        }
    }

    /// The byte of the IP header, `IP_TOS` and `IPV6_TCLASS`: the code point above two bits that are ECN's (RFC 3168,
    /// section 5) and that the kernel keeps to itself.
    package var byte: UInt8 { codePoint << 2 }

    /// Its name, or its number where it has none.
    package var description: String {
        if codePoint == 0 { return "none" }
        return Self.names.first { $0.value == codePoint }?.key ?? "\(codePoint)"
    }

    /// What a user may write, for a message.
    package static let wording = "cs1 to cs7, af11 to af43, ef, va, le, none, or a number from 0 to 63"

    /// Class selectors (RFC 2474, section 4.2.2), assured forwarding (RFC 2597, section 6), expedited forwarding (RFC
    /// 3246, section 2.6), voice-admit (RFC 5865, section 5) and lower effort (RFC 8622, section 9).
    package static let names: [String: UInt8] = {
        var names: [String: UInt8] = ["none": 0, "ef": 46, "va": 44, "le": 1]
        for selector in UInt8(1)...7 { names["cs\(selector)"] = selector << 3 }
        for group in UInt8(1)...4 {
            for drop in UInt8(1)...3 { names["af\(group)\(drop)"] = group << 3 | drop << 1 }
        }
        return names
    }()
}
