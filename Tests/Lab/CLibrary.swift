// SPDX-License-Identifier: Apache-2.0

import DialtoneLabSupport
import Testing

/// The client library for C, built once for all tests.
enum CLibrary {
    /// Where the programs are that end with an error when they read what they may not, or leak.
    private static let sanitized = "\(SourceTree.root)/.build/clients-c/sanitized"
    private static let programs = Task {
        try await make(
            "programs", "BUILD=\(sanitized)", "CFLAGS=-O1 -g -fsanitize=address,undefined -fno-sanitize-recover=all",
            lock: "\(SourceTree.root)/.build/clients-c.lock")
    }

    /// A program of the library's folder: an example, or the driver of the scenarios.
    static func program(_ name: String) async throws -> String { "\(try await folderOfPrograms)/\(name)" }

    /// Where they are.
    static var folderOfPrograms: String {
        get async throws {
            try await programs.value
            return sanitized
        }
    }

    /// Makes a target of a client's Makefile: of the library's, where its own tests are targets, too.
    ///
    /// Suites are processes of their own: where several make one target in one folder, each needs the `lock`, a file.
    /// Without it one would run a program while the linker of another writes it.
    static func make(
        _ target: String, of client: String = "C", _ settings: String..., lock: String? = nil
    ) async throws {
        let machine = try await Namespace.create("a compiler's")
        let locked = lock.map { ["flock", $0] } ?? []
        _ = try await machine.command(
            locked + ["make", "-C", "\(SourceTree.root)/Clients/\(client)", target] + settings, within: .seconds(600))
    }

    /// Where such tests are built, each in a folder of its own: two may run at a time.
    static func folder(_ name: String) -> String { "BUILD=\(SourceTree.root)/.build/clients-c/\(name)" }
}

/// What the library is by itself, and the programs of docs/clients-c.md; `ClientScenarios` has what it does.
@Suite(.lab)
struct CLibraryTests {
    @Test func `it shows the names of its list and no others, and C++ can use it`() async throws {
        try await CLibrary.make("check", CLibrary.folder("plain"))
    }

    @Test func `an agent that answers badly, late or never leaves nothing open and no byte unfreed`() async throws {
        try await CLibrary.make("check-sanitized", CLibrary.folder("checked"))
        try await CLibrary.make("check-valgrind", CLibrary.folder("checked"))
    }

    @Test func `no bytes of an agent break its reader, as far as two seconds of mutations tell`() async throws {
        try await CLibrary.make("fuzz", CLibrary.folder("fuzzed"), "SECONDS=2")
    }

    @Test func `the first program of the tutorial tells each change of a path`() async throws {
        try await ClientTutorial("docs/clients-c.md").tellPaths(in: CLibrary.folderOfPrograms)
    }

    @Test func `the second program of the tutorial answers when the server has spoken`() async throws {
        try await ClientTutorial("docs/clients-c.md").answer(in: CLibrary.folderOfPrograms)
    }
}
