// SPDX-License-Identifier: Apache-2.0

import DialtoneExpectations
import DialtonePlatform
import DialtoneTLSTestSupport
import DialtoneTestSupport
import Glibc
import Testing

@testable import DialtoneConnection
@testable import DialtoneConnectionIO

/// Logging in for a client on real sockets.
@AgentQueue
@Suite(.timeLimit(.minutes(1))) struct OpeningPlayerTests {
    let surroundings = Surroundings(.loopback())

    /// Says `LOGIN` and expects a line with `OK` in it.
    private static let login = Opening([
        .init(send: Array("LOGIN".utf8), answer: ExpectedAnswer(.delimiter([10]), content: Array("OK".utf8)))
    ])

    private func event(_ kind: ConnectionEvent.Kind) async -> ConnectionEvent? {
        await surroundings.events.next { $0.kind == kind }
    }

    private func connection(
        to server: LoopbackServer, _ opening: Opening = login
    ) throws -> ConnectionDriver {
        try surroundings.connection(to: "tcp://\(server.endpoint)") { $0.opening = opening }
    }

    private func read(_ flow: consuming HandedFlow, _ count: Int) -> String {
        let socket = flow.release()
        var buffer = [UInt8](repeating: 0, count: count)
        let got = recv(socket.number, &buffer, count, CInt(MSG_WAITALL))
        return String(decoding: buffer.prefix(max(got, 0)), as: UTF8.self)
    }

    @Test func `it logs in step by step and leaves the rest to the client`() async throws {
        let server = try LoopbackServer()
        let greeting = Opening.Step(answer: ExpectedAnswer(.delimiter([10])))
        let last = Opening.Step(send: Array("HERE!".utf8), answer: nil)
        let connection = try connection(to: server, Opening([greeting] + Self.login.steps + [last]))
        let peer = try server.accept()
        expect(await surroundings.entered(.ready)?.status.ownership?.session, is: .opening)
        #expect(throws: TakeFailure.self) { _ = try connection.take() }
        let heard = try peer.listen(toMessagesOf: 5)
        peer.send("ready\n")
        expect(await heard.next(), is: "LOGIN")
        peer.send("20")
        // The end of the answer and what comes unasked, in one segment.
        peer.send("0 OK\nHEL")
        expect(await heard.next(), is: "HERE!")
        expect(await event(.sessionOpened)?.status.ownership, is: .parked)
        expect(await event(.arrived)) { $0 != nil }
        peer.send("LO")
        #expect(read(try connection.take(), 5) == "HELLO")
        connection.close()
    }

    @Test func `a server that refuses and hangs up at once is heard in that order`() async throws {
        let server = try LoopbackServer()
        let connection = try connection(to: server)
        let peer = try server.accept()
        let heard = try peer.listen(toMessagesOf: 5)
        _ = await heard.next()
        peer.send("500 NO\n")
        peer.close()
        let told = await surroundings.events.next {
            $0.kind == .openingFailed || $0.status.state == .failed
        }
        #expect(told?.kind == .openingFailed)
        expect(await surroundings.entered(.failed)?.status.attempt, is: 2)
        connection.close()
    }

    @Test func `a send that finds no room is finished when there is some`() async throws {
        let server = try LoopbackServer()
        let listener = Listener()
        let flow = try Flow(.to(server.endpoint), owner: listener)
        let peer = try server.accept()
        _ = await listener.next()
        // As little as the kernel allows, and what fills it.
        var least: CInt = 1
        setsockopt(flow.number ?? -1, SOL_SOCKET, SO_SNDBUF, &least, socklen_t(MemoryLayout<CInt>.size))
        var filled = 0
        while true {
            let count = flow.sendPart([UInt8](repeating: 0x2E, count: 8192)[...])
            if count == 0 { break }
            filled += count
        }
        let outcomes = Inbox<Bool>()
        let send = [UInt8](repeating: 0x21, count: 30_000)
        let player = OpeningPlayer(
            Opening([.init(send: send, answer: ExpectedAnswer(BytePattern([0x4B])))]), on: flow
        ) { outcome in
            switch outcome {
            case .answered: break
            case .opened: outcomes.put(true)
            case .failed: outcomes.put(false)
            }
        }
        player.goOn()
        let received = try await peer.receive(filled + send.count)
        let isWhole = received.suffix(send.count).elementsEqual(send)
        #expect(isWhole)
        peer.send("K")
        expect(await outcomes.next(), is: true)
        flow.close(aborting: false)
    }

    // MARK: - TLS

    private func connection(to server: SecureServer, _ opening: Opening = login) throws -> ConnectionDriver {
        try surroundings.connection(to: server) {
            $0.opening = opening
        }
    }

    @Test func `with TLS an answer may stand in several records and what follows is kept`() async throws {
        let server = try SecureServer(
            .init(whenHeard: { session in
                guard session.received == Array("LOGIN".utf8) else {
                    return session.send(Array("LO".utf8))
                }
                for part in ["20", "0 ", "OK\nH", "EL"] { session.send(Array(part.utf8)) }
            }))
        let connection = try connection(to: server)
        expect(await event(.sessionOpened)?.status.ownership, is: .parked)
        _ = await event(.arrived)
        let client = Peer(descriptor: try connection.take().release())
        client.send("?")
        expect(try await client.receive(5), is: Array("HELLO".utf8))
        connection.close()
    }

    @Test func `with TLS an endless answer is not held for ever`() async throws {
        let server = try SecureServer(
            .init(whenHeard: { session in
                for _ in 0..<40 { session.send([UInt8](repeating: 0x41, count: 1000)) }
            }))
        let connection = try connection(to: server)
        expect(await event(.openingFailed)?.reason, is: .openingFailed(.init(step: 1, cause: .tooLong)))
        connection.close()
    }

    @Test func `a refusal that its taker never read is there for the next`() async throws {
        let server = try LoopbackServer()
        let connection = try connection(to: server)
        let peer = try server.accept()
        peer.send("500 NO\n")
        expect(await event(.openingFailed)?.reason, is: .openingFailed(.init(step: 1, cause: .mismatch)))
        _ = try connection.take(by: KnownProcess(1))
        #expect(connection.flows[1]?.touch == .untouched)
        connection.process(.processEnded(KnownProcess(1), .unseen))
        try #require(connection.connection.ownership.isWaiting)
        #expect(read(try connection.take(by: KnownProcess(2)), 7) == "500 NO\n")
        connection.close()
    }
}
