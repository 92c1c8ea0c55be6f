// SPDX-License-Identifier: Apache-2.0

import DialtoneExpectations
import DialtonePlatform
import DialtoneRelayMessages
import DialtoneTestSupport
import Glibc
import Testing

@testable import DialtoneConnection
@testable import DialtoneConnectionIO

/// What `dialtone-tls` has taken from the TCP socket and not put into the pair yet: TCP has acknowledged it, and it is
/// the client's.
@AgentQueue
@Suite(.timeLimit(.minutes(1))) struct HeldBytesTests {
    private let relay = StandInRelay()
    private let surroundings: Surroundings
    private static let first = KnownProcess(1)
    private static let second = KnownProcess(2)

    init() { surroundings = Surroundings(.loopback(), relay: relay.access) }

    /// A connection with a flow of the stand-in's, and the server's end of it.
    private func ready(
        to server: borrowing LoopbackServer, _ adjust: (inout ConnectionPolicy) -> Void = { _ in }
    ) async throws -> (ConnectionDriver, StandInRelay.Served, Peer) {
        let connection = try surroundings.connection(to: "tls://\(server.endpoint)") {
            $0.tls = relay.policy
            // A busy machine takes its time.
            $0.connectTimeout = .seconds(60)
            // Not dialled again by itself, as long as a test lasts.
            $0.backoff = BackoffPolicy(
                base: .seconds(600), multiplier: 1, ceiling: .seconds(600), jitter: .half)
            adjust(&$0)
        }
        let peer = try server.accept()
        _ = await surroundings.entered(.securing)
        let served = try relay.secure()
        _ = await surroundings.entered(.ready)
        return (connection, served, peer)
    }

    /// What is known of the bytes of the flow of this number.
    private func unread(_ connection: ConnectionDriver, _ epoch: UInt64 = 1) -> String {
        guard let flow = connection.flows[epoch] else { return "no flow" }
        return "\(flow.mayHaveUnread ? "some" : "none"), \(flow.knownUnread.map { "\($0)" } ?? "?") in the pair"
    }

    @Test func `what it holds when the agent ends a parked flow is there for the client`() async throws {
        let server = try LoopbackServer()
        let (connection, served, peer) = try await ready(to: server)
        _ = Client(try connection.take())
        try connection.park(1)
        peer.send("BYE!")
        // Here it stands still.
        try served.take(4)
        expect(unread(connection), is: "some, 0 in the pair")
        connection.redial()
        let next = try server.accept()
        try #require(connection.hasUnreadEnds, "\(unread(connection))")
        try served.deliver("BYE!")
        served.counts.settled = .all
        served.count()
        let client = Client(try connection.take())
        #expect((client.epoch, client.isOver) == (1, true))
        expect(client.read(9), is: "BYE!")
        #expect(!connection.hasUnreadEnds, "\(unread(connection))")
        withExtendedLifetime((peer, next)) { connection.close() }
    }

    @Test func `what it holds when it tells of the end is there for the next client`() async throws {
        let server = try LoopbackServer()
        let (connection, served, peer) = try await ready(to: server) { $0.keepsAbandonedFlow = true }
        let reader = Client(try connection.take(by: Self.first))
        peer.send("AND BYE!")
        try served.take(8)
        // There is room for a part of it, and the server's end stands behind the rest.
        try served.deliver("AND ")
        peer.close()
        try served.say(.ended(nil))
        _ = await surroundings.entered(.backingOff)
        // It is faster than `dialtone-tls`, and is killed.
        expect(reader.read(9), is: "AND ")
        expect(unread(connection), is: "some, 0 in the pair")
        connection.process(.processEnded(Self.first, .unseen))
        #expect(connection.connection.ownership.isWaiting, "\(unread(connection))")
        try served.deliver("BYE!")
        served.counts.settled = .all
        served.count()
        let next = Client(try connection.take(by: Self.second))
        #expect((next.epoch, next.isOver) == (1, true))
        expect(next.read(9), is: "BYE!")
        #expect(!connection.hasUnreadEnds, "\(unread(connection))")
        connection.close()
    }

    /// Whether the server ends the flow in order, or resets it.
    @Test(arguments: [false, true])
    func `what is done with is nothing to wait for`(isReset: Bool) async throws {
        let server = try LoopbackServer()
        let (connection, served, peer) = try await ready(to: server)
        peer.send("ticket")
        try served.take(6)
        expect(unread(connection), is: "some, 0 in the pair")
        served.counts.settled = .init(bytes: 6)
        served.count()
        expect(unread(connection), is: "none, 0 in the pair")
        // The end is no byte of the server's.
        if isReset { peer.reset() } else { peer.finish() }
        let number = try #require(connection.flows[1]?.socketNumber)
        var entry = pollfd(fd: number, events: Int16(POLLIN), revents: 0)
        while poll(&entry, 1, 0) != 1 { try await turn() }
        expect(unread(connection), is: "none, 0 in the pair")
        connection.close()
    }

    @Test func `nothing comes of it once it is killed`() async throws {
        let server = try LoopbackServer()
        let (connection, served, peer) = try await ready(to: server)
        peer.send("BYE!")
        try served.take(4)
        expect(unread(connection), is: "some, 0 in the pair")
        served.die()
        expect(unread(connection), is: "none, 0 in the pair")
        withExtendedLifetime(peer) { connection.close() }
    }

    @Test func `of an earlier version, what lies in the socket is known`() async throws {
        let server = try LoopbackServer()
        let (connection, served, peer) = try await ready(to: server)
        served.counts.settled = nil
        served.count()
        peer.send("BYE!")
        let number = try #require(connection.flows[1]?.socketNumber)
        var entry = pollfd(fd: number, events: Int16(POLLIN), revents: 0)
        while poll(&entry, 1, 0) != 1 { try await turn() }
        expect(unread(connection), is: "some, 0 in the pair")
        try served.take(4)
        expect(unread(connection), is: "none, 0 in the pair")
        try served.deliver("BYE!")
        expect(unread(connection), is: "some, 4 in the pair")
        connection.close()
    }
}
