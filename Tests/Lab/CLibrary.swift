// SPDX-License-Identifier: Apache-2.0

import DialtoneLabSupport
import Foundation
import Testing

/// The client library for C, built once for all tests.
enum CLibrary {
    /// Where the programs are that end with an error when they read what they may not, or leak.
    private static let sanitized = "\(SourceTree.root)/.build/clients-c/sanitized"
    private static let programs = Task {
        try await make(
            "programs", in: sanitized, flags: "-O1 -g -fsanitize=address,undefined -fno-sanitize-recover=all")
    }

    /// A program of the library's folder: an example, or the driver of the scenarios.
    static func program(_ name: String) async throws -> String {
        try await programs.value
        return "\(sanitized)/\(name)"
    }

    /// Runs the tests that the library has of its own.
    static func check() async throws {
        try await make("check", in: "\(SourceTree.root)/.build/clients-c/plain", flags: "-O2 -g")
    }

    private static func make(_ target: String, in folder: String, flags: String) async throws {
        let machine = try await Namespace.create("a compiler's")
        _ = try await machine.command(
            ["make", "-C", "\(SourceTree.root)/Clients/C", "BUILD=\(folder)", "CFLAGS=\(flags)", target])
    }
}

/// What the library is by itself, and the programs of docs/clients-c.md; `ClientScenarios` has what it does.
@Suite("The library for C", .lab)
struct CLibraryTests {
    @Test func `it shows the names of its list and no others, and C++ can use it`() async throws {
        try await CLibrary.check()
    }

    @Test func `the first program of the tutorial tells each change of a path`() async throws {
        try await ClientTutorial.tellPaths(by: [try await CLibrary.program("path")])
    }

    @Test func `the second program of the tutorial answers when the server has spoken`() async throws {
        try await ClientTutorial.answer(by: [try await CLibrary.program("answer")])
    }
}
