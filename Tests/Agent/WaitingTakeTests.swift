// SPDX-License-Identifier: Apache-2.0

import DialtoneAPI
import DialtoneExpectations
import DialtoneNetworkPath
import DialtonePersistence
import DialtonePlatform
import DialtoneProcesses
import DialtoneTestSupport
import DialtoneVarlink
import Glibc
import Testing

@testable import DialtoneAgent

/// `Take` that waits: for a flow, or for something to be read.
@Suite(.timeLimit(.minutes(2))) @AgentQueue
struct WaitingTakeTests {
    private let fixture = ServiceFixture()
    private let server: LoopbackListener
    private let client: VarlinkConnection

    init() throws {
        server = try LoopbackListener()
        client = try fixture.client()
    }

    /// A call that is under way.
    @AgentQueue
    private final class Call {
        private(set) var result: Result<VarlinkAnswer<ConnectionsAPI.Take>, VarlinkCallError>?
        private var awaiting: (@AgentQueue (Result<VarlinkAnswer<ConnectionsAPI.Take>, VarlinkCallError>) -> Void)?

        init(_ client: VarlinkConnection, until awaited: ConnectionsAPI.Take.Parameters.Until) {
            client.callWithDescriptors(ConnectionsAPI.Take.self, .init(name: "loop", until: awaited), nil) {
                self.result = $0
                self.awaiting?($0)
            }
        }

        /// What was taken, as soon as it is.
        func flow() async throws -> TakenEnd {
            let result: Result<VarlinkAnswer<ConnectionsAPI.Take>, VarlinkCallError> =
                try await answer("the flow") { done in
                    if let result = self.result { done(result) } else { self.awaiting = done }
                }
            return try TakenEnd(result.get())
        }
    }

    private func open(reachable: Bool = true) async throws {
        if reachable { fixture.network.becomeReachable() }
        _ = try await client.ask(
            ConnectionsAPI.Open.self, .init(remote: "tcp://127.0.0.1:\(server.port)", name: "loop"))
    }

    /// The connection, once it is as wanted.
    @discardableResult
    private func connection(
        _ awaited: String, where isWanted: (ConnectionsAPI.Connection) -> Bool
    ) async throws -> ConnectionsAPI.Connection {
        for _ in 0..<10_000 {
            let found = try await client.ask(ConnectionsAPI.List.self, .init()).connections.first
            if let found, isWanted(found) { return found }
        }
        throw NothingCame(description: "waited in vain for \(awaited)")
    }

    /// As many round trips as a call takes that is answered at once.
    private func othersHaveTheirTurn() async throws {
        for _ in 0..<3 { _ = try await client.ask(ConnectionsAPI.List.self, .init()) }
    }

    @Test func `one that waits for a flow gets the one that comes`() async throws {
        try await open(reachable: false)
        let call = Call(try fixture.client(), until: .flow)
        try await othersHaveTheirTurn()
        #expect(call.result == nil)
        fixture.network.becomeReachable()
        let flow = try await call.flow()
        #expect((flow.reply.epoch, flow.reply.connection.holder) == (1, .client))
    }

    @Test func `one that waits for data gets the flow when there is some`() async throws {
        try await open()
        try await connection("ready") { $0.state == .ready }
        let peer = End(try server.accept())
        let call = Call(try fixture.client(), until: .data)
        try await othersHaveTheirTurn()
        #expect(call.result == nil)
        expect(try await connection("listed") { _ in true }.holder, is: .daemon)
        #expect(peer.write("HELLO"))
        let flow = try await call.flow()
        #expect((flow.reply.epoch, flow.reply.isOver) == (1, false))
        #expect(flow.socket.read(9) == "HELLO")
    }

    @Test func `data that is there is not waited for, nor that of a flow that has ended`() async throws {
        try await open()
        try await connection("ready") { $0.state == .ready }
        let peer = End(try server.accept())
        server.refuse()
        #expect(peer.write("503"))
        peer.hangUp()
        try await connection("over") { $0.state == .backingOff }
        let flow = try await Call(try fixture.client(), until: .data).flow()
        #expect((flow.reply.epoch, flow.reply.isOver) == (1, true))
        #expect(flow.socket.read(9) == "503")
    }

    @Test func `the next in line gets the flow when it is parked`() async throws {
        try await open()
        try await connection("ready") { $0.state == .ready }
        let peer = try server.accept()
        defer { withExtendedLifetime(peer) {} }
        // Somebody else: who comes again as the same process is given what it has.
        let holder = try Sleeper()
        _ = try fixture.registry.take("loop", by: ProcessHandle(holder.process), for: geteuid())
        let call = Call(try fixture.client(), until: .flow)
        try await othersHaveTheirTurn()
        #expect(call.result == nil)
        try fixture.registry.park("loop", 1, for: geteuid())
        expect(try await call.flow().reply.epoch, is: 1)
    }

    @Test func `a client that is gone gets nothing, and the flow stays where it is`() async throws {
        try await open(reachable: false)
        let gone = try fixture.client()
        let call = Call(gone, until: .flow)
        try await othersHaveTheirTurn()
        try await fixture.hangUp(gone)
        expect(call.result) { if case .failure? = $0 { true } else { false } }
        fixture.network.becomeReachable()
        try await connection("ready") { $0.state == .ready }
        try await othersHaveTheirTurn()
        expect(try await connection("listed") { _ in true }.holder, is: .daemon)
    }

    @Test(.enabled(if: Client.obstacle == nil, Client.obstacle))
    func `who waits for one owner's connection watches no other's`() async throws {
        try await open(reachable: false)
        _ = try await fixture.client(.nobody).ask(
            ConnectionsAPI.Open.self, .init(remote: "tcp://192.0.2.7:1", name: "loop"))
        let call = Call(try fixture.client(), until: .flow)
        try await othersHaveTheirTurn()
        #expect(call.result == nil)
        let connections = fixture.registry.visible(to: 0)
        let watched = connections.filter { fixture.connections.isWatched($0, by: nil) }
        #expect(watched.map(\.owner) == [geteuid()])
        #expect(connections.count == 2)
    }

    @Test func `when the connection is closed, there is none to wait for`() async throws {
        try await open(reachable: false)
        let call = Call(try fixture.client(), until: .data)
        try await othersHaveTheirTurn()
        _ = try await client.ask(ConnectionsAPI.Close.self, .init(name: "loop"))
        await #expect(throws: VarlinkCallError.self) { _ = try await call.flow() }
        let unknown = Call(try fixture.client(), until: .flow)
        await #expect(throws: VarlinkCallError.self) { _ = try await unknown.flow() }
    }
}
