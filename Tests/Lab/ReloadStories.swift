// SPDX-License-Identifier: Apache-2.0

import DialtoneAPI
import DialtoneClient
import DialtoneExpectations
import DialtoneLabSupport
import Foundation
import Testing

/// The configuration, checked and read again.
@Suite(.lab)
struct ReloadStories {
    private func connection(_ name: String, port: UInt16, _ more: String = "") -> String {
        "[[connection]]\nname = '\(name)'\nremote = 'tcp://127.0.0.1:\(port)'\n\(more)\n"
    }

    @Test func `a typo is told with file, line, column and key, and nothing starts`() async throws {
        let machine = try await Namespace.island()
        let home = try DaemonHome(connection("office", port: 5060, "keepalvie = { interval = '60s' }"))
        let daemon = try await home.launch(on: machine)
        expect(try await daemon.exit(), is: .status(EX_CONFIG))
        let line = "\(home.file):4:1: connection.keepalvie: unknown key; did you mean \"keepalive\"?"
        #expect(daemon.text(of: .error).contains(line), "\(daemon.text(of: .error))")
        #expect(!home.hasSocket)

        let checked = try await home.launch(on: machine, arguments: ["--check-config", "--config", home.file])
        expect(try await checked.exit(), is: .status(EX_CONFIG))
        #expect(checked.text(of: .error) == line)
        #expect(checked.text(of: .output) == "")
    }

    @Test func `a good configuration is said to be good`() async throws {
        let machine = try await Namespace.island()
        let home = try DaemonHome(connection("office", port: 5060, "wake = { unit = 'a.service' }"))
        let daemon = try await home.launch(on: machine, arguments: ["--check-config", "--config", home.file])
        expect(try await daemon.exit(), is: .status(0))
        #expect(daemon.text(of: .output) == "The configuration is valid (\(home.file)).")
        #expect(daemon.text(of: .error).isEmpty)
    }

    @Test func `a configuration that was named must be there`() async throws {
        let (machine, home) = (try await Namespace.island(), try DaemonHome())
        let missing = "\(home.directory)/other.toml"
        for arguments in [["--check-config", "--config", missing], ["--config", missing, "--socket", home.socket]] {
            let daemon = try await home.launch(on: machine, arguments: arguments)
            expect(try await daemon.exit(), is: .status(EX_CONFIG))
            #expect(daemon.text(of: .error).contains(missing))
        }
    }

    @Test func `a reload touches what changed, and nothing else`() async throws {
        let machine = try await Namespace.island()
        let server = try await machine.run { try TCPSocket.listening(on: 0) }
        let port = try server.port()
        let home = try DaemonHome(connection("office", port: port) + connection("gone", port: port))
        let daemon = try await home.start(on: machine)
        let before = try await home.recorder().connection("office", in: .ready)
        try home.configure(connection("new", port: port) + connection("office", port: port))
        daemon.signal(SIGHUP)
        _ = try await daemon.line(containing: "configuration reloaded")
        let after = try await home.recorder().connection("office", in: .ready)
        #expect(after.epoch == before.epoch)
        #expect(after.localAddress == before.localAddress)
        expect(Set(try await home.client.connections().map(\.name)), is: ["office", "new"])
        _ = try await home.recorder().connection("new", in: .ready)
    }

    @Test func `a bad configuration changes nothing, and a good one after it counts`() async throws {
        let machine = try await Namespace.island()
        let server = try await machine.run { try TCPSocket.listening(on: 0) }
        let port = try server.port()
        let home = try DaemonHome(connection("office", port: port))
        let daemon = try await home.start(on: machine)
        let before = try await home.recorder().connection("office", in: .ready)
        try home.configure(connection("office", port: port, "mark = 'seven'") + connection("other", port: port))
        daemon.signal(SIGHUP)
        let refusal = try await daemon.line(containing: "the old one stays")
        let complaint = try await daemon.line(containing: "\(home.file):4:8: connection.mark: expected an integer")
        #expect(complaint.number < refusal.number)
        let after = try await home.recorder().connection("office", in: .ready)
        #expect(after.localAddress == before.localAddress)
        expect(try await home.client.connections().count, is: 1)
        try home.configure(connection("other", port: port))
        daemon.signal(SIGHUP)
        _ = try await daemon.line(after: refusal, containing: "configuration reloaded")
        expect(try await home.client.connections().map(\.name), is: ["other"])
    }

    @Test func `what a file names is closed by the file alone, and the command line says how`() async throws {
        let machine = try await Namespace.island()
        let home = try DaemonHome(connection("office", port: 1))
        _ = try await home.start(on: machine)
        let refused = try await home.dialtone("close", "office", on: machine)
        #expect(refused.exit == .status(EX_NOPERM))
        #expect(refused.error.contains("A configuration file names this connection"), "\(refused)")
        expect(try await home.client.connections().count, is: 1)
    }

    /// Texts that ended the process which read them, or kept it busy; and in which line and column each stops.
    private static let hostileTexts = [
        ("[\n", "1:2: "), ("[é]", "1:2: "), ("a = [}", "1:6: "),
        (String(repeating: "a.", count: 20_000) + "a = 1", "1:67: "),
        ("a = " + String(repeating: "[", count: 100_000), "1:37: "),
        ("a = " + String(repeating: "{a = ", count: 50_000), "1:165: "),
        ((1...50_000).map { "k\($0) = 1\n" }.joined(), "1:1: "),
        (String(repeating: "k", count: 1_000_000) + " = 1", "1:1: "),
        (String(repeating: "[", count: 20_000), "1:3: "), ("\0\0\0", "1:1: "),
        (String(repeating: "#", count: 1 << 21), " larger than "),
    ]

    @Test func `no text ends a daemon that is told to read it again`() async throws {
        let machine = try await Namespace.island()
        let home = try DaemonHome(connection("office", port: 1))
        let daemon = try await home.start(on: machine)
        var line: LabProcess.Line?
        for (text, place) in Self.hostileTexts {
            try home.configure(text)
            daemon.signal(SIGHUP)
            _ = try await daemon.line(after: line, containing: "\(home.file):\(place)")
            line = try await daemon.line(after: line, containing: "the old one stays")
            expect(try await home.client.connections().map(\.name), is: ["office"], "\(text.prefix(40))")
        }
        try FileManager.default.removeItem(atPath: home.file)
        mkfifo(home.file, 0o600)
        daemon.signal(SIGHUP)
        _ = try await daemon.line(after: line, containing: "not a regular file")
        expect(try await home.client.connections().map(\.name), is: ["office"])
    }
}
