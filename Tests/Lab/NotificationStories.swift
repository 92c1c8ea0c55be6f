// SPDX-License-Identifier: Apache-2.0

import DialtoneExpectations
import DialtoneLabSupport
import DialtoneTestSupport
import Foundation
import Testing

/// What a user sees on the screen, by daemons that others wrote.
@Suite(.lab, .serialized)
struct NotificationStories {
    @Test(arguments: NotificationStage.daemons)
    func `an outage is shown, updated, and withdrawn when it is over`(_ daemon: NotificationStage.Daemon) async throws {
        let stage = try await NotificationStage()
        let process = try await stage.start(daemon)
        try await stage.outage(is: "shown", "refused")
        try await stage.shows(1, by: daemon)
        try await stage.screenshot("\(daemon.rawValue)-shown")
        try await stage.machine.ip("link set lo down")
        try await stage.outage(is: "shown", "no route")
        try await stage.shows(1, by: daemon)
        try await stage.screenshot("\(daemon.rawValue)-updated")
        try await stage.machine.ip("link set lo up")
        let port = stage.port
        let listener = try await stage.machine.run { try TCPSocket.listening(on: port) }
        expect(try await stage.dialtone("redial", "office").exit, is: .status(0))
        try await stage.outage(is: nil)
        try await stage.shows(0, by: daemon)
        try await stage.screenshot("\(daemon.rawValue)-withdrawn")
        withExtendedLifetime((listener, process)) {}
    }

    @Test(arguments: NotificationStage.daemons)
    func `a press of its button dials anew`(_ daemon: NotificationStage.Daemon) async throws {
        let stage = try await NotificationStage()
        let process = try await stage.start(daemon)
        let port = stage.port
        try await stage.shows(1, by: daemon)
        let listener = try await stage.machine.run { try TCPSocket.listening(on: port) }
        try await stage.press(by: daemon)
        _ = try await stage.session.line(containing: "dialled anew by a notification's button")
        let server = try await stage.machine.run { try listener.accept() }
        try await stage.outage(is: nil)
        try await stage.shows(0, by: daemon)
        withExtendedLifetime((process, server)) {}
    }

    @Test(.enabled(if: !NotificationStage.daemons.isEmpty))
    func `a press of its button runs the user's program`() async throws {
        let daemon = try #require(NotificationStage.daemons.first)
        let stage = try await NotificationStage { directory in
            """
            label = "Tell them"
            command = ["/bin/sh", "-c", "echo $DIALTONE_EVENT $DIALTONE_NAME >\(directory)/pressed"]
            """
        }
        let process = try await stage.start(daemon)
        try await stage.shows(1, by: daemon)
        try await stage.press(by: daemon)
        try await eventually("the program") {
            (try? String(contentsOfFile: "\(stage.home.directory)/pressed", encoding: .utf8))
                == "connection-down office\n"
        }
        withExtendedLifetime(process) {}
    }

    @Test(.enabled(if: !NotificationStage.daemons.isEmpty))
    func `without a daemon nothing is lost, and each that comes shows it`() async throws {
        let stage = try await NotificationStage()
        try await stage.outage(is: "kept", "refused")
        let test = try await stage.dialtone("notify", "--test")
        #expect(test.exit == .status(1) && test.output.contains("No notification daemon runs"), "\(test)")
        for daemon in NotificationStage.daemons {
            let process = try await stage.start(daemon)
            try await stage.shows(1, by: daemon)
            try await stage.outage(is: "shown")
            let test = try await stage.dialtone("notify", "--test")
            #expect(test.exit == .status(0) && test.output.contains("shows it."), "\(test)")
            try await stage.screenshot("\(daemon.rawValue)-test")
            try await process.killNow()
            try await stage.outage(is: "kept")
        }
        // One attempt for the outage, and no others.
        let attempts = stage.session.text(of: .error).split(separator: "\n").filter { $0.contains("waits for a") }
        #expect(attempts.count == 1, "\(attempts)")
    }
}
