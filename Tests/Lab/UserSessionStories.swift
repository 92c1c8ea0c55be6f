// SPDX-License-Identifier: Apache-2.0

import DialtoneExpectations
import DialtoneLabSupport
import DialtoneTestSupport
import Foundation
import Testing

/// The units of a user's manager, as they are installed: the agent, its hooks, and the units that follow a host.
@Suite(.booted, .serialized, .timeLimit(.minutes(5)))
struct UserSessionStories {
    private static let dialtone = "/opt/dialtone/dialtone"

    @Test func `a user's unit follows a host`() async throws {
        let machine = try await BootedMachine.boot()
        let user = try await UserSession.begin(on: machine)
        let host = "dialtone-reachable@192.0.2.7"
        try await user.write(
            """
            [Unit]
            BindsTo=\(host).target
            After=\(host).target

            [Service]
            ExecStart=/bin/sleep infinity

            [Install]
            WantedBy=\(host).target

            """, ".config/systemd/user/phone.service")
        try await user.run("systemctl", "--user", "daemon-reload")
        try await user.run("systemctl", "--user", "enable", "phone.service")
        try await user.run("systemctl", "--user", "start", "--no-block", "\(host).target")
        for _ in 0..<2 {
            try await user.expect("activating", of: "\(host).service")
            try await user.expect("Not reachable: no interface has a carrier", "StatusText", of: "\(host).service")
            try await user.expect("inactive", of: "phone.service")
            try await machine.network.landBridge()
            try await user.expect("active", of: "phone.service")
            try await machine.network.ip("link delete bridge0")
        }
        try await machine.turnOff()
    }

    @Test func `a user's agent keeps its sockets when it is killed, and calls the user's hooks`() async throws {
        let machine = try await BootedMachine.boot()
        let user = try await UserSession.begin(on: machine)
        let bell = try await machine.bell(7001)
        try await user.write(
            "#!/bin/sh\necho \"$1 $DIALTONE_NAME\" >>\"$HOME/hooks.log\"\n", ".config/dialtone/hooks.d/10-log",
            mode: "755")
        try await user.run("systemctl", "--user", "start", "dialtone-tls.socket", "dialtoned.socket")
        try await user.run("systemctl", "--user", "start", "dialtone-hooks.service")
        try await user.run(Self.dialtone, "open", "tcp://127.0.0.1:7001", "--name", "bell")
        try await user.expect(hook: "connection-up bell")
        // The machine's agent knows nothing of it.
        expect(try await machine.run(Self.dialtone, "list")) { !$0.contains("bell") }

        let process = try await user.run("systemctl", "--user", "show", "dialtoned", "--property=MainPID", "--value")
        try await user.run("systemctl", "--user", "kill", "--signal=KILL", "--kill-who=main", "dialtoned.service")
        try await user.expect("1", "NRestarts", of: "dialtoned.service")
        try await user.expect("active", of: "dialtoned.service")
        expect(try await user.run("systemctl", "--user", "show", "dialtoned", "--property=MainPID", "--value")) {
            $0 != process
        }
        expect(try await user.run(Self.dialtone, "list", "--json"), "the socket from before") {
            $0.contains("\"epoch\":1,")
        }
        // What came before the agent was killed is there, and the answer reaches the server.
        try await user.run(Self.dialtone, "take", "bell", "--", "sh", "-c", #"read -r line; echo "GOT $line""#)
        _ = try await bell.line(containing: "GOT ring")
        try await user.run("systemctl", "--user", "stop", "dialtoned.socket", "dialtoned.service")
        try await user.expect("inactive", of: "dialtoned.service")
        try await machine.turnOff()
        withExtendedLifetime(bell) {}
    }
}

extension UserSession {
    /// Waits until the hook that writes a log has written a line.
    fileprivate func expect(hook line: String) async throws {
        try await eventually("the user's hook to be called with \(line)") {
            try await run("sh", "-c", "cat hooks.log || true").split(separator: "\n").contains { $0 == line }
        }
    }
}
