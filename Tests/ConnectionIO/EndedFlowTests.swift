// SPDX-License-Identifier: Apache-2.0

import DialtoneExpectations
import DialtonePlatform
import DialtoneTLSTestSupport
import DialtoneTestSupport
import Dispatch
import Glibc
import Testing

@testable import DialtoneConnection
@testable import DialtoneConnectionIO

/// What a flow had received when it ended is its client's, however late that one comes.
@AgentQueue
@Suite(.timeLimit(.minutes(1))) struct EndedFlowTests {
    let surroundings = Surroundings(.loopback())
    private nonisolated static let first = KnownProcess(1)
    private nonisolated static let second = KnownProcess(2)
    private static let late = BackoffPolicy(base: .seconds(600), multiplier: 1, ceiling: .seconds(600), jitter: .half)

    private func take(_ connection: ConnectionDriver, by process: KnownProcess? = nil) throws -> Client {
        Client(try connection.take(by: process))
    }

    /// A connection with a parked flow on which `BYE` waits, and the server's end of that.
    private func parked(
        on server: LoopbackServer, account: Account = .administrator,
        _ adjust: (inout ConnectionPolicy) -> Void = { _ in }
    ) async throws -> (ConnectionDriver, Peer) {
        let connection = try surroundings.connection(to: "tcp://\(server.endpoint)", account: account, adjust)
        let peer = try server.accept()
        _ = await surroundings.entered(.ready)
        _ = try take(connection)
        try connection.park(1)
        peer.send("BYE")
        _ = await surroundings.events.next { $0.kind == .arrived }
        return (connection, peer)
    }

    /// A connection with a flow that ended with `BYE` on it, and the next one.
    private func ended(_ adjust: (inout ConnectionPolicy) -> Void = { _ in }) async throws -> (ConnectionDriver, Peer) {
        let server = try LoopbackServer()
        let (connection, peer) = try await parked(on: server, adjust)
        defer { withExtendedLifetime(peer) {} }
        connection.redial()
        let next = try server.accept()
        _ = await surroundings.entered(.ready)
        return (connection, next)
    }

    /// Its taker never got it, and the server or the agent ends the flow before it is asked for again.
    @Test(arguments: [true, false])
    func `who lost the descriptor of a flow that stood takes it again after its end`(byServer: Bool) async throws {
        let server = try LoopbackServer()
        // It is dialled when the test says so, and not before.
        let (connection, peer) = try await parked(on: server) { $0.backoff = Self.late }
        #expect(try take(connection, by: Self.first).epoch == 1)
        if byServer {
            peer.close()
            _ = await surroundings.entered(.backingOff)
        }
        connection.redial()
        let next = try server.accept()
        _ = await surroundings.entered(.ready)
        let again = try take(connection, by: Self.first)
        try #require((again.epoch, again.isOver) == (1, true))
        #expect(again.read(9) == "BYE")
        #expect(again.read(1) == "")
        expect(try take(connection, by: Self.first).epoch, is: 2)
        withExtendedLifetime((peer, next)) { connection.close() }
    }

    @Test(arguments: [true, false])
    func `the rest of what one began to read is of use where the policy says so`(isKept: Bool) async throws {
        let (connection, _) = try await ended { $0.keepsAbandonedFlow = isKept }
        #expect(try take(connection, by: Self.first).read(1) == "B")
        connection.process(.processEnded(Self.first, .unseen))
        #expect(connection.connection.ownership.isWaiting == isKept)
        let next = try take(connection, by: Self.second)
        #expect(next.isOver == isKept)
        if isKept { #expect(next.read(9) == "YE") }
        connection.close()
    }

    @Test func `what cannot be asked for its rest is kept`() async throws {
        let server = try LoopbackServer()
        let user: UInt32 = 4242
        let (connection, peer) = try await parked(on: server, account: Account(user: user, isLimited: false))
        defer { withExtendedLifetime(peer) {} }
        // As by a socket that a client keeps locked: what is asked on the user's thread has no answer.
        let gate = DispatchSemaphore(value: 0)
        UserThreads.begin(for: user) { gate.wait() }
        connection.redial()
        _ = try server.accept()
        _ = await surroundings.entered(.ready)
        gate.signal()
        let client = try take(connection)
        #expect((client.epoch, client.isOver) == (1, true))
        #expect(client.read(9) == "BYE")
        connection.close()
    }

    // MARK: - TLS

    /// So many messages fill the pair that a client reads, and the socket takes the rest.
    private nonisolated static let burst = (0..<400).map { number in
        Array("message \(number)".utf8) + Array(repeating: UInt8(ascii: "."), count: 100)
    }

    /// A connection to a server that answers the first word with `messages` and ends the stream; with the server, for
    /// whom another flow matters.
    ///
    /// - Parameter cutsOff: whether it ends the stream without TLS's word for it.
    private func secured(
        _ messages: [[UInt8]], cutsOff: Bool = false
    ) async throws -> (connection: ConnectionDriver, server: SecureServer) {
        let server = try SecureServer(
            .init(
                whenHeard: { session in
                    for message in messages { session.send(message) }
                    if !cutsOff { session.close() }
                }, hangsUpWhenHeard: true),
            .init())
        let connection = try surroundings.connection(to: server) {
            $0.backoff = BackoffPolicy(
                base: .milliseconds(100), multiplier: 1, ceiling: .milliseconds(100), jitter: .half)
        }
        _ = await surroundings.entered(.ready)
        return (connection, server)
    }

    /// Taken after its end; `twice`: the client takes the next one as soon as it has read a little.
    @Test(arguments: [false, true])
    func `what a sleeper takes after the end is delivered as it reads`(twice: Bool) async throws {
        let (connection, server) = try await secured(Self.burst)
        #expect(try take(connection).write("GO"))
        try connection.park(1)
        _ = await surroundings.entered(.backingOff)
        let client = try take(connection)
        #expect((client.epoch, client.isOver) == (1, true))
        var start: [UInt8] = []
        if twice {
            start = Array(client.read(10).utf8)
            _ = await surroundings.entered(.ready)
            #expect(try take(connection).epoch == 2)
        }
        let (bytes, error) = try await client.readAll(4096)
        #expect(start + bytes == Self.burst.flatMap { $0 })
        #expect(error == 0)
        withExtendedLifetime(server) { connection.close() }
    }

    /// `isShort`: all is delivered before the end is known; `sleeps`: it is taken after that.
    @Test(arguments: [false, true], [false, true])
    func `a stream that is cut off ends in an error`(isShort: Bool, sleeps: Bool) async throws {
        let messages = isShort ? [Array("BYE".utf8)] : Self.burst
        let (connection, server) = try await secured(messages, cutsOff: true)
        let taken = try take(connection)
        #expect(taken.write("GO"))
        if sleeps { try connection.park(1) }
        _ = await surroundings.entered(.backingOff)
        let client = sleeps ? try take(connection) : taken
        let (bytes, error) = try await client.readAll(4096)
        #expect(bytes == messages.flatMap { $0 })
        #expect(error == ECONNRESET)
        withExtendedLifetime(server) { connection.close() }
    }

    /// In the pair, with which the client's stream is ended at once, and where it does not fit.
    @Test(arguments: [(burst, second), ([Array("BYE".utf8)], first)])
    func `with TLS it is there again when its taker never read`(messages: [[UInt8]], next: KnownProcess) async throws {
        let connection = try await secured(messages).connection
        #expect(try take(connection).write("GO"))
        try connection.park(1)
        _ = await surroundings.entered(.backingOff)
        _ = try take(connection, by: Self.first)
        if next != Self.first { connection.process(.processEnded(Self.first, .unseen)) }
        let (bytes, error) = try await take(connection, by: next).readAll(4096)
        #expect(bytes == messages.flatMap { $0 })
        #expect(error == 0)
        connection.close()
    }

    @Test(arguments: [true, false])
    func `a reset does not pass for reading`(isAfterTheEnd: Bool) async throws {
        let server = try LoopbackServer()
        let (connection, peer) = try await parked(on: server)
        #expect(try take(connection, by: Self.first).epoch == 1)
        if isAfterTheEnd { peer.finish() }
        peer.reset()
        _ = await surroundings.entered(.backingOff)
        connection.process(.processEnded(Self.first, .unseen))
        #expect(try take(connection, by: Self.second).read(9) == "BYE")
        connection.close()
    }

    /// Whether the server resets behind its end, or the client has ended its own direction before.
    @Test(arguments: [true, false])
    func `who has written has touched however the flow ends`(isReset: Bool) async throws {
        let server = try LoopbackServer()
        let (connection, peer) = try await parked(on: server)
        let client = try take(connection, by: Self.first)
        #expect(client.epoch == 1)
        #expect(client.write("GO"))
        #expect(try peer.receive() == .bytes(2))
        if !isReset {
            shutdown(client.socket.number, CInt(SHUT_WR))
            #expect(try peer.receive() == .closed)
        }
        peer.finish()
        if isReset { peer.reset() }
        _ = await surroundings.entered(.backingOff)
        connection.process(.processEnded(Self.first, .unseen))
        #expect(!connection.connection.ownership.isWaiting)
        connection.close()
    }

    @Test func `who has the flow reads the rest of it when the connection is closed`() async throws {
        let connection = try await secured(Self.burst).connection
        let client = try take(connection)
        #expect(client.write("GO"))
        _ = await surroundings.entered(.backingOff)
        connection.close()
        let (bytes, error) = try await client.readAll(4096)
        #expect(bytes == Self.burst.flatMap { $0 })
        #expect(error == 0)
    }
}

extension Client {
    /// Reads to the end in pieces, while the agent's queue goes on, and says what ended it.
    func readAll(_ size: Int) async throws -> (bytes: [UInt8], error: CInt) {
        let arrivals = Inbox<Void>()
        let watch = try Poller.shared.register(socket.number, .readable) { _ in arrivals.put(()) }
        defer { watch.cancel() }
        var bytes: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: size)
        while await arrivals.next() != nil {
            let count = recv(socket.number, &buffer, size, CInt(MSG_DONTWAIT))
            if count < 0, errno == EAGAIN { continue }
            if count < 0 { return (bytes, errno) }
            if count == 0 { return (bytes, 0) }
            bytes += buffer[..<count]
        }
        throw CancellationError()
    }
}
