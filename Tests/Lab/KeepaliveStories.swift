// SPDX-License-Identifier: Apache-2.0

import Dialer
import Expectations
import LabSupport
import Netlink
import NetworkPath
import Platform
import Reachability
import TestSupport
import Testing

@testable import Supervisor

/// Keepalives to real servers, and silence on the way to them. The connection is in this process, on a host of the Lab,
/// and has figures shorter than a user may choose.
@Suite("Is it alive?", .lab)
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
        try await KeepaliveBench.run(.kamailio(), "sip://\(Self.address)", heartbeat) { bench in
            let ready = try await bench.isReady()
            // By what the server's kernel counts: two bytes out for each four in. Of the last the answer may be on its
            // way.
            try await eventually("the answers to four keepalives") { try await bench.serverCounts().sent >= 8 }
            try await eventually("an answer to each") {
                let counts = try await bench.serverCounts()
                return counts.received == 2 * counts.sent
            }
            expect(await bench.unreadBytes, is: 0)
            expect(await bench.events.last, is: ready)
        }
    }

    @Test(.server("kamailio")) func `so it does over TLS`() async throws {
        let server = LabCertificate()
        let recipe = LabServer.Recipe.kamailio(port: 5061, tls: server.files)
        let heartbeat = Heartbeat(.crlf, interval: .milliseconds(200))
        try await KeepaliveBench.run(recipe, "sips://\(Self.address)", heartbeat, trusting: server.authority) { bench in
            let ready = try await bench.isReady()
            let before = try await bench.serverCounts()
            // One that is not answered is not followed by another for ten seconds. Four bytes are a record of 25 or
            // more.
            try await eventually("five keepalives") { try await bench.serverCounts().received >= before.received + 125 }
            try await eventually("the answers to four") { try await bench.serverCounts().sent >= before.sent + 92 }
            expect(await bench.unreadBytes, is: 0)
            expect(await bench.events.last, is: ready)
        }
    }

    @Test(.server("kamailio"), arguments: [Drop.established, .fromHost, .toHost])
    func `the line goes silent in the middle: the next keepalive finds out, and a new flow stands`(drop: Drop)
        async throws
    {
        try await KeepaliveBench.run(.kamailio(), "sip://\(Self.address)", Self.brisk) { bench in
            try await bench.isReady()
            try await eventually("an answer") { try await bench.serverCounts().sent >= 2 }
            let before = await bench.events.count
            try await bench.lab.drop(drop, on: .wan0)
            let lost = try await bench.event("the silence to be noticed", after: before) { $0.previousState == .ready }
            // By the answer's deadline; the kernel's own, which also waits for the next keepalive, comes later.
            #expect(lost.reason == .unanswered)
            try await bench.lab.restore(.wan0)
            try await bench.isReady(after: before)
        }
    }

    @Test(.server("prosody")) func `after a resume the kernel's probe shows that the server is there`() async throws {
        try await KeepaliveBench.run(.prosody(), "xmpp://\(Self.address)") { bench in
            try await bench.isReady()
            let before = await bench.events.count
            await bench.resume()
            let verified = try await bench.event("the proof", after: before) { $0.status.state == .ready }
            #expect(verified.previousState == .verifying)
            #expect(verified.reason == .verified)
            // The probe was no byte of the stream.
            expect(try await bench.serverCounts().received, is: 0)
            try await bench.isReady(after: before)
        }
    }

    @Test(.server("prosody")) func `after a resume a line that is dead is given up, and dialled anew`() async throws {
        try await KeepaliveBench.run(.prosody(), "xmpp://\(Self.address)") { bench in
            try await bench.isReady()
            let before = await bench.events.count
            try await bench.lab.drop(.established, on: .wan0)
            await bench.resume()
            let states = [ConnectionStatus.State.verifying, .connecting, .ready]
            let ready = try await bench.isReady(after: before)
            let told = await bench.events.dropFirst(before)
            #expect(told.map(\.status.state) == states)
            #expect(told.map(\.reason) == [.resumed, .unverified, .connected])
            #expect(ready.status.epoch == 2)
        }
    }

    @Test(.server("kamailio")) func `the default route moves on the same source: the flow proves itself and stays`()
        async throws
    {
        try await KeepaliveBench.run(.kamailio(), "sip://\(Self.address)") { bench in
            try await bench.isReady()
            let before = await bench.events.count
            // Another gateway of the same network, which is the same router.
            try await bench.lab.router.ip("address add 192.0.2.254/24 dev wan0")
            try await bench.lab.host.ip("route replace default via 192.0.2.254 dev wan0 metric 50 src 192.0.2.2")
            let verified = try await bench.event("the proof", after: before) { $0.reason == .verified }
            #expect(verified.previousState == .verifying)
            #expect(verified.status.epoch == 1)
            try await bench.isReady(after: before)
        }
    }
}
