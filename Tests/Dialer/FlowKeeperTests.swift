// SPDX-License-Identifier: Apache-2.0

import Expectations
import Glibc
import NetworkPath
import Platform
import TLS
import TLSTestSupport
import Testing

@testable import Dialer
@testable import Supervisor

/// Keepalives on real sockets: what is sent, what of the answer is read, and what the kernel is asked.
@AgentQueue
@Suite(.timeLimit(.minutes(1))) struct FlowKeeperTests {
    private static let ping = "\r\n\r\n"
    private static let pong = "\r\n"
    /// For servers that answer none: the next one goes out all the same. Shorter than any that a user may choose.
    private static let brisk = Heartbeat(.crlf, interval: .milliseconds(100), answerDeadline: .milliseconds(50))

    /// For servers that answer, however long this machine takes over that.
    private static let patient = Heartbeat(.crlf, interval: .milliseconds(100), answerDeadline: .seconds(3600))

    private let wakes = WakeSchedule()

    // MARK: - The protocol's keepalive

    @Test func theAnswerIsReadAndNothingBehindIt() async throws {
        let bench = try await Bench(wakes)
        bench.keeper.keepAlive(bench.flow, Self.patient)
        expect(await bench.heard.next(), is: Self.ping)
        bench.peer.send(Self.pong + "INVITE")
        expect(await bench.words.next(), is: .probeSent(epoch: 1))
        expect(await bench.words.next(), is: .answered(epoch: 1, count: 1))
        #expect(bench.unread == "INVITE")
        bench.close()
    }

    @Test func anAnswerInPiecesIsLeftUntilItIsWhole() async throws {
        let bench = try await Bench(wakes)
        bench.keeper.keepAlive(bench.flow, Self.patient)
        expect(await bench.heard.next(), is: Self.ping)
        expect(await bench.words.next(), is: .probeSent(epoch: 1))
        bench.peer.send("\r")
        #expect(bench.unread == "\r")
        bench.peer.send("\n")
        expect(await bench.words.next(), is: .answered(epoch: 1, count: 1))
        #expect(bench.unread == "")
        bench.close()
    }

    @Test func theNextIsSentWhenTheLastWasAnswered() async throws {
        let bench = try await Bench(wakes)
        bench.keeper.keepAlive(bench.flow, Self.patient)
        for _ in 1...3 {
            expect(await bench.heard.next(), is: Self.ping)
            bench.peer.send(Self.pong)
            expect(await bench.words.next(), is: .probeSent(epoch: 1))
            expect(await bench.words.next(), is: .answered(epoch: 1, count: 1))
        }
        bench.close()
    }

    @Test func oneThatNobodyAnsweredIsSentAgainAllTheSame() async throws {
        let bench = try await Bench(wakes)
        bench.keeper.keepAlive(bench.flow, Self.brisk)
        // The NAT on the way must not forget the flow, whatever the server thinks of blank lines.
        for _ in 1...3 {
            expect(await bench.heard.next(), is: Self.ping)
            expect(await bench.words.next(), is: .probeSent(epoch: 1))
        }
        bench.close()
    }

    @Test func bytesOfTheClientHideTheAnswerAndTheKernelIsAsked() async throws {
        let bench = try await Bench(wakes)
        bench.keeper.keepAlive(bench.flow, Self.patient)
        expect(await bench.heard.next(), is: Self.ping)
        bench.peer.send("OPTIONS" + Self.pong)
        expect(await bench.words.next(), is: .probeSent(epoch: 1))
        expect(await bench.words.next(), is: .answerHidden(epoch: 1))
        #expect(bench.kernelIdleTime == 1)
        guard case .acknowledged(1, _)? = await bench.words.next() else {
            Issue.record("not acknowledged")
            return
        }
        #expect(bench.kernelIdleTime == 120)
        #expect(bench.unread == "OPTIONS" + Self.pong)
        bench.close()
    }

    @Test func nothingIsSentOverBytesThatTheClientHasNotRead() async throws {
        let (quiet, witness) = (try await Bench(wakes), try await Bench(wakes))
        quiet.peer.send("INVITE")
        quiet.keeper.keepAlive(quiet.flow, Self.brisk)
        witness.keeper.keepAlive(witness.flow, Self.brisk)
        for _ in 1...2 { expect(await witness.heard.next(), is: Self.ping) }
        // Their windows end together, so they share a wake.
        #expect(quiet.peer.everything() == "")
        #expect(quiet.unread == "INVITE")
        quiet.close()
        witness.close()
    }

    @Test func nothingIsSentOnAFlowThatIsForgotten() async throws {
        let (forgotten, witness) = (try await Bench(wakes), try await Bench(wakes))
        for bench in [forgotten, witness] { bench.keeper.keepAlive(bench.flow, Self.brisk) }
        forgotten.keeper.forget(1)
        expect(await witness.heard.next(), is: Self.ping)
        #expect(forgotten.peer.everything() == "")
        forgotten.close()
        witness.close()
    }

    @Test func aPairOfOnesOwnIsSpoken() async throws {
        let bench = try await Bench(wakes, length: 5)
        let pair = KeepaliveProtocol.custom(send: Array("NOOP\n".utf8), expect: Array("250 OK\n".utf8))
        bench.keeper.keepAlive(bench.flow, Heartbeat(pair, interval: .milliseconds(100)))
        expect(await bench.heard.next(), is: "NOOP\n")
        bench.peer.send("250 OK\n250 OK\n")
        expect(await bench.words.next(), is: .probeSent(epoch: 1))
        expect(await bench.words.next(), is: .answered(epoch: 1, count: 1))
        // The second one is nobody's answer.
        #expect(bench.unread == "250 OK\n")
        bench.close()
    }

    @Test func whatNothingAnswersIsSentAndAwaitsNothing() async throws {
        let bench = try await Bench(wakes, length: 5)
        let hello = KeepaliveProtocol.custom(send: Array("NOOP\n".utf8), expect: [])
        bench.keeper.keepAlive(bench.flow, Heartbeat(hello, interval: .milliseconds(100)))
        for _ in 1...2 { expect(await bench.heard.next(), is: "NOOP\n") }
        // Only the kernel can be asked whether it arrived.
        bench.keeper.probe(bench.flow)
        guard case .acknowledged(1, _)? = await bench.words.next() else {
            Issue.record("told of something else")
            return
        }
        bench.close()
    }

    /// The answer may come in two records.
    @Test(arguments: [["\r\nINVITE"], ["\r", "\nINVITE"]])
    func overTLSTheAnswerIsReadAndNothingBehindIt(records: [String]) async throws {
        let server = try SecureServer(
            .init(whenHeard: { session in for record in records { session.send(Array(record.utf8)) } }))
        let bench = try await Bench(wakes, server)
        bench.keeper.keepAlive(bench.flow, Self.patient)
        expect(await bench.words.next(), is: .probeSent(epoch: 1))
        expect(await bench.words.next(), is: .answered(epoch: 1, count: 1))
        #expect(bench.unread == "INVITE")
        bench.close()
    }

    @Test func overTLSTheEndBehindAnAnswerIsTold() async throws {
        let server = try SecureServer(
            .init(whenHeard: { session in
                session.send(Array("\r\n".utf8))
                session.close()
            }))
        let bench = try await Bench(wakes, server)
        bench.keeper.keepAlive(bench.flow, Self.patient)
        expect(await bench.words.next(), is: .probeSent(epoch: 1))
        expect(await bench.words.next(), is: .answered(epoch: 1, count: 1))
        expect(await bench.listener.next(), is: .remoteClosed)
        bench.close()
    }

    @Test func overTLSBytesOfTheClientHideTheAnswer() async throws {
        let server = try SecureServer(.init(whenHeard: { $0.send(Array("OPTIONS\r\n".utf8)) }))
        let bench = try await Bench(wakes, server)
        bench.keeper.keepAlive(bench.flow, Self.patient)
        expect(await bench.words.next(), is: .probeSent(epoch: 1))
        expect(await bench.words.next(), is: .answerHidden(epoch: 1))
        #expect(bench.unread == "OPTIONS\r\n")
        bench.close()
    }

    // MARK: - The kernel's probe

    @Test func aSilentLineIsProbedByTheKernelAndItsKeepalivePutBack() async throws {
        let bench = try await Bench(wakes)
        let begun = BootClock.now()
        bench.keeper.probe(bench.flow)
        #expect(bench.kernelIdleTime == 1)
        guard case .acknowledged(1, let asked)? = await bench.words.next() else {
            Issue.record("not acknowledged")
            return
        }
        #expect(asked >= begun)
        #expect(bench.kernelIdleTime == 120)
        #expect(bench.peer.everything() == "")
        bench.close()
    }

    @Test func aFlowWithoutAKernelsKeepaliveHasNoneAfterAProbe() async throws {
        let bench = try await Bench(wakes, options: SocketOptions(keepalive: nil, userTimeout: .seconds(20)))
        bench.keeper.probe(bench.flow)
        #expect(option(bench.flow.number, SOL_SOCKET, SO_KEEPALIVE) == 1)
        _ = await bench.words.next()
        #expect(option(bench.flow.number, SOL_SOCKET, SO_KEEPALIVE) == 0)
        bench.close()
    }
}

/// One flow with its keeper, and its server.
@AgentQueue
private final class Bench: FlowKeeperOwner {
    let flow: Flow
    let listener = Listener()
    let peer: Peer
    let heard: Inbox<String>
    let words = Inbox<ConnectionInput>()
    private(set) lazy var keeper = FlowKeeper(wakes, IntervalLearner(), owner: self)
    private let wakes: WakeSchedule

    /// - Parameter length: of a keepalive.
    init(_ wakes: WakeSchedule, length: Int = 4, options: SocketOptions = .usual) async throws {
        self.wakes = wakes
        let server = try LoopbackServer()
        flow = try Flow(.to(server.endpoint, options: options), owner: listener)
        peer = try server.accept()
        heard = try peer.listen(toMessagesOf: length)
        _ = await listener.next()
    }

    /// One whose server is on a thread of its own, and with TLS.
    init(_ wakes: WakeSchedule, _ server: SecureServer) async throws {
        self.wakes = wakes
        flow = try Flow(.to(server.endpoint), owner: listener) { [policy = server.policy] () throws(TLSFailure) in
            try TLSSession(TLSRequest(to: .name(SecureServer.name), under: policy), in: TLSContext(policy))
        }
        (peer, heard) = (Peer(descriptor: OwnedDescriptor(-1)), Inbox())
        _ = await listener.next()
        _ = await listener.next()
    }

    func flowKeeper(heard word: ConnectionInput) { words.put(word) }

    /// What waits for the client.
    var unread: String { String(decoding: flow.peek(), as: UTF8.self) }

    var kernelIdleTime: CInt? { option(flow.number, CInt(IPPROTO_TCP), TCP_KEEPIDLE) }

    func close() {
        keeper.forget(1)
        flow.close(aborting: false)
        peer.close()
    }
}
