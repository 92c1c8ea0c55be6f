// SPDX-License-Identifier: Apache-2.0

import DialtoneAPI
import DialtoneClient
import DialtoneExpectations
import DialtoneLabSupport
import Foundation
import Testing

/// `dialtone take`, `park` and `adopt`: programs that know nothing of the agent, on connections that it keeps.
@Suite(.lab)
struct TakeStories {
    private func office() async throws -> Office { try await Office.open() }

    @Test func `a program reads and writes the connection as its standard input and output, and leaves it parked`()
        async throws
    {
        let office = try await office()
        try office.server.send("hello\n")
        let command = try await office.take(
            [],
            """
            read word; echo "$word to you"; grep flags /proc/self/fdinfo/0
            echo "$DIALTONE_NAME $DIALTONE_EPOCH $LISTEN_FDS" >&2
            """
        )
        expect(try await command.exit(), is: .status(0))
        #expect(command.text(of: .output).isEmpty)
        #expect(command.text(of: .error) == "office 1 ")
        let words = try office.server.receive().split(separator: "\n")
        #expect(words.first == "hello to you")
        // Octal, and without O_NONBLOCK.
        let flags = try #require(words.last?.split(separator: "\t").last.flatMap { Int($0, radix: 8) })
        #expect(flags & 0o4000 == 0)
        let parked = try await office.parked()
        #expect((parked.epoch, parked.holder, parked.session) == (1, .daemon, .open))
    }

    @Test(arguments: [["--on-data"], ["--wait", "--on-data"]])
    func `a command runs when something comes, and not before`(options: [String]) async throws {
        let office = try await office()
        let command = try await office.take(options, #"read word; echo "$word to you""#)
        let other = try await office.take(["--wait"], "echo first")
        #expect(try office.server.receive() == "first\n")
        expect(try await other.exit(), is: .status(0))
        try office.server.send("hello\n")
        expect(try await command.exit(), is: .status(0))
        #expect(try office.server.receive() == "hello to you\n")
    }

    @Test func `a command that waits for a connection runs when there is one`() async throws {
        let office = try await office()
        office.server.close()
        office.listener.close()
        _ = try await office.events.state(.backingOff, of: "office")
        let command = try await office.take(["--wait"], "echo back")
        #expect(command.isRunning)
        let listener = try await office.machine.run { try TCPSocket.listening(on: office.port) }
        let server = try await office.machine.run { try listener.accept() }
        #expect(try server.receive() == "back\n")
        expect(try await command.exit(), is: .status(0))
    }

    @Test func `a program finds the connection as descriptor 3 in the convention of systemd`() async throws {
        let office = try await office()
        let command = try await office.take(
            ["--fd"], #"[ "$LISTEN_PID" = $$ ] && echo "$LISTEN_FDS $LISTEN_FDNAMES" >&3; read word; echo "<$word>""#)
        try command.send("typed\n")
        expect(try await command.exit(), is: .status(0))
        // Its own standard input and output are those of whoever runs it.
        #expect(command.text(of: .output) == "<typed>")
        #expect(try office.server.receive() == "1 office\n")
        _ = try await office.parked()
    }

    @Test func `a program that fails leaves a connection of whose session nothing is known`() async throws {
        let office = try await office()
        let command = try await office.take([], "exit 3")
        expect(try await command.exit(), is: .status(3))
        // Nobody knows what the server takes it for: there is a new one, and its client is told.
        let next = try await office.events.event("a new flow") {
            $0.connection.epoch == 2 && $0.connection.state == .ready
        }
        #expect((next.connection.holder, next.connection.session) == (.daemon, .none))
        #expect(!office.events.events.contains { $0.kind == .parked })
    }

    @Test(arguments: [SIGTERM, SIGINT, SIGHUP, SIGUSR1])
    func `a signal reaches the program, which decides what becomes of it`(signal: CInt) async throws {
        let office = try await office()
        // A shell that is about to read when its trap is due reads first (dash(1)); `wait` has no such moment.
        let command = try await office.take(
            [], "trap 'kill $!; exit 7' TERM INT HUP USR1; sleep 600 & echo ready >&2; wait; exit 9")
        _ = try await command.line(containing: "ready")
        command.signal(signal)
        expect(try await command.exit(), is: .status(7))
    }

    @Test func `a program that a signal ends is told as shells tell it`() async throws {
        let office = try await office()
        expect(try await office.take(["--fd"], "kill -KILL $$").exit(), is: .status(128 + SIGKILL))
    }

    @Test(arguments: [("no-such-command", 127 as CInt), ("/no/such/command", 127), ("/etc/passwd", 126), ("/etc", 126)])
    func `what cannot be run takes nothing`(program: String, status: CInt) async throws {
        let office = try await office()
        let command = try await office.start(["take", "office", "--", program])
        expect(try await command.exit(), is: .status(status))
        #expect(command.text(of: .error).contains(program))
        expect(try await office.connection.holder, is: .daemon)
        #expect(!office.events.events.contains { $0.kind == .taken })
    }

    @Test func `a program parks by itself with what its environment says`() async throws {
        let office = try await office()
        let dialtone = LabAgent.program("dialtone")
        expect(try await office.take([], "\(dialtone) park office && exit 5").exit(), is: .status(5))
        expect(try await office.parked().session, is: .open)
        let stale = try await office.start(["park", "office", "--epoch", "7"])
        expect(try await stale.exit(), is: .status(EXIT_FAILURE))
        #expect(stale.text(of: .error).hasPrefix("dialtone: "))
    }

    @Test func `a connection that another program opened is adopted, and taken later`() async throws {
        let office = try await office()
        let dialtone = LabAgent.program("dialtone")
        let script = "exec 3<>/dev/tcp/127.0.0.1/\(try office.listener.port()); \(dialtone) adopt chat --fd 3"
        let adoption = try await office.machine.spawn(
            ["bash", "-c", script], environment: ["DIALTONE_SOCKET": office.home.socket])
        let server = try await office.machine.run { try office.listener.accept() }
        expect(try await adoption.exit(), is: .status(0), "\(adoption.text(of: .error))")
        #expect(adoption.text(of: .output) == "chat")
        try server.send("while you slept\n")
        let taken = try await office.start(["take", "chat", "--", "sh", "-c", #"read words; echo "$words?""#])
        expect(try await taken.exit(), is: .status(0))
        #expect(try server.receive() == "while you slept?\n")
    }
}
