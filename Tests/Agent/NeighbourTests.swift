// SPDX-License-Identifier: Apache-2.0

import DialtoneAPI
import DialtoneConnection
import DialtoneExpectations
import DialtonePlatform
import DialtoneTestSupport
import Testing

@testable import DialtoneAgent
@testable import DialtoneConfiguration

/// What one user does costs by what that user has, and not by what the others have.
@Suite(.timeLimit(.minutes(5))) @AgentQueue
struct NeighbourTests {
    /// Opens connections whose clients are to keep them alive, and are being woken for it.
    private func standingWakes(_ count: Int, of user: UInt32, in fixture: ServiceFixture) throws
        -> [RegisteredConnection]
    {
        // Nothing is tried again, nor looked at for that, while the test lasts.
        var wake = WakeSettings()
        wake.answerTime = .seconds(3600)
        for number in 1...count {
            let policy = ConnectionPolicy(remote: try Remote("tcp://192.0.2.7:\(number)"))
            _ = try fixture.registry.open("c\(number)", policy, wake: wake, owner: user, origin: .client)
        }
        let connections = fixture.registry.visible(to: user)
        for connection in connections { connection.callClient() }
        try #require(connections.allSatisfy { $0.standingWake != nil })
        return connections
    }

    @Test func `a monitor is no work for another user's standing wakes`() async throws {
        let fixture = ServiceFixture()
        var looks = 0
        fixture.wakes.isWatched = { _, _ in
            looks += 1
            return true
        }
        _ = try standingWakes(20, of: Client.nobodysNumber, in: fixture)
        looks = 0
        for _ in 1...3 {
            let client = try fixture.client()
            _ = try await client.monitor().one()
            try await fixture.hangUp(client)
        }
        #expect(looks == 0, "root's monitors are not of nobody's clients")
    }

    @Test func `those of one's own are looked at in steps, once for many monitors`() async throws {
        let fixture = ServiceFixture()
        var looks = 0
        fixture.wakes.isWatched = { _, _ in
            looks += 1
            return true
        }
        _ = try standingWakes(20, of: 1000, in: fixture)
        looks = 0
        for _ in 1...50 { fixture.registry.subscriptionsChanged(of: 1000) }
        #expect(looks == 0, "nothing in the turn of the one who asks")
        // As many turns as the reviews take, and some more.
        let turns = Turns { looks }
        await turns.pass(20)
        #expect(turns.mostGrowth == PresenceReview.wakesPerTurn)
        #expect(looks == 40, "one review for the first monitor, and one for all that came while it went on")
    }

    @Test(.enabled(if: Client.obstacle == nil, Client.obstacle))
    func `an event is no work for subscribers who may not see it, and makes no gap for them`() async throws {
        let fixture = ServiceFixture()
        try await fixture.open("roots")
        try await fixture.open("own", for: .nobody)
        let monitor = try fixture.client(.nobody).monitor()
        let snapshot = try await monitor.one()
        #expect(snapshot.connections.map(\.name) == ["own"])
        try await eventually("all is told") { !fixture.connections.isBehind }
        for _ in 1...1500 {
            fixture.registry.visible(to: 0).first { $0.name == "roots" }?.change(to: policy(number: 1), wake: nil)
            fixture.registry.visible(to: 0).first { $0.name == "roots" }?.change(to: policy(number: 2), wake: nil)
        }
        #expect(!fixture.connections.isBehind, "nobody's subscriber has nothing to look at")
        fixture.network.change()
        let event = try await monitor.one()
        #expect(event.kind == .change)
        #expect(event.connections.map(\.name) == ["own"])
        #expect(event.sequence > snapshot.sequence + 2000, "the journal has forgotten what was in between")
    }

    @Test func `a subscriber is told in a turn of its user, and not while an event is dealt with`() async throws {
        let fixture = ServiceFixture()
        try await fixture.open("own")
        let monitor = try fixture.client().monitor()
        _ = try await monitor.one()
        try await eventually("all is told") { !fixture.connections.isBehind }
        fixture.network.change()
        #expect(fixture.connections.isBehind, "to write to sixty-four subscribers takes longer than the event itself")
        expect(try await monitor.one().kind, is: .change)
    }

    private func policy(number: Int) -> ConnectionPolicy {
        guard let remote = try? Remote("tcp://192.0.2.7:\(number)") else { preconditionFailure("a remote") }
        return ConnectionPolicy(remote: remote)
    }
}

/// Watches a figure in turns of the queue between those that change it.
@AgentQueue
private final class Turns {
    private let figure: @AgentQueue () -> Int
    private var last: Int
    /// By how much the figure grew at most between two turns.
    private(set) var mostGrowth = 0

    init(_ figure: @escaping @AgentQueue () -> Int) {
        self.figure = figure
        last = figure()
    }

    func pass(_ count: Int) async {
        await withCheckedContinuation { done in look(count) { done.resume() } }
    }

    private func look(_ left: Int, _ done: @escaping @AgentQueue () -> Void) {
        mostGrowth = max(mostGrowth, figure() - last)
        last = figure()
        if left == 0 { return done() }
        AgentQueue.async { self.look(left - 1, done) }
    }
}
