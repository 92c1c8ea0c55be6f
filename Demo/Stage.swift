// SPDX-License-Identifier: Apache-2.0

import DialtoneAPI
import DialtoneClient
import DialtoneLabSupport
import DialtonePlatform
import DialtonePresentation
import DialtoneVarlink
import Glibc

/// Plays scenes, narrates them from the agent's event stream, and keeps the time.
final class Stage: Sendable {
    static let connection = "office"

    let lab: LabNetwork
    let broker: LabServer
    let agent: LabAgent

    private struct Performance {
        let title: String
        let firstWord: Duration
        let end: Duration
    }

    private struct State {
        /// When the action of the scene began, on `BootClock`.
        var start = BootClock.now()
        var firstWord: Duration?
        /// Told of the scene's connection, in order.
        var events: [(event: ConnectionsAPI.Event, time: Duration)] = []
        var performances: [Performance] = []
    }

    private let state = Lock(State())
    private let changes = ChangeSignal()
    private let style = Style(
        isTerminal: isatty(STDOUT_FILENO) == 1,
        environment: getenv("NO_COLOR").map { ["NO_COLOR": String(cString: $0)] } ?? [:])

    init(lab: LabNetwork, broker: LabServer, agent: LabAgent) {
        self.lab = lab
        self.broker = broker
        self.agent = agent
    }

    /// Begins to listen to the agent, and has it open the connection.
    func open() async throws {
        let client = agent.client
        Task { [weak self] in
            for try await reply in client.stream(NetworkAPI.MonitorPath.self, .init()) {
                self?.narrate(WatchLine(path: reply.path, of: "network", changes: reply.changes, at: .now()))
            }
        }
        Task { [weak self] in
            for try await reply in client.stream(ConnectionsAPI.Monitor.self, .init()) {
                if let event = reply.event { self?.take(event) }
            }
        }
        try await play(
            Scene(title: "A connection to the broker is opened") { stage in
                _ = try await stage.agent.client.open(
                    .init(
                        remote: "mqtt://\(LabNetwork.serverAddress(.v4))", name: Self.connection,
                        // A tenth of the usual waits, so that the scene with the dead broker is over soon.
                        settings: .init(
                            opening: [Self.login], backoff: .init(initial: .milliseconds(100), maximum: .seconds(1)))))
            } ending: {
                $0.connection.state == .ready
            })
    }

    /// CONNECT, and a CONNACK without an error (MQTT 3.1.1, sections 3.1 and 3.2): a broker serves nobody without.
    private static let login = ConnectionsAPI.OpeningStep(
        send: #"\x10\x10\x00\x04MQTT\x04\x02\x00\x3c\x00\x04demo"#, expect: .init(bytes: #"\x20\x02\x0?\x00"#))

    /// Plays one scene to its end.
    func play(_ scene: Scene) async throws {
        Demo.write("\n" + style.paint(scene.title, .strong))
        let seen = state.withLock { state in
            state.start = BootClock.now()
            state.firstWord = nil
            return state.events.count
        }
        try await scene.action(self)
        let end = try await changes.wait(for: "the end of the scene \"\(scene.title)\"") {
            state.withLock { $0.events.dropFirst(seen).first { scene.ending($0.event) }?.time }
        }
        state.withLock { state in
            state.performances.append(
                Performance(
                    title: scene.title, firstWord: (state.firstWord ?? end) - state.start, end: end - state.start))
        }
        // A breath, so that a person can follow; nothing depends on it.
        try await Task.sleep(for: .milliseconds(700))
    }

    /// Writes the table.
    func summarize() {
        var table = Table(["SCENE", "FIRST EVENT", "SETTLED"])
        for performance in state.withLock(\.performances) {
            table.add([
                .init(performance.title), .init(Self.milliseconds(performance.firstWord)),
                .init(Self.milliseconds(performance.end), .good),
            ])
        }
        Demo.write("\n" + table.lines(style).joined(separator: "\n"))
        Demo.write(
            """

            Both times begin with the command that makes it happen (ip, kill, a call), which itself takes some
            milliseconds, and end when a subscriber has read the event from the agent's socket. "make bench" measures \
            the agent alone.
            """)
    }

    private func take(_ event: ConnectionsAPI.Event) {
        let time = BootClock.now()
        narrate(WatchLine(event))
        state.withLock { $0.events.append((event, time)) }
        changes.notify()
    }

    private func narrate(_ line: WatchLine) {
        let now = BootClock.now()
        let start = state.withLock { state in
            state.firstWord = state.firstWord ?? now
            return state.start
        }
        let elapsed = Self.milliseconds(now - start)
        let padding = String(repeating: " ", count: max(0, 9 - elapsed.count))
        Demo.write("  \(padding)+\(elapsed)  \(line.lines(style) { _ in "" }.joined(separator: " "))")
    }

    private static func milliseconds(_ duration: Duration) -> String {
        let tenths = (duration * 10).milliseconds
        return "\(tenths / 10).\(tenths % 10) ms"
    }
}
