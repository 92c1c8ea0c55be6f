// SPDX-License-Identifier: Apache-2.0

import DialtoneExpectations
import DialtoneNetworkPath
import DialtonePlatform
import DialtoneTLS
import DialtoneTLSTestSupport
import DialtoneTestSupport
import Glibc
import Testing

@testable import DialtoneConnection
@testable import DialtoneConnectionIO

/// Keepalives on real sockets: what is sent, what of the answer is read, and what the kernel is asked.
@AgentQueue
@Suite(.timeLimit(.minutes(1))) struct KeepaliveSenderTests {
    private static let ping = "\r\n\r\n"
    private static let pong = "\r\n"
    /// For servers that answer none: the next one goes out all the same. Shorter than any that a user may choose.
    private static let brisk = Heartbeat(.crlf, interval: .milliseconds(100), answerDeadline: .milliseconds(50))

    /// For servers that answer, however long this machine takes over that.
    private static let patient = Heartbeat(.crlf, interval: .milliseconds(100), answerDeadline: .seconds(3600))

    private let wakes = CoalescedTimers()

    // MARK: - The protocol's keepalive

    @Test func `the answer is read and nothing behind it`() async throws {
        let fixture = try await Fixture(wakes)
        fixture.keepaliveSender.keepAlive(fixture.flow, Self.patient)
        expect(await fixture.heard.next(), is: Self.ping)
        fixture.peer.send(Self.pong + "INVITE")
        expect(await fixture.words.next(), is: .probeSent(epoch: 1))
        expect(await fixture.words.next(), is: .answered(epoch: 1, count: 1))
        #expect(fixture.unread == "INVITE")
        fixture.close()
    }

    @Test func `an answer in pieces is left until it is whole`() async throws {
        let fixture = try await Fixture(wakes)
        fixture.keepaliveSender.keepAlive(fixture.flow, Self.patient)
        expect(await fixture.heard.next(), is: Self.ping)
        expect(await fixture.words.next(), is: .probeSent(epoch: 1))
        fixture.peer.send("\r")
        #expect(fixture.unread == "\r")
        fixture.peer.send("\n")
        expect(await fixture.words.next(), is: .answered(epoch: 1, count: 1))
        #expect(fixture.unread == "")
        fixture.close()
    }

    @Test func `one that nobody answered is sent again all the same`() async throws {
        let fixture = try await Fixture(wakes)
        fixture.keepaliveSender.keepAlive(fixture.flow, Self.brisk)
        // The NAT on the way must not forget the flow, whatever the server thinks of blank lines.
        for _ in 1...3 {
            expect(await fixture.heard.next(), is: Self.ping)
            expect(await fixture.words.next(), is: .probeSent(epoch: 1))
        }
        fixture.close()
    }

    @Test func `bytes of the client hide the answer and the kernel is asked`() async throws {
        let fixture = try await Fixture(wakes)
        fixture.keepaliveSender.keepAlive(fixture.flow, Self.patient)
        expect(await fixture.heard.next(), is: Self.ping)
        fixture.peer.send("OPTIONS" + Self.pong)
        expect(await fixture.words.next(), is: .probeSent(epoch: 1))
        expect(await fixture.words.next(), is: .answerHidden(epoch: 1))
        #expect(fixture.kernelIdleTime == 1)
        guard case .acknowledged(1, _)? = await fixture.words.next() else {
            Issue.record("not acknowledged")
            return
        }
        #expect(fixture.kernelIdleTime == 120)
        #expect(fixture.unread == "OPTIONS" + Self.pong)
        fixture.close()
    }

    @Test func `nothing is sent over bytes that the client has not read`() async throws {
        let (quiet, witness) = (try await Fixture(wakes), try await Fixture(wakes))
        quiet.peer.send("INVITE")
        quiet.keepaliveSender.keepAlive(quiet.flow, Self.brisk)
        witness.keepaliveSender.keepAlive(witness.flow, Self.brisk)
        for _ in 1...2 { expect(await witness.heard.next(), is: Self.ping) }
        // Their windows end together, so they share a wake.
        #expect(quiet.peer.everything() == "")
        #expect(quiet.unread == "INVITE")
        quiet.close()
        witness.close()
    }

    @Test func `what nothing answers is sent and awaits nothing`() async throws {
        let fixture = try await Fixture(wakes, length: 5)
        let hello = KeepaliveProtocol.custom(send: Array("NOOP\n".utf8), expect: [])
        fixture.keepaliveSender.keepAlive(fixture.flow, Heartbeat(hello, interval: .milliseconds(100)))
        for _ in 1...2 { expect(await fixture.heard.next(), is: "NOOP\n") }
        // Only the kernel can be asked whether it arrived.
        fixture.keepaliveSender.probe(fixture.flow)
        guard case .acknowledged(1, _)? = await fixture.words.next() else {
            Issue.record("told of something else")
            return
        }
        fixture.close()
    }

    /// The answer may come in two records.
    @Test(arguments: [["\r\nINVITE"], ["\r", "\nINVITE"]])
    func `over TLS the answer is read and nothing behind it`(records: [String]) async throws {
        let server = try SecureServer(
            .init(whenHeard: { session in for record in records { session.send(Array(record.utf8)) } }))
        let fixture = try await Fixture(wakes, server)
        fixture.keepaliveSender.keepAlive(fixture.flow, Self.patient)
        expect(await fixture.words.next(), is: .probeSent(epoch: 1))
        expect(await fixture.words.next(), is: .answered(epoch: 1, count: 1))
        #expect(fixture.unread == "INVITE")
        fixture.close()
    }

    @Test func `over TLS the end behind an answer is told`() async throws {
        let server = try SecureServer(
            .init(whenHeard: { session in
                session.send(Array("\r\n".utf8))
                session.close()
            }))
        let fixture = try await Fixture(wakes, server)
        fixture.keepaliveSender.keepAlive(fixture.flow, Self.patient)
        expect(await fixture.words.next(), is: .probeSent(epoch: 1))
        expect(await fixture.words.next(), is: .answered(epoch: 1, count: 1))
        expect(await fixture.listener.next(), is: .remoteClosed)
        fixture.close()
    }

    @Test func `over TLS bytes of the client hide the answer`() async throws {
        let server = try SecureServer(.init(whenHeard: { $0.send(Array("OPTIONS\r\n".utf8)) }))
        let fixture = try await Fixture(wakes, server)
        fixture.keepaliveSender.keepAlive(fixture.flow, Self.patient)
        expect(await fixture.words.next(), is: .probeSent(epoch: 1))
        expect(await fixture.words.next(), is: .answerHidden(epoch: 1))
        #expect(fixture.unread == "OPTIONS\r\n")
        fixture.close()
    }

    // MARK: - The kernel's probe

    @Test func `a silent line is probed by the kernel and its keepalive put back`() async throws {
        let fixture = try await Fixture(wakes)
        let begun = BootClock.now()
        fixture.keepaliveSender.probe(fixture.flow)
        #expect(fixture.kernelIdleTime == 1)
        guard case .acknowledged(1, let asked)? = await fixture.words.next() else {
            Issue.record("not acknowledged")
            return
        }
        #expect(asked >= begun)
        #expect(fixture.kernelIdleTime == 120)
        #expect(fixture.peer.everything() == "")
        fixture.close()
    }

    @Test func `a flow without a kernel's keepalive has none after a probe`() async throws {
        let fixture = try await Fixture(wakes, options: SocketOptions(keepalive: nil, userTimeout: .seconds(20)))
        fixture.keepaliveSender.probe(fixture.flow)
        #expect(option(fixture.flow.number, SOL_SOCKET, SO_KEEPALIVE) == 1)
        _ = await fixture.words.next()
        #expect(option(fixture.flow.number, SOL_SOCKET, SO_KEEPALIVE) == 0)
        fixture.close()
    }
}

/// Messages that are answered on real sockets: what is written, what is read, and who hears of it.
@AgentQueue
@Suite(.timeLimit(.minutes(1))) struct AnsweringTests {
    private static let ask = "ASK\n"
    private static let reply = "YES\n"
    private static let answered = AnsweredMessages([
        .custom(receive: BytePattern(Array(ask.utf8)), send: Array(reply.utf8))
    ])

    private let wakes = CoalescedTimers()

    private func fixture() async throws -> Fixture {
        let fixture = try await Fixture(wakes)
        fixture.keepaliveSender.answer(Self.answered, on: fixture.flow)
        fixture.keepaliveSender.watchInput(of: fixture.flow, true)
        return fixture
    }

    @Test func `a message is answered and nobody is told`() async throws {
        let fixture = try await fixture()
        for _ in 1...3 {
            fixture.peer.send(Self.ask)
            expect(await fixture.heard.next(), is: Self.reply)
            expect(await fixture.answered.next(), is: 1)
        }
        #expect(fixture.unread == "")
        // The first word is of what is more than that, and all of that is there.
        fixture.peer.send(Self.ask + "INVITE" + Self.ask)
        expect(await fixture.heard.next(), is: Self.reply)
        expect(await fixture.words.next(), is: .arrived(epoch: 1))
        #expect(fixture.unread == "INVITE" + Self.ask)
        fixture.close()
    }

    @Test func `what waited before is answered`() async throws {
        let fixture = try await Fixture(wakes)
        fixture.peer.send(Self.ask + Self.ask)
        fixture.keepaliveSender.answer(Self.answered, on: fixture.flow)
        fixture.keepaliveSender.watchInput(of: fixture.flow, true)
        for _ in 1...2 { expect(await fixture.heard.next(), is: Self.reply) }
        fixture.peer.send("x")
        expect(await fixture.words.next(), is: .arrived(epoch: 1))
        #expect(fixture.unread == "x")
        fixture.close()
    }

    @Test func `a message in pieces is left until it is whole`() async throws {
        let fixture = try await fixture()
        fixture.peer.send("A")
        fixture.keepaliveSender.sortInput(on: 1)
        #expect(fixture.unread == "A")
        fixture.peer.send("SK\n")
        expect(await fixture.heard.next(), is: Self.reply)
        #expect(fixture.unread == "")
        fixture.close()
    }

    @Test func `nothing is answered any more once a client has the flow`() async throws {
        let fixture = try await fixture()
        fixture.peer.send(Self.ask)
        expect(await fixture.heard.next(), is: Self.reply)
        fixture.keepaliveSender.answer(nil, on: fixture.flow)
        fixture.keepaliveSender.watchInput(of: fixture.flow, false)
        fixture.peer.send(Self.ask)
        fixture.keepaliveSender.sortInput(on: 1)
        #expect(fixture.unread == Self.ask)
        #expect(fixture.peer.everything() == Self.reply)
        fixture.close()
    }

    @Test func `the answer to a keepalive and a message are told apart`() async throws {
        let fixture = try await fixture()
        let heartbeat = Heartbeat(.crlf, interval: .milliseconds(100), answerDeadline: .seconds(3600))
        fixture.keepaliveSender.keepAlive(fixture.flow, heartbeat)
        expect(await fixture.heard.next(), is: "\r\n\r\n")
        expect(await fixture.words.next(), is: .probeSent(epoch: 1))
        fixture.peer.send(Self.ask + "\r\n" + Self.ask)
        for _ in 1...2 { expect(await fixture.heard.next(), is: Self.reply) }
        expect(await fixture.words.next(), is: .answered(epoch: 1, count: 1))
        #expect(fixture.unread == "")
        fixture.close()
    }

    @Test func `without room a message stays until there is some`() async throws {
        let fixture = try await Fixture(wakes, isHeard: false)
        fixture.keepaliveSender.answer(Self.answered, on: fixture.flow)
        fixture.keepaliveSender.watchInput(of: fixture.flow, true)
        let number = try #require(fixture.flow.number)
        // Of a client that was in a hurry, on a line that was cut in the middle: nothing makes room. The queue hears of
        // the message when it is asked to look.
        try fixture.peer.loseEverything()
        fixture.peer.send(Self.ask)
        var written = 0
        let block = [UInt8](repeating: 0x2E, count: 65536)
        while true {
            let count = Glibc.send(number, block, block.count, CInt(MSG_DONTWAIT) | CInt(MSG_NOSIGNAL))
            guard count > 0 else { break }
            written += count
        }
        fixture.keepaliveSender.sortInput(on: 1)
        #expect(fixture.unread == Self.ask)
        #expect(fixture.keepaliveSender.finishReply(on: 1))
        try fixture.peer.loseNothing()
        let heard = try await fixture.peer.receive(written + Self.reply.utf8.count)
        #expect(heard.suffix(4).elementsEqual(Self.reply.utf8), "\(heard.suffix(8))")
        expect(await fixture.answered.next(), is: 1)
        #expect(fixture.unread == "")
        fixture.close()
    }
}

/// One flow with its keepaliveSender, and its server.
@AgentQueue
private final class Fixture: KeepaliveSenderOwner {
    let flow: Flow
    let listener = Listener()
    let peer: Peer
    let heard: Inbox<String>
    let words = Inbox<ConnectionInput>()
    let answered = Inbox<UInt64>()
    private(set) lazy var keepaliveSender = KeepaliveSender(wakes, IntervalLearner(), owner: self)
    private let wakes: CoalescedTimers

    /// - Parameters:
    ///   - length: of a keepalive.
    ///   - isHeard: whether the server reads what comes by itself.
    init(
        _ wakes: CoalescedTimers, length: Int = 4, options: SocketOptions = .usual, isHeard: Bool = true
    ) async throws {
        self.wakes = wakes
        let server = try LoopbackServer()
        flow = try Flow(.to(server.endpoint, options: options), owner: listener)
        peer = try server.accept()
        heard = isHeard ? try peer.listen(toMessagesOf: length) : Inbox()
        _ = await listener.next()
    }

    /// One whose server is on a thread of its own, and with TLS.
    init(_ wakes: CoalescedTimers, _ server: SecureServer) async throws {
        self.wakes = wakes
        let request = TLSRequest(to: .name(SecureServer.name), under: server.policy)
        flow = try Flow(
            .to(server.endpoint), owner: listener, securing: Securing(request, of: "office", by: .test))
        (peer, heard) = (Peer(descriptor: OwnedDescriptor(-1)), Inbox())
        _ = await listener.next()
        _ = await listener.next()
    }

    func keepaliveSender(heard word: ConnectionInput) { words.put(word) }

    func keepaliveSenderAnswered(on epoch: UInt64) { answered.put(epoch) }

    /// What waits for the client.
    var unread: String { String(decoding: flow.peek(), as: UTF8.self) }

    var kernelIdleTime: CInt? { option(flow.number, CInt(IPPROTO_TCP), TCP_KEEPIDLE) }

    func close() {
        keepaliveSender.forget(1)
        flow.close(aborting: false)
        peer.close()
    }
}
