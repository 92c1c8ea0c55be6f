// SPDX-License-Identifier: Apache-2.0

import DialtoneDistributor
import DialtoneExpectations
import DialtonePlatform
import DialtoneTestSupport
import Foundation
import Testing

@testable import DialtoneSession

private let app = "org.example.App"

/// Calls of apps, by connectors of other people's making.
@Suite(.serialized) struct ConnectorTests {
    private func desk(_ kind: PrivateBus.Kind, _ commands: String) async throws -> Desk {
        let desk = try await Desk(kind)
        try desk.begin("app.log", "own=\(app)", commands, "serve")
        try await eventually("the app serves") { desk.lines("app.log").last == #"["serves"]"# }
        return desk
    }

    @Test(arguments: kinds) func `an app that runs is called`(_ kind: PrivateBus.Kind) async throws {
        let desk = try await desk(kind, "behave=taken")
        expect(try await desk.tell(app, .message([1, 0, 255], id: "m")), is: .taken)
        expect(try await desk.tell(app, .message([1, 0, 255], id: "m"), .v1), is: .taken)
        expect(try await desk.tell(app, .newEndpoint("https://a/b")), is: .taken)
        expect(try await desk.tell(app, .newEndpoint("https://a/b"), .v1), is: .taken)
        expect(try await desk.tell(app, .unregistered(isAsked: true)), is: .taken)
        expect(try await desk.tell(app, .unregistered(isAsked: true), .v1), is: .taken)
        expect(try await desk.tell(app, .unregistered(isAsked: false), .v1), is: .taken)
        expect(try await desk.tell(app, .message([7], id: "n"), isDemoted: true), is: .taken)
        expect(try await desk.tell(app, .newEndpoint("https://a/c"), isDemoted: true), is: .taken)
        #expect(
            desk.lines("app.log").dropFirst(2) == [
                #"["Message", 2, {"id": "m", "message": [1, 0, 255], "token": "t"}]"#,
                #"["Message", 1, "t", [1, 0, 255], "m"]"#,
                #"["NewEndpoint", 2, {"endpoint": "https://a/b", "token": "t"}]"#,
                #"["NewEndpoint", 1, "t", "https://a/b"]"#,
                #"["Unregistered", 2, {"token": "t"}]"#,
                #"["Unregistered", 1, ""]"#,
                #"["Unregistered", 1, "t"]"#,
                #"["Message", 2, {"id": "n", "message": [7], "org.dialtone.type": "standard", "token": "t"}]"#,
                #"["NewEndpoint", 2, {"endpoint": "https://a/c", "org.dialtone.type": "standard", "token": "t"}]"#,
            ])
    }

    @Test(
        arguments: kinds,
        [
            ("error", AppAnswer.refused("cannot decrypt")), ("crash", .refused("it ended before it answered")),
            ("other", .refused("it acknowledged another message")), ("silent", .unanswered),
        ])
    func `an app that does not take a message is told apart`(
        _ kind: PrivateBus.Kind, _ behaviour: (String, answer: AppAnswer)
    ) async throws {
        let desk = try await desk(kind, "behave=\(behaviour.0)")
        expect(
            try await desk.tell(
                app, .message([1], id: "m"), timeout: behaviour.0 == "silent" ? .milliseconds(200) : .seconds(30)),
            is: behaviour.answer)
    }

    @Test(arguments: kinds) func `an app that is not installed is not known`(_ kind: PrivateBus.Kind) async throws {
        let desk = try await Desk(kind)
        expect(try await desk.tell("org.example.Gone", .message([1], id: "m")), is: .unknown)
    }

    @Test(arguments: kinds) func `an app that cannot be started is told apart`(_ kind: PrivateBus.Kind) async throws {
        let desk = try await Desk(kind, services: [app: "/bin/false"])
        try expect(await desk.tell(app, .message([1], id: "m"))) { answer in
            guard case .notStarted = answer else { return false }
            return true
        }
    }

    /// dbus-broker has systemd start programs, and there is none here.
    @Test(.enabled(if: kinds.contains(.daemon), "no dbus-daemon, or no python3-gi"))
    func `an app that takes long to start was not called, and did not fail`() async throws {
        let desk = try await Desk(.daemon, services: [app: "/bin/sleep 60"])
        expect(
            try await desk.tell(app, .message([1], id: "m"), timeout: .milliseconds(300)),
            is: .notStarted("it did not take its name in time"))
    }

    /// dbus-broker has systemd start programs, and there is none here.
    @Test(.enabled(if: kinds.contains(.daemon), "no dbus-daemon, or no python3-gi"))
    func `an app that does not run is started for a message`() async throws {
        let desk = try await Desk(.daemon, services: [app: "/usr/bin/python3 \(Desk.script) LOG own=\(app) serve"])
        expect(try await desk.tell(app, .message([7], id: "m")), is: .taken)
        #expect(
            desk.lines("\(app).log") == [
                #"["own", "org.example.App", 1]"#, #"["serves"]"#,
                #"["Message", 2, {"id": "m", "message": [7], "token": "t"}]"#,
            ])
    }
}
