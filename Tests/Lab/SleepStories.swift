// SPDX-License-Identifier: Apache-2.0

import DialtoneAPI
import DialtoneClient
import DialtoneLabSupport
import Testing

/// What logind says of the machine's sleep, on a bus of the test's own. See `Tests/LabLogind`.
@Suite(.lab, .enabled(if: Bus.isThere, "there is no dbus-daemon here"))
struct SleepStories {
    @Test func `it waits until the agent has heard of it, and the flow is proven on waking, once`() async throws {
        try await LabNetwork.with { lab in
            let (home, bus) = (try DaemonHome(), try Bus())
            _ = try await bus.start(on: lab.host)
            let logind = try await bus.logind(on: lab.host)
            _ = try await LabServer.start(.mosquitto(), on: lab.server)
            let daemon = try await home.start(on: lab.host, environment: bus.environment)
            let locked = try await logind.line(containing: "locked sleep delay Dialtone")
            let events = try await home.recorder()
            _ = try await home.client.open(
                .init(remote: "mqtt://\(LabNetwork.serverAddress(.v4))", name: "office"))
            try await events.state(.ready, of: "office")

            for count in 1...2 {
                let before = events.events.count
                try logind.send("sleep\n")
                let letGo = try await logind.line(after: locked, "\(count) locks let go") { _ in
                    logind.lines.count { $0.text == "let go" } == count
                }
                try await daemon.prints("the machine goes to sleep", times: count)
                #expect(events.events.count == before)
                try logind.send("wake\n")
                let verifying = try await events.state(.verifying, of: "office", after: before)
                #expect(verifying.connection.epoch == 1)
                try await events.state(.ready, of: "office", after: before)
                _ = try await logind.line(after: letGo, containing: "locked sleep delay")
                try await daemon.prints("the machine woke from suspend", times: count)
            }
        }
    }

    @Test func `a logind that comes back is asked for the lock again, and gets it back at the end`() async throws {
        let machine = try await Namespace.island()
        let (home, bus) = (try DaemonHome(), try Bus())
        let daemon = try await home.start(on: machine, environment: bus.environment)
        _ = try await bus.start(on: machine)
        var logind = try await bus.logind(on: machine)
        _ = try await logind.line(containing: "locked sleep")
        _ = try await logind.killNow()
        logind = try await bus.logind(on: machine)
        let locked = try await logind.line(containing: "locked sleep")
        try await daemon.terminate()
        _ = try await logind.line(after: locked, containing: "let go")
    }
}

extension LabProcess {
    /// Waits until it has printed so many lines with `text`, and holds that they are no more.
    fileprivate func prints(_ text: String, times count: Int) async throws {
        _ = try await line("\(count) lines with \"\(text)\"") { _ in lines.count { $0.text.contains(text) } >= count }
        #expect(lines.count { $0.text.contains(text) } == count)
    }
}
