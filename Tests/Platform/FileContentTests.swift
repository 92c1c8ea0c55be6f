// SPDX-License-Identifier: Apache-2.0

import DialtonePlatform
import Foundation
import Glibc
import Testing

/// What files say.
@Suite struct FileContentTests {
    private let path = NSTemporaryDirectory() + "content.\(UUID().uuidString)"

    @Test func `a long one is read to its end, or to the limit`() throws {
        defer { unlink(path) }
        let text = (0..<5000).map { "\($0) 24 0:26 / /mnt/\($0) rw - tmpfs tmpfs rw\n" }.joined()
        try Data(text.utf8).write(to: URL(filePath: path))
        #expect(FileContent.text(of: path) == text)
        for limit in [0, 1, 16 * 1024, 20_000, text.utf8.count] {
            #expect(FileContent.bytes(of: path, limit: limit) == Array(text.utf8.prefix(limit)), "\(limit)")
        }
        #expect(FileContent.text(of: path + "-") == nil)
    }

    @Test func `one of the kernel's, which has no size, is read to its end`() throws {
        let lines = try #require(FileContent.text(of: "/proc/self/maps")).split(separator: "\n")
        #expect(lines.count > 100 && lines.contains { $0.hasSuffix("[stack]") }, "\(lines.count) lines")
    }

    @Test func `a named pipe that nobody writes to is empty`() {
        defer { unlink(path) }
        #expect(mkfifo(path, 0o600) == 0)
        #expect(FileContent.bytes(of: path) == [])
    }
}
