// SPDX-License-Identifier: Apache-2.0

import DialtoneExpectations
import DialtoneLabSupport
import DialtonePlatform
import Glibc
import Testing

/// Processes in the Lab.
@Suite(.lab)
struct LabProcessTests {
    private struct Crash: Error {}

    @Test func `a process dies with the Lab, also when the test throws`() async throws {
        let started = Lock<LabProcess?>(nil)
        await #expect(throws: Crash.self) {
            try await LabNetwork.with { lab in
                let process = try await lab.host.spawn(["cat"])
                started.withLock { $0 = process }
                throw Crash()
            }
        }
        let process = try #require(started.withLock { $0 })
        expect(try await process.exit(), is: .signal(SIGTERM))
        #expect(kill(process.processID, 0) == -1 && errno == ESRCH)
    }

    @Test func `a process that ignores the request to end is killed`() async throws {
        try await LabNetwork.with { lab in
            let script = "trap '' TERM; echo ready; while :; do read -r line || read -r line < /dev/zero; done"
            let process = try await lab.host.spawn(["sh", "-c", script])
            _ = try await process.line(containing: "ready")
            expect(try await process.terminate(patience: .milliseconds(100)), is: .signal(SIGKILL))
        }
    }

    @Test func `a namespace that is let go takes its processes with it`() async throws {
        var machine: Namespace? = try await Namespace.create("a machine")
        let process = try #require(try await machine?.spawn(["cat"]))
        machine = nil
        expect(try await process.exit(), is: .signal(SIGKILL))
    }
}
