// SPDX-License-Identifier: Apache-2.0

import DialtoneClient
import DialtoneExpectations
import DialtoneLabSupport
import DialtoneTestSupport
import Foundation
import Testing

/// `dialtone-hooks.service` under a real systemd, as it is installed.
@Suite(.booted, .timeLimit(.minutes(5)))
struct HookStories {
    @Test func `root's hooks are called with each change, also with one that came while the agent was away`()
        async throws
    {
        let machine = try await BootedMachine.boot(
            configuration: "[[connection]]\nname = \"office\"\nremote = \"tcp://127.0.0.1:7001\"\n",
            hooks: [
                "10-log": #"echo "$1 ${DIALTONE_NAME-$DIALTONE_STATUS}" >>/run/hooks.log; cat >>/run/hooks.json"#,
                "20-fails": "echo from the hook; exit 3", "30-everybodys": "rm /run/hooks.log",
            ], writable: ["30-everybodys"])
        try await machine.run("systemctl", "start", "dialtone-hooks.service")
        expect(try await machine.run("sh", "-c", "cat /run/hooks.log || true"), is: "", "what is, is no change")
        let bell = try await machine.bell(7001)
        try await machine.expect(log: "connection-up office")
        try await machine.network.ip("link add up0 type veth peer name up1")
        try await machine.network.ip("link set up1 up")
        try await machine.network.ip("address add 192.0.2.1/24 dev up0")
        try await machine.network.ip("link set up0 up")
        try await machine.network.ip("route add default via 192.0.2.2")
        try await machine.expect(log: "network-up satisfied")
        // The agent goes, and the network meanwhile.
        try await machine.run("systemctl", "stop", "dialtoned.socket", "dialtoned.service")
        try await machine.network.ip("link del up0")
        try await machine.run("systemctl", "start", "dialtoned.socket")
        try await machine.expect(log: "network-down unsatisfied")

        let lines = try await machine.run("cat", "/run/hooks.json").split(separator: "\n")
        for line in lines {
            let object = try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any]
            #expect(object?["change"] is String, "\(line)")
        }
        // JournalMessage.hookRefused and hookFailed.
        let refused = try await machine.run(
            "journalctl", "--output=cat", "MESSAGE_ID=3a33269c6d27491fac28ded64be3e2e9")
        expect(
            refused,
            is: "a hook is not run: others can write to it; chmod go-w hook=/etc/dialtone/hooks.d/30-everybodys")
        let failed = try await machine.run(
            "journalctl", "--output=cat", "MESSAGE_ID=198ce91541c146be9d9ee69fe0add80d",
            "DIALTONE_HOOK=/etc/dialtone/hooks.d/20-fails", "DIALTONE_CHANGE=network-up")
        #expect(failed.hasPrefix("a hook failed: exit status 3 "), "\(failed)")
        let output = try await machine.run("journalctl", "--unit=dialtone-hooks.service", "--output=cat")
        #expect(output.contains("from the hook\n"), "\(output)")
        try await machine.turnOff()
        withExtendedLifetime(bell) {}
    }
}

extension BootedMachine {
    /// Waits until the hook that writes a log has written a line.
    fileprivate func expect(log line: String) async throws {
        var log = ""
        do {
            try await eventually("the hook to be called with \(line)") {
                log = try await run("sh", "-c", "cat /run/hooks.log || true")
                return log.split(separator: "\n").contains { $0 == line }
            }
        } catch let error as NothingCame {
            let journal = try await run("journalctl", "--unit=dialtone-hooks.service", "--output=cat", "--no-pager")
            throw NothingCame(description: "\(error.description); it has\n\(log)\(journal)")
        }
    }
}
