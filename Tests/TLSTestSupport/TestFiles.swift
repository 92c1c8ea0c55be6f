// SPDX-License-Identifier: Apache-2.0

internal import Glibc

/// Files of one test, in a directory of its own that goes with it.
package final class TestFiles {
    /// The directory.
    package let directory: String
    private var names: Set<String> = []

    /// An empty directory.
    package init() {
        var template = Array("/tmp/dialtone-tls-XXXXXX".utf8CString)
        precondition(mkdtemp(&template) != nil, "no directory for the test's files")
        directory = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }

    deinit {
        for name in names { unlink("\(directory)/\(name)") }
        rmdir(directory)
    }

    /// Writes a file, in place of one of that name, and says its path.
    @discardableResult
    package func write(_ text: String, to name: String, mode: UInt32 = 0o600) -> String {
        let path = "\(directory)/\(name)"
        names.insert(name)
        unlink(path)
        let number = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
        precondition(Glibc.write(number, text, text.utf8.count) == text.utf8.count, "the test's file cannot be written")
        // Not what the process's mask leaves of it.
        fchmod(number, mode)
        close(number)
        return path
    }
}
