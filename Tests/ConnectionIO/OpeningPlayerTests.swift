// SPDX-License-Identifier: Apache-2.0

import DialtoneExpectations
import DialtonePlatform
import DialtoneTLSTestSupport
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
        to server: borrowing LoopbackServer, _ opening: Opening = login
    ) throws -> ConnectionDriver {
        try surroundings.connection(to: "tcp://\(server.endpoint)") { $0.opening = opening }
    }

    private func read(_ flow: consuming HandedFlow, _ count: Int) -> String {
        let socket = flow.release()
        var buffer = [UInt8](repeating: 0, count: count)
        let got = recv(socket.number, &buffer, count, CInt(MSG_WAITALL))
        return String(decoding: buffer.prefix(max(got, 0)), as: UTF8.self)
    }

    @Test func `it logs in and leaves the rest to the client`() async throws {
        let server = try LoopbackServer()
        let connection = try connection(to: server)
        let peer = try server.accept()
        expect(await surroundings.entered(.ready)?.status.ownership?.session, is: .opening)
        #expect(throws: TakeFailure.self) { _ = try connection.take() }
        let heard = try peer.listen(toMessagesOf: 5)
        expect(await heard.next(), is: "LOGIN")
        peer.send("20")
        peer.send("0 OK\nHEL")
        expect(await event(.sessionOpened)?.status.ownership, is: .parked)
        expect(await event(.arrived)) { $0 != nil }
        peer.send("LO")
        #expect(read(try connection.take(), 5) == "HELLO")
        connection.close()
    }

    @Test func `what the server refused with is there for the client`() async throws {
        let server = try LoopbackServer()
        let connection = try connection(to: server)
        let peer = try server.accept()
        peer.send("500 NO\n")
        let failed = await event(.openingFailed)
        #expect(failed?.reason == .openingFailed(.init(step: 1, cause: .mismatch)))
        #expect(failed?.status.ownership?.session == FlowOwnership.Session.none)
        #expect(read(try connection.take(), 7) == "500 NO\n")
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

    @Test func `a server that hangs up in the middle is dialled anew and nobody is called`() async throws {
        let server = try LoopbackServer()
        let connection = try connection(to: server)
        try server.accept().close()
        let told = await surroundings.events.next {
            $0.kind == .openingFailed || $0.status.state == .backingOff
        }
        #expect(told?.status.state == .backingOff)
        #expect(told?.kind == .stateChanged)
        connection.close()
    }

    @Test func `one step follows the other`() async throws {
        let line = ExpectedAnswer(.delimiter([10]))
        let server = try LoopbackServer()
        let connection = try connection(
            to: server,
            Opening([
                .init(answer: line), .init(send: Array("USER!".utf8), answer: line),
                .init(send: Array("PASS!".utf8), answer: line), .init(send: Array("HERE!".utf8), answer: nil),
            ]))
        let peer = try server.accept()
        let heard = try peer.listen(toMessagesOf: 5)
        peer.send("ready\n")
        expect(await heard.next(), is: "USER!")
        peer.send("password?\n")
        expect(await heard.next(), is: "PASS!")
        // The answer to the last question and what comes unasked, in one segment.
        peer.send("welcome\nnews\n")
        expect(await heard.next(), is: "HERE!")
        _ = await event(.sessionOpened)
        #expect(read(try connection.take(), 5) == "news\n")
        connection.close()
    }

    @Test func `what a sleeping client did not read is kept after the flow's end`() async throws {
        let server = try LoopbackServer()
        let connection = try connection(to: server)
        let peer = try server.accept()
        peer.send("OK\nNEWS\n")
        _ = await event(.sessionOpened)
        _ = await event(.arrived)
        peer.close()
        _ = await surroundings.entered(.backingOff)
        let flow = try connection.take()
        let isOver = flow.isOver
        #expect(isOver)
        #expect(read(flow, 5) == "NEWS\n")
        connection.close()
    }

    @Test func `what a client leaves is played on the next flow`() async throws {
        let server = try LoopbackServer()
        let connection = try surroundings.connection(to: "tcp://\(server.endpoint)")
        let first = try server.accept()
        _ = await surroundings.entered(.ready)
        _ = try connection.take()
        try connection.park(1, leaving: Self.login)
        // It dials again by itself, within its first wait: a dial that is asked for besides could come after that.
        first.close()
        _ = await surroundings.entered(.backingOff)
        _ = await surroundings.entered(.ready)
        let peer = try server.accept()
        let heard = try peer.listen(toMessagesOf: 5)
        expect(await heard.next(), is: "LOGIN")
        peer.send("OK\n")
        expect(await event(.sessionOpened)?.status.epoch, is: 2)
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
        _ = await event(.openingFailed)
        _ = try connection.take(by: KnownProcess(1))
        #expect(connection.flows[1]?.touch == .untouched)
        connection.process(.processEnded(KnownProcess(1), .unseen))
        try #require(connection.connection.ownership.isWaiting)
        #expect(read(try connection.take(by: KnownProcess(2)), 7) == "500 NO\n")
        connection.close()
    }
}
