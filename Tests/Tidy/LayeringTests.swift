// SPDX-License-Identifier: Apache-2.0

import Testing

/// Who may import whom beyond what `Package.swift` says, which builds check
/// (`--explicit-target-dependency-import-check`).
@Suite("Layers")
struct LayeringTests {
    /// Targets that decide and do nothing (no clock, no socket, no queue), and all that each may import.
    private static let pure: [String: Set<String>] = [
        "Coalescing": [], "Connection": ["Coalescing", "NetworkPath"], "NetworkPath": [],
    ]

    @Test func `a target that decides imports nothing that does`() throws {
        for file in try Repository.sources.get() {
            guard let allowed = Self.pure[file.target] else { continue }
            for (index, module) in file.imports where !allowed.contains(module) {
                Issue.record(
                    """
                    \(file.place(index)): \(file.target) may not import \(module); move the code to a target that may, \
                    or, if the design changed, change docs/architecture.md and \(#fileID)
                    """)
            }
        }
    }

    @Test func `a C module is known to one target`() throws {
        let modules = try Repository.folders(in: "Sources").filter { name in
            name.first == "C" && name.dropFirst().first?.isUppercase == true && name != "CPlatform"
        }
        for module in modules {
            let users = Set(
                try Repository.sources.get().filter { file in
                    file.imports.contains { $0.module == module }
                }.map(\.target))
            #expect(users.count <= 1, "\(module) is imported by \(users.sorted()); wrap it in one of them")
        }
    }

    @Test func `no file imports Foundation whole`() throws {
        // It brings ICU: twice the binary, three times the memory.
        for file in try Repository.sources.get() {
            for (index, module) in file.imports where module == "Foundation" {
                Issue.record("\(file.place(index)): import FoundationEssentials, or do without")
            }
        }
    }

    @Test func `imports are found in all their spellings`() {
        let file = SourceFile(
            path: "Sources/X/Y.swift",
            text: """
                // import Comment
                public import A
                @preconcurrency internal import B
                import struct C.D
                import E.F
                let text = "import G"
                @_exported import H
                """)
        #expect(file.imports.map(\.module) == ["A", "B", "C", "E", "H"])
        #expect(file.target == "X")
    }
}

extension SourceFile {
    /// The target whose sources the file is among.
    fileprivate var target: String { path.split(separator: "/").dropFirst().first.map(String.init) ?? "" }

    /// The modules that the file imports, with the lines they are named in.
    fileprivate var imports: [(index: Int, module: String)] {
        code.enumerated().compactMap { index, line in
            guard line.mentions("import ") else { return nil }
            let pattern =
                #/
                ^\s*(?:@\w+\s+)*
                (?:(?:public|package|internal|fileprivate|private)\s+)?
                import\s+
                (?:(?:struct|class|enum|protocol|typealias|func|let|var)\s+)?
                (\w+)
                /#
            return line.firstMatch(of: pattern).map { (index, String($0.output.1)) }
        }
    }
}
