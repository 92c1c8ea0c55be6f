// SPDX-License-Identifier: Apache-2.0

import DialtoneExpectations
import DialtoneNetworkPath
import DialtonePlatform
import DialtoneTLSTestSupport
import DialtoneTestSupport
import Glibc
import Testing

@testable import DialtoneConnection
@testable import DialtoneConnectionIO

/// A client takes the flow, reads and writes it, and gives it back.
@AgentQueue
@Suite(.timeLimit(.minutes(1))) struct HandOverTests {
    let surroundings = Surroundings(.loopback())

    private func event(_ kind: ConnectionEvent.Kind) async -> ConnectionEvent? {
        await surroundings.events.next { $0.kind == kind }
    }

    /// A connection that is ready, and the server's end.
    private func ready(
        to server: LoopbackServer, heartbeat: Heartbeat? = nil,
        _ adjust: (inout ConnectionPolicy) -> Void = { _ in }
    ) async throws -> (ConnectionDriver, Peer) {
        let connection = try surroundings.connection(to: "tcp://\(server.endpoint)", heartbeat: heartbeat, adjust)
        let peer = try server.accept()
        _ = await surroundings.entered(.ready)
        return (connection, peer)
    }

    private func take(_ connection: ConnectionDriver, by process: KnownProcess? = nil) throws -> Client {
        do {
            return Client(try connection.take(by: process))
        } catch {
            Issue.record("\(error) after \(surroundings.events.all.map { "\($0)" }.joined(separator: "\n"))")
            throw error
        }
    }

    @Test func `a client reads and writes the very flow that the agent had`() async throws {
        let server = try LoopbackServer()
        let (connection, peer) = try await ready(to: server)
        peer.send("INVITE")
        expect(await event(.arrived)?.status.ownership?.holder, is: .daemon)
        let socket = try take(connection)
        #expect(socket.epoch == 1)
        expect(await event(.taken)?.status.ownership, is: FlowOwnership(reader: .unknown, session: .unknown))
        #expect(socket.isBlocking)
        #expect(socket.read(6) == "INVITE")
        #expect(socket.write("OK"))
        #expect(try peer.receive() == .bytes(2))
        connection.close()
    }

    @Test func `of a flow that an earlier process gave away nothing is known`() async throws {
        let server = try LoopbackServer()
        let socket = try server.listener.connect()
        let peer = try server.accept()
        peer.send("BYE")
        var byte: UInt8 = 0
        #expect(recv(socket.number, &byte, 1, 0) == 1)
        let adoption = Adoption(
            epoch: 1, local: try Endpoint.local(of: socket), remote: server.endpoint,
            ownership: FlowOwnership(reader: .unknown, session: .open))
        let connection = try surroundings.connection(to: "tcp://\(server.endpoint)")
        let flow = try Flow(adopting: socket, adoption, connection.policy.socketOptions, owner: connection)
        #expect(flow.touch == .unknown)
        // To the same process once more: it may be in the middle of a message.
        _ = try flow.handOver()
        #expect(flow.touch == .unknown)
        flow.close(aborting: false)
        connection.close()
    }

    @Test func `the answer to a keepalive that is there at the end wakes nobody`() async throws {
        let server = try LoopbackServer()
        surroundings.clientWakes.reasons = [.data]
        let connection = try surroundings.connection(
            to: "tcp://\(server.endpoint)",
            heartbeat: Heartbeat(.crlf, interval: .milliseconds(100), answerDeadline: .seconds(3600)))
        let peer = try server.accept()
        let heard = try peer.listen(toMessagesOf: 4)
        _ = await surroundings.entered(.ready)
        _ = try take(connection)
        try connection.park(1)
        expect(await heard.next(), is: "\r\n\r\n")
        let flow = try #require(connection.flows[1])
        while !flow.isDrained { try Task.checkCancellation() }
        peer.send("\r\n")
        while flow.unreadBytes < 2 { try Task.checkCancellation() }
        connection.redial()
        #expect(connection.standingWake == nil)
        connection.close()
    }

    @Test func `a keepalive that needs a session waits for the flow to be parked`() async throws {
        let server = try LoopbackServer()
        let heartbeat = Heartbeat(.whitespace, interval: .milliseconds(100), answerDeadline: .seconds(2))
        let (connection, peer) = try await ready(to: server, heartbeat: heartbeat)
        let heard = try peer.listen(toMessagesOf: 1)
        #expect(surroundings.wakes == 0)
        _ = try take(connection)
        #expect(surroundings.wakes == 0)
        try connection.park(1)
        expect(await heard.next(), is: " ")
        _ = try take(connection)
        #expect(surroundings.wakes == 0)
        connection.close()
    }

    @Test func `the client of a flow that is given up reads its end`() async throws {
        let server = try LoopbackServer()
        let (connection, peer) = try await ready(to: server)
        let socket = try take(connection)
        peer.send("LAST")
        connection.redial()
        #expect(socket.read(4) == "LAST")
        #expect(socket.read(1) == "")
        connection.close()
    }

    private static let client = KnownProcess(1)

    @Test func `what a client never touched is there for the next one and the flow is made anew`() async throws {
        let server = try LoopbackServer()
        let (connection, peer) = try await ready(to: server)
        peer.send("INVITE")
        _ = await event(.arrived)
        _ = try take(connection, by: Self.client)
        // Who lost the descriptor takes again.
        let lost = try take(connection, by: Self.client)
        connection.process(.processEnded(Self.client, .unseen))
        #expect(try peer.receive() == .closed)
        _ = await surroundings.entered(.ready)
        let left = try take(connection)
        #expect((left.epoch, left.isOver) == (1, true))
        #expect(left.read(6) == "INVITE")
        #expect(left.read(1) == "")
        #expect(lost.read(1) == "", "whoever else has a descriptor has no part in what comes next")
        #expect(try take(connection).epoch == 2)
        connection.close()
    }

    /// What the dead client does on the flow before it goes, and whether the flow goes on for the next one.
    enum Deed: CaseIterable {
        case nothing, reads, writes, endsItsStream
    }

    /// The program that is launched with the flow, on which something has arrived.
    private func program(of connection: ConnectionDriver) async throws -> Client {
        let launch = try #require(await surroundings.launches.next())
        connection.process(.launched(launch.attempt, Self.client))
        return try #require(launch.flow)
    }

    /// Has a program be launched for what arrives.
    private func launchPrograms() {
        surroundings.clientWakes.policy.means = [.exec]
        // Not again after a failure, as long as a test lasts.
        surroundings.clientWakes.policy.relaunchPauses.base = .seconds(600)
        surroundings.clientWakes.policy.relaunchPauses.ceiling = .seconds(600)
        surroundings.clientWakes.reasons = [.data]
        surroundings.clientWakes.isTended = true
    }

    @Test(arguments: Deed.allCases)
    func `the flow of a program that did nothing goes on`(deed: Deed) async throws {
        let server = try LoopbackServer()
        launchPrograms()
        let (connection, peer) = try await ready(to: server)
        peer.send("INVITE")
        let program = try await program(of: connection)
        switch deed {
        case .nothing: break
        case .reads:
            #expect(program.read(1) == "I")
            // Taken again, it has still been read.
            _ = try take(connection, by: Self.client)
        case .writes: #expect(program.write("O"))
        case .endsItsStream: shutdown(program.socket.number, CInt(SHUT_WR))
        }
        // Also what comes while it has the flow.
        peer.send("BYE")
        #expect(connection.unreadBytes == (deed == .reads ? 8 : 9))
        connection.process(.processEnded(Self.client, .exited(status: 1)))
        guard deed == .nothing else {
            expect(await surroundings.entered(.ready)?.status.epoch, is: 2)
            #expect(try take(connection).epoch == 2, "nobody knows what the rest is")
            return connection.close()
        }
        expect(await event(.abandoned)?.status.epoch, is: 1)
        let next = try take(connection)
        #expect((next.epoch, next.isOver) == (1, false))
        #expect(next.read(9) == "INVITEBYE")
        connection.close()
    }

    @Test(arguments: [true, false])
    func `with TLS the same counts`(reads: Bool) async throws {
        let server = try SecureServer(.init(whenHeard: { session in session.send(Array("re: HELLO".utf8)) }))
        launchPrograms()
        let connection = try surroundings.connection(to: server)
        _ = await surroundings.entered(.ready)
        let client = try take(connection)
        #expect(client.write("HELLO"))
        try connection.park(1)
        let program = try await program(of: connection)
        if reads { expect(try await program.readWhenItComes(3), is: "re:") }
        connection.process(.processEnded(Self.client, .exited(status: 1)))
        if reads {
            expect(await surroundings.entered(.ready)?.status.epoch, is: 2)
        } else {
            #expect(connection.unreadBytes == 9)
            #expect(try take(connection).read(9) == "re: HELLO")
        }
        connection.close()
    }

    @Test func `or it is kept where the policy says so`() async throws {
        let server = try LoopbackServer()
        let (connection, peer) = try await ready(to: server) { $0.keepsAbandonedFlow = true }
        _ = try take(connection, by: Self.client)
        connection.process(.processEnded(Self.client, .unseen))
        expect(await event(.abandoned)?.status.ownership, is: FlowOwnership(reader: nil, session: .unknown))
        peer.send("STILL HERE")
        _ = await event(.arrived)
        #expect(connection.status.epoch == 1)
        connection.close()
    }

    /// A connection that begins with a flow which a client made, and the server's end.
    private func adopted(_ scheme: String, by server: LoopbackServer) throws -> (ConnectionDriver, Peer) {
        let socket = try server.listener.connect()
        let peer = try server.accept()
        let adoption = Adoption(local: try Endpoint.local(of: socket), remote: server.endpoint)
        return (try surroundings.connection(to: "\(scheme)://\(server.endpoint)", adopting: socket, adoption), peer)
    }

    @Test(arguments: [("mqtt", 1), ("mqtts", 0)])
    func `the agent says nothing within TLS that the client brought`(scheme: String, keepalives: Int) throws {
        let server = try LoopbackServer()
        let (connection, _) = try adopted(scheme, by: server)
        #expect(connection.status.ownership == .parked)
        #expect(surroundings.wakes == keepalives)
        // Asked for a proof, it has the kernel probe.
        connection.resumed()
        #expect(connection.status.state == .verifying)
        _ = try take(connection)
        try connection.park(1)
        #expect(surroundings.wakes == keepalives)
        connection.close()
    }

    // MARK: - Answers to keepalives

    private static let heartbeat = Heartbeat(.crlf, interval: .milliseconds(100), answerDeadline: .seconds(600))

    /// A parked connection, its server's end, and a keepalive on its way whose answer has not come.
    private func pinging(_ server: LoopbackServer) async throws -> (ConnectionDriver, Peer) {
        let (connection, peer) = try await ready(to: server, heartbeat: Self.heartbeat)
        _ = try take(connection)
        try connection.park(1)
        _ = await event(.parked)
        let heard = try peer.listen(toMessagesOf: 4)
        expect(await heard.next(), is: "\r\n\r\n")
        return (connection, peer)
    }

    @Test func `an answer that came with the flow's end is nothing for its client`() async throws {
        let server = try LoopbackServer()
        let (connection, peer) = try await pinging(server)
        // In one turn, so that nobody has seen it when the flow is closed.
        peer.send("\r\n")
        // A busy kernel delivers it a moment later.
        for _ in 0..<1_000_000 {
            if connection.unreadBytes == 2 { break }
            sched_yield()
        }
        #expect(connection.unreadBytes == 2)
        connection.redial()
        expect(await surroundings.entered(.ready)?.status.epoch, is: 2)
        expect(try take(connection).epoch, is: 2)
        connection.close()
    }

    @Test func `nor is it where a better flow comes in the same turn`() async throws {
        let server = try LoopbackServer()
        let (connection, peer) = try await pinging(server)
        // The new flow's connect is told first.
        surroundings.path = .loopback(source: IPAddress(v4: 0x7F00_0009))
        peer.send("\r\n")
        let told = await surroundings.events.next { $0.kind == .arrived || $0.status.epoch == 2 }
        #expect(told?.kind == .stateChanged)
        expect(try take(connection).epoch, is: 2)
        connection.close()
    }

    // MARK: - TLS

    @Test func `with TLS the client gets plaintext and nothing is lost while nobody reads`() async throws {
        let server = try SecureServer(
            .init(whenHeard: { session in session.send(Array("re: ".utf8) + session.received.suffix(5)) }))
        let connection = try surroundings.connection(to: server)
        _ = await surroundings.entered(.ready)
        let socket = try take(connection)
        #expect(socket.write("HELLO"))
        expect(try await socket.readWhenItComes(9), is: "re: HELLO")
        // Parked, what comes stays with the session.
        #expect(socket.write("AGAIN"))
        #expect(fcntl(socket.socket.number, F_SETFL, O_NONBLOCK) == 0)
        try connection.park(1)
        _ = await event(.arrived)
        #expect(connection.unreadBytes == 9)
        let again = try take(connection)
        #expect(again.isBlocking, "whatever the client before left")
        #expect(again.read(9) == "re: AGAIN")
        connection.close()
        #expect(again.read(1) == "")
    }
}

/// The client's end of a flow that it took.
@AgentQueue
final class Client {
    let epoch: UInt64
    let isOver: Bool
    let socket: End

    init(_ flow: consuming HandedFlow) {
        (epoch, isOver) = (flow.epoch, flow.isOver)
        socket = End(flow.release())
    }

    var isBlocking: Bool { fcntl(socket.number, F_GETFL) & O_NONBLOCK == 0 }

    /// The next bytes, up to so many; waits for the first.
    func read(_ count: Int) -> String { socket.read(count) }

    /// The same, while the agent's queue goes on.
    func readWhenItComes(_ count: Int) async throws -> String {
        let arrivals = Inbox<Void>()
        let watch = try Poller.shared.register(socket.number, .readable) { _ in arrivals.put(()) }
        _ = await arrivals.next()
        watch.cancel()
        return read(count)
    }

    func write(_ text: String) -> Bool { socket.write(text) }
}
