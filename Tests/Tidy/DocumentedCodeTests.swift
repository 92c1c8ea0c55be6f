// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing

/// The code in the documentation stands in a file that is compiled, or in a program that the tests run.
@Suite struct DocumentedCodeTests {
    @Test func `each sample of Swift is compiled somewhere in the tests or examples`() throws {
        let compiled = try (Repository.tests.get() + Repository.extras.get()).filter {
            $0.path.hasSuffix("DocumentedCode.swift") || $0.path.hasPrefix("Examples/")
        }.map { Self.unindented($0.lines) }
        var count = 0
        for page in try Self.pages() {
            for (place, sample) in Self.samples(of: page, in: "swift") {
                count += 1
                let code = Self.unindented(sample).filter { !$0.isEmpty && !$0.hasPrefix("import ") }
                #expect(
                    compiled.contains { Self.has(code, in: $0) },
                    "\(place): no file compiles this; put it into a DocumentedCode.swift")
            }
        }
        #expect(count > 2)
    }

    @Test func `each sample of Python stands in an example or a test of the library for Python`() throws {
        let programs = try ["Clients/Python/examples", "Clients/Python/tests", "Examples"].flatMap { folder in
            try Repository.files(below: folder) { $0.hasSuffix(".py") }
        }.map { Self.unindented($0.lines) }
        var count = 0
        for page in try Self.pages() + [Repository.read("Clients/Python/README.md")] {
            for (place, sample) in Self.samples(of: page, in: "python") {
                count += 1
                let code = Self.unindented(sample).filter { !$0.isEmpty }
                #expect(
                    programs.contains { Self.has(code, in: $0) },
                    "\(place): no program has this; put it into Clients/Python/examples")
            }
        }
        #expect(count > 2)
    }

    @Test func `each stage of a tutorial is a file of an example`() throws {
        let examples = Repository.root.appending(path: "Examples").standardizedFileURL.path + "/"
        var count = 0
        for page in try Repository.files(below: "Sources", where: { $0.hasSuffix(".tutorial") }) {
            let resources = Repository.root.appending(path: page.path).deletingLastPathComponent()
                .appending(path: "Resources")
            for match in page.lines.joined(separator: "\n").matches(of: /@Code\(.*?file: ([^,)]+)/) {
                count += 1
                let file = resources.appending(path: String(match.1)).resolvingSymlinksInPath().standardizedFileURL
                #expect(
                    file.path.hasPrefix(examples), "\(page.path): link \(match.1) to a file that Examples compiles")
            }
        }
        #expect(count > 2)
    }

    private static func pages() throws -> [SourceFile] {
        try [Repository.read("README.md")] + Repository.files(below: "docs") { $0.hasSuffix(".md") }
            + Repository.files(below: "Sources") { $0.hasSuffix(".md") }
    }

    private static func samples(of page: SourceFile, in language: String) -> [(place: String, lines: [String])] {
        var (samples, place, sample) = ([(String, [String])](), "", [String]?.none)
        for (index, line) in page.lines.enumerated() {
            if line == "```\(language)" {
                (place, sample) = (page.place(index), [])
            } else if line == "```", let lines = sample {
                samples.append((place, lines))
                sample = nil
            } else {
                sample?.append(line)
            }
        }
        return samples
    }

    private static func unindented(_ lines: [String]) -> [String] {
        lines.map { line in String(line.drop { $0 == " " }) }
    }

    /// Whether the lines stand one after the other in the file, blank lines aside.
    private static func has(_ code: [String], in lines: [String]) -> Bool {
        let lines = lines.filter { !$0.isEmpty }
        guard let first = code.first else { return true }
        return lines.indices.contains { lines[$0] == first && lines[$0...].starts(with: code) }
    }
}
