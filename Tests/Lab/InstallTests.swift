// SPDX-License-Identifier: Apache-2.0

import DialtoneLabSupport
import Foundation
import Testing

/// What `make install` puts where, and that `make uninstall` takes it away again.
@Suite(.lab, .serialized)
struct InstallTests {
    @Test(arguments: [true, false])
    func `what was there before is there after make uninstall, and nothing else`(isStaged: Bool) async throws {
        let (machine, home) = (try await Namespace.island(), try DaemonHome())
        let target = isStaged ? "\(home.directory)/target" : ""
        let prefix = isStaged ? "/usr/local" : "\(home.directory)/dial tone"
        // Somebody else's program, an empty directory of the distribution, and
        // what an earlier version installed beside the same files.
        let before = ["bin", "bin/other", "share", "share/man"]
        for folder in ["bin", "share/man"] {
            try FileManager.default.createDirectory(
                atPath: "\(target)\(prefix)/\(folder)", withIntermediateDirectories: true)
        }
        try Data().write(to: URL(filePath: "\(target)\(prefix)/bin/other"))
        let built = URL(filePath: LabAgent.program("dialtoned")).deletingLastPathComponent().path
        for version in ["the first", "the second"] {
            try await machine.command(
                ["env", "BUILT=\(built)", "STRIP=true", "\(SourceTree.root)/scripts/install", target, prefix])
            let installed = Self.paths(below: target + prefix)
            for path in ["bin/dialtone", "libexec/dialtone-tls", "share/dialtone/org.dialtone.Network.varlink"] {
                #expect(installed.contains(path), "\(installed)")
            }
            #expect(installed.count > 50, "\(installed)")
            guard version == "the first" else { break }
            let old = "\(prefix)/share/dialtone/earlier"
            try Data().write(to: URL(filePath: target + old))
            let list = URL(filePath: "\(target)\(prefix)/share/dialtone/installed")
            try Data((String(contentsOf: list, encoding: .utf8) + old + "\n").utf8).write(to: list)
        }
        try await machine.command(
            ["make", "--directory=\(SourceTree.root)", "uninstall", "DESTDIR=\(target)", "PREFIX=\(prefix)"])
        #expect(Self.paths(below: target + prefix) == before)
        let again = try await machine.outcome(["\(SourceTree.root)/scripts/uninstall", target, prefix])
        #expect(again.exit == .status(EX_NOINPUT), "\(again)")
        #expect(again.error.contains("nothing is installed there"), "\(again)")
    }

    private static func paths(below directory: String) -> [String] {
        (FileManager.default.enumerator(atPath: directory)?.compactMap { $0 as? String } ?? []).sorted()
    }
}
