// SPDX-License-Identifier: Apache-2.0

import DialtoneNetworkPath
import DialtonePlatform
import DialtoneTestSupport
import Dispatch
import Testing

@testable import DialtoneConnection
@testable import DialtoneConnectionIO

/// A client's socket that says nothing when it is asked, since the client or the machine keeps its user's thread busy.
@AgentQueue
@Suite(.timeLimit(.minutes(4))) struct SilentSocketTests {
    private let surroundings = Surroundings(.loopback())

    /// The kernel tells once that something came. After a question without an answer no other has one for half a
    /// minute.
    @Test func `what comes meanwhile is told of afterwards`() async throws {
        let server = try LoopbackServer()
        let user: UInt32 = 4243
        let connection = try surroundings.connection(
            to: "tcp://\(server.endpoint)", account: Account(user: user, isLimited: false)
        ) { _ in }
        let peer = try server.accept()
        _ = await surroundings.entered(.ready)
        _ = try connection.take(by: nil).release()
        try connection.park(1)
        let gate = DispatchSemaphore(value: 0)
        UserThreads.begin(for: user) { gate.wait() }
        #expect(connection.unreadBytes == 0, "nobody can tell")
        peer.send("BYE")
        gate.signal()
        _ = await surroundings.events.next { $0.kind == .arrived }
        #expect(connection.unreadBytes == 3)
        connection.close()
    }
}
