// SPDX-License-Identifier: Apache-2.0

import DialtoneAPI
import DialtoneClient
import DialtoneExpectations
import DialtoneLabSupport
import DialtonePlatform
import Foundation
import Glibc
import Testing

/// Clients that do it wrong, die in between, or cannot be woken.
@Suite(.lab, .timeLimit(.minutes(5)))
struct HandoverFaultStories {
    /// `ask` sends Take, and waits until the answer is there, with its descriptor.
    private static let asks = """
        import json, os, select, socket, sys, time
        agent = socket.socket(socket.AF_UNIX)
        def connect(): agent.connect(os.environ["DIALTONE_SOCKET"])
        def ask():
            call = {"method": "org.dialtone.Connections.Take", "parameters": {"name": "office"}}
            agent.sendall(json.dumps(call).encode() + b"\\0")
            select.select([agent], [], [])

        """

    private func python(_ script: String, in office: Office) async throws -> LabProcess {
        try await office.run(["python3", "-u", "-c", Self.asks + script])
    }

    /// What there is to read on the flow that is taken now.
    private func takeAndRead(_ office: Office) async throws -> (epoch: Int, isOver: Bool, text: String) {
        let flow = try await office.home.client.take("office")
        var buffer = [UInt8](repeating: 0, count: 4096)
        let count = recv(flow.descriptor.number, &buffer, buffer.count, CInt(MSG_DONTWAIT))
        return (flow.epoch, flow.isOver, String(decoding: buffer.prefix(max(count, 0)), as: UTF8.self))
    }

    @Test func `a client that dies before it has read its descriptor leaves every byte`() async throws {
        let office = try await Office.open()
        try office.server.send("INVITE")
        _ = try await office.events.event("the bytes") { $0.kind == .arrived }
        _ = try await python("connect()\nask()\nos._exit(0)", in: office).exit()
        _ = try await office.events.event("a new flow") {
            $0.connection.epoch == 2 && $0.connection.state == .ready
        }
        expect(try await takeAndRead(office)) { $0 == (1, true, "INVITE") }
        expect(try await takeAndRead(office)) { $0 == (2, false, "") }
    }

    @Test func `one that hangs up instead, and lives, has the flow until it ends`() async throws {
        let office = try await Office.open()
        let client = try await python(
            "connect()\nask()\nagent.close()\nprint('has it')\ntime.sleep(1000)", in: office)
        _ = try await client.line(containing: "has it")
        await #expect(throws: DialtoneError.self) {
            _ = try await office.home.client.take("office")
        }
        expect(try await office.connection.holder, is: .client)
        _ = try await client.killNow()
        _ = try await office.events.event("a new flow") {
            $0.connection.epoch == 2 && $0.connection.state == .ready
        }
    }

    /// The agent would wait for an end that has been.
    @Test func `who connected and has ended is given nothing, whoever asks in its name`() async throws {
        let office = try await Office.open()
        let script = """
            go, is_reaped = os.pipe()
            first = os.fork()
            if first == 0:
                connect()
                if os.fork() > 0: os._exit(0)
                os.read(go, 1)
                ask()
                print(agent.recv(4096).decode())
                os._exit(0)
            os.waitpid(first, 0)
            os.write(is_reaped, b"!")
            time.sleep(1000)
            """
        let client = try await python(script, in: office)
        let answer = try await client.line(containing: "error")
        #expect(answer.text.contains("org.dialtone.Connections.SystemFailure"), "\(answer.text)")
        #expect(answer.text.contains("which connected and has ended"))
        expect(try await office.connection.holder, is: .daemon)
        #expect(!office.events.events.contains { $0.kind == .taken })
    }

    @Test func `of eight programs that take at once one has the flow, and the others are told who`() async throws {
        let office = try await Office.open()
        var commands: [LabProcess] = []
        for _ in 0..<8 { commands.append(try await office.take([], "read line; echo $line")) }
        _ = try await office.events.event("one to have it") { $0.kind == .taken }
        // Of those that came too late each has ended before the one that has it is let go.
        let holder = try await HoldersAndOthers.tellApart(commands)
        #expect(holder.refused.allSatisfy { $0.contains("has the socket of \"office\"") }, "\(holder.refused)")
        try office.server.send("hello\n")
        #expect(try office.server.receive() == "hello\n")
        expect(try await holder.winner.exit(), is: .status(0))
        expect(try await office.parked().epoch, is: 1)
        #expect(office.events.events.count { $0.kind == .taken } == 1)
    }

    @Test func `of two that keep a connection alive the later one does, and the other is let go`() async throws {
        let office = try await Office.open()
        let client = office.home.client
        try await withThrowingTaskGroup(of: Void.self) { callers in
            for _ in 1...2 {
                callers.addTask { try await client.keepAlive("office", timeout: .seconds(60)) {} }
            }
            try await callers.next()
            callers.cancelAll()
            // The one that was called until now.
            await #expect(throws: DialtoneError.self) { try await callers.next() }
        }
    }

    // MARK: - A disk that is full

    @Test func `with a disk that is full the agent goes on, says so once, and writes again when there is room`()
        async throws
    {
        let (machine, home) = (try await Namespace.island(), try DaemonHome())
        try await machine.command(["mkdir", "-p", home.state])
        try await machine.command(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", home.state])
        let daemon = try await home.start(on: machine)
        _ = try await home.client.open(.init(remote: "tcp://192.0.2.1:1", name: "before"))
        // Whoever reads the history has what is to be written of it written.
        expect(try await home.dialtone("history", on: machine).output) { $0.contains("before") }
        let ballast = "\(home.state)/ballast"
        try await machine.command(["sh", "-c", "dd if=/dev/zero of=\(ballast) bs=4096 2>&1 || true"])
        // What is left of the last page takes some lines.
        for number in 0..<20 {
            _ = try await home.client.open(.init(remote: "tcp://192.0.2.1:1", name: "full-\(number)"))
        }
        _ = try await daemon.line(containing: "the history is not kept for now")
        expect(try await home.client.connections().count, is: 21)
        try await machine.command(["rm", ballast])
        _ = try await home.client.open(.init(remote: "tcp://192.0.2.1:1", name: "after"))
        _ = try await daemon.line(containing: "the history is kept again")
        let complaints = daemon.text(of: .error).components(separatedBy: "the history is not kept").count - 1
        #expect(complaints == 1)
        let history = try await home.dialtone("history", on: machine)
        #expect(history.output.contains("before") && history.output.contains("after"), "\(history)")
        #expect(!history.output.contains("full-19"), "it could not be kept")
    }

    // MARK: - Wakes that fail

    private func configuration(_ wake: String, _ remote: String) -> String {
        """
        remote = '\(remote)'
        owner  = 'root'
        wake   = { \(wake), attempts = 3, pause = '100ms', longest_pause = '200ms' }
        """
    }

    @Test(arguments: [
        ("exec = ['/does/not/exist']", "waking by exec failed: running /does/not/exist: No such file or directory"),
        ("exec = ['/bin/false']", "its program ended with status 1"),
        ("unit = 'no-such.service'", "waking by unit failed: there is no bus"),
    ])
    func `a target that is missing or fails is tried again, given up and told, and no byte is lost`(
        wake: String, line: String
    ) async throws {
        let office = try await Office.open { configuration(wake, $0) }
        try office.server.send("INVITE")
        let end = try await office.events.event("the wake to be given up") { $0.wake?.stage == .failed }
        #expect(end.connection.wakeFailed == true)
        // Beside the events, of which this subscriber gets one in each round.
        let attempts = office.events.events.count { $0.wake?.stage == .attempted && $0.wake?.means != .event }
        #expect(attempts >= 3)
        let history = try await office.home.dialtone("history", "office", on: office.machine)
        #expect(history.output.contains(line), "\(history.output)")
        expect(try await takeAndRead(office)) { $0 == (1, false, "INVITE") }
    }

    @Test func `a client that could not be woken is seen in the status`() async throws {
        let office = try await Office.open { configuration("exec = ['/does/not/exist']", $0) }
        try office.server.send("INVITE")
        _ = try await office.events.event("the wake to be given up") { $0.wake?.stage == .failed }
        let status = try await office.home.dialtone("status", on: office.machine)
        #expect(status.output.contains("6 bytes unread, no client could be woken"), "\(status.output)")
        let history = try await office.home.dialtone("history", "office", on: office.machine)
        #expect(history.output.contains("not woken for data: given up after "), "\(history.output)")
    }
}

/// Of programs that wanted one flow, the one that has it.
private struct HoldersAndOthers {
    let winner: LabProcess
    /// What the others wrote.
    let refused: [String]

    static func tellApart(_ commands: [LabProcess]) async throws -> HoldersAndOthers {
        let limit = BootClock.now() + .seconds(20)
        while commands.count(where: \.isRunning) > 1, BootClock.now() < limit {
            try await Task.sleep(for: .milliseconds(10))
        }
        let running = commands.filter(\.isRunning)
        try #require(running.count == 1)
        var refused: [String] = []
        for command in commands where command !== running[0] {
            expect(try await command.exit(), is: .status(EXIT_FAILURE))
            refused.append(command.text(of: .error))
        }
        return HoldersAndOthers(winner: running[0], refused: refused)
    }
}
