// SPDX-License-Identifier: Apache-2.0

import DialtoneExpectations
import DialtoneLabSupport
import DialtoneTestSupport
import Foundation
import Testing

/// What the machine's sleep and its battery have to do with pushes, on a system bus of the test's own: see
/// `Tests/LabLogind` and `Tests/Session/upower.py`.
@Suite(
    "Push, sleep and power", .lab, .server("prosody"), .enabled(if: Bus.isThere, "there is no dbus-daemon here"),
    .timeLimit(.minutes(10)))
struct PushPowerStories {
    private static let app = "org.example.Phone"

    @Test func `the machine is kept awake while an app handles a push, and no longer`() async throws {
        let system = try Bus()
        try await PushStage.set([(Self.app, .script)], system: system) { stage in
            let logind = try await system.logind(on: stage.lab.host)
            let endpoint = try await stage.register(Self.app, isVoIP: true)
            stage.misbehave(Self.app, by: .hang)
            async let statuses = stage.post(["call"], to: endpoint)
            let locked = try await logind.line(containing: "locked sleep block Dialtone")
            // The program ends after a while without an answer; another one takes the push.
            let letGo = try await logind.line(after: locked, containing: "let go")
            stage.misbehave(Self.app, by: .hang, false)
            let lockedAgain = try await logind.line(after: letGo, containing: "locked sleep block Dialtone")
            expect(try await statuses, is: ["201"])
            expect(try stage.messages(of: Self.app), is: ["call"])
            // What it holds else is the lock by which it hears of a sleep before it begins.
            _ = try await logind.line(after: lockedAgain, "each lock let go") { _ in
                let lines = logind.lines.map(\.text)
                return lines.count { $0 == "locked sleep block Dialtone" } == lines.count { $0 == "let go" }
            }
        }
    }

    @Test func `a push that comes as the machine falls asleep is handed over when it is awake`() async throws {
        let system = try Bus()
        try await PushStage.set([(Self.app, .script)], system: system) { stage in
            let logind = try await system.logind(on: stage.lab.host)
            let endpoint = try await stage.register(Self.app)
            let locked = try await logind.line(containing: "locked sleep delay Dialtone")
            // The machine falls asleep while one is under way,
            stage.misbehave(Self.app, by: .hang)
            async let statuses = stage.post(["first"], to: endpoint)
            let blocked = try await logind.line(after: locked, containing: "locked sleep block")
            try logind.send("sleep\n")
            // which the app does not take by then: its program ends.
            _ = try await logind.line(after: blocked, "both locks let go") { _ in
                logind.lines.count { $0.text == "let go" } == 2
            }
            stage.misbehave(Self.app, by: .hang, false)
            try await eventually("it waits\n\(stage.log)") {
                try await stage.dialtone("list", "--json").output.contains("\"waiting\":1")
            }
            expect(try stage.messages(of: Self.app), is: [])
            try logind.send("wake\n")
            expect(try await statuses, is: ["201"])
            expect(try stage.messages(of: Self.app), is: ["first"])
            expect(try await stage.post(["second"], to: endpoint), is: ["201"])
            expect(try stage.messages(of: Self.app), is: ["first", "second"])
        }
    }

    @Test func `on a low battery a push waits for the mains, and a call does not`() async throws {
        let system = try Bus()
        try await PushStage.set([(Self.app, .script)], system: system) { stage in
            let address = system.environment["DBUS_SYSTEM_BUS_ADDRESS"] ?? ""
            let upower = try await stage.lab.host.spawn(
                ["/usr/bin/python3", "\(SourceTree.root)/Tests/Session/upower.py"],
                environment: ["DBUS_SESSION_BUS_ADDRESS": address])
            /// Has UPower say something else.
            func set(_ name: String, _ value: String) async throws {
                let call = ["gdbus", "call", "--address", address, "--dest", "org.freedesktop.UPower"]
                let method = ["--object-path", "/org/example/Test", "--method", "org.example.Test.Set", name, value]
                try await eventually("UPower answers\n\(upower.text(of: .error))") {
                    try await stage.lab.host.outcome(call + method).exit == .status(0)
                }
            }
            let standard = try await stage.register(Self.app, as: "standard")
            let calls = try await stage.register(Self.app, as: "calls", isVoIP: true)
            for (name, value) in [("Type", "<uint32 2>"), ("Percentage", "<12.0>"), ("OnBattery", "<true>")] {
                try await set(name, value)
            }
            try await eventually("it is heard\n\(stage.log)") {
                // What comes before that is handed over at once.
                stage.log.contains("the machine runs on its battery at 12 %")
            }
            async let statuses = stage.post(["news"], to: standard)
            try await eventually("it waits\n\(stage.log)") {
                try await stage.dialtone("list", "--json").output.contains("\"waiting\":1")
            }
            expect(try await stage.post(["call"], to: calls), is: ["201"])
            expect(try stage.messages(of: Self.app), is: ["call"])
            try await set("OnBattery", "<false>")
            expect(try await statuses, is: ["201"])
            expect(try stage.messages(of: Self.app), is: ["call", "news"])
        }
    }
}
