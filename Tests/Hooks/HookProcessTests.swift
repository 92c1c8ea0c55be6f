// SPDX-License-Identifier: Apache-2.0

import DialtoneAPI
import DialtonePlatform
import DialtoneTestSupport
import Foundation
import Glibc
import Testing

@testable import DialtoneHooks

/// One hook that runs.
@Suite(.timeLimit(.minutes(1))) struct HookProcessTests {
    private let hooks = TemporaryHooks()
    private let change = HookChange(
        .networkUp,
        .network(
            .init(
                path: .init(
                    generation: 1, status: .satisfied, coherent: true, isDirect: true, isLocalAddress: false,
                    supportsIPv4: true, supportsIPv6: true, supportsDNS: true, expensive: false, constrained: false),
                changes: ["status"])))

    private func run(_ script: String, limit: Duration = .seconds(50)) async throws -> HookProcess.End {
        try hooks.write(script, "hook")
        return try await runHook(limit)
    }

    private func runHook(_ limit: Duration) async throws -> HookProcess.End {
        while true {
            do throws(SystemError) {
                return try await HookProcess.run("\(hooks.path)/hook", change, limit: limit)
            } catch {
                // A program that another test starts has the file open until it is itself.
                guard error.code == ETXTBSY else { throw error }
                try Task.checkCancellation()
            }
        }
    }

    @Test func `it gets the change as argument, in its environment and as JSON`() async throws {
        let end = try await run(
            #"cat >"$0.json"; echo "$1 $DIALTONE_STATUS $DIALTONE_CHANGES" >"$0.words"; exit 7"#)
        #expect(end == .exited(7))
        #expect(hooks.read("hook.words") == "network-up satisfied status\n")
        #expect(hooks.read("hook.json") == String(decoding: change.json, as: UTF8.self))
    }

    @Test func `it inherits the environment, but for what is of its parent alone`() {
        let environment = HookProcess.environment(
            change,
            in: [
                "PATH": "/bin", "DIALTONE_SOCKET": "/socket", "DIALTONE_OWNER": "of another", "LISTEN_FDS": "1",
                "NOTIFY_SOCKET": "/notify",
            ])
        #expect(
            environment.sorted() == [
                "DIALTONE_CHANGE=network-up", "DIALTONE_CHANGES=status", "DIALTONE_SOCKET=/socket",
                "DIALTONE_STATUS=satisfied", "PATH=/bin",
            ])
    }

    @Test func `it need not read, and a signal is told as by the shell`() async throws {
        let end = try await run("kill -USR1 $$")
        #expect(end == .exited(128 + SIGUSR1))
    }

    @Test func `one that hangs is ended at its limit`() async throws {
        let end = try await run("exec sleep 1000", limit: .milliseconds(50))
        #expect(end == .overran)
    }

    @Test func `one that ignores SIGTERM, and what it started, is killed`() async throws {
        let end = try await run(
            #"trap '' TERM; sh -c 'trap "" TERM; echo $$ >"$1.child"; sleep 1000' sh "$0" & sleep 1000; wait"#,
            limit: .milliseconds(500))
        #expect(end == .overran)
        let child = try #require(pid_t(hooks.read("hook.child").trimmingCharacters(in: .newlines)))
        try await eventually("process \(child) to be gone") { kill(child, 0) != 0 }
    }

    @Test func `what it started is left alone if it ends in time`() async throws {
        let end = try await run(#"sleep 1000 & echo $! >"$0.child""#)
        #expect(end == .exited(0))
        let child = try #require(pid_t(hooks.read("hook.child").trimmingCharacters(in: .newlines)))
        #expect(kill(child, 0) == 0)
        kill(child, SIGKILL)
    }

    @Test func `a file that is no program fails with the kernel's word`() async throws {
        try Data("text".utf8).write(to: URL(filePath: "\(hooks.path)/hook"))
        chmod("\(hooks.path)/hook", 0o755)
        let error = await #expect(throws: SystemError.self) { _ = try await runHook(.seconds(1)) }
        #expect(error?.code == ENOEXEC, "\(String(describing: error))")
    }
}
