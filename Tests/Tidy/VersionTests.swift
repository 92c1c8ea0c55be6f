// SPDX-License-Identifier: Apache-2.0

import Testing

/// The version is that of the file `VERSION`. Whatever else must tell it is held against that file.
@Suite struct VersionTests {
    /// What `VERSION` says.
    private static func version() throws -> String { try Repository.read("VERSION").lines[0] }

    @Test func `the programs tell the version, and an address that is no example`() throws {
        let product = try Repository.read("Sources/Platform/Product.swift").lines
        func value(_ name: String) -> Substring? {
            product.lazy.compactMap { $0.firstMatch(of: /static let (\w+) = "([^"]*)"/) }.first { $0.1 == name }?.2
        }
        #expect(try value("version") == Self.version()[...])
        let homepage = try #require(value("homepage"))
        #expect(!homepage.isEmpty && !homepage.contains("example"))
    }

    @Test func `the changelog and Debian's begin with it, both released or both not`() throws {
        let version = try Self.version()
        let headings = try Repository.read("CHANGELOG.md").lines.filter { $0.hasPrefix("## ") }
        let debian = try #require(try Repository.read("debian/changelog").lines.first)
        let entry = try #require(debian.wholeMatch(of: /dialtone \((.+)\) (\w+); urgency=\w+/), "\(debian)")
        #expect(entry.1 == version[...])
        let newest = try #require(headings.first)
        if newest == "## [Unreleased]" {
            #expect(entry.2 == "UNRELEASED")
        } else {
            #expect(newest.starts(with: "## [\(version)] - 20"), "\(newest)")
            #expect(entry.2 != "UNRELEASED")
        }
    }

    @Test func `each dependency is pinned to one version`() throws {
        let lines = try Repository.read("Package.swift").lines.filter { $0.contains(".package(url:") }
        #expect(!lines.isEmpty)
        for line in lines { #expect(line.contains(/exact: "\d+\.\d+\.\d+"/), "\(line)") }
    }

    @Test func `the package for Python has the version of the file`() throws {
        let version = try Repository.read("VERSION").lines[0]
        let module = try Repository.read("Clients/Python/src/dialtone_client/version.py")
        #expect(module.lines.contains("__version__ = \"\(version)\""), "VERSION says \(version)")
    }
}
