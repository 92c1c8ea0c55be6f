// SPDX-License-Identifier: Apache-2.0

import DialtoneExpectations
import DialtonePlatform
import DialtoneTestSupport
import Foundation
import Testing

@testable import DialtoneVarlink

@Suite(.timeLimit(.minutes(3))) struct ClientTests {
    typealias Ping = TestAPI.Ping
    typealias Count = TestAPI.Count

    /// A connection to a service of the project.
    @AgentQueue
    private func connect(to test: TestService) throws -> VarlinkConnection {
        let (ours, theirs) = socketPair()
        try test.server.serve(OwnedDescriptor(ours))
        return try VarlinkConnection(OwnedDescriptor(theirs))
    }

    /// A connection whose other end the test plays.
    @AgentQueue
    private func connectToRaw() throws -> (VarlinkConnection, RawClient) {
        let (ours, theirs) = socketPair()
        return (try VarlinkConnection(OwnedDescriptor(ours), messageLimit: 1000), RawClient(OwnedDescriptor(theirs)))
    }

    private func ping(_ connection: VarlinkConnection, _ text: String) async -> Result<Ping.Reply, VarlinkCallError> {
        await withCheckedContinuation { continuation in
            AgentQueue.async { connection.call(Ping.self, .init(text: text)) { continuation.resume(returning: $0) } }
        }
    }

    private func next<M>(_ replies: VarlinkReplies<M>) async -> Result<M.Reply?, VarlinkCallError> {
        await withCheckedContinuation { continuation in
            AgentQueue.async { replies.next { continuation.resume(returning: $0) } }
        }
    }

    @Test func `calls that overlap get their own answers`() async throws {
        let test = await TestService()
        let connection = try await connect(to: test)
        await withTaskGroup(of: Void.self) { group in
            for number in 0..<200 {
                group.addTask { expect(await ping(connection, "\(number)"), is: .success(.init(text: "\(number)"))) }
            }
        }
        await onQueue { connection.close() }
        try await eventually("gone") { test.server.connectionCount == 0 }
    }

    @Test func `an error is the answer and the connection goes on`() async throws {
        let test = await TestService()
        let connection = try await connect(to: test)
        let refused = await withCheckedContinuation { continuation in
            AgentQueue.async {
                connection.call(TestAPI.Refuse.self, .init()) { continuation.resume(returning: $0) }
            }
        }
        guard case .failure(.refused(let failure)) = refused else {
            Issue.record("\(refused)")
            return
        }
        #expect(failure.decoded() == TestAPI.Refused(uid: Int(getuid())))
        expect(await ping(connection, "next"), is: .success(.init(text: "next")))
        await onQueue { connection.close() }
    }

    @Test func `a stream is read only as far as it is wanted`() async throws {
        let test = await TestService()
        let connection = try await connect(to: test)
        let replies = await onQueue { connection.stream(Count.self, .init()) }
        try await eventually("subscribed") { test.counters.count == 1 }
        await onQueue { test.counters[0].available = 1 }
        expect(await next(replies), is: .success(.init(number: 1)))
        for burst in stride(from: 100, through: 20_000, by: 100) {
            await onQueue { test.counters[0].available = burst }
        }
        // What the two sockets and one chunk hold; a client that read on would have taken all.
        await onQueue { #expect(test.counters[0].number < 3000) }
        for number in 2...20_000 {
            let reply = await next(replies)
            guard reply == .success(.init(number: number)) else {
                Issue.record("\(reply) instead of \(number)")
                break
            }
        }
        await onQueue { connection.close() }
        try await eventually("ended") { test.counters[0].endings == 1 }
        expect(await next(replies), is: .failure(.closed))
    }

    @Test func `a stream ends with nil and calls behind it are answered`() async throws {
        let test = await TestService()
        let connection = try await connect(to: test)
        let replies = await onQueue { connection.stream(Count.self, .init(to: 2)) }
        async let behind = ping(connection, "behind")
        expect(await next(replies), is: .success(.init(number: 1)))
        expect(await next(replies), is: .success(.init(number: 2)))
        expect(await next(replies), is: .success(nil))
        expect(await next(replies), is: .success(nil))
        expect(await behind, is: .success(.init(text: "behind")))
        await onQueue { connection.close() }
    }

    @Test func `what came before the hang up is delivered`() async throws {
        let (connection, service) = try await connectToRaw()
        let replies = await onQueue { connection.stream(Count.self, .init()) }
        expect(await service.receive()) { $0 != nil }
        service.send(#"{"parameters":{"number":1},"continues":true}"#, #"{"parameters":{"number":2},"continues":true}"#)
        service.closeNow()
        expect(await next(replies), is: .success(.init(number: 1)))
        expect(await next(replies), is: .success(.init(number: 2)))
        expect(await next(replies), is: .failure(.hungUp))
    }

    @Test(arguments: [
        ("hello", VarlinkCallError.violated(.notJSON)),
        (#"{"parameters":{}}"#, .violated(.notAReply("parameters.text is missing"))),
        (#"{"parameters":{"text":"x"},"continues":true}"#, .violated(.unexpectedReply)),
        (String(repeating: "x", count: 1001), .violated(.messageTooLong(limit: 1000))),
    ])
    func `a service that breaks the protocol ends the connection`(message: String, error: VarlinkCallError) async throws
    {
        let (connection, service) = try await connectToRaw()
        async let first = ping(connection, "first")
        expect(await service.receive()) { $0 != nil }
        service.send(message)
        expect(await first, is: .failure(error))
        expect(await ping(connection, "too late"), is: .failure(error))
        expect(await service.receive(), is: nil)
    }

    @Test func `a reply to nothing ends the connection`() async throws {
        let (connection, service) = try await connectToRaw()
        service.send(pong("?"))
        expect(await service.receive(), is: nil)
        expect(await ping(connection, "x"), is: .failure(.violated(.unexpectedReply)))
    }

    @Test func `a service that hangs up fails the calls that wait`() async throws {
        let (connection, service) = try await connectToRaw()
        async let waiting = ping(connection, "x")
        expect(await service.receive()) { $0 != nil }
        service.closeNow()
        expect(await waiting, is: .failure(.hungUp))
        expect(await ping(connection, "x"), is: .failure(.hungUp))
    }

    @Test func `closing fails the calls that wait`() async throws {
        let (connection, service) = try await connectToRaw()
        async let waiting = ping(connection, "x")
        expect(await service.receive()) { $0 != nil }
        await onQueue { connection.close() }
        expect(await waiting, is: .failure(.closed))
        expect(await service.receive(), is: nil)
    }

    @Test func `closing from inside a completion is allowed`() async throws {
        let test = await TestService()
        let connection = try await connect(to: test)
        let results = await withCheckedContinuation { continuation in
            AgentQueue.async {
                let results = Results()
                connection.call(Ping.self, .init(text: "first")) { result in
                    results.values.append(result)
                    connection.close()
                }
                connection.call(Ping.self, .init(text: "second")) { result in
                    results.values.append(result)
                    AgentQueue.async { continuation.resume(returning: results.values) }
                }
            }
        }
        #expect(results == [.success(.init(text: "first")), .failure(.closed)])
    }

    @AgentQueue
    private final class Results {
        var values: [Result<Ping.Reply, VarlinkCallError>] = []
    }
}
