// SPDX-License-Identifier: Apache-2.0

import DialtoneConnectionIO
import DialtoneExpectations
import DialtoneLabSupport
import DialtoneNetlink
import DialtoneNetworkPath
import DialtonePlatform
import DialtoneTestSupport
import Reachability
import Testing

@testable import DialtoneConnection

/// Keepalives to real servers, and silence on the way to them. The connection is in this process, on a host of the Lab,
/// and has figures shorter than a user may choose.
@Suite(.lab)
struct KeepaliveStories {
    private static let address = LabNetwork.serverAddress(.v4)

    /// Five keepalives a second, whose answers have one.
    private static var brisk: Heartbeat {
        var heartbeat = Heartbeat(.crlf, interval: .milliseconds(200))
        heartbeat.answerDeadline = .seconds(1)
        return heartbeat
    }

    @Test(.server("kamailio")) func `kamailio answers one keepalive after the other, and nothing else happens`()
        async throws
    {
        let heartbeat = Heartbeat(.crlf, interval: .milliseconds(200))
        try await KeepaliveFixture.run(.kamailio(), "sip://\(Self.address)", heartbeat) { fixture in
            let ready = try await fixture.isReady()
            // By what the server's kernel counts: two bytes out for each four in. Of the last the answer may be on its
            // way.
            try await eventually("the answers to four keepalives") { try await fixture.serverCounts().sent >= 8 }
            try await eventually("an answer to each") {
                let counts = try await fixture.serverCounts()
                return counts.received == 2 * counts.sent
            }
            try await eventually("the answers are read") { await fixture.unreadBytes == 0 }
            expect(await fixture.events.last, is: ready)
        }
    }

    @Test(.server("kamailio")) func `so it does over TLS`() async throws {
        let server = LabCertificate()
        let recipe = LabServer.Recipe.kamailio(port: 5061, tls: server.files)
        let heartbeat = Heartbeat(.crlf, interval: .milliseconds(200))
        try await KeepaliveFixture.run(recipe, "sips://\(Self.address)", heartbeat, trusting: server.authority) {
            fixture in
            let ready = try await fixture.isReady()
            let before = try await fixture.serverCounts()
            // One that is not answered is not followed by another for ten seconds. Four bytes are a record of 25 or
            // more.
            try await eventually("five keepalives") {
                try await fixture.serverCounts().received >= before.received + 125
            }
            try await eventually("the answers to four") { try await fixture.serverCounts().sent >= before.sent + 92 }
            try await eventually("these are read") { await fixture.unreadBytes == 0 }
            expect(await fixture.events.last, is: ready)
        }
    }

    @Test(.server("kamailio"), arguments: [Drop.established, .fromHost, .toHost])
    func `the line goes silent in the middle: the next keepalive finds out, and a new flow stands`(drop: Drop)
        async throws
    {
        try await KeepaliveFixture.run(.kamailio(), "sip://\(Self.address)", Self.brisk) { fixture in
            try await fixture.isReady()
            try await eventually("an answer") { try await fixture.serverCounts().sent >= 2 }
            let before = await fixture.events.count
            try await fixture.lab.drop(drop, on: .wan0)
            let lost = try await fixture.event("the silence to be noticed", after: before) {
                $0.previousState == .ready
            }
            // By the answer's deadline; the kernel's own, which also waits for the next keepalive, comes later.
            #expect(lost.reason == .unanswered)
            try await fixture.lab.restore(.wan0)
            try await fixture.isReady(after: before)
        }
    }

    @Test(.server("kamailio")) func `what a client wrote on a dead line before it slept is no excuse for the line`()
        async throws
    {
        try await KeepaliveFixture.run(.kamailio(), "sip://\(Self.address)", Self.brisk) { fixture in
            try await fixture.isReady()
            let client = try await fixture.take()
            try await fixture.lab.drop(.established, on: .wan0)
            client.send("\r\n")
            try await fixture.park()
            let before = await fixture.events.count
            let lost = try await fixture.event("the silence to be noticed", after: before) {
                $0.status.state != .ready
            }
            // No keepalive can be sent behind these bytes, and the kernel itself gives up after minutes.
            expect(lost.reason, is: .unanswered)
            try await fixture.lab.restore(.wan0)
            try await fixture.isReady(after: before)
        }
    }

    @Test(.server("prosody")) func `after a resume the kernel's probe shows that the server is there`() async throws {
        try await KeepaliveFixture.run(.prosody(), "xmpp://\(Self.address)") { fixture in
            try await fixture.isReady()
            let before = await fixture.events.count
            await fixture.resume()
            let verified = try await fixture.event("the proof", after: before) { $0.status.state == .ready }
            #expect(verified.previousState == .verifying)
            #expect(verified.reason == .verified)
            // The probe was no byte of the stream.
            expect(try await fixture.serverCounts().received, is: 0)
            try await fixture.isReady(after: before)
        }
    }

    @Test(.server("prosody")) func `after a resume a line that is dead is given up, and dialled anew`() async throws {
        try await KeepaliveFixture.run(.prosody(), "xmpp://\(Self.address)") { fixture in
            try await fixture.isReady()
            let before = await fixture.events.count
            try await fixture.lab.drop(.established, on: .wan0)
            await fixture.resume()
            let states = [ConnectionStatus.State.verifying, .connecting, .ready]
            let ready = try await fixture.isReady(after: before)
            let told = await fixture.events.dropFirst(before)
            #expect(told.map(\.status.state) == states)
            #expect(told.map(\.reason) == [.resumed, .unverified, .connected])
            #expect(ready.status.epoch == 2)
        }
    }

    @Test(.server("kamailio")) func `the default route moves on the same source: the flow proves itself and stays`()
        async throws
    {
        try await KeepaliveFixture.run(.kamailio(), "sip://\(Self.address)") { fixture in
            try await fixture.isReady()
            let before = await fixture.events.count
            // Another gateway of the same network, which is the same router.
            try await fixture.lab.router.ip("address add 192.0.2.254/24 dev wan0")
            try await fixture.lab.host.ip("route replace default via 192.0.2.254 dev wan0 metric 50 src 192.0.2.2")
            let verified = try await fixture.event("the proof", after: before) { $0.reason == .verified }
            #expect(verified.previousState == .verifying)
            #expect(verified.status.epoch == 1)
            try await fixture.isReady(after: before)
        }
    }
}
