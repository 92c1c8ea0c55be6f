// SPDX-License-Identifier: Apache-2.0

/// A push server by the name that the configuration gives it. Up to 256 bytes of UTF-8.
package struct ServerName: Hashable, Comparable, Sendable {
    /// The name.
    package let text: String

    /// The server of that name; `nil` for none, and for one of over 256 bytes.
    package init?(_ text: String) {
        guard (1...256).contains(text.utf8.count) else { return nil }
        self.text = text
    }

    package static func < (left: Self, right: Self) -> Bool { left.text < right.text }
}
