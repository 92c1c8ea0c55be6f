// SPDX-License-Identifier: Apache-2.0

import DialtoneAPI
import DialtoneClient
import DialtoneLabSupport
import DialtonePlatform
import DialtoneTestSupport
import DialtoneVarlink
import Foundation
import Testing

/// Clients that left an opening sleep while flows come and go; real servers take what the daemon says for them.
@Suite(.lab, .timeLimit(.minutes(10)))
struct OpeningStories {
    private static let address = LabNetwork.serverAddress(.v4)
    private static let client = "sleeper"
    private static let topic = "night"

    // MARK: - MQTT

    @Test(.server("mosquitto"))
    func `with an opening left, the client sleeps through forty outages and finds what was queued`() async throws {
        let folder = TemporaryDirectory()
        let recipe = LabServer.Recipe.mosquitto(keeping: folder.path)
        try await Story.tell(by: recipe) { story in
            let flow = try await story.agent.client.take(Story.connection)
            let epoch = flow.epoch
            let client = ClientSocket(OwnedDescriptor(flow.release()))
            #expect(client.logIn(Self.client, topic: Self.topic))
            try await story.agent.client.park(
                Story.connection, epoch: epoch, opening: MQTT.opening(Self.client, topic: Self.topic))
            _ = try await story.events.event("parked") { $0.kind == .parked }
            let evening = story.now

            try await endure(Outage.forty.dropLast(), story)
            let events = story.events.events.dropFirst(evening)
            #expect(events.filter { [.wake, .openingFailed, .arrived].contains($0.kind) } == [])
            // Nobody was ever told that calls can come while they could not.
            #expect(events.allSatisfy { $0.connection.session != .unknown && $0.connection.holder == .daemon })
            // The night ended with a crash of the broker, and this is the log of the one after it.
            _ = try await story.server.log.line(containing: "as \(Self.client) (")

            let queued = (1...20).map { "message \($0)" }
            try await queue(queued, in: story)
            let morning = try await story.agent.client.take(Story.connection)
            let reader = ClientSocket(OwnedDescriptor(morning.release()))
            #expect(reader.distinctMessages(queued.count) == queued)
            let wakes = story.events.events.dropFirst(evening).compactMap(\.wake).filter { $0.stage == .began }
            #expect(wakes.map(\.reasons) == [[.data]])
            // What was left is a secret.
            #expect(!story.agent.process.lines.contains { $0.text.contains("swordfish") })
        }
    }

    private func endure(_ outages: some Sequence<Outage>, _ story: Story) async throws {
        for outage in outages { try await story.suffer(outage) { $0.session == .open } }
    }

    /// The last outage of the night, in which the broker gets something for the client.
    private func queue(_ messages: [String], in story: Story) async throws {
        let before = story.now
        for uplink in Uplink.allCases { try await story.lab.takeDown(uplink) }
        _ = try await story.becomes(.waiting, after: before)
        _ = try await story.lab.server.command(
            ["mosquitto_pub", "-h", "127.0.0.1", "-t", Self.topic, "-q", "1", "-l"],
            input: messages.map { $0 + "\n" }.joined())
        for uplink in Uplink.allCases { try await story.lab.bringUp(uplink) }
        _ = try await story.events.event("the wake", after: before) { $0.wake?.stage == .began }
    }

    @Test(.server("mosquitto"))
    func `without one, it is woken once by each of forty`() async throws {
        let folder = TemporaryDirectory()
        try await Story.tell(by: .mosquitto(keeping: folder.path)) { story in
            let dialtone = story.agent.client
            func logIn() async throws {
                let flow = try await dialtone.take(Story.connection)
                let epoch = flow.epoch
                #expect(ClientSocket(OwnedDescriptor(flow.release())).logIn(Self.client, topic: Self.topic))
                try await dialtone.park(Story.connection, epoch: epoch)
            }
            try await logIn()
            _ = try await story.events.event("parked") { $0.kind == .parked }
            let evening = story.now
            for outage in Outage.forty {
                let before = story.now
                try await story.suffer(outage) { $0.session == .none }
                _ = try await story.events.event("the wake", after: before) { $0.wake?.stage == .began }
                try await logIn()
                _ = try await story.events.event("parked", after: before) { $0.kind == .parked }
            }
            let wakes = story.events.events.dropFirst(evening).compactMap(\.wake).filter { $0.stage == .began }
            #expect(
                wakes.map(\.reasons)
                    == [[ConnectionsAPI.WakeReason]](repeating: [.reconnected], count: Outage.forty.count))
        }
    }

    @Test(.server("mosquitto"))
    func `a login that the server refuses calls the client once, and is not tried again and again`() async throws {
        let folder = TemporaryDirectory()
        let passwords = "\(folder.path)/passwords"
        try await LabNetwork.with { lab in
            _ = try await lab.server.command(["mosquitto_passwd", "-b", "-c", passwords, "user", "another"])
            let recipe = LabServer.Recipe.mosquitto(settings: ["password_file \(passwords)"])
            let server = try await LabServer.start(recipe, on: lab.server)
            let agent = try await LabAgent.start(on: lab.host)
            let events = try await EventRecorder.start(on: agent)
            _ = try await agent.client.open(
                .init(
                    remote: "mqtt://\(Self.address)", name: "office",
                    settings: .init(
                        opening: MQTT.opening(Self.client, topic: Self.topic),
                        backoff: .init(initial: .milliseconds(100), maximum: .seconds(60)))))
            let word = "the server refused step 1 of the opening: CONNACK 5, not authorized"
            func isRefused(after count: Int) async throws {
                let failed = try await events.state(.failed, of: "office", after: count)
                #expect(failed.connection.reason == word)
                let wait = try #require(failed.connection.nextAttemptAt).milliseconds - failed.time.milliseconds
                // The back-off of this connection begins at 100 ms.
                #expect((15 * 60_000 - 60_000...30 * 60_000).contains(wait), "\(wait)")
            }
            try await isRefused(after: 0)
            #expect(events.events.count { $0.kind == .openingFailed } == 1)
            #expect(events.events.allSatisfy { $0.connection.session != .open })
            _ = try await server.log.line(containing: "not authorised")

            // Another network is tried, a minute after the refusal.
            var before = events.events.count
            try await lab.takeDown(.wan0)
            let elsewhere = try await events.state(.failed, of: "office", after: before)
            let refusal = try #require(events.events.first { $0.kind == .openingFailed })
            let next = try #require(elsewhere.connection.nextAttemptAt).milliseconds - refusal.time.milliseconds
            #expect((59_000...61_000).contains(next), "\(next)")

            // A user's word is heard at once, and what failed before shows meanwhile.
            before = events.events.count
            try await agent.client.redial("office")
            let dialled = try await events.state(.connecting, of: "office", after: before)
            #expect(dialled.connection.lastFailure == word)
            try await isRefused(after: before)

            _ = try await lab.server.command(["mosquitto_passwd", "-b", passwords, "user", "swordfish"])
            try await server.restart()
            try await agent.client.redial("office")
            let session = try await events.event("the session") { $0.kind == .sessionOpened }
            #expect(session.connection.lastFailure == nil)
            #expect(!agent.process.lines.contains { $0.text.contains("swordfish") })
            #expect(events.disorder == nil)
        }
    }

    @Test(.server("mosquitto")) func `over a WebSocket`() async throws {
        let opening: [ConnectionsAPI.OpeningStep] = [
            .init(
                send: MQTT.escaped(WebSocket.upgrade),
                expect: .init(bytes: "HTTP/1.1 101", until: #"\r\n\r\n"#, contains: WebSocket.acceptance)),
            .init(
                send: MQTT.escaped(WebSocket.frame(MQTT.connect(Self.client))),
                expect: .init(bytes: #"\x82\x04\x20\x02\x0?\x00"#)),
            .init(
                send: MQTT.escaped(WebSocket.frame(MQTT.subscribe(Self.topic))),
                expect: .init(bytes: #"\x82"#, message: "websocket", contains: #"\x90\x03\x00\x01\x01"#)),
        ]
        let recipe = LabServer.Recipe.mosquittoOverWebSocket(port: 9001)
        try await Story.tell(by: recipe, to: "ws://\(Self.address):9001/mqtt", { $0.opening = opening }) { story in
            _ = try await story.events.event("the session") { $0.kind == .sessionOpened }
            for outage in [Outage.roam, .comeBack, .restart] {
                try await story.suffer(outage) { $0.session == .open }
            }
            #expect(!story.events.events.contains { $0.kind == .wake || $0.kind == .openingFailed })
        }
    }

    // MARK: - XMPP

    @Test(.server("prosody")) func `prosody: logged in for its client after each outage`() async throws {
        let recipe = LabServer.Recipe.prosody(user: "juliet", password: "secret")
        try await Story.tell(
            by: recipe, to: "xmpp://\(Self.address)", { $0.opening = XMPP.opening("juliet", "secret") }
        ) {
            story in
            _ = try await story.events.event("the session") { $0.kind == .sessionOpened }
            for outage in [Outage.roam, .comeBack, .restart, .crash] {
                try await story.suffer(outage) { $0.session == .open }
            }
            _ = try await story.server.log.line(containing: "Authenticated as juliet@lab.example")
            #expect(!story.events.events.contains { $0.kind == .openingFailed })
            // What the server sends is the client's, from the first byte behind the opening.
            let flow = try await story.agent.client.take(Story.connection)
            #expect(flow.connection.session == .open)
        }
    }

    @Test(.server("prosody")) func `prosody: a password that is wrong is told, and its answer left`() async throws {
        let recipe = LabServer.Recipe.prosody(user: "juliet", password: "secret")
        try await Story.tell(by: recipe, to: "xmpp://\(Self.address)", { $0.opening = XMPP.opening("juliet", "guess") })
        {
            story in
            let failed = try await story.events.event("the refusal") { $0.kind == .openingFailed }
            #expect(failed.reason == "the server refused step 2 of the opening: SASL failure, not-authorized")
            #expect(failed.connection.session == .none)
            let flow = try await story.agent.client.take(Story.connection)
            #expect(
                ClientSocket(OwnedDescriptor(flow.release())).text(untilIncluding: "</failure>").hasPrefix("<failure"))
        }
    }
}

/// One of the things that end a flow, or make it move. In this order each finds the network as the next one needs it.
private enum Outage: CaseIterable {
    /// The better uplink goes, and the other one takes over.
    case roam
    /// That one goes, too, and comes back.
    case darkness
    /// The better uplink is back.
    case comeBack
    /// Its cable is pulled, and plugged in again.
    case cut
    case restart
    /// A new lease with another address.
    case lease
    case crash
    /// A lease with the address of before.
    case oldLease

    /// A night of them. It takes a minute: after ten dials in a row a connection makes one in two seconds
    /// (`DialBudget`), and each of these takes one.
    static let forty = (0..<5).flatMap { _ in allCases }
}

extension Story {
    /// Lets something happen, and waits for a new flow with the session that is wanted.
    fileprivate func suffer(
        _ outage: Outage, _ hasSession: (ConnectionsAPI.Connection) -> Bool
    ) async throws {
        let before = now
        let old = try #require(try await agent.client.connections().first)
        var address = old.localAddress?.prefix { $0 != ":" } ?? ""
        switch outage {
        case .roam:
            address = Uplink.wan1.address(.v4)[...]
            try await lab.takeDown(.wan0)
        case .darkness:
            try await lab.takeDown(.wan1)
            _ = try await becomes(.waiting, after: before)
            try await lab.bringUp(.wan1)
        case .comeBack:
            address = Uplink.wan0.address(.v4)[...]
            try await lab.bringUp(.wan0)
        case .cut:
            try await lab.cut(.wan0)
            _ = try await becomes(.waiting, after: before)
            try await lab.plug(.wan0)
        case .restart:
            try await server.stop()
            try await server.restart()
        case .lease:
            address = "192.0.2.9"
            try await lab.replaceAddress(.v4, on: .wan0, with: "192.0.2.9/24")
        case .crash:
            try await server.kill()
            try await server.restart()
        case .oldLease:
            address = Uplink.wan0.address(.v4)[...]
            try await lab.bringUp(.wan0)
            try await lab.removeAddress("192.0.2.9/24", from: .wan0)
        }
        _ = try await events.event("a session from \(address) after \(outage)", after: before) {
            $0.connection.state == .ready && $0.connection.epoch > old.epoch && hasSession($0.connection)
                && $0.connection.localAddress?.hasPrefix("\(address):") == true
        }
    }
}
