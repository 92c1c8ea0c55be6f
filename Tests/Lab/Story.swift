// SPDX-License-Identifier: Apache-2.0

import DialtoneAPI
import DialtoneClient
import DialtoneExpectations
import DialtoneLabSupport
import DialtoneTestSupport
import Testing

/// A host with an agent, a real server, and a connection between them: where each story begins.
struct Story {
    static let connection = "office"

    let lab: LabNetwork
    let server: LabServer
    let agent: LabAgent
    let events: EventRecorder

    /// Runs `body` with a connection that stands, and holds at the end that the events came in order without a gap.
    ///
    /// - Parameters:
    ///   - recipe: of the server.
    ///   - remote: what leads to it; by default its address with MQTT's scheme.
    ///   - adjust: changes how the connection is kept.
    static func tell(
        by recipe: LabServer.Recipe = .mosquitto(), to remote: String? = nil,
        _ adjust: (inout ConnectionsAPI.Settings) -> Void = { _ in }, _ body: (Story) async throws -> Void
    ) async throws {
        try await LabNetwork.with { lab in
            let server = try await LabServer.start(recipe, on: lab.server)
            let agent = try await LabAgent.start(on: lab.host)
            let events = try await EventRecorder.start(on: agent)
            // The shortest waits there are, so that a story does not take minutes.
            var settings = ConnectionsAPI.Settings(
                backoff: .init(initial: .milliseconds(100), maximum: .milliseconds(200)), grace: .zero)
            adjust(&settings)
            _ = try await agent.client.open(
                .init(
                    remote: remote ?? "mqtt://\(LabNetwork.serverAddress(.v4))", name: connection, settings: settings))
            let story = Story(lab: lab, server: server, agent: agent, events: events)
            try await story.isReady(from: .wan0, after: 0)
            try await body(story)
            #expect(events.disorder == nil)
        }
    }

    /// How many events were told: what comes later is news.
    var now: Int { events.events.count }

    /// Waits for the next event with the connection in `state`.
    @discardableResult
    func becomes(_ state: ConnectionsAPI.State, after count: Int) async throws -> ConnectionsAPI.Event {
        try await events.state(state, of: Self.connection, after: count)
    }

    /// Waits for the connection to be ready from an uplink's address, and holds that the daemon's list, its events and
    /// the server agree on it.
    func isReady(from uplink: Uplink, at address: String? = nil, after count: Int) async throws {
        let address = address ?? uplink.address(.v4)
        let event = try await events.event("office to be ready from \(address)", after: count) {
            $0.connection.state == .ready && $0.connection.localAddress?.hasPrefix("\(address):") == true
        }
        #expect(event.connection.interface == uplink.name)
        let listed = try #require(try await agent.client.connections().first)
        #expect(listed.state == .ready)
        #expect(listed.epoch == event.connection.epoch)
        #expect(listed.localAddress == event.connection.localAddress)
        // A flow with TLS is closed by the process that does TLS, a moment after it was told to.
        try? await eventually("one flow") { try await hostSees().count == 1 }
        expect(try await hostSees(), is: [listed.localAddress])
        // It may hold an old flow too, whose end could not be told to it.
        expect(try await serverSees()) { $0.contains(listed.localAddress ?? "") }
    }

    /// Waits for another flow to take the place of the one that stands, and holds that there was one at every moment.
    func movesWithoutAGap(to uplink: Uplink, after count: Int) async throws {
        let event = try await events.event("office to move to \(uplink)", after: count) {
            $0.reason == "moved to a better path" && $0.connection.interface == uplink.name
        }
        let since = events.events.dropFirst(count).prefix { $0.sequence <= event.sequence }
        #expect(since.allSatisfy { $0.connection.state.hasFlow }, "\(since.map(\.connection.state))")
        try await isReady(from: uplink, after: count)
    }

    /// The host's ends of its own connections to the server.
    func hostSees() async throws -> [String] {
        try await lab.host.connections()
            .filter { $0.peerPort == server.port && $0.state == "ESTAB" }
            .map { "\($0.address):\($0.port)" }
    }

    /// The host's ends of the connections that the server holds for established.
    func serverSees() async throws -> [String] {
        try await lab.server.connections()
            .filter { $0.port == server.port && $0.state == "ESTAB" && $0.peerAddress != "127.0.0.1" }
            .map { "\($0.peerAddress):\($0.peerPort)" }
    }
}
