// SPDX-License-Identifier: Apache-2.0

import Testing

/// The version is that of the file `VERSION`, which the library for C is built with.
@Suite("Version")
struct VersionTests {
    @Test func `the programs tell the version of the file`() throws {
        let version = try Repository.read("VERSION").lines[0]
        let product = try Repository.read("Sources/Platform/Product.swift").lines.joined(separator: "\n")
        #expect(product.contains("static let version = \"\(version)\""), "VERSION says \(version)")
    }

    @Test func `the package for Python has the version of the file`() throws {
        let version = try Repository.read("VERSION").lines[0]
        let module = try Repository.read("Clients/Python/src/dialtone_client/version.py")
        #expect(module.lines.contains("__version__ = \"\(version)\""), "VERSION says \(version)")
    }
}
