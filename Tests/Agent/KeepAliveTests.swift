// SPDX-License-Identifier: Apache-2.0

import DialtoneAPI
import DialtoneConnectionIO
import DialtoneExpectations
import DialtonePlatform
import DialtoneTestSupport
import DialtoneVarlink
import Testing

@testable import DialtoneAgent
@testable import DialtoneConnection

/// Clients that keep their connections alive themselves.
@Suite(.timeLimit(.minutes(2))) @AgentQueue
struct KeepAliveTests {
    /// One that is called each tenth of a second: what is left of its timeout when it has had its time.
    private static let brisk = ClientHandler(timeout: ClientHandler.budget + .milliseconds(100))

    @Test func `it is called while the flow is parked and at no other time`() async throws {
        let network = FakeNetwork()
        var called: (@AgentQueue () -> Void)?
        var count = 0
        let calls = ClientCalls(DialerContext(paths: network, names: network)) {
            count += 1
            called?()
        }
        calls.handler = Self.brisk
        calls.ownershipChanged(to: .new)
        #expect(count == 0)
        for _ in 1...2 {
            let isCalled: Bool = try await answer("a call") { done in
                called = { done(true) }
                calls.ownershipChanged(to: .parked)
            }
            #expect(isCalled)
            called = nil
        }
        calls.ownershipChanged(to: FlowOwnership(reader: .unknown, session: .open))
        let before = count
        // Something of the same cadence comes twice, and these calls not.
        let witness = ClientCalls(DialerContext(paths: network, names: network)) { called?() }
        witness.handler = Self.brisk
        for _ in 1...2 {
            let _: Bool = try await answer("the witness") { done in
                called = { done(true) }
                witness.ownershipChanged(to: .parked)
            }
        }
        #expect(count == before)
    }

    @Test func `it is agreed by the first reply, and a call names its wake`() async throws {
        let (fixture, server) = (ServiceFixture(), try LoopbackListener())
        fixture.network.becomeReachable()
        let (client, events) = (try fixture.client(), try fixture.client().monitor())
        _ = try await client.ask(
            ConnectionsAPI.Open.self, .init(remote: "tcp://127.0.0.1:\(server.port)", name: "loop"))
        while try await events.one().connections.first?.state != .ready {}
        let peer = try server.accept()
        let calls = try fixture.client().stream(
            ConnectionsAPI.KeepAlive.self, .init(name: "loop", timeout: .seconds(60)))
        let agreement = try await calls.one()
        #expect(agreement.wake == nil)
        #expect(agreement.limit == .seconds(10))
        let loop = try #require(fixture.registry.visible(to: 0).first)
        loop.callClient()
        let call = try await calls.one()
        #expect(call.wake.map { UInt64($0) } == loop.standingWake)
        // Whoever is called need not watch anything beside.
        #expect(loop.wire?.wakeFailed == nil)
        _ = try await client.ask(
            ConnectionsAPI.Acknowledge.self, .init(name: "loop", wake: try #require(call.wake)))
        #expect(loop.standingWake == nil)
        withExtendedLifetime(peer.number) {}
    }

    @Test func `one is called for a connection, and whoever was before is told`() async throws {
        let fixture = ServiceFixture()
        let name = try await fixture.open("office")
        func call() throws -> VarlinkReplies<ConnectionsAPI.KeepAlive> {
            try fixture.client().stream(ConnectionsAPI.KeepAlive.self, .init(name: name, timeout: .seconds(60)))
        }
        let first = try call()
        _ = try await first.one()
        let second = try call()
        _ = try await second.one()
        expect(try await first.one().wake, is: nil)
        await #expect(throws: NothingCame.self, "the stream has ended") { _ = try await first.one() }
        let office = try #require(fixture.registry.visible(to: 0).first)
        office.callClient()
        expect(try await second.one().wake.map { UInt64($0) }, is: office.standingWake)
    }

    @Test(arguments: [(Duration.milliseconds(1), "does not sleep"), (.seconds(100_000), "the most")])
    func `a timeout that makes no sense is refused with the reason`(timeout: Duration, words: String) async throws {
        let fixture = ServiceFixture()
        let name = try await fixture.open("office")
        let calls = try fixture.client().stream(
            ConnectionsAPI.KeepAlive.self, .init(name: name, timeout: timeout))
        do {
            _ = try await calls.one()
            Issue.record("agreed")
        } catch VarlinkCallError.refused(let failure) {
            let refusal = try #require(failure.decoded(as: ConnectionsAPI.InvalidTimeout.self))
            #expect(refusal.reason.contains(words))
        }
    }
}
