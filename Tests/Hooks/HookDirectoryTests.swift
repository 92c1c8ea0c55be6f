// SPDX-License-Identifier: Apache-2.0

import DialtoneTestSupport
import Foundation
import Glibc
import Testing

@testable import DialtoneHooks

/// Which files of a directory are run.
@Suite struct HookDirectoryTests {
    /// As a user who is not root has it: the directories above are none of its business.
    private let hooks = TemporaryHooks()

    private var content: HookDirectory.Content {
        HookDirectory(hooks.path, of: max(geteuid(), 1)).content()
    }

    private var refused: [String] {
        content.refusals.map { "\($0.path.dropFirst(hooks.path.count)): \($0.why)" }
    }

    @Test func `one that is not there holds no hooks`() {
        rmdir(hooks.path)
        #expect(content.hooks.isEmpty && content.refusals.isEmpty)
    }

    @Test func `hooks run in the order of their names, and what editors and packages leave is none`() throws {
        for name in ["20-b", "10-a", "9.sh", ".hidden", "10-a~", "10-a.dpkg-old", "10-a.rpmnew", "a b", "é"] {
            try hooks.write("", name)
        }
        #expect(content.hooks == ["10-a", "20-b", "9.sh"].map { "\(hooks.path)/\($0)" })
        #expect(refused == [])
    }

    @Test func `what others can write to is not run`() throws {
        try hooks.write("", "group", mode: 0o775)
        try hooks.write("", "world", mode: 0o757)
        try hooks.write("", "fine")
        #expect(content.hooks == ["\(hooks.path)/fine"])
        #expect(
            refused == ["/group: others can write to it; chmod go-w", "/world: others can write to it; chmod go-w"])
        chmod(hooks.path, 0o777)
        #expect(content.hooks == [])
        #expect(refused == [": others can write to it; chmod go-w"])
    }

    @Test func `what is no program is not run`() throws {
        try hooks.write("", "text", mode: 0o644)
        mkdir("\(hooks.path)/folder", 0o755)
        mkfifo("\(hooks.path)/pipe", 0o755)
        symlink("nowhere", "\(hooks.path)/broken")
        #expect(content.hooks == [])
        #expect(
            refused == [
                "/broken: looking at it: No such file or directory", "/folder: it is not a file",
                "/pipe: it is not a file", "/text: it is not executable; chmod +x, or move it away",
            ])
    }

    @Test func `what belongs to somebody else is not run`() throws {
        guard geteuid() == 0 else { try Test.cancel("only root can give a file away") }
        try hooks.write("", "hook")
        guard chown("\(hooks.path)/hook", 1, 1) == 0 else { try Test.cancel("there is one user here alone") }
        let root = HookDirectory(hooks.path, of: 0).content()
        #expect(HookDirectory(hooks.path, of: 1).content().hooks.count == 1, "its own")
        let other = HookDirectory(hooks.path, of: 2).content()
        #expect(other.refusals.map(\.why) == ["it belongs to user 1; it must belong to root or user 2"])
        #expect(root.hooks == [])
    }

    @Test func `root's are not run from below a directory that others can write to`() throws {
        guard geteuid() == 0 else { try Test.cancel("the files must be root's") }
        try hooks.write("", "hook")
        let root = HookDirectory(hooks.path, of: 0).content()
        #expect(root.hooks == [])
        #expect(root.refusals.map(\.why) == ["/tmp: only root may be able to write to it; chown root and chmod go-w"])
    }

    @Test func `more files than anybody has hooks are not looked at`() throws {
        for number in 0...HookDirectory.mostFiles { try hooks.write("", "\(number)") }
        #expect(content.hooks == [])
        #expect(refused == [": it holds more than 1000 files"])
    }
}

/// A directory of hooks below /tmp.
final class TemporaryHooks {
    let path = "/tmp/dialtone-hooks.\(UUID().uuidString)"

    init() {
        mkdir(path, 0o755)
        chmod(path, 0o755)
    }

    deinit { try? FileManager.default.removeItem(atPath: path) }

    /// A script.
    func write(_ text: String, _ name: String, mode: mode_t = 0o755) throws {
        try Data("#!/bin/sh\n\(text)\n".utf8).write(to: URL(filePath: "\(path)/\(name)"))
        chmod("\(path)/\(name)", mode)
    }

    /// What a hook left in a file; empty where there is none.
    func read(_ name: String) -> String {
        (try? String(contentsOfFile: "\(path)/\(name)", encoding: .utf8)) ?? ""
    }
}
