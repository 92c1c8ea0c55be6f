// SPDX-License-Identifier: Apache-2.0

import DialtoneLabSupport
import Foundation
import Testing

/// What a client on the socket sees of the network as such.
@Suite(.lab)
struct UserNetworkTests {
    @Test(.anotherUser) func `it is judged by the rules of the caller's user`() async throws {
        try await LabNetwork.with { lab in
            let user = AnotherUser.number
            for family in Family.allCases {
                try await lab.addRule(family, "pref 100 uidrange \(user)-\(user) prohibit")
            }
            let home = try DaemonHome()
            _ = try await home.start(on: lab.host)
            let ours = try await status(of: home, on: lab.host, by: [])
            #expect(ours["status"] as? String == "satisfied", "\(ours)")
            let theirs = try await status(of: home, on: lab.host, by: AnotherUser.command)
            #expect(theirs["reason"] as? String == "prohibited", "\(theirs)")
            #expect(theirs["supportsIPv4"] as? Bool == false && theirs["supportsIPv6"] as? Bool == false, "\(theirs)")
            // One family is enough, and the other one is still closed.
            try await lab.removeRule(.v6, "pref 100")
            let half = try await status(of: home, on: lab.host, by: AnotherUser.command)
            #expect(half["status"] as? String == "satisfied", "\(half)")
            #expect(half["supportsIPv4"] as? Bool == false && half["supportsIPv6"] as? Bool == true, "\(half)")
        }
    }

    /// Or its change would be an event in which nothing differs.
    @Test func `which addresses are deprecated is shown`() async throws {
        try await LabNetwork.with { lab in
            let home = try DaemonHome()
            _ = try await home.start(on: lab.host)
            let address = Uplink.wan0.prefix(.v4)
            try await lab.host.ip("address change \(address) dev wan0 preferred_lft 0 valid_lft 4000")
            var interface: [String: Any]?
            try await lab.host.changes.wait(for: "the deprecation", describe: { "\(interface as Any)" }) {
                interface = try await status(of: home, on: lab.host, by: [])["interface"] as? [String: Any]
                return interface?["deprecated"] as? [String] == [address] ? () : nil
            }
        }
    }

    private func status(
        of home: DaemonHome, on machine: Namespace, by launcher: [String]
    ) async throws -> [String: Any] {
        let outcome = try await home.dialtone("status", "--json", on: machine, by: launcher)
        return try #require(try outcome.object()["path"] as? [String: Any], "\(outcome)")
    }
}
