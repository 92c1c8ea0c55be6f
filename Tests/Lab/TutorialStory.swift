// SPDX-License-Identifier: Apache-2.0

import DialtoneExpectations
import DialtoneLabSupport
import DialtoneTestSupport
import Foundation
import Testing

/// docs/first-sleeping-client.md as a reader goes through it: its own commands, in three terminals.
@Suite(.lab)
struct TutorialStory {
    private let machine: Namespace
    /// The page's commands by the name of their step, which is the second word of their block.
    private let page: [String: String]
    /// Removed with everything in it at the end.
    private let home: DaemonHome
    private let environment: [String: String]

    init() async throws {
        machine = try await Namespace.island()
        page = try Dictionary(
            GuidePage("docs/first-sleeping-client.md").blocks.filter { $0.heading.hasPrefix("sh ") }
                .map { (String($0.heading.dropFirst(3)), $0.text) }, uniquingKeysWith: { "\($0)\n\($1)" })
        home = try DaemonHome()
        // The reader's own directory, with everything in it that the reader's agent keeps.
        let directory = home.directory + "/reader"
        try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: true)
        environment = [
            "HOME": directory, "STATE_DIRECTORY": "\(directory)/state",
            "PATH": "\(URL(filePath: LabAgent.program("dialtone")).deletingLastPathComponent().path):/usr/bin:/bin",
        ].merging(DaemonHome.quietCrashes) { mine, _ in mine }
    }

    @Test func `each step does what the page says`() async throws {
        let server = try await terminal("server")
        let agent = try await terminal("agent")
        try await eventually("the agent answers") { try await run("list").exit == .status(0) }

        let open = try await run("open")
        #expect(open.lines.first == "chat", "\(open)")
        try await status(of: "chat", contains: "ready")

        let client = try await terminal("take")
        var said = try await server.line(containing: "HELLO")
        try server.send("hi\n")
        said = try await server.line(after: said, containing: "GOT hi")
        expect(try await client.exit(), is: .status(0))

        try server.send("are you there?\n")
        try await status(of: "chat", contains: "unread")
        let answer = try await run("answer")
        #expect(answer.exit == .status(0), "\(answer)")
        said = try await server.line(after: said, containing: "GOT are you there?")

        try await configure("configure")
        let successor = try await restart(agent)
        said = try await server.line(after: said, containing: "HELLO again")
        try await status(of: "door", contains: "ready")
        try await ring(server, after: said)
        let third = try await breakIt(server)

        try await configure("opening")
        let last = try await restart(successor)
        let greeting = try await third.line(after: third.lines.last, containing: "HELLO again")
        try third.send("OK\n")
        try await status(of: "door", contains: "ready")
        try await ring(third, after: greeting)

        _ = try await last.terminate()
        _ = try await third.killNow()
        let clean = try await run("clean")
        #expect(clean.exit == .status(0), "\(clean)")
        #expect(!FileManager.default.fileExists(atPath: "\(environment["HOME"] ?? "")/first-client"))
    }

    /// Types `ring` at the server, which nobody listens to but the agent.
    private func ring(_ server: LabProcess, after line: LabProcess.Line) async throws {
        try server.send("ring\n")
        _ = try await server.line(after: line, containing: "GOT ring")
    }

    /// Ends the server and starts another one, which is dialled at once.
    private func breakIt(_ server: LabProcess) async throws -> LabProcess {
        server.signal(SIGINT)
        _ = try await server.exit()
        let another = try await terminal("server")
        try await eventually("the server listens") {
            try await run("redial").exit == .status(0) && another.lines.contains { $0.text == "HELLO again" }
        }
        let history = try await run("history")
        #expect(history.output.contains("door") && history.exit == .status(0), "\(history)")
        return another
    }

    /// Presses Ctrl-C in the agent's terminal, and starts it again.
    private func restart(_ agent: LabProcess) async throws -> LabProcess {
        agent.signal(SIGINT)
        expect(try await agent.exit(), is: .status(0))
        return try await terminal("restart")
    }

    private func configure(_ step: String) async throws {
        let outcome = try await run(step)
        #expect(outcome.exit == .status(0), "\(outcome)")
    }

    private func status(of name: String, contains word: String) async throws {
        try await eventually("\(name) is \(word)") {
            try await run("list").lines.contains { $0.hasPrefix(name) && $0.contains(word) }
        }
    }

    /// Starts a step's commands in a terminal of their own; the last of them becomes the process.
    private func terminal(_ step: String) async throws -> LabProcess {
        var lines = try script(step).split(separator: "\n").map(String.init)
        let last = lines.removeLast()
        return try await machine.spawn(
            ["sh", "-ec", (lines + ["exec \(last)"]).joined(separator: "\n")], environment: environment)
    }

    /// Runs a step's commands to their end.
    private func run(_ step: String) async throws -> Outcome {
        try await machine.outcome(["sh", "-ec", script(step)], environment: environment)
    }

    /// What is typed in a terminal: what prepares each of them, and the step.
    private func script(_ step: String) throws -> String {
        let (prepare, commands) = (try #require(page["prepare"]), try #require(page[step], "no step \(step)"))
        return "\(prepare)\n\(commands)"
    }
}
