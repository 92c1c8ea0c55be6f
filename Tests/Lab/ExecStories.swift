// SPDX-License-Identifier: Apache-2.0

import DialtoneExpectations
import DialtoneLabSupport
import DialtoneTestSupport
import Foundation
import Testing

/// `dialtone exec`: programs that open their own connections, and know nothing of any agent.
@Suite(.lab)
struct ExecStories {
    private static let server = LabNetwork.serverAddress(.v4)

    /// Starts a program under `dialtone exec`.
    private static func start(
        on lab: LabNetwork, to target: String = server, _ command: String...
    ) async throws -> LabProcess {
        try await lab.host.spawn([LabAgent.program("dialtone"), "exec", target, "--"] + command)
    }

    /// Without it, it says CONNECT again after its keepalive of a minute and a half (decision 0032).
    @Test func `a program that hears nothing of networks logs in again when the uplink is lost, and misses no message`()
        async throws
    {
        try await LabNetwork.with { lab in
            let broker = try await LabServer.start(.mosquitto(), on: lab.server)
            // A shell between them is one more process.
            let program = try await Self.start(
                on: lab, "sh", "-c",
                "mosquitto_sub -h \(Self.server) -p \(broker.port) -t bell -i door -c -q 1 -k 60; exit 7")
            let subscribed = try await broker.log.line(containing: "Sending SUBACK to door")
            try await lab.takeDown(.wan0)
            let told = try await program.line(containing: "shut down: 1 connection")
            #expect(told.stream == .error)
            #expect(
                told.text.contains(" over wan1") && told.text.contains("no longer over wan0"), "\(told.text)")
            try await lab.server.command(
                ["mosquitto_pub", "-h", "127.0.0.1", "-p", "\(broker.port)", "-t", "bell", "-q", "1", "-m", "ring"])
            _ = try await broker.log.line(after: subscribed, containing: "as door (")
            _ = try await program.line(containing: "ring")
            expect(program.text(of: .output), is: "ring")
        }
    }

    @Test func `with a port, connections to other ports are left alone`() async throws {
        try await LabNetwork.with { lab in
            let listeners = try await lab.server.run { try (0..<2).map { _ in try TCPSocket.listening(on: 0) } }
            let ports = try listeners.map { try $0.port() }
            let program = try await Self.start(
                on: lab, to: "\(Self.server):\(ports[1])", "python3", "-u", "-c",
                """
                import socket
                # The one that is left alone has the lower number, and is looked at first.
                s = [socket.create_connection(("\(Self.server)", port)) for port in \(ports)]
                print("connected")
                print("the end:", s[1].recv(1))
                try: print("the end of both:", s[0].recv(1, socket.MSG_DONTWAIT))
                except BlockingIOError: print("the other goes on")
                """)
            _ = try await program.line(containing: "connected")
            try await lab.takeDown(.wan0)
            _ = try await program.line(containing: "shut down: 1 connection")
            expect(try await program.exit(), is: .status(0))
            expect(program.text(of: .output), is: "connected\nthe end: b''\nthe other goes on")
        }
    }

    @Test func `of a name with several addresses, the program may have chosen any`() async throws {
        try await LabNetwork.with { lab in
            let home = try DaemonHome()
            let addresses = Family.allCases.map { LabNetwork.serverAddress($0) }
            try Data(addresses.map { "\($0) chat.example\n" }.joined().utf8).write(
                to: URL(filePath: "\(home.directory)/hosts"))
            try await lab.host.command(["mount", "--bind", "\(home.directory)/hosts", "/etc/hosts"])
            let listener = try await lab.server.run { try TCPSocket.listening(on: 0) }
            let port = try listener.port()
            let program = try await Self.start(
                on: lab, to: "chat.example", "python3", "-u", "-c",
                """
                import socket
                s = [socket.create_connection((address, \(port))) for address in \(addresses)]
                print("connected")
                print([one.recv(1) for one in s])
                """)
            _ = try await program.line(containing: "connected")
            try await lab.takeDown(.wan0)
            expect(try await program.exit(), is: .status(0))
            expect(program.text(of: .output), is: "connected\n[b'', b'']")
        }
    }

    @Test func `behind another gateway the server is asked, and one that does not answer has the connection ended`()
        async throws
    {
        try await LabNetwork.with { lab in
            let listener = try await lab.server.run { try TCPSocket.listening(on: 0) }
            let port = try listener.port()
            // Two of them: a connection that goes on, then one that is lost.
            let program = try await Self.start(
                on: lab, "python3", "-u", "-c",
                """
                import socket
                s = socket.create_connection(("\(Self.server)", \(port)))
                before = s.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE)
                print("connected")
                input()
                print("as before", s.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE) == before)
                try: s.recv(1)
                except OSError as error: print(error)
                """)
            _ = try await program.line(containing: "connected")
            let server = try await lab.server.run { try listener.accept() }
            defer { withExtendedLifetime(server) {} }
            // A second gateway, on the same link.
            let second = Uplink.wan0.gateway(.v4).replacing(/\.1$/, with: ".254")
            try await lab.router.ip("address add \(second)/24 dev wan0")
            try await lab.host.ip("route replace default via \(second) dev wan0 metric \(Uplink.wan0.metric)")
            _ = try await program.line(containing: "the server is asked: 1 connection")
            // The timer of a socket that is asked, which this one had not before.
            try await Self.socket(of: lab, to: port, has: "timer:(keepalive")
            // It answers, and the socket is as it was.
            try await Self.socket(of: lab, to: port, has: nil)
            try program.send("\n")
            _ = try await program.line(containing: "as before True")

            try await lab.drop(.all, on: .wan0)
            try await lab.addDefaultRoute(via: .wan0, families: [.v4])
            _ = try await program.line(containing: "Connection timed out")
        }
    }

    /// Waits until the kernel shows a socket to a port with these words, or without the first ones.
    private static func socket(of lab: LabNetwork, to port: UInt16, has words: String?) async throws {
        try await eventually("the socket \(words.map { "has \($0)" } ?? "has no timer")") {
            let shown = try await lab.host.command(["ss", "-Htno", "dport", "=", "\(port)"])
            return words.map { shown.contains($0) } ?? !shown.contains("timer:")
        }
    }

    @Test func `it ends as the program does, and passes signals on`() async throws {
        try await LabNetwork.with { lab in
            expect(try await Self.start(on: lab, "sh", "-c", "exit 7").exit(), is: .status(7))
            let program = try await Self.start(
                on: lab, "sh", "-c", "trap 'echo heard; exit 3' TERM; echo ready; while :; do sleep 0.1; done")
            _ = try await program.line(containing: "ready")
            program.signal(SIGTERM)
            _ = try await program.line(containing: "heard")
            expect(try await program.exit(), is: .status(3))
            expect(try await Self.start(on: lab, "sh", "-c", "kill -9 $$").exit(), is: .status(137))
            expect(try await Self.start(on: lab, "/nowhere/program").exit(), is: .status(127))
            expect(try await Self.start(on: lab, "/etc/passwd").exit(), is: .status(126))
        }
    }

    @Test func `a program whose sockets may not be seen runs on, and that is told once`() async throws {
        try await LabNetwork.with { lab in
            let broker = try await LabServer.start(.mosquitto(), on: lab.server)
            // It may not be traced by its own user (PR_SET_DUMPABLE, prctl(2)).
            let program = try await lab.host.spawn([
                "setpriv", "--reuid=65534", "--clear-groups", "--bounding-set=-all", LabAgent.program("dialtone"),
                "exec", Self.server, "--",
                "python3", "-u", "-c",
                """
                import ctypes, socket
                s = socket.create_connection(("\(Self.server)", \(broker.port)))
                ctypes.CDLL(None).prctl(4, 0)
                print("connected")
                s.recv(1)
                """,
            ])
            _ = try await program.line(containing: "connected")
            for uplink in [Uplink.wan1, .wan0] { try await lab.preferDefaultRoute(via: uplink, families: [.v4]) }
            _ = try await program.line(containing: "stays as it is")
            #expect(program.isRunning)
        }
    }
}
