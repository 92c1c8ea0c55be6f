// SPDX-License-Identifier: Apache-2.0

import Platform
import Supervisor
import Testing

@testable import Dialer

@AgentQueue
@Suite(.timeLimit(.minutes(1))) struct FlowKeeperTests {
    @AgentQueue
    private final class Owner: FlowKeeperOwner {
        func flowKeeper(heard word: ConnectionInput) {}
    }

    @Test(arguments: [KeepaliveProtocol.whitespace, .xmppPing, .mqtt, .websocket])
    func `what waits for a session wakes nobody before there is one`(kind: KeepaliveProtocol) async throws {
        let server = try LoopbackServer()
        let (wakes, owner) = (WakeSchedule(), Owner())
        let flow = try Flow(.to(server.endpoint), owner: Listener())
        let keeper = FlowKeeper(wakes, owner: owner)
        keeper.keepAlive(flow, Heartbeat(kind))
        #expect(wakes.count == 0)
        keeper.keepAlive(flow, Heartbeat(.crlf))
        #expect(wakes.count == 1)
        keeper.keepAlive(flow, Heartbeat(kind))
        #expect(wakes.count == 0)
        keeper.forget(flow.epoch)
        flow.close(aborting: false)
    }
}
