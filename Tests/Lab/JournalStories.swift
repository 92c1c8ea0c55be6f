// SPDX-License-Identifier: Apache-2.0

import DialtoneClient
import DialtoneExpectations
import DialtoneLabSupport
import DialtoneTestSupport
import Foundation
import Testing

/// What the agent leaves in a real journal.
@Suite(.booted, .timeLimit(.minutes(5)))
struct JournalStories {
    @Test func `an event has its kind and its values as fields, and journalctl -x explains it`() async throws {
        let machine = try await BootedMachine.boot(
            configuration: "[[connection]]\nname = \"office\"\nremote = \"tcp://127.0.0.1:7001\"\n")
        // As `make install` and `journalctl --update-catalog` do, where /usr can be written to.
        try await machine.run(
            "sh", "-ec",
            """
            mkdir -p /run/root/usr/lib/systemd/catalog /var/lib/systemd/catalog
            cp /opt/dialtone/dialtone.catalog /run/root/usr/lib/systemd/catalog
            journalctl --root=/run/root --update-catalog
            cp /run/root/var/lib/systemd/catalog/database /var/lib/systemd/catalog/database
            """)
        let bell = try await machine.bell(7001)
        // Starts the agent.
        expect(try await machine.client.connections().count, is: 1)
        // JournalMessage.ready.
        let selection = ["MESSAGE_ID=7d791a3ca63c45f9bdcdc219fe72c33b", "DIALTONE_CONNECTION=office"]
        var output = ""
        try await eventually("the entry that the connection is up") {
            output = try await machine.run("journalctl", "--output=json", selection[0], selection[1])
            return !output.isEmpty
        }
        let entry = try #require(try JSONSerialization.jsonObject(with: Data(output.utf8)) as? [String: Any])
        let expected = [
            "DIALTONE_STATE": "ready", "DIALTONE_PREVIOUS": "connecting", "DIALTONE_CAUSE": "connected",
            "DIALTONE_EPOCH": "1", "DIALTONE_REMOTE": "tcp://127.0.0.1:7001",
            "SYSLOG_IDENTIFIER": "dialtoned", "PRIORITY": "5",
        ]
        for (field, value) in expected { #expect(entry[field] as? String == value, "\(field) of \(entry)") }
        // The connection of root's file is the agent's own.
        #expect(entry["DIALTONE_OWNER"] as? String == entry["_UID"] as? String, "\(entry)")
        let text = try #require(entry["MESSAGE"] as? String)
        #expect(text.contains("connection=office") && !text.contains("MESSAGE_ID"), "\(text)")
        let explained = try await machine.run("journalctl", "--catalog", selection[0], selection[1])
        #expect(explained.contains("Subject: Connection office is up"), "\(explained)")
        #expect(explained.contains("The socket number 1 to tcp://127.0.0.1:7001 works."), "\(explained)")
        try await machine.turnOff()
        withExtendedLifetime(bell) {}
    }
}
