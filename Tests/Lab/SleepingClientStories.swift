// SPDX-License-Identifier: Apache-2.0

import DialtoneAPI
import DialtoneClient
import DialtoneExpectations
import DialtoneLabSupport
import DialtonePlatform
import DialtoneTestSupport
import Glibc
import Testing

/// Clients that sleep while the agent has their connection, and the example programs that do so.
@Suite(.lab, .timeLimit(.minutes(10)))
struct SleepingClientStories {
    /// Ten lines for each sleep.
    private static let sleeps = 1000
    private static let linesEach = 10

    @Test func `ten thousand messages over a thousand sleeps arrive once, whole and in order`() async throws {
        let (machine, home) = (try await Namespace.island(), try DaemonHome())
        _ = try await home.start(on: machine)
        let listener = try await machine.run { try TCPSocket.listening(on: 0) }
        var events = home.client.connectionEvents(names: ["office"]).makeAsyncIterator()
        _ = try await events.next()
        _ = try await home.client.open(.init(remote: "tcp://127.0.0.1:\(try listener.port())", name: "office"))
        let server = try await machine.run { try listener.accept() }
        while try await events.next()?.reply?.connections.first?.state != .ready {}
        var (text, sleeps) = ("", 0)
        try await park(taking: &text, home.client)
        for sleep in 0..<Self.sleeps {
            // Cut where it may fall: a message that has only begun wakes as well, and is read to its end.
            let lines = (0..<Self.linesEach).map { "message \(sleep * Self.linesEach + $0)\n" }.joined()
            let cut = lines.index(lines.startIndex, offsetBy: (sleep * 7) % lines.count)
            try server.send(String(lines[..<cut]))
            try server.send(String(lines[cut...]))
            let end = (sleep + 1) * Self.linesEach
            while text.filter({ $0 == "\n" }).count < Self.linesEach * (sleep % 100 + 1) {
                while try await events.next()?.reply?.connections.first?.wake == nil {}
                try await park(taking: &text, home.client)
                sleeps += 1
            }
            guard (sleep + 1) % 100 == 0 else { continue }
            // Compared by the hundred, so that a failure says where.
            let expected = ((end - 100 * Self.linesEach)..<end).map { "message \($0)\n" }.joined()
            try #require(text == expected, "after \(end) messages")
            text = ""
        }
        #expect(sleeps >= Self.sleeps)
        try server.send("still the same flow\n")
        expect(try await home.client.connections().first?.epoch, is: 1)
    }

    /// Takes the flow, reads what there is, and parks it.
    private func park(taking text: inout String, _ client: DialtoneClient) async throws {
        let flow = try await client.take("office")
        var buffer = [UInt8](repeating: 0, count: 65_536)
        while true {
            let isInside = text.last.map { $0 != "\n" } ?? false
            let count = recv(flow.descriptor.number, &buffer, buffer.count, isInside ? 0 : CInt(MSG_DONTWAIT))
            if count <= 0 { break }
            text += String(decoding: buffer.prefix(count), as: UTF8.self)
        }
        try await client.park("office", epoch: flow.epoch)
    }

    @Test(arguments: ["sleeping_client.py", "sleeping-client.c", "sleeping-client"])
    func `an example reads each message, answers it and sleeps`(example: String) async throws {
        let (machine, home) = (try await Namespace.island(), try DaemonHome())
        let command = try await Self.command(for: example, on: machine, in: home.directory)
        let daemon = try await home.start(on: machine)
        let listener = try await machine.run { try TCPSocket.listening(on: 0) }
        let client = try await machine.spawn(
            command + ["chat", "tcp://127.0.0.1:\(try listener.port())"], environment: ["DIALTONE_SOCKET": home.socket])
        do {
            try await live(with: client, on: machine, listener, home, daemon)
        } catch {
            let state = try? await home.client.connections()
            let said = client.lines.map(\.text)
            Issue.record("\(error); it said \(said), and the agent has \(String(describing: state))")
        }
        _ = try await client.killNow()
    }

    private func live(
        with client: LabProcess, on machine: Namespace, _ listener: TCPSocket, _ home: DaemonHome, _ daemon: LabProcess
    ) async throws {
        let server = try await machine.run { try listener.accept() }
        expect(try await machine.run { try server.receive() }, is: "HELLO chat\n")
        for number in 1...3 {
            try server.send("message \(number)\n")
            expect(try await machine.run { try server.receive() }, is: "GOT message \(number)\n")
        }
        // Stopped, it is woken by a signal where it is configured so; here it reads when it goes on.
        try await client.stop()
        try server.send("while you were stopped\n")
        client.signal(SIGCONT)
        expect(try await machine.run { try server.receive() }, is: "GOT while you were stopped\n")
        // A new flow is a new session, which only the client can begin.
        server.close()
        let again = try await machine.run { try listener.accept() }
        expect(try await machine.run { try again.receive() }, is: "HELLO chat\n")
        try again.send("welcome back\n")
        expect(try await machine.run { try again.receive() }, is: "GOT welcome back\n")
        // A reset in the middle of a line.
        try again.send("half a")
        try await isHeld(home, by: .client)
        try again.resetOnClose()
        again.close()
        let third = try await machine.run { try listener.accept() }
        expect(try await machine.run { try third.receive() }, is: "HELLO chat\n")
        // The agent is killed while the client sleeps, and another one begins, which knows of no connection.
        try await isHeld(home, by: .daemon)
        _ = try await daemon.killNow()
        _ = try await client.line(containing: "the agent is gone")
        _ = try await home.start(on: machine)
        let fourth = try await machine.run { try listener.accept() }
        expect(try await machine.run { try fourth.receive() }, is: "HELLO chat\n")
        try fourth.send("once more\n")
        expect(try await machine.run { try fourth.receive() }, is: "GOT once more\n")
    }

    /// Waits until the connection is in these hands.
    private func isHeld(
        _ home: DaemonHome, by holder: ConnectionsAPI.Connection.Holder
    ) async throws {
        try await eventually("the holder is \(holder)") {
            try await home.client.connections().first?.holder == holder
        }
    }

    /// What runs an example.
    private static func command(
        for example: String, on machine: Namespace, in directory: String
    ) async throws -> [String] {
        let source = "\(SourceTree.root)/Examples/sleeping-client/\(example)"
        if example.hasSuffix(".py") { return ["python3", "-u", source] }
        guard example.hasSuffix(".c") else { return [try LabAgent.example(example)] }
        let compiled = "\(directory)/example"
        _ = try await machine.command(["cc", "-Wall", "-Wextra", "-Werror", "-o", compiled, source])
        return [compiled]
    }
}
