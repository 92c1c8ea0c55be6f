// SPDX-License-Identifier: Apache-2.0

import DialtoneExpectations
import DialtoneLabSupport
import DialtonePlatform
import DialtoneTestSupport
import Glibc
import Testing

@Suite("Processes in the Lab", .lab)
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

    @Test func `a process talks by lines, and its last words count without a line's end`() async throws {
        try await LabNetwork.with { lab in
            let process = try await lab.host.spawn(["sh", "-c", "read -r name; echo \"hello $name\"; printf oops >&2"])
            try process.send("lab\n")
            let greeting = try await process.line(containing: "hello lab")
            #expect(greeting.stream == .output)
            expect(try await process.exit(), is: .status(0))
            #expect(process.text(of: .error) == "oops")
        }
    }

    @Test func `waiting for a line that never comes ends with the process, and tells what it printed`() async throws {
        try await LabNetwork.with { lab in
            let process = try await lab.host.spawn(["sh", "-c", "echo something else; exit 3"])
            await #expect { try await process.line(containing: "the line") } throws: { error in
                "\(error)".contains("ended with status 3") && "\(error)".contains("something else")
            }
        }
    }

    @Test(.disabled(if: isSanitized, "ThreadSanitizer's posix_spawn does not tell the error"))
    func `a program that is not there is an error of the kernel`() async throws {
        try await LabNetwork.with { lab in
            await #expect { try await lab.host.spawn(["/nonexistent/program"]) } throws: { error in
                (error as? SystemError)?.code == ENOENT
            }
        }
    }

    @Test func `a process has no descriptor but its three and the environment it was given`() async throws {
        try await LabNetwork.with { lab in
            expect(try await lab.host.command(["sh", "-c", "ls /proc/$$/fd"]), is: "0\n1\n2")
            let process = try await lab.host.spawn(["sh", "-c", "echo $STORY"], environment: ["STORY": "a b"])
            _ = try await process.line(containing: "a b")
        }
    }

    @Test func `a process sees its own machine's links and parameters`() async throws {
        try await LabNetwork.with { lab in
            let link = try await lab.host.command(["ip", "-br", "link", "show", "wan1"])
            #expect(link.hasPrefix("wan1@if21"))
            expect(try await lab.router.command(["cat", "/proc/sys/net/ipv4/ip_forward"]), is: "1")
            expect(try await lab.host.sysctl("net.ipv4.ip_forward"), is: "0")
        }
    }
}
