// SPDX-License-Identifier: Apache-2.0

/// What a connection may be called.
package enum ConnectionName {
    /// The longest name, in bytes: one that fits a terminal's table beside the rest.
    package static let longest = 64

    private static let reserved: Set = ["network", "agent"]

    /// What is wrong with a name, for the end of a sentence; `nil` if nothing is. Letters, digits and `. _ - @ :`, so
    /// that a name can stand in a shell command, a file name and a log field as it is.
    package static func problem(_ name: String) -> String? {
        if name.isEmpty { return "is empty" }
        if name.utf8.count > longest { return "is longer than \(longest) bytes" }
        let isPlain = name.utf8.allSatisfy { byte in
            switch byte {
            case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "a")...UInt8(ascii: "z"):
                true
            default: "._-@:".utf8.contains(byte)
            }
        }
        if !isPlain || name.hasPrefix("-") || name.hasPrefix(".") {
            return "may hold letters, digits and . _ - @ : only, and begin with neither . nor -"
        }
        if reserved.contains(name) { return "is what the history calls the \(name) itself" }
        return nil
    }
}
