// SPDX-License-Identifier: Apache-2.0

import DialtoneAPI
import DialtoneConnection
import DialtoneConnectionIO
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

/// Flows that change hands over the socket, with a server that is real.
@Suite(.timeLimit(.minutes(2))) @AgentQueue
struct HandoverServiceTests {
    let fixture = ServiceFixture()
    let server: LoopbackListener
    let client: VarlinkConnection
    let events: VarlinkReplies<ConnectionsAPI.Monitor>
    private let peers = Peers()

    init() throws {
        server = try LoopbackListener()
        fixture.network.becomeReachable()
        client = try fixture.client()
        events = try fixture.client().monitor()
    }

    /// A connection that is ready, and the server's end of it.
    private func ready(_ name: String = "loop") async throws -> End {
        _ = try await client.ask(
            ConnectionsAPI.Open.self, .init(remote: "tcp://127.0.0.1:\(server.port)", name: name))
        _ = try await connection { $0.state == .ready }
        let peer = End(try server.accept())
        peers.all.append(peer)
        return peer
    }

    /// The connection, as soon as it is as wanted.
    @discardableResult
    private func connection(
        where isWanted: (ConnectionsAPI.Connection) -> Bool
    ) async throws -> ConnectionsAPI.Connection {
        while true {
            if let found = try await events.one().connections.first, isWanted(found) { return found }
        }
    }

    private func park(_ epoch: Int, _ name: String = "loop") async throws {
        _ = try await client.ask(ConnectionsAPI.Park.self, .init(name: name, epoch: epoch))
    }

    @Test func `a client reads and writes the flow that it took, and gives it back`() async throws {
        let peer = try await ready()
        let flow = try await client.take()
        #expect(flow.reply.epoch == 1)
        #expect(flow.reply.connection.holder == .client)
        #expect(flow.reply.connection.session == .unknown)
        #expect(flow.socket.write("REGISTER"))
        #expect(peer.read(8) == "REGISTER")
        try await park(1)
        let parked = try await connection { $0.holder == .daemon && $0.session == .open }
        #expect(parked.epoch == 1)
        #expect(peer.write("MESSAGE"))
        expect(try await connection { $0.unreadBytes == 7 || $0.holder == .daemon }.session, is: .open)
        expect(try await client.take().socket.read(7), is: "MESSAGE")
    }

    @Test func `whoever parks a flow that is over is told which one took its place`() async throws {
        _ = try await ready()
        _ = try await client.take()
        _ = try await client.ask(ConnectionsAPI.Redial.self, .init(name: "loop"))
        _ = try await connection { $0.state == .ready && $0.epoch == 2 }
        let refusal: ConnectionsAPI.StaleEpoch = try await client.refusal(
            of: ConnectionsAPI.Park.self, .init(name: "loop", epoch: 1))
        #expect(refusal.epoch == 2)
        let early: ConnectionsAPI.NotTaken = try await client.refusal(
            of: ConnectionsAPI.Park.self, .init(name: "loop", epoch: 2))
        #expect(early.name == "loop")
    }

    @Test func `there is nothing to take before a flow stands`() async throws {
        fixture.network.path = Path(status: .unsatisfied, reason: .noRoute)
        _ = try await client.ask(ConnectionsAPI.Open.self, .init(remote: "tcp://127.0.0.1:\(server.port)", name: "x"))
        let refusal: ConnectionsAPI.NotReady = try await client.refusal(
            of: ConnectionsAPI.Take.self, .init(name: "x"))
        #expect(refusal.state == .waiting)
    }

    @Test func `a socket that a client brings is supervised`() async throws {
        let socket = try server.connect()
        let peer = End(try server.accept())
        let descriptors = VarlinkDescriptors()
        let place = descriptors.append(socket)
        let result: Result<VarlinkAnswer<ConnectionsAPI.Adopt>, VarlinkCallError> =
            try await answer("the adoption") { done in
                client.callWithDescriptors(
                    ConnectionsAPI.Adopt.self, .init(name: "brought", fileDescriptor: place), descriptors, done)
            }
        #expect(try result.get().reply.name == "brought")
        let brought = try await connection { $0.name == "brought" && $0.state == .ready }
        #expect(brought.session == .open)
        #expect(brought.remoteAddress == "127.0.0.1:\(server.port)")
        #expect(peer.write("INVITE"))
        expect(try await client.take("brought").socket.read(6), is: "INVITE")
        try await park(1, "brought")
        // With nowhere to dial it ends with its flow, and is there until its client has read the rest.
        #expect(peer.write("BYE"))
        _ = try await connection { $0.unreadBytes == nil }
        peer.hangUp()
        _ = try await connection { $0.state == .closed }
        let rest = try await client.take("brought")
        #expect(rest.reply.isOver)
        #expect(rest.socket.read(3) == "BYE")
        let refusal: ConnectionsAPI.NoSuchConnection = try await client.refusal(
            of: ConnectionsAPI.Take.self, .init(name: "brought"))
        #expect(refusal.name == "brought")
    }

    // MARK: - Processes

    /// The flow is what a process does with it: it is given back when the process ends without having parked it.
    @Test func `the end of the process that has a flow is seen`() async throws {
        _ = try await ready()
        let holder = try Sleeper()
        let process = try ProcessHandle(holder.process)
        _ = try fixture.registry.take("loop", by: process, for: 0)
        let refusal: ConnectionsAPI.HeldByClient = try await client.refusal(
            of: ConnectionsAPI.Take.self, .init(name: "loop"))
        #expect(refusal.process == Int(holder.process))
        holder.end()
        let anew = try await connection { $0.state == .ready && $0.epoch == 2 }
        #expect(anew.holder == .daemon)
        #expect(anew.session == .none)
    }

    /// Before the agent has heard of the end: nobody reads on where the dead one stopped.
    @Test func `a flow whose holder has just ended is not passed on`() async throws {
        let peer = try await ready()
        let holder = try Sleeper()
        let process = try ProcessHandle(holder.process)
        let flow = try fixture.registry.take("loop", by: process, for: 0)
        #expect(peer.write("half a message"))
        var byte: UInt8 = 0
        #expect(recv(flow.descriptor.number, &byte, 1, 0) == 1)
        holder.end()
        #expect(throws: RegistryError.notReady(.connecting)) {
            _ = try fixture.registry.take("loop", by: nil, for: 0)
        }
        _ = try await connection { $0.state == .ready && $0.epoch == 2 }
        #expect(try fixture.registry.take("loop", by: nil, for: 0).epoch == 2)
    }
}

/// The server's ends of the flows of a test, open until it is over.
@AgentQueue
private final class Peers {
    var all: [End] = []
}
