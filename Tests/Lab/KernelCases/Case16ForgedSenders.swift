// SPDX-License-Identifier: Apache-2.0

import DialtoneExpectations
import DialtoneLabSupport
import DialtoneNetworkPath
import Reachability
import Testing

/// A privileged process may send to any netlink socket's port. Only port 0 is the kernel.
@Suite(.lab)
struct Case16ForgedSenders {
    @Test func `case 16: what another process sends is not believed`() async throws {
        try await KernelCase.play { it in
            let paths = try await it.watch()
            let path = try #require(paths.all.first)
            let listeners = try await KernelNotices.of([], on: it.host)
            let forged = ForgedNotice.linkRemoved(index: Uplink.wan0.index)
            expect(try await forged.sendToAll(on: it.host), "the engine has three sockets") { $0 >= 3 }
            #expect(try listeners.pending().map(\.kind) == [.deletedLink], "the message arrives")
            expect(try await it.expectSilence(on: paths, since: path), is: 1)
            expect(await it.engine.snapshot.interfaces[Uplink.wan0.index]?.name, is: "wan0")
        }
    }
}
