// SPDX-License-Identifier: Apache-2.0

import DialtoneAPI
import DialtoneClient
import DialtoneExpectations
import DialtoneLabSupport
import DialtonePlatform
import DialtoneTestSupport
import Testing

@testable import DialtoneConnection

/// Sessions on which a client logged in, and which the agent keeps alive while the client sleeps, with the keepalives
/// that their servers want to hear.
@Suite(.lab)
struct ParkedStories {
    private static let address = LabNetwork.serverAddress(.v4)

    @Test(.server("mosquitto"))
    func `mosquitto hears from it as often as the client promised, and has a message for it in the end`() async throws {
        // After half as long again without a word the broker hangs up.
        let promise: UInt8 = 2
        try await Story.tell { story in
            let dialtone = story.agent.client
            let flow = try await dialtone.take(Story.connection)
            let epoch = flow.epoch
            let client = ClientSocket(OwnedDescriptor(flow.release()))
            #expect(client.logIn("door", topic: "bell", keepAlive: promise))
            try await dialtone.park(
                Story.connection, epoch: epoch, opening: MQTT.opening("door", topic: "bell", keepAlive: promise))
            _ = try await story.events.event("parked") { $0.kind == .parked }
            let parked = story.now

            var ping: LabProcess.Line?
            for _ in 1...4 { ping = try await story.server.log.line(after: ping, containing: "PINGREQ from door") }
            _ = try await story.server.log.line(after: ping, containing: "PINGRESP to door")
            #expect(story.now == parked, "the client is told nothing of it")
            _ = try await story.lab.server.command(
                ["mosquitto_pub", "-h", "127.0.0.1", "-t", "bell", "-q", "1", "-m", "ring"])
            _ = try await story.events.event("the wake", after: parked) { $0.wake?.stage == .began }
            let again = try await dialtone.take(Story.connection)
            #expect(again.epoch == epoch)
            let reader = ClientSocket(OwnedDescriptor(again.release()))
            // Nothing stands in front of it.
            #expect(reader.nextPacket()?[0] == 0x32)
        }
    }

    @Test(.server("prosody"), arguments: [KeepaliveProtocol.xmppPing, .whitespace])
    func `prosody hears from it before it asks by itself whether anybody is there`(kind: KeepaliveProtocol)
        async throws
    {
        let recipe = LabServer.Recipe.prosody(user: "juliet", password: "secret", patience: 2)
        let heartbeat = Heartbeat(kind, interval: .milliseconds(250))
        try await KeepaliveFixture.run(recipe, "xmpp://\(Self.address)", heartbeat) { fixture in
            try await fixture.isReady()
            let socket = try await fixture.take()
            #expect(XMPP.logIn(socket, "juliet", "secret"))
            try await fixture.isKeptAlive(by: kind == .whitespace ? 1 : 40, times: 16)
            // It goes on where the client left it.
            let again = try await fixture.take()
            again.send("<iq type='get' id='end'><ping xmlns='urn:xmpp:ping'/></iq>")
            #expect(again.text(untilIncluding: ">").contains("id='end'"))
        }
    }

    @Test(.server("mosquitto")) func `mosquitto answers pings on a WebSocket, and the client hears none`() async throws
    {
        let recipe = LabServer.Recipe.mosquittoOverWebSocket(port: 9001)
        let heartbeat = Heartbeat(.websocket, interval: .milliseconds(200))
        try await KeepaliveFixture.run(recipe, "ws://\(Self.address):9001/mqtt", heartbeat) { fixture in
            try await fixture.isReady()
            let socket = try await fixture.take()
            socket.send(WebSocket.upgrade)
            #expect(socket.text(untilIncluding: "\r\n\r\n").contains(WebSocket.acceptance))
            socket.send(WebSocket.frame(MQTT.connect("door")))
            #expect(socket.bytes(6)?.starts(with: [0x82, 4, 0x20]) == true)
            // Frames of two bytes and four of the mask, and of two.
            try await fixture.isKeptAlive(by: 6, answeredBy: 2, times: 6)
            let again = try await fixture.take()
            again.send(WebSocket.frame([0xC0, 0]))
            // An answer that was on its way when the client took it is the client's.
            var frame = try #require(again.frame())
            if frame[0] == WebSocket.pong { frame = try #require(again.frame()) }
            #expect(frame == [0x82, 2, 0xD0, 0])
        }
    }
}

extension KeepaliveFixture {
    /// Parks the flow, and waits until the server has got so many keepalives, of so many bytes at least; holds that
    /// nobody is told of them or of their answers.
    fileprivate func isKeptAlive(by size: Int, answeredBy answer: Int = 0, times: Int) async throws {
        try await park()
        let parked = await events.count
        let before = try await serverCounts()
        try await eventually("\(times) keepalives") {
            try await self.serverCounts().received >= before.received + times * size
        }
        try await eventually("the answers but the last") {
            try await self.serverCounts().sent >= before.sent + (times - 1) * answer
        }
        // But for one that has come in this very moment.
        try await eventually("the answers to be taken") { await unreadBytes == 0 }
        expect(await events.dropFirst(parked).map(\.kind), is: [])
        expect(await status.ownership, is: .parked)
    }
}
