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
}
