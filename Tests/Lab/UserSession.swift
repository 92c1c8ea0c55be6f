// SPDX-License-Identifier: Apache-2.0

import DialtoneLabSupport
import DialtoneTestSupport
import Foundation

/// A user of a machine that systemd booted, with a manager of their own, as after a login.
struct UserSession: Sendable {
    private static let (name, number) = ("alice", 1500)
    private static let home = "/home/\(name)"
    private static let runtime = "/run/user/\(number)"

    /// The machine that the user is on.
    let machine: BootedMachine

    /// Makes the user and starts the manager. There is no PAM on the machine, which would tell where the manager's
    /// sockets are.
    static func begin(on machine: BootedMachine) async throws -> UserSession {
        let dropIn = "/run/systemd/system/user@\(number).service.d"
        try await machine.run(
            "sh", "-euc",
            """
            systemd-sysusers --inline 'u \(name) \(number) "A user" \(home) /bin/sh'
            mkdir -p \(dropIn) \(home)
            chown \(name): \(home)
            printf '[Service]\\nPAMName=\\nEnvironment=XDG_RUNTIME_DIR=\(runtime)\\n' >\(dropIn)/session.conf
            systemctl daemon-reload
            systemctl start user@\(number).service
            """)
        return UserSession(machine: machine)
    }

    /// Runs a command as the user to its end, and returns what it wrote.
    @discardableResult
    func run(_ command: String...) async throws -> String {
        try await machine.run(
            [
                "setpriv", "--reuid", Self.name, "--regid", Self.name, "--init-groups", "env", "--chdir=\(Self.home)",
                "HOME=\(Self.home)", "XDG_RUNTIME_DIR=\(Self.runtime)",
            ] + command)
    }

    /// Writes a file below the user's home, and the folders that it is in.
    func write(_ text: String, _ path: String, mode: String = "644") async throws {
        try await run(
            "sh", "-euc", #"mkdir -p "$(dirname "$1")"; printf %s "$0" >"$1"; chmod "$2" "$1""#, text, path, mode)
    }

    /// Waits until a property of a unit has a value.
    func expect(_ value: String, _ property: String = "ActiveState", of unit: String) async throws {
        var seen = ""
        do {
            try await eventually("the user's \(unit) to be \(value)") {
                seen = try await run("systemctl", "--user", "show", unit, "--property=\(property)", "--value")
                return seen == value
            }
        } catch let error as NothingCame {
            let log = try await machine.run("journalctl", "_UID=\(Self.number)", "--output=cat", "--no-pager")
            throw NothingCame(description: "\(error.description), it is \(seen)\n\(log)")
        }
    }
}
