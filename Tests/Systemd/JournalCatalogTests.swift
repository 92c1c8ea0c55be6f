// SPDX-License-Identifier: Apache-2.0

import DialtoneTestSupport
import Foundation
import Testing

@testable import DialtoneSystemd

/// `systemd/dialtone.catalog`, which explains the entries in the journal.
@Suite struct JournalCatalogTests {
    private static let file = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent().appending(path: "systemd/dialtone.catalog")

    @Test func `each kind of entry is explained once`() throws {
        let text = try String(contentsOf: Self.file, encoding: .utf8)
        let explained = text.matches(of: /(?m)^-- ([0-9a-f]{32})$/).map { String($0.1) }
        #expect(Set(explained).count == explained.count, "explained twice")
        let kinds = Set(JournalMessage.allCases.map(\.rawValue))
        #expect(kinds.subtracting(explained).isEmpty, "not explained")
        #expect(Set(explained).subtracting(kinds).isEmpty, "of no kind")
    }

    @Test func `an identifier is well formed and stays the same`() {
        for kind in JournalMessage.allCases {
            #expect(kind.rawValue.wholeMatch(of: /[0-9a-f]{32}/) != nil, "\(kind)")
        }
        // What alerts may go by.
        #expect(JournalMessage.ready.rawValue == "7d791a3ca63c45f9bdcdc219fe72c33b")
        #expect(JournalMessage.failed.rawValue == "e14c1d7e84484709af4d6ee6dda4dd1e")
        #expect(JournalMessage.wakeFailed.rawValue == "7ccaa901c61f462f84220e931c962909")
    }

    @Test func `each explanation has a subject that fits on a line`() throws {
        let text = try String(contentsOf: Self.file, encoding: .utf8)
        let entries = text.split(separator: "\n-- ").dropFirst()
        for entry in entries {
            let lines = entry.split(separator: "\n", omittingEmptySubsequences: false)
            #expect(lines[1].hasPrefix("Subject: ") && lines[1].count < 80, "\(entry)")
            #expect(lines[2] == "Defined-By: Dialtone" && lines[4].isEmpty && !lines[5].isEmpty, "\(entry)")
            #expect(lines.allSatisfy { $0.count <= 82 }, "\(entry)")
        }
    }

    /// As systemd itself reads it.
    @Test func `systemd reads the catalogue`() throws {
        let root = NSTemporaryDirectory() + "catalogue.\(UUID().uuidString)"
        defer { try? FileManager.default.removeItem(atPath: root) }
        let directory = "\(root)/usr/lib/systemd/catalog"
        try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: true)
        try FileManager.default.copyItem(atPath: Self.file.path, toPath: "\(directory)/dialtone.catalog")
        let journalctl = "/usr/bin/journalctl"
        guard FileManager.default.isExecutableFile(atPath: journalctl) else {
            try Test.cancel("this machine has no journalctl")
        }
        let update = Program.run(journalctl, ["--root=\(root)", "--update-catalog"])
        #expect(update.status == 0 && update.error.isEmpty, "\(update)")
        let list = Program.run(journalctl, ["--root=\(root)", "--list-catalog"])
        for kind in JournalMessage.allCases { #expect(list.output.contains(kind.rawValue), "\(kind): \(list)") }
    }
}
