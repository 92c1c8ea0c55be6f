// SPDX-License-Identifier: Apache-2.0

import DialtonePlatform
import DialtoneRelayMessages
import DialtoneTLSTestSupport
import DialtoneTestSupport
import Glibc
import Testing

@testable import DialtoneConnection
@testable import DialtoneConnectionIO

/// What becomes of a flow with TLS that an earlier process left and no connection claims.
@AgentQueue
@Suite(.timeLimit(.minutes(1))) struct UnclaimedFlowTests {
    private let surroundings = Surroundings(.loopback())

    /// So many that the pair is full, and the socket has room for the rest.
    private static let burst = (0..<400).map { number in
        Array("message \(number)".utf8) + Array(repeating: UInt8(ascii: "."), count: 100)
    }
    /// What TLS 1.3 makes of them: a header, a type and a tag for each (RFC 8446, section 5.2).
    private static let length = burst.reduce(0) { $0 + UInt64($1.count + 5 + 1 + 16) }

    /// A store that the test empties itself.
    private final class Shelf: FlowStore {
        func keep(_ descriptors: [CInt]) -> UInt64? { nil }
        func discard(_ number: UInt64) {}
    }

    /// Copies, as the service manager hands them to the next process.
    private func stored(_ flow: Flow) throws -> [CInt] {
        let numbers = [try #require(flow.socketNumber)] + (try #require(flow.secured)).numbers
        return numbers.map { fcntl($0, F_DUPFD_CLOEXEC, 0) }
    }

    /// A connection whose client has read nothing of a burst, all of which has come.
    private func behind() async throws -> (ConnectionDriver, Client, SecureServer) {
        let messages = Self.burst
        let server = try SecureServer(
            .init(whenHeard: { session in
                guard session.received.count > 1 else { return session.send([0]) }
                for message in messages { session.send(message) }
            }))
        let connection = try surroundings.connection(to: server)
        _ = await surroundings.entered(.ready)
        let client = Client(try connection.take())
        #expect(client.write("1"))
        // The tickets are there, too.
        _ = try await client.readWhenItComes(1)
        let number = try #require(connection.flows[1]?.socketNumber)
        let before = try #require(Progress.received(ofTCP: number)).count
        #expect(client.write("2"))
        while let now = Progress.received(ofTCP: number), now.count < before + Self.length { try await turn() }
        return (connection, client, server)
    }

    @Test func `a client that is behind reads all that has come, and then the end`() async throws {
        let (connection, client, server) = try await behind()
        let flow = try #require(connection.flows[1])
        #expect(flow.isBehind, "the pair has \(flow.unreadBytes) bytes")
        let left = try stored(flow)
        // The process that had it is gone.
        flow.isKept(in: Shelf(), as: 1)
        connection.stepDown()
        UnclaimedFlow.end(left)
        let (bytes, error) = try await client.readAll(4096)
        let all = Self.burst.flatMap { $0 }
        #expect((bytes.count, error) == (all.count, 0))
        #expect(bytes == all)
        withExtendedLifetime(server) {}
    }
}
