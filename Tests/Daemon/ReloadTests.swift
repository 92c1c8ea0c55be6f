// SPDX-License-Identifier: Apache-2.0

import DialtoneAPI
import Platform
import Testing

@testable import Daemon
@testable import Supervisor

/// A reload of the configuration, as the connections feel it.
@Suite("Connections over a reload", .timeLimit(.minutes(2))) @AgentQueue
struct ReloadTests {
    /// Waits until a connection is in a state, by its events.
    private func reach(_ state: ConnectionStatus.State, _ name: String, _ bench: RegistryBench) async throws {
        try await answer("\(name) to be \(state)") { done in
            let isThere = bench.events.last { $0.name == name }?.event.status.state == state
            if isThere { return done(()) }
            var isDone = false
            bench.registry.onEvent { recorded in
                guard recorded.name == name, recorded.event.status.state == state, !isDone else { return }
                isDone = true
                done(())
            }
        }
    }

    private func wire(_ name: String, _ bench: RegistryBench) throws -> ConnectionsAPI.Connection {
        try #require(bench.registry.visible(to: 0).first { $0.name == name }?.wire)
    }

    @Test func `what did not change is not touched`() async throws {
        let (bench, server) = (RegistryBench(), try LoopbackListener())
        bench.network.becomeReachable()
        let office = bench.configured("office", try bench.policy("tcp://127.0.0.1:\(server.port)"), owner: 0)
        #expect(bench.registry.reconcile(with: [office]) == [])
        try await reach(.ready, "office", bench)
        let before = try wire("office", bench)
        _ = bench.story()
        #expect(bench.registry.reconcile(with: [office]) == [])
        let after = try wire("office", bench)
        #expect(bench.story() == [])
        #expect(after.epoch == before.epoch)
        #expect(after.localAddress == before.localAddress)
        #expect(after.state == .ready)
    }

    @Test func `another keepalive is set on the flow that stands`() async throws {
        let (bench, server) = (RegistryBench(), try LoopbackListener())
        bench.network.becomeReachable()
        let remote = "tcp://127.0.0.1:\(server.port)"
        _ = bench.registry.reconcile(with: [bench.configured("office", try bench.policy(remote), owner: 0)])
        try await reach(.ready, "office", bench)
        let before = try wire("office", bench)
        _ = bench.story()
        let slower = try bench.policy(remote) { $0.keepalive?.idle = .seconds(99) }
        _ = bench.registry.reconcile(with: [bench.configured("office", slower, owner: 0)])
        #expect(bench.story() == ["office reconfigured"])
        #expect(try wire("office", bench).localAddress == before.localAddress)
        #expect(try wire("office", bench).epoch == before.epoch)
    }

    @Test func `another remote is dialled anew under the same name`() async throws {
        let (bench, first, second) = (RegistryBench(), try LoopbackListener(), try LoopbackListener())
        bench.network.becomeReachable()
        _ = bench.registry.reconcile(
            with: [bench.configured("office", try bench.policy("tcp://127.0.0.1:\(first.port)"), owner: 0)])
        try await reach(.ready, "office", bench)
        let before = try wire("office", bench)
        _ = bench.registry.reconcile(
            with: [bench.configured("office", try bench.policy("tcp://127.0.0.1:\(second.port)"), owner: 0)])
        #expect(try wire("office", bench).state != .ready)
        try await reach(.ready, "office", bench)
        let after = try wire("office", bench)
        #expect(after.remoteAddress == "127.0.0.1:\(second.port)")
        #expect(after.epoch > before.epoch)
    }

    @Test func `new ones are opened, and those that are gone closed`() throws {
        let bench = RegistryBench()
        let (a, b, c) = (
            bench.configured("a", try bench.policy()), bench.configured("b", try bench.policy()),
            bench.configured("c", try bench.policy())
        )
        try bench.open("mine")
        _ = bench.registry.reconcile(with: [a, b])
        _ = bench.story()
        _ = bench.registry.reconcile(with: [c, b])
        #expect(bench.story() == ["a closed", "c opened"])
        _ = bench.registry.reconcile(with: [])
        #expect(bench.story() == ["b closed", "c closed"])
        #expect(bench.names() == ["mine"], "what a client opened is no business of the files")
    }

    @Test func `another owner gets a connection of its own`() throws {
        let bench = RegistryBench()
        _ = bench.registry.reconcile(with: [bench.configured("office", try bench.policy(), owner: 1000)])
        _ = bench.story()
        _ = bench.registry.reconcile(with: [bench.configured("office", try bench.policy(), owner: 1001)])
        #expect(bench.story() == ["office closed", "office opened"])
        #expect(bench.names(visibleTo: 1000) == [])
        #expect(bench.names(visibleTo: 1001) == ["office"])
    }

    @Test func `another user's connection of the name neither keeps a configured one from starting nor is touched`()
        throws
    {
        let bench = RegistryBench()
        try bench.open("office", owner: 1001)
        _ = bench.story()
        let wanted = [bench.configured("office", try bench.policy("tcp://192.0.2.9:1"), owner: 1000)]
        #expect(bench.registry.reconcile(with: wanted).isEmpty)
        #expect(bench.story() == ["office opened"])
        #expect(bench.names(visibleTo: 1000) == ["office"])
        #expect(bench.names(visibleTo: 1001) == ["office"])
    }

    @Test func `a configured connection takes its name over from a client of its owner, and says so`() throws {
        let bench = RegistryBench(connectionsPerUser: 1)
        try bench.open("office", owner: 1000)
        bench.forget()
        let wanted = [bench.configured("office", try bench.policy("tcp://192.0.2.9:1"), owner: 1000)]
        #expect(bench.registry.reconcile(with: wanted).map { "\($0)" }.description.contains("office"))
        let told = bench.events.map { "\($0.event.wireKind.rawValue): \($0.event.reason)" }
        #expect(told == ["closed: the configuration took its name over", "opened: opened"])
        #expect(bench.registry.visible(to: 1000).map { $0.wire?.remote } == ["tcp://192.0.2.9:1"])
        #expect(bench.registry.reconcile(with: wanted).isEmpty, "once")
        #expect(throws: RegistryError.nameTaken) { try bench.open("office", owner: 1000) }
        try bench.open("other", owner: 1000)
    }
}
