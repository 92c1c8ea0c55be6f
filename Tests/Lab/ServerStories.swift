// SPDX-License-Identifier: Apache-2.0

import DialtoneAPI
import DialtoneClient
import DialtoneExpectations
import DialtoneLabSupport
import DialtoneTestSupport
import DialtoneVarlink
import Testing

/// What befalls a connection to each of the servers that it is meant for, one thing after the other.
@Suite(.lab)
struct ServerStories {
    private static let address = LabNetwork.serverAddress(.v4)

    private let certificate = LabCertificate()
    private var trust: ConnectionsAPI.TLS { .init(ca: certificate.authority) }

    @Test(.server("kamailio")) func `kamailio: SIP over TCP`() async throws {
        try await Story.tell(by: .kamailio(), to: "sip://\(Self.address)") { try await $0.day() }
    }

    @Test(.server("kamailio")) func `kamailio: SIP over TLS`() async throws {
        let recipe = LabServer.Recipe.kamailio(port: 5061, tls: certificate.files)
        try await Story.tell(by: recipe, to: "sips://\(Self.address)", { $0.tls = trust }) { story in
            try await story.day()
            expect(try await story.agent.client.connections().first?.security?.assurance, is: .verified)
        }
    }

    @Test(.server("prosody")) func `prosody: XMPP, kept alive by the kernel while there is no session`() async throws {
        try await Story.tell(by: .prosody(), to: "xmpp://\(Self.address)") { story in
            try await story.day()
            #expect(
                try await story.lab.host.command(["ss", "-Htno", "dport", "= :5222"]).contains("timer:(keepalive,"))
            // Not a byte was sent, which prosody would have taken for the beginning of a stream.
            #expect(!story.server.log.lines.contains { $0.text.contains("stream") })
        }
    }

    @Test(.server("mosquitto")) func `mosquitto: MQTT over TLS`() async throws {
        let recipe = LabServer.Recipe.mosquitto(port: 8883, tls: certificate.files)
        try await Story.tell(by: recipe, to: "mqtts://\(Self.address)", { $0.tls = trust }) { try await $0.day() }
    }

    @Test(.server("mosquitto")) func `mosquitto: a listener for WebSocket`() async throws {
        let recipe = LabServer.Recipe.mosquittoOverWebSocket(port: 9001)
        try await Story.tell(by: recipe, to: "ws://\(Self.address):9001/mqtt") { try await $0.day() }
    }

    @Test(.server("kamailio")) func `a server that accepts and kicks is dialled ever more rarely`() async throws {
        let recipe = LabServer.Recipe.kamailio(settings: ["tcp_max_connections=1"])
        try await LabNetwork.with { lab in
            let server = try await LabServer.start(recipe, on: lab.server)
            // Whoever was first has the one connection that there is; all others are accepted and closed.
            let first = try await lab.server.run { try TCPSocket.connected(to: "127.0.0.1", 5060) }
            let agent = try await LabAgent.start(on: lab.host)
            let events = try await EventRecorder.start(on: agent)
            let remote = "sip://\(Self.address)"
            _ = try await agent.client.open(
                .init(
                    remote: remote, name: "office",
                    settings: .init(backoff: .init(initial: .milliseconds(100), maximum: .seconds(60)))))
            let fourth = try await events.event("the fourth kick") {
                $0.connection.state == .backingOff && $0.connection.attempt == 5
            }
            let kicks = events.events.filter {
                $0.sequence <= fourth.sequence && $0.kind == .state && $0.connection.state == .backingOff
            }
            #expect(kicks.map(\.connection.attempt) == [2, 3, 4, 5])
            for (kick, least) in zip(kicks, [100, 200, 400, 800]) {
                let next = try #require(kick.connection.nextAttemptAt)
                // By RFC 5626 half of the bound at least, which doubles; a millisecond is for what rounding takes.
                #expect(next.milliseconds - kick.connection.since.milliseconds >= Int64(least) - 1)
                let dial = events.events.first { $0.sequence > kick.sequence && $0.connection.state == .connecting }
                if let dial { #expect(dial.time.milliseconds >= next.milliseconds - 1) }
            }
            // The server has counted no more dials than the daemon says that it has made.
            _ = try await server.log.line(containing: "maximum number of connections exceeded")
            let counted = server.log.lines.count { $0.text.contains("maximum number of connections exceeded") }
            let listed = try #require(try await agent.client.connections().first)
            #expect(counted <= listed.attempt)
            #expect(events.disorder == nil)
            first.close()
        }
    }
}

extension Story {
    /// A roam, an outage, the better uplink's return, another address, a move without a gap, a restart of the server.
    /// After each the daemon's list, its events and the sockets of both sides agree.
    fileprivate func day() async throws {
        var before = now
        try await lab.takeDown(.wan0)
        try await isReady(from: .wan1, after: before)

        before = now
        try await lab.takeDown(.wan1)
        let waiting = try await becomes(.waiting, after: before)
        #expect(waiting.previousState == .ready)
        #expect(waiting.connection.nextAttemptAt == nil)
        #expect(waiting.connection.localAddress == nil)
        // With TLS, another process closes the socket to the server.
        try? await eventually("no socket") { try await hostSees().isEmpty }
        expect(try await hostSees(), is: [])
        before = now
        try await lab.bringUp(.wan1)
        let dialled = try await becomes(.connecting, after: before)
        #expect(dialled.previousState == .waiting)
        try await isReady(from: .wan1, after: before)

        before = now
        try await lab.bringUp(.wan0)
        // The other link, up for milliseconds, may lose its carrier once more meanwhile: then there is nothing to move.
        try await isReady(from: .wan0, after: before)

        before = now
        try await lab.replaceAddress(.v4, on: .wan0, with: "192.0.2.77/24")
        let moved = try await events.event("the old flow's end", after: before) {
            $0.previousState?.hasFlow == true && $0.connection.state == .connecting
        }
        #expect(moved.reason == "source 192.0.2.2 is gone")
        try await isReadyFromTheNewAddress("192.0.2.77", after: before)

        before = now
        try await lab.preferDefaultRoute(via: .wan1)
        try await movesWithoutAGap(to: .wan1, after: before)

        before = now
        try await server.kill()
        let lost = try await events.event("the server's end", after: before) {
            $0.previousState == .ready && !$0.connection.state.hasFlow
        }
        #expect(lost.connection.state == .backingOff)
        #expect(lost.connection.nextAttemptAt != nil)
        _ = try await events.event("a refusal", after: before) { $0.reason?.contains("refused") == true }
        // What was told of the flow that is lost may have been heard of after the count before that.
        before = now
        try await server.restart()
        try await isReady(from: .wan1, after: before)
    }

    /// As ``isReady(from:at:after:)`` for wan0, where the server may still hold the flow from the address that is gone:
    /// nothing the host could send from it would arrive.
    private func isReadyFromTheNewAddress(_ address: String, after count: Int) async throws {
        let event = try await events.event("office to be ready from \(address)", after: count) {
            $0.connection.state == .ready && $0.connection.localAddress?.hasPrefix("\(address):") == true
        }
        expect(try await serverSees()) { $0.contains(event.connection.localAddress ?? "") }
    }
}
