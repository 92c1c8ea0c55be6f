// SPDX-License-Identifier: Apache-2.0

import DialtoneExpectations
import DialtoneLabSupport
import DialtoneTestSupport
import Foundation
import Testing

/// The session agent's user unit and the file that has the session bus start it, under a real systemd, as they are
/// installed: for a user whose manager runs without a login, as lingering has it.
@Suite(.booted, .serialized, .timeLimit(.minutes(5)))
struct SessionUnitStories {
    /// Why the machine, which has this one's /usr, has no session bus or no app for it; `nil` if it has both.
    fileprivate static let obstacle: Comment? = {
        for (package, file) in [("dbus-user-session", "lib/systemd/user/dbus.socket"), ("libglib2.0-bin", "bin/gdbus")]
        where access("/usr/\(file)", F_OK) != 0 {
            return "there is no /usr/\(file) (Debian's \(package))"
        }
        let probe = Program.run("/usr/bin/python3", ["-c", "from gi.repository import Gio"])
        return probe.status == 0 ? nil : "/usr/bin/python3 has no GLib (Debian's python3-gi): \(probe.error)"
    }()

    private static let service = "dialtone-session.service"

    @Test(.enabled(if: obstacle == nil, obstacle ?? "the machine has a session bus and apps for it"))
    func `the bus starts the session agent, and what it kept outlives a kill and a stop`() async throws {
        let machine = try await BootedMachine.boot()
        let user = try await UserSession.begin(on: machine)
        do {
            try await user.installSessionAgent()
            try await Self.startByBus(user)
            try await Self.checkConfinement(user)
            let told = try await Self.killWhileAppRegisters(user)
            try await Self.checkKept(user, "after a kill, of which the app was told \(told)")
            try await Self.startBySocket(user)
        } catch {
            let journal = await user.sessionJournal()
            throw NothingCame(description: "\(error)\n\(journal)")
        }
        try await machine.turnOff()
    }

    /// The first call of the distributor's name starts the unit, and is answered.
    private static func startByBus(_ user: UserSession) async throws {
        expect(try await user.run("systemctl", "--user", "show-environment"), "nobody has a screen") {
            !$0.contains("DISPLAY=")
        }
        try await user.expect("inactive", of: "graphical-session.target")
        try await user.expect("notify", "Type", of: service)
        try await user.expect("inactive", of: service)
        try await user.expect("inactive", of: "dialtone-session.socket")
        let answer = try await user.gdbus(
            UserSession.distributor, "/org/unifiedpush/Distributor", "org.unifiedpush.Distributor2.Register",
            "{'service': <'org.example.Phone'>, 'token': <'token'>}")
        // gdbus owns no name.
        expect(answer) { $0.contains("'REGISTRATION_FAILED'") && $0.contains("'UNAUTHORIZED'") }
        try await user.expect("active", of: service)
        try await user.expect("active", of: "dialtone-session.socket")
        // The unit's process has the name: the bus did not start the program by itself.
        let owner = try await user.gdbus(
            "org.freedesktop.DBus", "/org/freedesktop/DBus", "org.freedesktop.DBus.GetConnectionUnixProcessID",
            UserSession.distributor)
        let process = try await user.process(of: service)
        expect(owner, is: "(uint32 \(process),)")
        try await user.says("push", "status", "--json") {
            $0.contains("\"isOnBus\":true") && $0.contains("\"registrations\":0")
        }
        // It reached the user's agent.
        try await user.says("list") { $0.contains("dialtone-push") }
        expect(try await user.run(UserSession.dialtone, "push", "status")) { $0.contains("ws://127.0.0.1:9/") }
    }

    /// What the unit says of its process holds.
    private static func checkConfinement(_ user: UserSession) async throws {
        // Whether it can get privileges, and how many filters of system calls it has. A container has some of its own.
        let confined = try await user.confinement(of: service)
        let other = try await user.confinement(of: "dbus.service")
        #expect(confined.first == 1 && other.first == 0, "\(confined), and the bus \(other)")
        #expect(confined.last ?? 0 > other.last ?? 0, "\(confined), and the bus \(other)")
    }

    /// Kills the session agent when it has registered an app and waits for the push server, and returns what the app
    /// was told of that.
    private static func killWhileAppRegisters(_ user: UserSession) async throws -> String {
        async let told = user.runApp()
        try await user.says("push", "list") { $0.contains("org.example.Phone") }
        let process = try await user.process(of: service)
        try await user.run("systemctl", "--user", "kill", "--signal=KILL", service)
        try await user.expect("1", "NRestarts", of: service)
        try await user.expect("active", of: service)
        expect(try await user.process(of: service)) { $0 != process && $0 != "0" }
        return try await told
    }

    /// After a stop the socket listens, and the first question starts the unit.
    private static func startBySocket(_ user: UserSession) async throws {
        try await user.run("systemctl", "--user", "stop", service)
        try await user.expect("inactive", of: service)
        try await user.expect("active", of: "dialtone-session.socket")
        expect(try await user.run(UserSession.dialtone, "push", "status")) { $0.contains("1 registered") }
        try await user.expect("active", of: service)
        try await checkKept(user, "after a stop")
    }

    /// The registration is there, in the one file that the unit's directory has for it.
    private static func checkKept(_ user: UserSession, _ when: Comment) async throws {
        try await user.says("push", "status", "--json") { status in
            status.contains("\"isOnBus\":true") && status.contains("\"registrations\":1")
                && !status.contains("\"storageTrouble\":\"")
        }
        expect(try await user.run(UserSession.dialtone, "push", "list"), when) { $0.contains("org.example.Phone") }
        // Where that is depends on systemd's version.
        let files = try await user.run("find", ".", "-name", "push.db", "-printf", "%f %u %m\n")
        expect(files, is: "push.db alice 600", when)
    }
}

extension UserSession {
    fileprivate static let dialtone = "/opt/dialtone/dialtone"
    fileprivate static let distributor = "org.unifiedpush.Distributor.Dialtone"

    /// Adds to the machine what `make install` has beside, and starts the sockets of the user's agent. The machine's
    /// /usr is this one's and cannot be written to, so the bus finds its file among the user's own.
    fileprivate func installSessionAgent() async throws {
        try FileManager.default.copyItem(
            atPath: LabAgent.program("dialtone-session"), toPath: "\(machine.directory)/bin/dialtone-session")
        let name = "\(Self.distributor).service"
        let source = URL(filePath: SourceTree.root).appending(path: "systemd/\(name).in")
        let text = try String(contentsOf: source, encoding: .utf8)
        try await write(
            text.replacing("@LIBEXECDIR@", with: "/opt/dialtone"), ".local/share/dbus-1/services/\(name)")
        // Nobody listens there: an app is registered, and waits.
        try await write(
            "[push]\nserver = \"ws://127.0.0.1:9/\"\n", ".config/dialtone/session.toml", mode: "600")
        try await run("systemctl", "--user", "start", "dialtone-tls.socket", "dialtoned.socket")
        // The bus may run already.
        try await gdbus("org.freedesktop.DBus", "/org/freedesktop/DBus", "org.freedesktop.DBus.ReloadConfig")
    }

    /// Calls a method on the session bus, and returns the answer in GVariant's text form.
    @discardableResult
    fileprivate func gdbus(
        _ name: String, _ path: String, _ method: String, _ argument: String = ""
    ) async throws -> String {
        // Whoever runs the tests may have a session bus of their own.
        let call = """
            unset DBUS_SESSION_BUS_ADDRESS
            exec gdbus call --session --timeout 60 --dest "$0" --object-path "$1" --method "$2" ${3:+"$3"}
            """
        return try await run("sh", "-c", call, name, path, method, argument)
    }

    /// An app that registers, and returns what it is told.
    fileprivate func runApp() async throws -> String {
        let script = """
            import os
            os.environ.pop("DBUS_SESSION_BUS_ADDRESS", None)
            from gi.repository import Gio, GLib
            bus = Gio.bus_get_sync(Gio.BusType.SESSION)
            def call(*what):
                return bus.call_sync(*what, None, Gio.DBusCallFlags.NONE, 60_000, None)
            call("org.freedesktop.DBus", "/org/freedesktop/DBus", "org.freedesktop.DBus", "RequestName",
                GLib.Variant("(su)", ("org.example.Phone", 4)))
            names = ("service", "org.example.Phone"), ("token", "token")
            entries = {name: GLib.Variant("s", text) for name, text in names}
            try:
                print(call("\(Self.distributor)", "/org/unifiedpush/Distributor", "org.unifiedpush.Distributor2",
                    "Register", GLib.Variant("(a{sv})", (entries,))))
            except GLib.Error as error:
                print(error.message)
            """
        return try await run("/usr/bin/python3", "-c", script)
    }

    /// The number of a unit's process.
    fileprivate func process(of unit: String) async throws -> String {
        try await run("systemctl", "--user", "show", unit, "--property=MainPID", "--value")
    }

    /// Whether a unit's process can get no privileges (1), and how many filters of system calls it has where the kernel
    /// says so.
    fileprivate func confinement(of unit: String) async throws -> [Int] {
        let process = try await process(of: unit)
        let fields = #"s/^(NoNewPrivs|Seccomp_filters):\s*//p"#
        return try await machine.run("sed", "-nE", fields, "/proc/\(process)/status")
            .split(separator: "\n").compactMap { Int($0) }
    }

    /// Waits until a command of `dialtone`, which has to answer each time, says what is expected.
    fileprivate func says(_ command: String..., isExpected: @Sendable (String) -> Bool) async throws {
        var seen = ""
        let line = "\(Self.dialtone) \(command.joined(separator: " "))"
        try await eventually("what `\(line)` is to say\n\(seen)") {
            seen = try await run("sh", "-c", "exec \(line)")
            return isExpected(seen)
        }
    }

    /// What the session agent wrote, and the user's manager of it.
    fileprivate func sessionJournal() async -> String {
        let unit = "dialtone-session.service"
        let journal = try? await machine.run(
            "journalctl", "--output=short-monotonic", "--no-pager", "_SYSTEMD_USER_UNIT=\(unit)", "+",
            "USER_UNIT=\(unit)")
        return journal ?? "no journal"
    }
}
