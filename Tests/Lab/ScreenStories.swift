// SPDX-License-Identifier: Apache-2.0

import DialtoneAPI
import DialtoneClient
import DialtoneLabSupport
import DialtoneTestSupport
import Foundation
import Testing

/// Every command on terminals of 80 and of 200 columns, with colour and without, beside what it wrote when somebody
/// last read it: the files in `Golden`, which have the colours. Where a text was changed on purpose,
/// `DIALTONE_GOLDEN=write` writes them anew, to be read.
@Suite(.lab, .timeLimit(.minutes(5)))
struct ScreenStories {
    private static let server = LabNetwork.serverAddress(.v4)
    private static let folder = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "Golden")

    /// They run in this order.
    private static let commands: [[String]] = [
        ["status"],
        ["status", "--down"],
        ["status", "--state", "closed"],
        ["status", "-o", "wide"],
        ["status", "office"],
        ["status", "ofice"],
        ["status", "--sort", "colour"],
        ["list", "--sort", "name"],
        ["list", "--sort", "name", "--format", "{name} leads to {remote}"],
        ["list", "--format", "name,stat"],
        ["check", "\(server):1883"],
        ["check", "\(server):1883", "--explain"],
        ["check", "mqtt://\(server)", "--probe"],
        ["check", "\(server):7", "--probe"],
        ["check", "\(server):99999"],
        ["wait", "\(server):1883", "--probe"],
        ["wait", "\(server):7", "--probe", "--timeout", "3s"],
        ["history", "office", "door"],
        ["history", "door", "-n1"],
        ["history", "--since", "soon"],
        ["timeline", "--since", "1000h", "--until", "999h"],
        ["timeline", "--since", "yesterday", "--until", "monday"],
        ["open", "tcp://\(server):9", "--name", "gate"],
        ["open", "tcp://\(server):10", "--name", "gate"],
        ["open", "gopher://\(server)"],
        ["open", "tcp://\(server):9", "--grac", "5s"],
        ["open", "tcp://\(server):9", "--grace", "2h"],
        ["redial", "gate"],
        ["close", "gate"],
        ["close", "gate"],
        ["watch", "ofice"],
        ["watch", "office"],
        ["watch", "--host", "\(server):1883"],
        ["take", "door", "--", "true"],
        ["park", "office", "--epoch", "1"],
        ["adopt", "chat", "--fd", "9"],
        ["replay", "/nonexistent"],
        ["statsu"],
        ["--help"],
    ]

    /// A terminal, and the colours on it.
    private struct Terminal: CustomStringConvertible {
        let columns: Int
        let hasColour: Bool

        var description: String { "\(columns)\(hasColour ? "-colour" : "")" }

        static let all = [80, 200].flatMap { columns in
            [true, false].map { Terminal(columns: columns, hasColour: $0) }
        }
    }

    @Test(.server("mosquitto")) func `each command writes what was read and found good`() async throws {
        try await LabNetwork.with { lab in
            // What is said of a neighbour depends on when it answered last: here it has, for the whole of the story
            // (base_reachable_time, in seconds: arp(7)).
            try await lab.host.sysctl([("net.ipv4.neigh.wan0.base_reachable_time", "3600")])
            _ = try await LabServer.start(.mosquitto(), on: lab.server)
            let agent = try await LabAgent.start(on: lab.host)
            try await settle(agent)
            for terminal in Terminal.all {
                var screens: [String] = []
                for arguments in Self.commands {
                    let (text, widest) = try await run(arguments, on: terminal, lab.host, agent)
                    let mayBeWider = arguments.contains("wide") || arguments == ["--help"]
                    #expect(
                        widest <= terminal.columns || mayBeWider,
                        "\(arguments) is \(widest) wide on \(terminal):\n\(text)")
                    screens.append(text)
                }
                hold(screens, of: terminal)
            }
        }
    }

    /// Two connections that stay as they are: one that is up, and one that waits for an hour.
    private func settle(_ agent: LabAgent) async throws {
        let events = try await EventRecorder.start(on: agent)
        _ = try await agent.client.open(
            .init(
                remote: "mqtt://\(Self.server)", name: "office",
                settings: .init(opening: MQTT.opening("office", topic: "ring"))))
        _ = try await events.event("the login") { $0.kind == .sessionOpened }
        _ = try await agent.client.open(
            .init(
                remote: "tcp://\(Self.server):7", name: "door",
                settings: .init(backoff: .init(initial: .seconds(3600), maximum: .seconds(7200)))))
        _ = try await events.event("the refusal") { $0.connection.state == .backingOff }
    }

    /// What a command writes on a terminal, with its exit status, and how wide that is.
    private func run(
        _ arguments: [String], on terminal: Terminal, _ machine: Namespace, _ agent: LabAgent
    ) async throws -> (text: String, widest: Int) {
        let words = ([LabAgent.program("dialtone")] + arguments).map { "'\($0)'" }.joined(separator: " ")
        let process = try await machine.spawn(
            ["script", "-qefc", "stty cols \(terminal.columns) -onlcr; exec \(words) 9>&-", "/dev/null"],
            environment: [
                "DIALTONE_SOCKET": agent.socket, "TERM": "xterm", "TZ": "UTC", "LC_ALL": "C.UTF-8",
                "NO_COLOR": terminal.hasColour ? "" : "1",
            ])
        if arguments.first == "watch", !arguments.contains("ofice") {
            // It goes on until somebody ends it.
            _ = try await process.line(containing: "over wan")
            try process.send("\u{3}")
        }
        let exit = try await process.exit()
        let written = process.text(of: .output) + process.text(of: .error)
        // An error may be copied from where it stands; the terminal breaks it.
        let lines = written.hasPrefix("dialtone: ") ? [] : written.split(separator: "\n")
        let widest = lines.map { $0.replacing(/\u{1B}\[[0-9]+m/, with: "").count }.max() ?? 0
        let command = (["dialtone"] + arguments).joined(separator: " ")
        return ("$ \(command)\n\(steady(written))\n[\(exit)]\n", widest)
    }

    /// What is the same each time: times, durations and numbers of ports in one form, and blanks that depend on them.
    private func steady(_ text: String) -> String {
        var text = text.replacing("\u{1B}[", with: "‹").replacing(/‹([0-9]+)m/) { "‹\($0.output.1)›" }
        text.replace(/\d\d:\d\d:\d\d\.\d\d\d/, with: "12:34:56.789")
        text.replace(/[A-Z][a-z]+day \d{4}-\d\d-\d\d/, with: "Thursday 2026-01-01")
        text.replace(/\d+(\.\d)? (ms|s|m|h)( \d+ (s|m))?\b/, with: "1 s")
        text.replace(/((192\.0\.2\.2|198\.51\.100\.2):)\d+/) { "\($0.output.1)40000" }
        text.replace(/\/tmp\/[^ ]*dialtone\.sock/, with: "SOCKET")
        // Columns are as wide as what was replaced.
        return text.replacing(/[ ]{2,}/, with: "  ").trimmingCharacters(in: .newlines)
    }

    /// Holds what the commands wrote against a file, or writes the file where that is wanted. Without colour they
    /// write the same but for that.
    private func hold(_ screens: [String], of terminal: Terminal) {
        let name = "\(terminal.columns)-colour.txt"
        let file = Self.folder.appending(path: name)
        if ProcessInfo.processInfo.environment["DIALTONE_GOLDEN"] == "write" {
            guard terminal.hasColour else { return }
            try? FileManager.default.createDirectory(at: Self.folder, withIntermediateDirectories: true)
            try? Data(screens.joined(separator: "\n").utf8).write(to: file)
            return
        }
        var golden = (try? String(contentsOf: file, encoding: .utf8)) ?? ""
        if !terminal.hasColour { golden = golden.replacing(/‹\d+›/, with: "").replacing(/[ ]{2,}/, with: "  ") }
        var rest = golden[...]
        for (index, screen) in screens.enumerated() {
            let separated = index == 0 ? screen : "\n" + screen
            if rest.hasPrefix(separated) {
                rest = rest.dropFirst(separated.count)
                continue
            }
            Issue.record(
                """
                \(name) has another text than \(terminal); read this, and write it anew with DIALTONE_GOLDEN=write:
                \(screen)
                """)
            let next = rest.dropFirst(1).range(of: "\n\n$ ")
            rest = next.map { rest[rest.index(after: $0.lowerBound)...] } ?? ""
        }
        #expect(rest.isEmpty, "\(name) has more than \(terminal): \(rest)")
    }
}
