// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing

/// The samples of the configuration in README.md, docs and the manual are ones that the daemon takes.
@Suite struct DocumentedConfigurationTests {
    private static let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent()

    @Test func `each sample is read without an error`() throws {
        let docs = try FileManager.default.contentsOfDirectory(atPath: Self.root.appending(path: "docs").path)
        let pages =
            ["README.md"]
            + docs.sorted().filter { $0.hasSuffix(".md") || $0.hasSuffix(".5") }.map { "docs/\($0)" }
        var count = 0
        for page in pages {
            let text = try String(contentsOf: Self.root.appending(path: page), encoding: .utf8)
            for sample in page.hasSuffix(".md") ? Self.fences(of: text) : Self.displays(of: text) {
                count += 1
                // Files with passwords are the reader's, and not here.
                let errors = try ConfigurationFixture(["dialtone.toml": sample]).errors().filter {
                    !$0.contains("send_file: ")
                }
                #expect(errors == [], "\(page):\n\(sample)")
            }
        }
        #expect(count >= 5, "\(pages)")
    }

    /// The blocks of TOML of a page in Markdown.
    private static func fences(of text: String) -> [String] {
        var (samples, sample) = ([String](), [String]?.none)
        for line in text.components(separatedBy: "\n") {
            if line == "```toml" {
                sample = []
            } else if line == "```", let lines = sample {
                samples.append(lines.joined(separator: "\n"))
                sample = nil
            } else {
                sample?.append(line)
            }
        }
        return samples
    }

    /// The literal displays of a manual page; `\e` is a backslash there.
    private static func displays(of text: String) -> [String] {
        text.components(separatedBy: ".Bd -literal -offset indent\n").dropFirst().map {
            $0.components(separatedBy: "\n.Ed")[0].replacingOccurrences(of: "\\e", with: "\\")
        }
    }
}
