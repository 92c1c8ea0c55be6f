// SPDX-License-Identifier: Apache-2.0

import DialtoneAPI
import Glibc
import Supervisor
import Testing
import Varlink

@testable import Daemon

struct PacketOwnerTests {
    @Test(.enabled(if: Client.obstacle == nil, Client.obstacle))
    func `root gives a connection's packets to its owner`() {
        #expect(PacketOwner.user(for: Client.nobodysNumber) == Client.nobodysNumber)
        #expect(PacketOwner.user(for: 0) == nil)
    }

    @Test(.enabled(if: Client.obstacle == nil, Client.obstacle))
    func `a daemon without privileges keeps the packets, and serves other users all the same`() async {
        await #expect(processExitsWith: .success) {
            try #require(seteuid(Client.nobodysNumber) == 0)
            #expect(PacketOwner.user(for: 4711) == nil)
            let policy = try ConnectionPolicy(.init(remote: "tcp://192.0.2.7:1"), user: Client.nobodysNumber)
            #expect(policy.user == nil)
        }
    }

    @Test func `a mark is for root and the daemon's own user alone`() throws {
        let parameters = ConnectionsAPI.Open.Parameters(remote: "tcp://192.0.2.7:1", mark: 7)
        #expect(try ConnectionPolicy(parameters, user: 0).mark == 7)
        #expect(try ConnectionPolicy(parameters, user: geteuid()).mark == 7)
        #expect(throws: VarlinkFailure(VarlinkService.PermissionDenied())) {
            try ConnectionPolicy(parameters, user: geteuid() + 1)
        }
    }
}
