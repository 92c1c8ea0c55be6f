// SPDX-License-Identifier: Apache-2.0

import DialtoneAPI
import DialtonePersistence
import DialtonePlatform
import DialtoneTestSupport
import Testing

@testable import DialtoneAgent
@testable import DialtoneConnection

/// A reload of the configuration, as the connections feel it.
@Suite(.timeLimit(.minutes(2))) @AgentQueue
struct ReloadTests {
    /// Waits until a connection is in a state, by its events.
    private func reach(_ state: ConnectionStatus.State, _ name: String, _ fixture: RegistryFixture) async throws {
        try await answer("\(name) to be \(state)") { done in
            let isThere = fixture.events.last { $0.name == name }?.event.status.state == state
            if isThere { return done(()) }
            var isDone = false
            fixture.registry.onEvent { recorded in
                guard recorded.name == name, recorded.event.status.state == state, !isDone else { return }
                isDone = true
                done(())
            }
        }
    }

    private func wire(_ name: String, _ fixture: RegistryFixture) throws -> ConnectionsAPI.Connection {
        try #require(fixture.registry.visible(to: 0).first { $0.name == name }?.wire)
    }

    @Test func `what did not change is not touched`() async throws {
        let (fixture, server) = (RegistryFixture(), try LoopbackListener())
        fixture.network.becomeReachable()
        let office = fixture.configured("office", try fixture.policy("tcp://127.0.0.1:\(server.port)"), owner: 0)
        #expect(fixture.registry.reconcile(with: [office]) == [])
        try await reach(.ready, "office", fixture)
        let before = try wire("office", fixture)
        _ = fixture.story()
        #expect(fixture.registry.reconcile(with: [office]) == [])
        let after = try wire("office", fixture)
        #expect(fixture.story() == [])
        #expect(after.epoch == before.epoch)
        #expect(after.localAddress == before.localAddress)
        #expect(after.state == .ready)
    }

    @Test func `another keepalive is set on the flow that stands`() async throws {
        let (fixture, server) = (RegistryFixture(), try LoopbackListener())
        fixture.network.becomeReachable()
        let remote = "tcp://127.0.0.1:\(server.port)"
        _ = fixture.registry.reconcile(with: [fixture.configured("office", try fixture.policy(remote), owner: 0)])
        try await reach(.ready, "office", fixture)
        let before = try wire("office", fixture)
        _ = fixture.story()
        let slower = try fixture.policy(remote) { $0.keepalive?.idle = .seconds(99) }
        _ = fixture.registry.reconcile(with: [fixture.configured("office", slower, owner: 0)])
        #expect(fixture.story() == ["office reconfigured"])
        #expect(try wire("office", fixture).localAddress == before.localAddress)
        #expect(try wire("office", fixture).epoch == before.epoch)
    }

    @Test func `new ones are opened, and those that are gone closed`() throws {
        let fixture = RegistryFixture()
        let (a, b, c) = (
            fixture.configured("a", try fixture.policy()), fixture.configured("b", try fixture.policy()),
            fixture.configured("c", try fixture.policy())
        )
        try fixture.open("mine")
        _ = fixture.registry.reconcile(with: [a, b])
        _ = fixture.story()
        _ = fixture.registry.reconcile(with: [c, b])
        #expect(fixture.story() == ["a closed", "c opened"])
        _ = fixture.registry.reconcile(with: [])
        #expect(fixture.story() == ["b closed", "c closed"])
        #expect(fixture.names() == ["mine"], "what a client opened is no business of the files")
    }

    @Test func `another owner gets a connection of its own`() throws {
        let fixture = RegistryFixture()
        _ = fixture.registry.reconcile(with: [fixture.configured("office", try fixture.policy(), owner: 1000)])
        _ = fixture.story()
        _ = fixture.registry.reconcile(with: [fixture.configured("office", try fixture.policy(), owner: 1001)])
        #expect(fixture.story() == ["office closed", "office opened"])
        #expect(fixture.names(visibleTo: 1000) == [])
        #expect(fixture.names(visibleTo: 1001) == ["office"])
    }

    @Test func `another user's connection of the name neither keeps a configured one from starting nor is touched`()
        throws
    {
        let fixture = RegistryFixture()
        try fixture.open("office", owner: 1001)
        _ = fixture.story()
        let wanted = [fixture.configured("office", try fixture.policy("tcp://192.0.2.9:1"), owner: 1000)]
        #expect(fixture.registry.reconcile(with: wanted).isEmpty)
        #expect(fixture.story() == ["office opened"])
        #expect(fixture.names(visibleTo: 1000) == ["office"])
        #expect(fixture.names(visibleTo: 1001) == ["office"])
    }

    @Test func `a configured connection takes its name over from a client of its owner, and says so`() throws {
        let fixture = RegistryFixture(connectionsPerUser: 1)
        try fixture.open("office", owner: 1000)
        fixture.forget()
        let wanted = [fixture.configured("office", try fixture.policy("tcp://192.0.2.9:1"), owner: 1000)]
        #expect(fixture.registry.reconcile(with: wanted).map { "\($0)" }.description.contains("office"))
        let told = fixture.events.map { "\($0.event.wireKind.rawValue): \($0.event.reason)" }
        #expect(told == ["closed: the configuration has a connection of this name", "opened: opened"])
        #expect(fixture.registry.visible(to: 1000).map { $0.wire?.remote } == ["tcp://192.0.2.9:1"])
        #expect(fixture.registry.reconcile(with: wanted).isEmpty, "once")
        #expect(throws: RegistryError.nameTaken) { try fixture.open("office", owner: 1000) }
        try fixture.open("other", owner: 1000)
    }
}
