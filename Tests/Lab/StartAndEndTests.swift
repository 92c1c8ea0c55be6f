// SPDX-License-Identifier: Apache-2.0

import DialtoneAPI
import DialtoneClient
import DialtoneExpectations
import DialtoneLabSupport
import Foundation
import Testing

/// How the daemon comes, goes, and refuses to come.
@Suite(.lab)
struct StartAndEndTests {
    @Test(arguments: [["--frobnicate"], ["--log-level", "loud"], ["--socket"], ["extra"]])
    func `nonsense is bad usage`(arguments: [String]) async throws {
        let (machine, home) = (try await Namespace.island(), try DaemonHome())
        let daemon = try await home.launch(on: machine, arguments: arguments)
        expect(try await daemon.exit(), is: .status(EX_USAGE))
        let complaint = daemon.text(of: .error)
        #expect(complaint.hasPrefix("Error: ") && complaint.contains("\nUsage: dialtoned "), "\(complaint)")
    }

    @Test(arguments: [SIGTERM, SIGINT])
    func `a signal ends it in order`(signal: CInt) async throws {
        let (machine, home) = (try await Namespace.island(), try DaemonHome())
        let daemon = try await home.start(on: machine)
        _ = try await home.client.open(.init(remote: "tcp://192.0.2.1:1", name: "office"))
        let events = try await home.recorder()
        daemon.signal(signal)
        expect(try await daemon.exit(), is: .status(EXIT_SUCCESS), "\(daemon.text(of: .error))")
        #expect(!home.hasSocket)
        let last = try await events.event("the end of the connection") { $0.kind == .closed }
        #expect(last.connection.name == "office", "the subscribers hear of the end")
    }

    @Test func `a socket that a live daemon serves is refused, and stays that daemon's`() async throws {
        let (machine, home) = (try await Namespace.island(), try DaemonHome())
        let first = try await home.start(on: machine)
        let second = try await home.launch(on: machine)
        expect(try await second.exit(), is: .status(EX_UNAVAILABLE))
        let complaint = second.text(of: .error)
        #expect(complaint.contains("another service listens on \(home.socket)"), "\(complaint)")
        #expect(complaint.contains("stop it, or choose another path"), "\(complaint)")
        expect(try await home.client.connections()) { $0.isEmpty }
        #expect(first.isRunning)
    }

    @Test func `a socket that a dead daemon left is replaced, and its numbers are a gap`() async throws {
        let (machine, home) = (try await Namespace.island(), try DaemonHome())
        let first = try await home.start(on: machine)
        _ = try await home.client.open(.init(remote: "tcp://192.0.2.1:1", name: "office"))
        let sequence = try #require(try await home.recorder().told.first).reply.sequence
        try await first.killNow()
        #expect(home.hasSocket, "nobody tidied up")
        _ = try await home.start(on: machine)
        expect(try await home.client.connections()) { $0.isEmpty }
        let resumed = try #require(try await home.recorder(after: sequence).told.first).reply
        #expect(resumed.kind == .gap)
        #expect(resumed.sequence > sequence)
    }

    @Test(arguments: [
        ("dialtone.sock", "exists and is not a socket"), ("missing/dialtone.sock", "/missing/dialtone.sock"),
    ])
    func `where no socket can be made it says so, and leaves what is there`(path: String, words: String) async throws {
        let (machine, home) = (try await Namespace.island(), try DaemonHome())
        let file = "\(home.directory)/dialtone.sock"
        try Data("precious".utf8).write(to: URL(filePath: file))
        let daemon = try await home.launch(
            on: machine, arguments: ["--socket", "\(home.directory)/\(path)", "--config", home.file])
        expect(try await daemon.exit(), is: .status(EX_CANTCREAT))
        #expect(daemon.text(of: .error).contains(words), "\(daemon.text(of: .error))")
        #expect(try String(contentsOfFile: file, encoding: .utf8) == "precious")
    }

    @Test func `the machine's daemon makes its place, for its group or all, whatever the umask`() async throws {
        let (machine, home) = (try await Namespace.island(), try DaemonHome())
        let daemon = try await home.launch(
            on: machine, by: ["sh", "-c", "umask 077; exec \"$@\"", "sh"], arguments: ["--config", home.file])
        _ = try await daemon.line(containing: "listening")
        let modes = try await machine.command(["stat", "-c", "%a", "/run/dialtone", SocketPath.system])
        // As on a machine that sysusers has made the group on, or on one that nothing was installed on.
        #expect(modes == (getgrnam("dialtone") == nil ? "755\n666" : "755\n660"))
        let list = try await machine.outcome([LabAgent.program("dialtone"), "list", "--json"])
        #expect(list.exit == .status(0), "\(list)")
    }

    @Test(.anotherUser) func `without a place for the socket it says which variable is missing`() async throws {
        let (machine, home) = (try await Namespace.island(), try DaemonHome())
        let daemon = try await home.launch(
            on: machine, by: AnotherUser.command + ["env", "-u", "XDG_RUNTIME_DIR"], arguments: [],
            environment: ["HOME": home.directory])
        expect(try await daemon.exit(), is: .status(EX_USAGE))
        #expect(daemon.text(of: .error).contains("XDG_RUNTIME_DIR is not set"), "\(daemon.text(of: .error))")
    }

    @Test(.anotherUser) func `a user's daemon is in a place for that user alone, and no other process sees its memory`()
        async throws
    {
        let (machine, home) = (try await Namespace.island(), try DaemonHome())
        try await machine.command(["install", "-d", "-o", "65534", "-m", "700", "\(home.directory)/run"])
        let daemon = try await home.launch(
            on: machine, by: AnotherUser.command, arguments: [],
            environment: ["HOME": home.directory, "XDG_RUNTIME_DIR": "\(home.directory)/run"])
        _ = try await daemon.line(containing: "listening")
        let environment = "/proc/\(daemon.processID)/environ"
        expect(try await machine.command(["stat", "-c", "%u", environment]), is: "0", "it could be dumped")
        let look = try await machine.outcome(AnotherUser.command + ["cat", environment])
        #expect(look.error.contains("Permission denied"), "\(look)")
        // What it needs of /proc for itself, it has: the process of a client, by its descriptor.
        let place = "\(home.directory)/run/dialtone"
        let client = DialtoneClient(path: "\(place)/dialtone.sock")
        expect(try await client.connections()) { $0.isEmpty }
        expect(try await machine.command(["stat", "-c", "%a", place, "\(place)/dialtone.sock"]), is: "700\n600")
    }
}
