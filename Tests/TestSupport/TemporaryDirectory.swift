// SPDX-License-Identifier: Apache-2.0

internal import Foundation

/// A directory of a test's own, which goes with it.
package final class TemporaryDirectory: Sendable {
    package let path: String

    package init() {
        var template = Array("/tmp/dialtone-test-XXXXXX".utf8CString)
        precondition(mkdtemp(&template) != nil, "no test can do without its directory")
        path = String(decoding: template.dropLast().map(UInt8.init(bitPattern:)), as: UTF8.self)
    }

    deinit { try? FileManager.default.removeItem(atPath: path) }

    /// Writes a file, and makes the directories that lead to it.
    ///
    /// - Parameter atomically: whether another file takes the place of one of that name, and not its content.
    package func write(_ text: String, to name: String, atomically: Bool = false) throws {
        let file = URL(filePath: "\(path)/\(name)")
        try FileManager.default.createDirectory(at: file.deletingLastPathComponent(), withIntermediateDirectories: true)
        try Data(text.utf8).write(to: file, options: atomically ? .atomic : [])
    }

    /// What a file says; `nil` where there is none.
    package func text(_ name: String) -> String? {
        FileManager.default.contents(atPath: "\(path)/\(name)").map { String(decoding: $0, as: UTF8.self) }
    }
}
