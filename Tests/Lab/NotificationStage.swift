// SPDX-License-Identifier: Apache-2.0

import DialtoneAPI
import DialtoneClient
import DialtoneLabSupport
import DialtoneTestSupport
import Foundation
import Testing

/// A user with a screen: the machine's agent, a session bus, the session agent, an X server and notification daemons.
/// The connection "office" leads to a port of this machine, at which nobody listens at first.
final class NotificationStage: Sendable {
    /// Real notification daemons.
    enum Daemon: String, CaseIterable, Sendable {
        case dunst = "dunst"
        case gnome = "notification-daemon"

        /// Where Debian has it; one that nobody is to call by name is in no directory of programs.
        var program: String? {
            switch self {
            case .dunst: systemProgram("dunst")
            case .gnome:
                ["/usr/lib/notification-daemon/notification-daemon", "/usr/libexec/notification-daemon"].first {
                    FileManager.default.isExecutableFile(atPath: $0)
                }
            }
        }

        /// What its windows are called, for xdotool(1).
        fileprivate var window: [String] {
            switch self {
            case .dunst: ["--class", "Dunst"]
            case .gnome: ["--name", "^Notification$"]
            }
        }
    }

    /// Those that are here; told aloud where they are not.
    static let daemons: [Daemon] = {
        for tool in ["Xvfb", "xdotool", "dbus-daemon"] where systemProgram(tool) == nil {
            print("SKIPPED: notifications on a screen, for which \(tool) is missing")
            return []
        }
        return Daemon.allCases.filter { daemon in
            if daemon.program == nil { print("SKIPPED: notifications by \(daemon.rawValue), which is not there") }
            return daemon.program != nil
        }
    }()

    let machine: Namespace
    let home: DaemonHome
    let session: LabProcess
    let port: UInt16
    private let environment: [String: String]
    private let bus: PrivateBus
    private let kept: [LabProcess]

    /// - Parameter rule: more lines of the rule for an outage, with the directory of the stage.
    init(_ rule: (String) -> String = { _ in "" }) async throws {
        machine = try await .island()
        port = try await machine.run { try TCPSocket.listening(on: 0).port() }
        home = try DaemonHome()
        try Data(
            """
            [[notifications.rule]]
            event = "connection-down"
            after = "0s"
            \(rule(home.directory))

            """.utf8
        ).write(to: URL(filePath: "\(home.directory)/session.toml"))
        chmod("\(home.directory)/session.toml", 0o600)
        bus = try PrivateBus(.daemon)
        try await bus.start()
        let screen = try await machine.spawn([
            "Xvfb", "-displayfd", "1", "-screen", "0", "800x600x24", "-nolisten", "tcp",
        ])
        let display = try await screen.line("its display") { !$0.text.isEmpty && $0.text.allSatisfy(\.isNumber) }.text
        environment = [
            "DBUS_SESSION_BUS_ADDRESS": bus.address, "DIALTONE_SOCKET": home.socket,
            "DIALTONE_SESSION_SOCKET": "\(home.directory)/session.sock", "XDG_RUNTIME_DIR": home.directory,
            "HOME": home.directory, "DISPLAY": ":\(display)", "NO_AT_BRIDGE": "1",
            // There is no system bus on a machine of the Lab.
            "DBUS_SYSTEM_BUS_ADDRESS": "unix:path=\(home.directory)/none",
        ]
        let agent = try await home.start(on: machine)
        session = try await machine.spawn(
            [
                LabAgent.program("dialtone-session"), "--config", "\(home.directory)/session.toml", "--socket",
                "\(home.directory)/session.sock", "--state", "\(home.directory)/push", "--log-level", "debug",
            ], environment: environment.merging(DaemonHome.quietCrashes) { mine, _ in mine })
        kept = [screen, agent]
        _ = try await session.line(containing: "apps can register")
        // Now, so that nothing is noticed late. There is no attempt but those that somebody asks for.
        let settings = ConnectionsAPI.Settings(backoff: .init(initial: .seconds(600), maximum: .seconds(600)))
        _ = try await home.client.open(
            .init(remote: "tcp://127.0.0.1:\(port)", name: "office", settings: settings))
    }

    /// Starts a notification daemon.
    func start(_ daemon: Daemon) async throws -> LabProcess {
        let process = try await machine.spawn([try #require(daemon.program)], environment: environment)
        try await eventually("\(daemon.rawValue) on the bus") {
            try await run(
                "gdbus", "call", "--session", "-d", "org.freedesktop.DBus", "-o", "/org/freedesktop/DBus",
                "-m", "org.freedesktop.DBus.NameHasOwner", "org.freedesktop.Notifications"
            ).output.contains("true")
        }
        return process
    }

    /// Runs a program to its end.
    func run(_ command: String...) async throws -> Outcome {
        try await machine.outcome(command, environment: environment)
    }

    /// Runs `dialtone` to its end.
    func dialtone(_ arguments: String...) async throws -> Outcome {
        try await machine.outcome([LabAgent.program("dialtone")] + arguments, environment: environment)
    }

    /// Waits until `dialtone notify` says this of the outage; `nil` for nothing.
    func outage(is stage: String?, _ text: String = "") async throws {
        var seen = ""
        do {
            try await eventually("the outage to be \(stage ?? "over")") {
                seen = try await dialtone("notify", "--json").output
                guard let stage else { return seen.contains("\"notices\":[]") }
                return seen.contains("\"stage\":\"\(stage)\"") && (text.isEmpty || seen.contains(text))
            }
        } catch let error as NothingCame {
            throw NothingCame(description: "\(error.description)\n\(seen)\n\(session.text(of: .error))")
        }
    }

    /// The windows that a daemon shows.
    func windows(of daemon: Daemon) async throws -> [String] {
        let found = try await machine.outcome(
            ["xdotool", "search", "--onlyvisible"] + daemon.window, environment: environment)
        return found.lines
    }

    /// Waits until a daemon shows so many windows.
    func shows(_ count: Int, by daemon: Daemon) async throws {
        var seen: [String] = []
        do {
            try await eventually("\(count) windows") {
                seen = try await windows(of: daemon)
                return seen.count == count
            }
        } catch let error as NothingCame {
            throw NothingCame(description: "\(error.description): \(seen)\n\(session.text(of: .error))")
        }
    }

    /// Presses the button of the notification that a daemon shows; with the mouse, where there is one to see.
    func press(by daemon: Daemon) async throws {
        let window = try #require(try await windows(of: daemon).first)
        switch daemon {
        case .dunst:
            // It draws no buttons: its keys and dunstctl(1) press them.
            _ = try await run("dunstctl", "action", "0")
        case .gnome:
            // The button stands at the right, below the text.
            let geometry = try await run("xdotool", "getwindowgeometry", "--shell", window).lines
            func value(_ name: String) -> Int {
                geometry.first { $0.hasPrefix("\(name)=") }.flatMap { Int($0.dropFirst(name.count + 1)) } ?? 0
            }
            _ = try await run(
                "xdotool", "mousemove", "--window", window, "\(value("WIDTH") - 83)", "\(value("HEIGHT") - 39)",
                "sleep", "0.3", "click", "1")
        }
    }

    /// Writes what the screen shows to a file, where `DIALTONE_SCREENSHOTS` names a directory: for a person to look at.
    func screenshot(_ name: String) async throws {
        guard let directory = ProcessInfo.processInfo.environment["DIALTONE_SCREENSHOTS"] else { return }
        _ = try await run("import", "-window", "root", "\(directory)/\(name).png")
    }
}
