// SPDX-License-Identifier: Apache-2.0

import Testing

/// Who may import whom, as `Package.swift` has it.
@Suite struct LayeringTests {
    /// Targets that decide and do nothing: no clock, no socket, no queue.
    private static let pure: Set = ["Coalescing", "Connection", "Distributor", "NetworkPath", "Notifications"]
    /// What they may use all the same: collections, which do nothing by themselves either.
    private static let collections: Set = ["DequeModule", "OrderedCollections"]
    /// What of the system the other targets may import.
    private static let system: Set = ["CPlatform", "Dispatch", "FoundationEssentials", "Glibc", "Synchronization"]

    /// The modules that the package names for each target.
    private static func declared() throws -> [String: Set<String>] {
        let package = try Repository.read("Package.swift").lines.joined(separator: "\n")
        let products = package.matches(of: /let (\w+) = Target\.Dependency\.product\(name: "(\w+)"/)
        let modules = Dictionary(uniqueKeysWithValues: products.map { (String($0.1), String($0.2)) })
        let targets = package.matches(
            of: /\.(?:executableTarget|target)\(\s*name: "([\w-]+)"(?:,\s*dependencies: \[([^\]]*)\])?/)
        return Dictionary(
            targets.map { target in
                let words = (target.2 ?? "").split { !$0.isLetter && !$0.isNumber && $0 != "-" }.map(String.init)
                return (String(target.1), Set(words.map { modules[$0] ?? $0 }))
            }, uniquingKeysWith: { $0.union($1) })
    }

    @Test func `a target imports what the package names for it, and of the system only what does`() throws {
        let declared = try Self.declared()
        #expect(declared["dialtoned"] == ["Agent", "Platform", "Systemd", "Logging"])
        for file in try Repository.sources.get() {
            let allowed = try #require(declared[file.target], "\(file.path): no target of the package")
            let permitted = Self.pure.contains(file.target) ? allowed : allowed.union(Self.system)
            for (index, module) in file.imports where !permitted.contains(module) {
                Issue.record("\(file.place(index)): \(file.target) may not import \(module); move the code, or name it")
            }
        }
        for target in Self.pure {
            let imports = declared[target]?.subtracting(Self.collections)
            #expect(imports?.isSubset(of: Self.pure) == true, "\(target) decides, and does nothing: \(imports ?? [])")
        }
    }

    @Test(arguments: ["docs/architecture.md", "docs/supervision-points.md"])
    func `each file that a page on the inside names is there`(page: String) throws {
        let files = try Repository.sources.get() + Repository.tests.get()
        let text = try Repository.read(page).lines.joined(separator: "\n")
        for match in text.matches(of: /`([\w\/+]+\.swift)`/) where match.1 != "Package.swift" {
            #expect(files.contains { "/\($0.path)".hasSuffix("/\(match.1)") }, "\(page): \(match.0)")
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
            // Sessions, and messages: each wraps its own part of OpenSSL, and a client needs no sessions.
            if module == "COpenSSL", users == ["TLS", "WebPush"] { continue }
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
                import DialtoneI
                import CDialtoneJ
                import DialtoneClient
                """)
        #expect(file.imports.map(\.module) == ["A", "B", "C", "E", "H", "I", "CJ", "DialtoneClient"])
        #expect(file.target == "X")
    }
}

extension SourceFile {
    /// The target whose sources the file is among.
    var target: String { path.split(separator: "/").dropFirst().first.map(String.init) ?? "" }

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
            return line.firstMatch(of: pattern).map { (index, Self.shortName(String($0.output.1))) }
        }
    }

    /// The name that a module has in `Package.swift`, without the project's.
    private static func shortName(_ module: String) -> String {
        guard module != "DialtoneAPI", module != "DialtoneClient", module != "DialtonePush" else {
            return module
        }
        return module.replacing(/^(C?)Dialtone(?=[A-Z])/) { $0.output.1 }
    }
}
