// SPDX-License-Identifier: Apache-2.0

import DialtoneExpectations
import DialtoneLabSupport
import DialtoneTestSupport
import Foundation
import Testing

/// Push through prosody's own service, to apps that the session bus starts.
@Suite(.lab, .server("prosody"), .server("dbus-daemon"), .timeLimit(.minutes(20)))
struct PushStories {
    private static let app = "org.example.Phone"
    private static let lacksPyPI: Comment = "scripts/python-varlink could not install pywebpush"

    /// How many messages the story of all outages has.
    private static let messages =
        ProcessInfo.processInfo.environment["DIALTONE_PUSH_MESSAGES"].flatMap { Int($0) } ?? 500

    @Test func `an app registers, and is started for a message`() async throws {
        try await PushStage.set([(Self.app, .script)]) { stage in
            let endpoint = try await stage.register(Self.app)
            expect(try await stage.post(["hello"], to: endpoint), is: ["201"])
            expect(try stage.messages(of: Self.app), is: ["hello"])
            let told = try stage.told(to: Self.app)
            #expect(told.first?.process != told.last?.process, "\(told)")
            let list = try await stage.dialtone("list")
            #expect(list.output.contains(Self.app) && list.output.contains("registered"), "\(list)")
            expect(try await stage.dialtone("test", Self.app).output, is: "The app took it.")
            let metrics = try await stage.dialtone("metrics")
            for line in ["logged_in 1", "registered_apps 1", "arrived_messages_total 1", "taken_messages_total 1"] {
                #expect(metrics.lines.contains("dialtone_push_\(line)"), "\(metrics)")
            }
        }
    }

    @Test(.enabled(if: PyPI.python != nil, lacksPyPI))
    func `each message is there once and in order, whatever is killed and pulled meanwhile`() async throws {
        try await PushStage.set([(Self.app, .phone)]) { stage in
            let token = try await stage.registerPhone(Self.app)
            // From here on all sleep.
            try await stage.isParked()
            let count = Self.messages
            let patience = Duration.seconds(600 + count)
            async let sent = stage.send(1...count, to: token, of: Self.app, within: patience)
            for (number, outage) in Outage.allCases.enumerated() {
                // When so many have come: it happens between any two. Where the service lost the session that it sent a
                // message to, it and the sender wait two minutes for the answer.
                let reached = (number + 1) * count / (Outage.allCases.count + 1)
                try await stage.hasTaken(reached, app: Self.app, patience: 4)
                try await outage.happen(on: stage)
            }
            let seen = try await sent
            let bodies = (1...count).map { "message \($0)" }
            let others = zip(bodies, seen).filter { $1 != .init(status: "201", wasThere: true) }
            print("push: of \(count) messages the sender was not told that the app has \(others)")
            // What it was told nothing of may still be on its way.
            try await stage.hasTaken(count, app: Self.app, patience: 4)
            expect(try stage.messages(of: Self.app), is: bodies)
            #expect(seen.count == count && others.allSatisfy { $1.status != "201" }, "\(others)\n\(stage.log)")
            let again = try stage.told(to: Self.app).count { $0.method == "Again" }
            print("push: \(again) of them came to the phone again, and were known by their names")
            // The answer to one message at a time can be lost, with whom it is on its way to.
            #expect(again <= Outage.allCases.count)
        }
    }

    @Test func `a message that an app fails on is set aside, and the next one comes`() async throws {
        try await PushStage.set([(Self.app, .script)]) { stage in
            let endpoint = try await stage.register(Self.app, isVoIP: true)
            stage.misbehave(Self.app, by: .refuse)
            async let statuses = stage.post(["poison"], to: endpoint)
            try await eventually("a try that failed\n\(stage.log)") {
                try await stage.dialtone("list").output.contains("the app did not take it")
            }
            // A fault of the service: that the app did not take it is an answer, and not an error of its own.
            expect(try await statuses, is: ["500"])
            stage.misbehave(Self.app, by: .refuse, false)
            expect(try await stage.post(["medicine"], to: endpoint), is: ["201"])
            expect(try stage.messages(of: Self.app), is: ["medicine"])
            let metrics = try await stage.dialtone("metrics", "--prometheus")
            for line in ["given_up_messages_total 1", "taken_messages_total 1"] {
                #expect(metrics.lines.contains("dialtone_push_\(line)"), "\(metrics)")
            }
            let history = try await stage.dialtone("history", Self.app).lines.map {
                $0.split(separator: "  ").last ?? ""
            }
            #expect(history.count == 3 && history.last?.contains("taken") == true, "\(history)")
            #expect(history.dropFirst().first?.contains("given up: ") == true, "\(history)")
            // The second one may have come while the program of the first was ending.
            let line = metrics.lines.first { $0.hasPrefix("dialtone_push_failed_tries_total ") }
            let tries = line?.split(separator: " ").last.flatMap { Int($0) }
            #expect(tries.map { $0 >= 4 } == true, "\(metrics)")
        }
    }

    @Test func `with a disk that is full a push stays with its sender, and comes when there is room`() async throws {
        try await PushStage.set([(Self.app, .script)], stateSize: "1m") { stage in
            let endpoint = try await stage.register(Self.app)
            try await stage.fillState()
            // Larger than what is left of the last page.
            let large = String(repeating: "x", count: 4000)
            async let statuses = stage.post(["1" + large, "2" + large], to: endpoint)
            try await eventually("it is told\n\(stage.log)") {
                try await stage.dialtone("status").output.contains("full")
            }
            expect(try stage.messages(of: Self.app), is: [])
            try await stage.fillState(false)
            let seen = try await statuses
            #expect(seen == ["201", "201"], "\(stage.log)")
            expect(try stage.messages(of: Self.app).map { $0.first }, is: ["1", "2"])
            expect(try await stage.dialtone("status").output.contains("full"), is: false)
        }
    }

    @Test func `with a disk that is full at its start it ends so that it is started again`() async throws {
        let (machine, home) = (try await Namespace.island(), try DaemonHome())
        let bus = try PrivateBus(.daemon)
        try await bus.start()
        let state = "\(home.directory)/push"
        try await machine.command(["mkdir", state])
        try await machine.command(["mount", "-t", "tmpfs", "-o", "size=16k", "tmpfs", state])
        try await machine.command(["sh", "-c", "dd if=/dev/zero of=\(state)/ballast bs=1k 2>&1 || true"])
        let environment = [
            "DBUS_SESSION_BUS_ADDRESS": bus.address, "DBUS_SYSTEM_BUS_ADDRESS": "unix:path=\(home.directory)/none",
            "DIALTONE_SOCKET": home.socket, "DIALTONE_SESSION_SOCKET": "\(home.directory)/session.sock",
            "HOME": home.directory,
        ]
        let command = [LabAgent.program("dialtone-session"), "--state", state]
        let session = try await machine.spawn(command, environment: environment)
        _ = try await session.line(containing: "what was kept cannot be read just now")
        expect(try await session.exit(), is: .status(EX_TEMPFAIL))
        #expect(session.text(of: .error).contains("full"), "\(session.text(of: .error))")
        try await machine.command(["mount", "-o", "remount,size=1m", state])
        let next = try await machine.spawn(command, environment: environment)
        _ = try await next.line(containing: "apps can register")
        let status = try await machine.outcome(
            [LabAgent.program("dialtone"), "push"], environment: environment)
        #expect(status.exit == .status(0) && status.output.contains("No push server"), "\(status)")
    }

    @Test(.enabled(if: PyPI.python != nil, lacksPyPI))
    func `a service that lost the session says that it delivered, and nothing after it is lost`() async throws {
        try await PushStage.set([(Self.app, .phone)]) { stage in
            let token = try await stage.registerPhone(Self.app)
            try await stage.isParked()
            for uplink in Uplink.allCases { try await stage.lab.takeDown(uplink) }
            try await stage.server.kill()
            try await stage.server.restart()
            // A fault of the service, which knows of no session: it takes its own error for the app's receipt.
            expect(
                try await stage.send(1...1, "lost", to: token, of: Self.app),
                is: [.init(status: "201", wasThere: false)])
            for uplink in Uplink.allCases { try await stage.lab.bringUp(uplink) }
            try await eventually("the service refuses to resume\n\(stage.log)") {
                stage.log.contains("it did not accept the opening")
            }
            try await stage.isParked()
            try await stage.isLoggedIn()
            expect(
                try await stage.send(1...2, "found", to: token, of: Self.app),
                is: [.init(status: "201", wasThere: true), .init(status: "201", wasThere: true)])
            expect(try stage.messages(of: Self.app), is: ["found 1", "found 2"])
        }
    }

    @Test(
        .enabled(if: PyPI.python != nil, lacksPyPI),
        .enabled(if: PrivateBus.Kind.broker.isThere, "dbus-broker is not there, or takes root"))
    func `on dbus-broker, a message waits for an app that cannot be started, and comes when the app does`()
        async throws
    {
        try await PushStage.set([(Self.app, .phone)], bus: .broker) { stage in
            let token = try await stage.registerPhone(Self.app)
            async let sent = stage.send(1...2, to: token, of: Self.app)
            try await eventually("it waits\n\(stage.log)") {
                try await stage.dialtone("status", "--json").output.contains("\"waiting\":1")
            }
            // What dbus-broker has start programs, systemd, is not there: the app cannot be started, and is not gone.
            expect(
                try await stage.dialtone("test", Self.app).output.prefix(40),
                is: "The app does not run and could not be st")
            let phone = try await stage.run(Self.app, .phone, for: 30)
            expect(
                try await sent, is: [.init(status: "201", wasThere: true), .init(status: "201", wasThere: true)])
            expect(try stage.messages(of: Self.app), is: ["message 1", "message 2"])
            #expect(phone.isRunning)
            expect(try await stage.dialtone("list").output.contains(Self.app), is: true)
        }
    }
}

/// What happens while messages come.
private enum Outage: CaseIterable {
    case killSession, killAgent, killBoth, cut, roam, restartBus, roamBack

    func happen(on stage: PushStage) async throws {
        switch self {
        case .killSession: try await stage.killSession()
        case .killAgent: try await stage.killAgent()
        case .killBoth: try await stage.killBoth()
        case .cut: try await stage.cutConnection()
        case .roam: try await stage.lab.takeDown(.wan0)
        case .restartBus: try await stage.restartBus()
        case .roamBack:
            try await stage.lab.bringUp(.wan0)
            try await stage.lab.takeDown(.wan1)
        }
    }
}
