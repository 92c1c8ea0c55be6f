// SPDX-License-Identifier: Apache-2.0

import Testing

/// Where things are.
@Suite struct LayoutTests {
    @Test func `each folder of tests is a target`() throws {
        // A call may be broken after its parenthesis.
        let package = try Repository.read("Package.swift").lines.map { $0.trimmingPrefix { $0 == " " } }.joined()
        for folder in try Repository.folders(in: "Tests") {
            #expect(
                package.contains("tests(\"\(folder)\"") || package.contains("path: \"Tests/\(folder)\""),
                "Tests/\(folder) belongs to no target, so nothing runs it; give it a line in Package.swift")
        }
    }

    @Test func `each target has its sources`() throws {
        let folders = Set(try Repository.folders(in: "Sources"))
        let package = try Repository.read("Package.swift").lines.joined(separator: "\n")
        for folder in folders {
            #expect(
                package.contains("name: \"\(folder)\""),
                "Sources/\(folder) belongs to no target; give it one in Package.swift, or remove it")
        }
    }

    @Test func `interfaces, units, scripts, C and Python name the licence`() throws {
        let files =
            try Repository.files(below: "Sources") { $0.hasSuffix(".varlink") }
            + Repository.files(below: "systemd") { _ in true }
            + Repository.files(below: "scripts") { _ in true }
            // JSON has no comments.
            + Repository.files(below: "Fleet") { !$0.hasSuffix(".json") }
            + ["Sources", "Tests", "Benchmarks", "Clients"].flatMap { folder in
                try Repository.files(below: folder) { path in
                    [".c", ".h", ".cpp", ".py"].contains { path.hasSuffix($0) }
                }
            }
        for file in files {
            // A script's first line is its interpreter's.
            #expect(
                file.lines.prefix(2).contains { $0.contains("SPDX-License-Identifier: Apache-2.0") },
                "\(file.path): the first line names the licence: SPDX-License-Identifier: Apache-2.0")
        }
    }
}
