// SPDX-License-Identifier: Apache-2.0

import DialtoneAPI
import DialtoneClient
import DialtoneExpectations
import DialtoneLabSupport
import DialtoneTestSupport
import Foundation
import Testing

/// A connection to a broker whose client sleeps, and somebody who hears what it answers.
struct SleepingSubscriber {
    /// Launches the client with the flow as descriptor 3.
    static let program = "exec = [\"/usr/bin/python3\", \"@SCRIPT@\", \"read\"]"

    let lab: LabNetwork
    let broker: LabServer
    let home: DaemonHome
    private let answers: LabProcess
    /// The number of the last event before.
    private let beginning: Int

    /// Where the client's program is, for whichever user.
    private static func script(in home: DaemonHome) throws -> String {
        let path = "\(home.directory)/mqtt_sleeper.py"
        try FileManager.default.copyItem(atPath: "\(SourceTree.root)/Tests/Lab/mqtt_sleeper.py", toPath: path)
        chmod(path, 0o644)
        return path
    }

    /// Runs `body` with a broker and an agent, whose file says by what the client of "office" is woken.
    ///
    /// - Parameters:
    ///   - owner: whose the connection and its client are.
    ///   - hasOpening: whether the agent logs in by itself, from the beginning.
    ///   - bus: where the agent finds systemd.
    ///   - launcher: who launches programs for the agent, which is not root's then.
    static func tell(
        wake: String, of owner: String = "root", hasOpening: Bool = false, on bus: Bus? = nil,
        as launcher: Launcher? = nil, _ body: (SleepingSubscriber) async throws -> Void
    ) async throws {
        try await LabNetwork.with { lab in
            let broker = try await LabServer.start(.mosquitto(), on: lab.server)
            let answers = try await lab.server.spawn([
                "mosquitto_sub", "-h", "127.0.0.1", "-i", "hearer", "-t", "answers/#", "-v",
            ])
            _ = try await broker.log.line(containing: "Sending SUBACK to hearer")
            let home = try DaemonHome()
            let configuration = """
                [[connection]]
                name = "office"
                remote = "mqtt://\(LabNetwork.serverAddress(.v4))"
                owner = "\(owner)"
                wake = { \(wake.replacing("@SCRIPT@", with: try script(in: home))) }
                \(hasOpening ? opening : "")
                """
            try home.configure(configuration)
            if let bus { _ = try await bus.start(on: lab.host) }
            if let launcher {
                try await launcher.startAgent(configuration, in: home, on: lab.host)
            } else {
                _ = try await home.start(on: lab.host, environment: bus?.environment ?? [:])
            }
            // Asked for and not watched: whoever watches might be the client.
            try await eventually("the connection") {
                guard let office = try await home.client.connections().first else { return false }
                return office.state == .ready && (office.session == .open || !hasOpening)
            }
            try await body(
                SleepingSubscriber(
                    lab: lab, broker: broker, home: home, answers: answers, beginning: try await sequence(of: home)))
        }
    }

    private static func sequence(of home: DaemonHome) async throws -> Int {
        try #require(try await home.recorder().told.first).reply.sequence
    }

    /// What the client would leave, for the file.
    private static var opening: String {
        MQTT.opening("door", topic: "bell", keepAlive: 3).map { step in
            """
            [[connection.opening]]
            send = '\(step.send ?? "")'
            expect = '\(step.expect?.bytes ?? "")'
            overtaken_by = [\((step.overtakenBy ?? []).map { "'\($0)'" }.joined(separator: ", "))]

            """
        }.joined()
    }

    /// Starts the client, and returns when it has parked.
    func client(_ mode: String) async throws -> LabProcess {
        let process = try await lab.host.spawn(
            ["python3", "\(home.directory)/mqtt_sleeper.py", mode, "office"],
            environment: [
                "DIALTONE_SOCKET": home.socket, "PYTHONPATH": "\(SourceTree.root)/Examples/sleeping-client",
                "PYTHONDONTWRITEBYTECODE": "1",
            ])
        _ = try await process.line(containing: "parked")
        return process
    }

    /// Runs the client's program on the flow, as the command line hands it over.
    func takeAndRead() async throws -> LabProcess {
        let take = [LabAgent.program("dialtone"), "take", "office", "--fd", "--"]
        return try await lab.host.spawn(
            take + ["python3", "\(home.directory)/mqtt_sleeper.py", "read"],
            environment: ["DIALTONE_SOCKET": home.socket])
    }

    /// Lets the client sleep for several keepalives, then has the broker send it more messages than it may have
    /// unanswered; holds that the first means that was tried is the one that fits, and that each message is answered,
    /// once and in order.
    ///
    /// - Parameters:
    ///   - user: as whom the client runs.
    ///   - prepare: what else happens before the messages come.
    func wakes(
        by means: ConnectionsAPI.WakeMeans, as user: UInt32 = getuid(), _ prepare: () async throws -> Void = {}
    ) async throws {
        var ping: LabProcess.Line?
        for _ in 1...3 { ping = try await broker.log.line(after: ping, containing: "PINGREQ from door") }
        try await prepare()
        let messages = (1...50).map { "message \($0)" }
        _ = try await lab.server.command(
            ["mosquitto_pub", "-h", "127.0.0.1", "-t", "bell", "-q", "1", "-l"],
            input: messages.map { $0 + "\n" }.joined())
        _ = try await answers.line(containing: "message 50")
        #expect(answers.lines.map(\.text) == messages.map { "answers/\(user) \($0)" })
        let wakes = try await events().compactMap(\.wake)
        let first = try #require(wakes.first { $0.stage == .attempted })
        #expect(first.means == means)
        #expect(first.reasons == [.data])
        #expect(wakes.filter { [.attemptFailed, .failed].contains($0.stage) } == [])
        // No other flow came in between.
        expect(try await home.client.connections().map(\.epoch), is: [1])
    }

    /// What happened since the beginning, until now.
    private func events() async throws -> [ConnectionsAPI.Event] {
        let end = try await Self.sequence(of: home)
        let recorder = try await home.recorder(after: beginning)
        _ = try await recorder.event("the last event") { $0.sequence >= end }
        return recorder.events
    }
}

/// An agent of another user's, and `dialtone-launcher`, root's, which it asks to launch programs.
///
/// Both read a file that nobody but root can have put where it is; `/run` is the sandbox's own.
final class Launcher: Sendable {
    private static let directory = "/run/dialtone"
    private static let socket = "\(directory)/launcher.sock"
    private static let file = "\(directory)/dialtone.toml"

    init() throws {
        try FileManager.default.createDirectory(
            atPath: Self.directory, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o755])
    }

    deinit { try? FileManager.default.removeItem(atPath: Self.directory) }

    func startAgent(_ configuration: String, in home: DaemonHome, on machine: Namespace) async throws {
        try Data((configuration + LabAgent.admission).utf8).write(to: URL(filePath: Self.file))
        chmod(Self.file, 0o644)
        chown(home.directory, AnotherUser.number, AnotherUser.number)
        let agent = try await home.launch(
            on: machine, by: AnotherUser.command, arguments: ["--socket", home.socket, "--config", Self.file])
        _ = try await agent.line(containing: "listening")
    }

    /// What the service manager does for the first wake: starts the launcher on its socket, which is the agent's alone.
    func start(on machine: Namespace) async throws {
        _ = try await machine.spawn([
            LabAgent.program("lab-launch"), "--listen", Self.socket, "launcher", LabAgent.program("dialtone-launcher"),
            "--config", Self.file, "--log-level", "debug",
        ])
        try await eventually("the launcher's socket") { access(Self.socket, F_OK) == 0 }
        chown(Self.socket, AnotherUser.number, AnotherUser.number)
        chmod(Self.socket, 0o600)
    }
}
