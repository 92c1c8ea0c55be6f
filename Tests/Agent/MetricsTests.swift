// SPDX-License-Identifier: Apache-2.0

import DialtoneAPI
import DialtoneConnection
import DialtoneExpectations
import DialtoneNetworkPath
import DialtonePlatform
import DialtoneTestSupport
import DialtoneVarlink
import Reachability
import Testing

@testable import DialtoneAgent
@testable import DialtonePersistence

/// Metrics.
@Suite(.timeLimit(.minutes(2))) @AgentQueue
struct MetricsTests {
    private func counters(_ name: String, _ fixture: RestartFixture) throws -> ConnectionsAPI.Counters {
        let connection = try #require(fixture.registry.visible(to: 0).first { $0.name == name })
        return connection.totals.wire(at: BootClock.now())
    }

    /// A connection that was up, and is down since its server went.
    private func outage(_ fixture: RestartFixture) async throws {
        let listener = try LoopbackListener()
        try fixture.open("office", "tcp://127.0.0.1:\(listener.port)", backoff: .lasting)
        try await fixture.ready("office")
        let peer = try listener.accept()
        listener.refuse()
        peer.close()
        try await fixture.wait(for: "office", "down") { $0.state == .backingOff }
    }

    @Test func `counts go on over a restart, the outage under way included`() async throws {
        let fixture = try RestartFixture()
        try await outage(fixture)
        let before = try counters("office", fixture)
        #expect(before.outages == [.init(cause: .closedByRemote, count: 1)])
        #expect(before.connectedDials == 1)
        try fixture.kill()
        let after = try counters("office", fixture)
        #expect(after.since == before.since)
        #expect(after.outages == before.outages)
        #expect(after.failedDials == before.failedDials)
        #expect(after.connectTime == before.connectTime)
        #expect(after.down >= before.down, "\(after.down), \(before.down)")
        #expect(after.connectTime.counts.reduce(0, +) == 1)
    }

    @Test func `counts survive when the records are written anew, and one event after the other`() async throws {
        let fixture = try RestartFixture()
        try await outage(fixture)
        // Each is an event, with which nothing of the connection itself is new.
        for _ in 0..<3000 { fixture.network.change() }
        let before = try counters("office", fixture)
        for _ in 0..<2 { try fixture.kill() }
        #expect(try counters("office", fixture).outages == before.outages)
        #expect(try counters("office", fixture).failedDials == before.failedDials)
    }

    @Test func `a connection that is opened again is counted from nothing`() async throws {
        let fixture = try RestartFixture()
        try await outage(fixture)
        try fixture.registry.close("office", for: 1000)
        try fixture.open("office", "tcp://127.0.0.1:9")
        try fixture.kill()
        #expect(try counters("office", fixture).connectedDials == 0)
    }

    @Test func `the network's changes are counted on by the next process`() throws {
        let store = StoreStub()
        func process() throws -> Continuity {
            try Continuity(
                store.inheritance(), limit: 8, manager: store.manager, settlingAfter: .seconds(86_400), Notes().logger)
        }
        var totals = SavedNetworkTotals(since: .now())
        totals.heard([.status, .gateway])
        totals.heard([.gateway])
        #expect(try process().network == nil)
        try process().write(totals)
        #expect(try process().network == totals)
        #expect(totals.wire.map { "\($0.change) \($0.count)" } == ["gateway 2", "status 1"])
    }

    @Test func `what is damaged of the counts costs the counts and not the connection`() throws {
        var kept = SavedConnection(name: "office", owner: 1000, isConfigured: false, remote: "tcp://a.example:1")
        var totals = SavedTotals(since: .now())
        (totals.totals.connectedDials, totals.totals.answeredMessages) = (7, 8)
        totals.totals.outages = [.refused: 3]
        totals.totals.wakes[nil] = .init()
        totals.totals.wakes[.unit] = .init()
        totals.totals.wakes[.unit]?.acknowledged.add(.seconds(2))
        kept.totals = totals
        #expect(try read(kept).totals == totals)
        totals.totals.connectedDials = -1
        kept.totals = totals
        #expect(try read(kept).totals == nil)
        #expect(try read(kept).name == "office")
    }

    private func read(_ connection: SavedConnection) throws -> SavedConnection {
        var state = AgentState()
        state.apply(AgentState.record([.connection(connection)])[...])
        return try #require(state.connections.values.first)
    }

    @Test(.enabled(if: Client.obstacle == nil, Client.obstacle ?? "there are clients of others"))
    func `each user is told of their own connections, and root of all`() async throws {
        let fixture = ServiceFixture()
        try await fixture.open("mine", for: .oneself)
        try await fixture.open("theirs", for: .nobody)
        let all = try await fixture.client().ask(ConnectionsAPI.Metrics.self, .init())
        #expect(all.connections.map(\.connection.name) == ["mine", "theirs"])
        let own = try await fixture.client(.nobody).ask(ConnectionsAPI.Metrics.self, .init())
        #expect(own.connections.map(\.connection.name) == ["theirs"])
        #expect(
            own.boundsMicroseconds == [
                1000, 2500, 5000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000, 1_000_000, 2_500_000, 5_000_000,
                10_000_000, 30_000_000,
            ])
        #expect(own.agent.version == Product.version)
        let resident = try #require(own.agent.residentBytes)
        #expect(resident > 1 << 20 && resident < 1 << 40, "\(resident)")
        #expect(own.agent.wakeUps > 0)
    }

    @Test func `the descriptors that are open are counted`() throws {
        let before = try #require(ProcessFigures.descriptors)
        let listeners = try (0..<50).map { _ in try LoopbackListener() }
        let after = try #require(ProcessFigures.descriptors)
        // Other tests open and close some meanwhile.
        #expect(after > before, "\(before), \(after)")
        withExtendedLifetime(listeners) {}
    }
}
