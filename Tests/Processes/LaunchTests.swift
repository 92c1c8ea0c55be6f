// SPDX-License-Identifier: Apache-2.0

import DialtoneConnection
import DialtoneExpectations
import DialtonePlatform
import DialtoneTestSupport
import Foundation
import Testing

@testable import DialtoneProcesses

/// What a program that is launched finds, and what it does not.
@Suite struct LaunchTests {
    @Test func `the socket is descriptor three in the convention of systemd`() async throws {
        let script = "echo $$ $LISTEN_PID $LISTEN_FDS $LISTEN_FDNAMES >&3; read line <&3; echo got $line >&3"
        let pair = Pair()
        pair.write("hello\n")
        let launch = try await Launch(.script(script), socket: pair.program)
        expect(try await launch.ended(), is: .exited(status: 0))
        shutdown(pair.program, CInt(SHUT_RDWR))
        let lines = try await pair.text().split(separator: "\n")
        let number = try await #require(launch.program).process.number
        #expect(lines == ["\(number) \(number) 1 office_1", "got hello"], "a colon would part two names")
    }

    @Test func `or it is standard input and output`() async throws {
        let pair = Pair()
        pair.write("one\ntwo\n")
        shutdown(pair.test, CInt(SHUT_WR))
        let launch = try await Launch(.script("cat", .standard), socket: pair.program)
        expect(try await launch.ended(), is: .exited(status: 0))
        shutdown(pair.program, CInt(SHUT_RDWR))
        expect(try await pair.text(), is: "one\ntwo\n")
    }

    @Test func `its reads wait although the agents do not`() async throws {
        let pair = Pair()
        // Nothing is there to be read when it begins: a read that does not wait would fail.
        let launch = try await Launch(.script("read line; echo \"$line\"", .standard), socket: pair.program)
        try await launch.started()
        #expect(fcntl(pair.program, F_GETFL) & O_NONBLOCK == 0)
        pair.write("late\n")
        expect(try await launch.ended(), is: .exited(status: 0))
        shutdown(pair.program, CInt(SHUT_RDWR))
        expect(try await pair.text(), is: "late\n")
    }

    @Test func `the environment is its owner's and the wake's`() async throws {
        setenv("DIALTONE_TEST_SECRET", "1", 1)
        let request = ProgramRequest.script(
            "env -u _ -u PWD -u OLDPWD -u SHLVL >&3; pwd >&3", variables: ["DIALTONE_WAKE": "7"])
        let lines = try await request.output().split(separator: "\n").map(String.init)
        let names = Set(lines.compactMap { $0.split(separator: "=").first.map(String.init) })
        let expected: Set = [
            "HOME", "LOGNAME", "PATH", "SHELL", "USER", "DIALTONE_WAKE", "LISTEN_FDS", "LISTEN_FDNAMES", "LISTEN_PID",
        ]
        let ofSession: Set = [
            "DBUS_SESSION_BUS_ADDRESS", "DISPLAY", "LANG", "WAYLAND_DISPLAY", "XAUTHORITY", "XDG_RUNTIME_DIR",
        ]
        #expect(names.subtracting(ofSession).subtracting(["/tmp"]) == expected)
        #expect(lines.contains("HOME=/tmp") && lines.contains("DIALTONE_WAKE=7") && lines.contains("USER=tester"))
        #expect(lines.last == "/tmp", "it begins at home")
    }

    @Test func `without a socket there is nothing to listen on`() async throws {
        let file = NSTemporaryDirectory() + "launch.\(UUID().uuidString.prefix(8))"
        defer { unlink(file) }
        let script =
            "echo ${LISTEN_FDS-none} ${LISTEN_PID-none} ${DIALTONE_NAME-none} >\(file); test -e /proc/self/fd/3"
        let request = ProgramRequest.script(script, variables: ["DIALTONE_NAME": "office"])
        let launch = try await Launch(request, socket: nil)
        expect(try await launch.ended(), is: .exited(status: 1), "nor a descriptor")
        #expect(try String(contentsOfFile: file, encoding: .utf8) == "none none office\n")
    }

    @Test func `ithas no other descriptor of the agents`() async throws {
        precondition(dup2(STDERR_FILENO, 321) == 321, "without close-on-exec")
        defer { close(321) }
        let script = "for n in 3 4 5 6 7 8 9 321; do test -e /proc/$$/fd/$n && echo $n >&3; done; echo end >&3"
        expect(try await ProgramRequest.script(script).output(), is: "3\nend\n")
    }

    @Test func `nothing of the agents signals limits or session is inherited`() async throws {
        // As the daemon has it.
        signal(SIGPIPE, SIG_IGN)
        let script = """
            grep -E '^(SigBlk|SigIgn|NoNewPrivs|CapAmb)' /proc/$$/status | tr -d '\\t' >&3
            set -- $(cat /proc/$$/stat); echo "$6 $$" >&3
            ulimit -n >&3; umask >&3
            """
        let lines = try await ProgramRequest.script(script).output().split(separator: "\n").map(String.init)
        try #require(lines.count == 7)
        #expect(
            Set(lines[..<4]) == [
                "SigBlk:0000000000000000", "SigIgn:0000000000000000", "NoNewPrivs:1", "CapAmb:0000000000000000",
            ])
        let session = lines[4].split(separator: " ")
        #expect(session.first == session.last, "it leads a session of its own")
        #expect(try #require(Int(lines[5])) <= 1024)
        #expect(lines[6] == "0022")
    }

    @Test(arguments: [("/does/not/exist", ENOENT), ("/etc/passwd", EACCES), ("/tmp", EACCES)])
    func `a program that cannot run is told as such`(path: String, code: CInt) async throws {
        let pair = Pair()
        let request = ProgramRequest(command: [path], identity: thisUser, streams: .passed, connection: "office")
        let launch = try await Launch(request, socket: pair.program)
        try await launch.started()
        let failure = try #require(await launch.failure)
        #expect(failure.code == code && failure.operation == "running \(path)")
        let process = try await #require(launch.program).process
        try await eventually("it is reaped") { !process.isAlive }
        expect(await launch.end, is: nil, "what never ran has not ended")
        #expect(fcntl(pair.program, F_GETFL) & O_NONBLOCK != 0, "the flag, which both share, is as it was")
    }

    @Test func `its end is told with its status or its signal`() async throws {
        expect(try await Launch(.script("exit 3"), socket: nil).ended(), is: .exited(status: 3))
        expect(try await Launch(.script("kill -9 $$"), socket: nil).ended(), is: .killed(signal: 9))
        expect(try await Launch(.script("exit 0"), socket: nil).ended(), is: .exited(status: 0))
    }

    @Test func `whoever lets go of it does not end it and it is still reaped`() async throws {
        let pair = Pair()
        let box = try await onQueue { try HandleBox(Launch(.script("read line <&3"), socket: pair.program)) }
        try await eventually("it runs") { box.handle.isAlive }
        pair.write("\n")
        try await eventually("it is gone, and no zombie of it left") {
            access("/proc/\(box.handle.number)", F_OK) != 0
        }
    }

    @Test func `its process waits until somebody has noted it`() async throws {
        let pair = Pair()
        let script = "echo ran >&3; read line <&3; exit 3"
        let order = WakeOrder(
            WakeAttempt(wake: 1, attempt: 1, means: .exec, reasons: []),
            WakeTargets(program: .init(command: ["/bin/sh", "-c", script], streams: .passed, identity: thisUser)),
            connection: "office", owner: geteuid(), epoch: 1, socketPath: "/nowhere")
        let own = try FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")
        let attempt = await onQueue {
            Attempt(order, socket: pair.program) { process in
                #expect(process.programWhenAsleep() == own)
                #expect(pair.textByNow() == "")
            }
        }
        pair.write("\n")
        try await eventually("the program has ended, or never ran") { attempt.end != nil || attempt.failure != nil }
        expect(await attempt.failure, is: nil)
        expect(await attempt.end, is: .exited(status: 3))
        #expect(pair.textByNow() == "ran\n")
    }

    /// The kernel closes the end of the pipe when the agent is killed.
    @Test func `a process that nobody can have noted becomes no program`() async throws {
        let pair = Pair()
        let launch = try await Launch(.script("echo ran >&3"), socket: pair.program, began: { $0.leave = nil })
        try await launch.started()
        let failure = try #require(await launch.failure)
        #expect(failure.code == ECANCELED && failure.operation == "waiting for leave to run /bin/sh", "\(failure)")
        let process = try await #require(launch.program).process
        try await eventually("it is reaped") { !process.isAlive }
        shutdown(pair.program, CInt(SHUT_RDWR))
        expect(try await pair.text(), is: "")
        expect(await launch.end, is: nil)
    }

    @Test func `no process keeps another one waiting`() async throws {
        let (pair, other) = (Pair(), Pair())
        let launch = try await onQueue {
            try Launch(.script("echo ran >&3"), socket: pair.program) { first in
                do {
                    _ = try Launch(.script("exit 0"), socket: other.program) { second in
                        _ = second.process.programWhenAsleep()
                        first.leave = nil
                        #expect(first.process.hasEndedSoon())
                    }
                } catch {
                    Issue.record(error)
                }
            }
        }
        try await launch.started()
        expect(await launch.failure?.code, is: ECANCELED)
    }

    @Test func `a program that has just begun when its time is over is not killed`() async throws {
        let pair = Pair()
        let launch = try await onQueue {
            let launch = try Launch(.script("echo ran >&3; read line <&3; exit 3"), socket: pair.program)
            // In one turn, in which nobody hears that it runs.
            #expect(pair.textWhenThere() == "ran\n")
            #expect(!launch.hasStarted)
            launch.program?.giveUp()
            return launch
        }
        try await launch.started()
        expect(await launch.failure, is: nil)
        pair.write("\n")
        expect(try await launch.ended(), is: .exited(status: 3))
    }

    @Test func `a child that cannot be watched is ended and reaped`() async throws {
        var process: pid_t = 0
        var arguments: [UnsafeMutablePointer<CChar>?] = [strdup("sleep"), strdup("1000"), nil]
        defer { for argument in arguments { free(argument) } }
        try #require(posix_spawn(&process, "/bin/sleep", nil, nil, &arguments, environ) == 0)
        let child = process
        await onQueue { LaunchedProgram.discard(child) }
        // No zombie either: there is no such process.
        try await eventually("it is gone") { kill(child, 0) != 0 && errno == ESRCH }
    }

    @Test func `it is its owner's and cannot come back`() async throws {
        guard hasManyUsers else {
            print("skipped: becoming another user takes root, and more than one user")
            return
        }
        let owner = nobody
        let script = """
            id -u >&3; id -G >&3; grep -E '^(Uid|Gid|CapEff|CapPrm)' /proc/$$/status | tr '\\t' ' ' >&3
            """
        let lines = try await ProgramRequest.script(script, as: owner).output().split(separator: "\n").map(String.init)
        try #require(lines.count == 6)
        #expect(lines[0] == "65534")
        #expect(Set(lines[1].split(separator: " ")) == ["65534", "1234"])
        #expect(lines[2] == "Uid: 65534 65534 65534 65534" && lines[3] == "Gid: 65534 65534 65534 65534")
        #expect(lines[4].hasSuffix(" 0000000000000000") && lines[5].hasSuffix(" 0000000000000000"))
    }

    @Test func `an identity is what the system's list says`() throws {
        let root = try #require(ProgramIdentity.lookUp(0))
        #expect(root.name == "root" && root.home == "/root" && root.groups.contains(0))
        #expect(ProgramIdentity.lookUp(3_999_999_999) == nil)
    }
}

/// Keeps a process's handle, and nothing else of a launch.
@AgentQueue
private final class HandleBox {
    let handle: ProcessHandle

    init(_ launch: Launch) throws { handle = try #require(launch.program).process }
}
