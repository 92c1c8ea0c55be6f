// SPDX-License-Identifier: Apache-2.0

import DialtoneExpectations
import DialtoneNetworkPath
import DialtonePlatform
import DialtoneTLSTestSupport
import DialtoneTestSupport
import Synchronization
import Testing

@testable import DialtoneConnection
@testable import DialtoneConnectionIO

/// What a connection makes of answers and of silence, on real sockets.
@AgentQueue
@Suite(.timeLimit(.minutes(1))) struct LivenessTests {
    private nonisolated static let ping = "\r\n\r\n"
    private nonisolated static let pong = "\r\n"

    let surroundings = Surroundings(.loopback())

    @Test func `a server that stops answering loses the flow at the deadline`() async throws {
        let server = try LoopbackServer()
        let heartbeat = Heartbeat(.crlf, interval: .milliseconds(100), answerDeadline: .seconds(2))
        let connection = try surroundings.connection(to: "tcp://\(server.endpoint)", heartbeat: heartbeat)
        let peer = try server.accept()
        await peer.answer(messageOf: 4, with: Self.pong)
        let heard = try peer.listen(toMessagesOf: 4)
        expect(await heard.next(), is: Self.ping, "\(surroundings.events.all)")
        let lost = await surroundings.entered(.backingOff)
        #expect(lost?.reason == .unanswered)
        #expect(lost?.previousState == .ready)
        connection.close()
    }

    /// A process that was stopped, or did not get the processor, finds an answer and its deadline at the same time.
    @Test func `an answer that lies there at the deadline counts`() async throws {
        let server = try LoopbackServer()
        let (connection, peer) = try await pinged(server)
        answer(connection, by: peer)
        connection.keepaliveSender.lookForProof()
        #expect(connection.unreadBytes == 0, "it is no message for the client")
        connection.close()
    }

    @Test func `an answer that lies there encrypted counts too`() async throws {
        let isHeard = Atomic(false)
        let server = try SecureServer(
            .init(whenHeard: { session in
                isHeard.store(true, ordering: .relaxed)
                session.send(Array(Self.pong.utf8))
            }))
        let connection = try surroundings.connection(to: server) { $0.heartbeat = Heartbeat(.crlf) }
        _ = await surroundings.entered(.ready)
        let begin = connection.connection.status.lastProof
        // In one turn: nobody is told that something has come. It lasts until the handshake is acknowledged, after
        // which the keepalive is sent, and until it is answered.
        let limit = BootClock.now() + .seconds(30)
        while connection.connection.status.lastProof == begin, BootClock.now() < limit {
            if !isHeard.load(ordering: .relaxed) { connection.keepaliveSender.beat(1) }
            connection.keepaliveSender.lookForProof()
        }
        #expect(connection.connection.status.lastProof != begin)
        #expect(connection.unreadBytes == 0)
        connection.close()
    }

    /// A connection whose keepalive has come to the server, which has not answered it.
    private func pinged(_ server: LoopbackServer) async throws -> (ConnectionDriver, Peer) {
        let connection = try surroundings.connection(to: "tcp://\(server.endpoint)", heartbeat: Heartbeat(.crlf))
        let peer = try server.accept()
        _ = await surroundings.entered(.ready)
        connection.keepaliveSender.beat(1)
        #expect(try peer.receive() == .bytes(4))
        return (connection, peer)
    }

    /// Sends an answer and waits until it is there, in one turn: nobody is told of it.
    private func answer(_ connection: ConnectionDriver, by peer: Peer) {
        peer.send(Self.pong)
        while connection.unreadBytes != 2, !Task.isCancelled {}
    }

    @Test func `an answer is the proof that the status shows`() async throws {
        let server = try LoopbackServer()
        let connection = try surroundings.connection(
            to: "tcp://\(server.endpoint)", heartbeat: Heartbeat(.crlf, interval: .milliseconds(100)))
        let peer = try server.accept()
        let heard = try peer.listen(toMessagesOf: 4)
        _ = await surroundings.entered(.ready)
        expect(await heard.next(), is: Self.ping)
        let sent = BootClock.now()
        peer.send(Self.pong)
        // The next one is sent when the answer was read.
        expect(await heard.next(), is: Self.ping)
        #expect(try #require(connection.status.lastProof) >= sent - Flow.acknowledgementGranularity)
        connection.close()
    }

    @Test func `whatever comes is heard from the server`() async throws {
        let server = try LoopbackServer()
        let connection = try surroundings.connection(to: "tcp://\(server.endpoint)")
        let peer = try server.accept()
        _ = await surroundings.entered(.ready)
        // Longer than the kernel's counting is coarse: what was heard of the dial must not do.
        try await Task.sleep(for: Flow.acknowledgementGranularity * 3)
        let sent = BootClock.now()
        peer.send(Self.pong)
        while connection.unreadBytes != 2, !Task.isCancelled { await Task.yield() }
        let heard = try #require(connection.status.lastProof)
        #expect(heard >= sent - Flow.acknowledgementGranularity, "\(heard), and sent at \(sent)")
        connection.close()
        peer.close()
    }

    @Test func `after a resume the keepalive is sent at once and its answer verifies`() async throws {
        let server = try LoopbackServer()
        // In two minutes, but for the resume.
        let connection = try surroundings.connection(to: "tcp://\(server.endpoint)", heartbeat: Heartbeat(.crlf))
        let peer = try server.accept()
        let heard = try peer.listen(toMessagesOf: 4)
        _ = await surroundings.entered(.ready)
        connection.resumed()
        expect(await surroundings.entered(.verifying)?.reason, is: .resumed)
        expect(await heard.next(), is: Self.ping)
        // On a busy machine the kernel's acknowledgement may have been looked for by now, which proves as much.
        peer.send(Self.pong)
        let verified = await surroundings.entered(.ready)
        #expect(verified?.reason == .verified)
        #expect(verified?.status.epoch == 1)
        connection.close()
    }

    /// In one turn, before the kernel can say that what is sent after the resume has arrived.
    @Test func `what was sent before the resume proves nothing`() async throws {
        let server = try LoopbackServer()
        let (connection, peer) = try await pinged(server)
        // It lies there while the machine sleeps.
        answer(connection, by: peer)
        connection.resumed()
        connection.keepaliveSender.sortInput(on: 1)
        #expect(connection.unreadBytes == 0)
        #expect(connection.status.state == .verifying, "\(surroundings.events.all)")
        expect(await surroundings.entered(.ready)?.reason, is: .verified)
        connection.close()
    }

    @Test func `a silent line is verified by the kernels probe`() async throws {
        let server = try LoopbackServer()
        let connection = try surroundings.connection(to: "tcp://\(server.endpoint)")
        let peer = try server.accept()
        _ = await surroundings.entered(.ready)
        surroundings.path = .loopback(gateway: .nobodys)
        expect(await surroundings.entered(.verifying)?.reason, is: .pathMoved)
        let verified = await surroundings.entered(.ready)
        #expect(verified?.reason == .verified)
        #expect(verified?.status.epoch == 1)
        // Not a byte of the stream.
        #expect(peer.everything() == "")
        connection.close()
    }

    @Test func `a line that loses everything is given up and dialled anew`() async throws {
        let server = try LoopbackServer()
        let connection = try surroundings.connection(to: "tcp://\(server.endpoint)")
        let peer = try server.accept()
        _ = await surroundings.entered(.ready)
        try peer.loseEverything()
        connection.resumed()
        expect(await surroundings.entered(.verifying)?.status.epoch, is: 1)
        let lost = await surroundings.entered(.connecting)
        #expect(lost?.reason == .unverified)
        #expect(lost?.previousState == .verifying)
        expect(await surroundings.entered(.ready)?.status.epoch, is: 2)
        _ = try server.accept()
        connection.close()
    }
}
