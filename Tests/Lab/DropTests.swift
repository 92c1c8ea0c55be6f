// SPDX-License-Identifier: Apache-2.0

import DialtoneExpectations
import DialtoneLabSupport
import DialtonePlatform
import Glibc
import Testing

/// Silence in the middle.
@Suite(.lab)
struct DropTests {
    /// Long enough for a retransmission or two, short enough to be waited for.
    private static let patience: Duration = .milliseconds(500)

    @Test(arguments: [Drop.all, .established, .fromHost, .toHost, .gateway])
    func `a silent drop stops TCP and leaves the link as it is`(drop: Drop) async throws {
        try await LabNetwork.with { lab in
            let (client, server) = try await lab.connect(from: .wan0, .v4)
            try client.setUserTimeout(Self.patience)
            let before = try await lab.host.link("wan0")
            try await lab.drop(drop, on: .wan0)
            try client.send("are you there?")
            let error = await #expect(throws: SystemError.self) { try await lab.host.run { try client.receive() } }
            // EHOSTUNREACH once the neighbour entry of the silent gateway has failed.
            #expect([ETIMEDOUT, EHOSTUNREACH].contains(error?.code))
            expect(try await lab.host.link("wan0"), is: before)
            withExtendedLifetime(server) {}
        }
    }

    @Test func `a middlebox that forgets connections lets new ones pass, each time`() async throws {
        try await LabNetwork.with { lab in
            var existing = try await lab.connect(from: .wan0, .v4)
            for _ in 1...2 {
                try await lab.drop(.established, on: .wan0)
                let new = try await lab.connect(from: .wan0, .v4)
                try existing.client.send("old")
                try new.client.send("new")
                let server = new.server
                expect(try await lab.server.run { try server.receive() }, is: "new")
                let port = try existing.client.port()
                let queued = try await lab.host.connections().first { $0.port == port }?.sendQueue
                #expect(queued == 3)
                existing.client.close()
                existing = new
            }
        }
    }
}
