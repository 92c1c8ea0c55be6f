// SPDX-License-Identifier: Apache-2.0

import DialtoneLabSupport
import Foundation
import Testing

/// The manual as `make install` puts it together: what man, whatis and groff make of it.
@Suite(.lab)
struct ManualTests {
    /// Makes all pages in a directory of their own.
    private static func pages(in directory: String, on machine: Namespace) async throws -> [String] {
        _ = try await machine.command(["\(SourceTree.root)/scripts/manual", LabAgent.program("dialtone"), directory])
        let interfaces = ["Network", "Connections"].map {
            "\(SourceTree.root)/Sources/DialtoneAPI/org.dialtone.\($0).varlink"
        }
        _ = try await machine.command(
            [LabAgent.program("varlink-swift"), "--manual", "November 26, 2026", "\(directory)/dialtone-varlink.7"]
                + interfaces)
        for page in [
            "dialtone.toml.5", "dialtoned.8", "dialtone-hooks.8", "dialtone-launcher.8", "dialtone-reachable.8",
            "dialtone-session.8", "dialtone-tls.8", "session.toml.5",
        ] {
            try FileManager.default.copyItem(atPath: "\(SourceTree.root)/docs/\(page)", toPath: "\(directory)/\(page)")
        }
        return try FileManager.default.contentsOfDirectory(atPath: directory).sorted()
    }

    @Test func `each page has its header, its line for whatis, and no warning; none leads to one that is not there`()
        async throws
    {
        let (machine, home) = (try await Namespace.island(), try DaemonHome())
        let directory = "\(home.directory)/man"
        let pages = try await Self.pages(in: directory, on: machine)
        #expect(pages.contains("dialtone.1") && pages.contains("dialtone-check.1") && pages.count > 15, "\(pages)")
        for page in pages {
            let path = "\(directory)/\(page)"
            let (name, section) = (page.dropLast(2), page.suffix(1))
            let text = try String(contentsOfFile: path, encoding: .utf8)
            #expect(text.contains(".Dt \(name.uppercased()) \(section)\n"), "\(page): its header")
            let whatis = try await machine.outcome(["lexgrog", path])
            #expect(whatis.output.contains("\"\(name) - "), "\(page): \(whatis)")
            let warnings = try await machine.outcome(["groff", "-mandoc", "-ww", "-z", path])
            #expect(warnings.error.isEmpty && warnings.exit == .status(0), "\(page): \(warnings)")
            for reference in text.matches(of: /\.Xr (\S+) (\d)/) where reference.1.hasPrefix("dialtone") {
                #expect(pages.contains("\(reference.1).\(reference.2)"), "\(page) leads to \(reference.0)")
            }
        }
    }

    @Test func `each command has its page, and dialtone(1) names it`() async throws {
        let (machine, home) = (try await Namespace.island(), try DaemonHome())
        let directory = "\(home.directory)/man"
        let pages = try await Self.pages(in: directory, on: machine)
        let overview = try String(contentsOfFile: "\(directory)/dialtone.1", encoding: .utf8)
        for page in pages where page.hasSuffix(".1") && page != "dialtone.1" {
            let command = page.dropLast(2).dropFirst("dialtone-".count)
            let help = try await machine.outcome([LabAgent.program("dialtone"), String(command), "--help"])
            #expect(help.exit == .status(0), "\(page): \(help)")
            #expect(overview.contains(".It Nm dialtone \(command)\n"), "\(command)")
            #expect(overview.contains(".Xr dialtone-\(command) 1"), "\(command)")
        }
    }
}
