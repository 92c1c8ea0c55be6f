// SPDX-License-Identifier: Apache-2.0

import Testing

/// Who may import whom. `docs/architecture.md` has the picture; this is the list that holds.
@Suite("Layers")
struct LayeringTests {
    /// What every target but the pure ones may import of the system.
    private static let system: Set = ["CPlatform", "Dispatch", "Glibc", "Synchronization"]

    /// What the targets may import beyond ``system``; the pure ones, beyond nothing.
    private static let allowed: [String: Set<String>] = [
        "NetworkPath": [],
        "Supervisor": ["NetworkPath"],

        "Platform": ["CBlackBox", "DequeModule", "HeapModule", "NetworkPath"],
        "Netlink": ["CNetlink", "NetworkPath", "Platform"],
        "Resolver": ["CAres", "NetworkPath", "Platform"],
        "Reachability": ["DequeModule", "Netlink", "NetworkPath", "Platform", "Resolver"],
        "TLS": ["COpenSSL", "NetworkPath", "Platform", "Supervisor"],
        "Dialer": ["Logging", "NetworkPath", "Platform", "Reachability", "Resolver", "Supervisor", "TLS"],
        "Varlink": ["DequeModule", "FoundationEssentials", "HeapModule", "Platform"],
        "DialtoneAPI": ["FoundationEssentials", "NetworkPath", "Varlink"],
        "DialtoneClient": ["DialtoneAPI", "Platform", "Varlink"],
        "Presentation": ["DialtoneAPI", "NetworkPath"],
        "Systemd": ["CSystemd", "Logging", "Platform"],
        "Activation": ["CActivation", "Platform", "Supervisor", "Systemd"],
        "TOML": [],
        "Daemon": [
            "Activation", "DequeModule", "Dialer", "DialtoneAPI", "FoundationEssentials", "Logging", "NetworkPath",
            "OrderedCollections", "Platform", "Reachability", "Supervisor", "Systemd", "TOML", "Varlink",
        ],
        "dialtoned": ["ArgumentParser", "Daemon", "Logging", "Platform"],
        "dialtone": [
            "ArgumentParser", "DialtoneAPI", "DialtoneClient", "FoundationEssentials", "NetworkPath", "Platform",
            "Presentation", "Reachability", "Varlink",
        ],
    ]

    /// Targets that decide and do nothing: no clock, no socket, no queue.
    private static let pure: Set = ["NetworkPath", "Supervisor"]

    @Test func `a target imports what its layer may know, and nothing else`() throws {
        for file in try Repository.sources.get() {
            let target = file.target
            guard let allowed = Self.allowed[target] else {
                Issue.record("\(file.path): the target \(target) has no layer; give it a line in \(#fileID)")
                continue
            }
            let permitted = Self.pure.contains(target) ? allowed : allowed.union(Self.system)
            for (index, module) in file.imports where !permitted.contains(module) {
                Issue.record(
                    """
                    \(file.place(index)): \(target) may not import \(module); move the code to a target that may, \
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
