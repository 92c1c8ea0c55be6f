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
        let isPlain = name.allSatisfy { $0.isASCII && ($0.isLetter || $0.isNumber || "._-@:".contains($0)) }
        if !isPlain || name.hasPrefix("-") || name.hasPrefix(".") {
            return "may hold letters, digits and . _ - @ : only, and begin with neither . nor -"
        }
        if reserved.contains(name) { return "is what the history calls the \(name) itself" }
        return nil
    }
}
