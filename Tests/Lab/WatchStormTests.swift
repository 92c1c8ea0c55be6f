// SPDX-License-Identifier: Apache-2.0

import DialtoneAPI
import DialtoneClient
import DialtoneLabSupport
import DialtoneVarlink
import Foundation
import Testing

/// `dialtone watch --json` while the network does not hold still.
@Suite(.lab)
struct WatchStormTests {
    private static let connections = 30
    private static let changes = 800

    @Test func `a reader that keeps up gets every event, in order`() async throws {
        try await LabNetwork.with { lab in
            try await lab.removeDefaultRoute(via: .wan1)
            let home = try DaemonHome()
            _ = try await home.start(on: lab.host)
            let watching = try await lab.host.spawn(
                [LabAgent.program("dialtone"), "watch", "--json"], environment: ["DIALTONE_SOCKET": home.socket])
            _ = try await watching.line(containing: "\"kind\":\"snapshot\"")
            for number in 1...Self.connections {
                let remote = "tcp://\(LabNetwork.serverAddress(.v4)):\(number)"
                _ = try await home.client.open(.init(remote: remote, name: "c\(number)"))
            }
            let (address, gateway) = (Uplink.wan0.prefix(.v4), Uplink.wan0.gateway(.v4))
            let away = ["address delete \(address) dev wan0"]
            let back = ["address add \(address) dev wan0", "route replace default via \(gateway) dev wan0 metric 100"]
            for _ in 0..<Self.changes / 100 {
                try await lab.host.ip(batch: (0..<50).flatMap { _ in away + back })
            }
            _ = try await home.client.open(.init(remote: "tcp://192.0.2.1:1", name: "last"))
            let last = try await watching.line("the last event") {
                $0.text.contains("\"name\":\"last\"") && $0.text.contains("\"kind\":\"opened\"")
            }
            let replies = watching.lines.prefix(through: last.number).compactMap { line in
                ConnectionsAPI.Monitor.Reply(json: line.text.utf8)
            }
            // Each connection was opened and came and went at least once.
            #expect(replies.count > 3 * Self.connections, "\(replies.count) replies")
            #expect(replies.allSatisfy { $0.kind != .gap })
            let jumps = zip(replies, replies.dropFirst()).filter { $1.sequence != $0.sequence + 1 }
            #expect(jumps.isEmpty, "\(jumps.prefix(3).map { "\($0.sequence), then \($1.sequence)" })")
            #expect(watching.text(of: .error).isEmpty, "\(watching.text(of: .error))")
        }
    }
}
