// SPDX-License-Identifier: Apache-2.0

import DialtoneExpectations
import DialtoneNetworkPath
import DialtonePlatform
import DialtoneTestSupport
import Testing

@testable import DialtoneResolver

/// What is said where a name has no addresses, and what that shows of the name servers.
@AgentQueue
@Suite(.timeLimit(.minutes(2)))
struct FailureTests {
    /// Writes down what a resolver's questions show.
    private func evidence(of resolver: Resolver) -> () -> [Resolver.Evidence] {
        let log = Log()
        resolver.onEvidence = { evidence, _ in log.entries.append(evidence) }
        return { log.entries }
    }

    @AgentQueue
    private final class Log {
        var entries: [Resolver.Evidence] = []
    }

    @Test func `a name that does not exist is told from one that has no address`() async throws {
        let server = NameServerStub { $0.name == "nobody.example.com" ? .code(3) : .empty }
        try await withResolver(asking: server) { resolver, _ in
            let evidence = evidence(of: resolver)
            let nobody = try #require(await resolver.resolve("nobody.example.com").error)
            #expect(nobody == ResolutionError(.noSuchName, "Domain name not found"))
            let mail = try #require(await resolver.resolve("mail.example.com").error)
            #expect(mail == ResolutionError(.noRecord, "DNS server returned answer with no data"))
            #expect(nobody.isFinal && mail.isFinal)
            #expect(evidence() == [.answered, .answered, .answered, .answered])
        }
    }

    @Test(arguments: [(UInt32(600), UInt32(30)), (30, 600)])
    func `the absence of a name holds as long as its authority says`(ttl: UInt32, minimum: UInt32) async throws {
        let server = NameServerStub { .negative($0.isForV4 ? 3 : 0, ttl: ttl, minimum: minimum) }
        try await withResolver(asking: server) { resolver, _ in
            for family in [IPAddress.Family.v4, .v6] {
                let before = BootClock.now()
                let error = try #require(await resolver.resolve("nobody.example.com", [family]).error)
                #expect(error.kind == (family == .v4 ? .noSuchName : .noRecord))
                let expires = try #require(error.expires)
                #expect(expires >= before + .seconds(30) && expires <= BootClock.now() + .seconds(30))
            }
        }
    }

    @Test(arguments: [UInt8(2), 4, 5]) func `a server that cannot answer is there and no help`(code: UInt8) async throws
    {
        let server = NameServerStub { _ in .code(code) }
        try await withResolver(asking: server) { resolver, _ in
            let evidence = evidence(of: resolver)
            let error = try #require(await resolver.resolve("sip.example.com").error)
            #expect(error.kind == .serverFailure)
            #expect(!error.isFinal)
            #expect(evidence().isEmpty)
        }
    }

    @Test(arguments: [UInt16(1), 28]) func `one family that failed for now leaves hope`(type: UInt16) async throws {
        let server = NameServerStub { $0.type == type ? .code(2) : .code(3) }
        try await withResolver(asking: server) { resolver, _ in
            expect(await resolver.resolve("sip.example.com").error?.kind, is: .serverFailure)
        }
    }

    @Test(arguments: [UInt16(1), 28]) func `one family that fails does not take the other along`(type: UInt16)
        async throws
    {
        let server = NameServerStub { question in
            question.type == type ? .code(2) : .addresses([question.isForV4 ? v4 : v6], ttl: 60)
        }
        try await withResolver(asking: server) { resolver, _ in
            let evidence = evidence(of: resolver)
            expect(await resolver.resolve("sip.example.com").addresses, is: [type == 1 ? v6 : v4])
            #expect(evidence() == [.answered])
        }
    }

    /// Each question is refused at once, by the kernel (ICMP); only then does c-ares not wait for its first time-out,
    /// which is told by its text.
    @Test func `a port that nobody listens on is no answer at once`() async throws {
        // Of an address that no other test's server has: its port is free for anybody once it stopped.
        let server = NameServerStub("127.0.0.9") { _ in .silence }
        server.stop()
        try await withResolver(asking: server, at: "127.0.0.9") { resolver, _ in
            let evidence = evidence(of: resolver)
            for _ in 0..<20 {
                let error = try #require(await resolver.resolve("sip.example.com").error)
                #expect(error == ResolutionError(.noAnswer, "Could not contact DNS servers"))
            }
            #expect(evidence().count == 40 && evidence().allSatisfy { $0 == .silent })
        }
    }

    @Test func `a single server that is silent is given up after three rounds`() async throws {
        let server = NameServerStub { _ in .silence }
        try await withResolver(asking: server) { resolver, _ in
            let evidence = evidence(of: resolver)
            let error = try #require(await resolver.resolve("sip.example.com").error)
            #expect(error == ResolutionError(.noAnswer, "Timeout while contacting DNS servers"))
            #expect(server.questions.count == 2 * Int(Resolver.rounds))
            #expect(evidence() == [.silent, .silent])
        }
    }

    @Test func `a server that swallows one family is not silent`() async throws {
        let server = NameServerStub { $0.isForV4 ? .addresses([v4], ttl: 60) : .silence }
        try await withResolver(asking: server) { resolver, _ in
            let evidence = evidence(of: resolver)
            let answers = AsyncStream<Answer>.makeStream()
            _ = resolver.answers(to: "sip.example.com") { _, answer in answers.continuation.yield(answer) }
            var iterator = answers.stream.makeAsyncIterator()
            expect(await iterator.next(isolation: AgentQueue.shared)?.addresses, is: [v4])
            expect(await iterator.next(isolation: AgentQueue.shared)?.error?.kind, is: .noAnswer)
            #expect(evidence() == [.answered])
        }
    }

    @Test func `three servers that are silent are given up at the limit`() async throws {
        let server = NameServerStub { _ in .silence }
        let others = ["127.0.0.2", "127.0.0.3"].map { NameServerStub($0, port: server.port) { _ in .silence } }
        try await withResolver(asking: server, "nameserver 127.0.0.2\nnameserver 127.0.0.3") { resolver, _ in
            let evidence = evidence(of: resolver)
            let error = await resolver.resolve("sip.example.com", [.v4]).error
            #expect(error == ResolutionError(.noAnswer, "no answer in \(Resolver.answerLimit)"))
            #expect(others.map(\.questions.count) == [2, 2])
            #expect(evidence() == [.silent])
        }
    }

    @Test(arguments: ["", "a..example", "nul\0.example", String(repeating: "long", count: 20) + ".example"])
    func `what is no name is malformed`(name: String) async throws {
        let server = NameServerStub { _ in .addresses([v4], ttl: 60) }
        try await withResolver(asking: server, "search corp.example") { resolver, _ in
            let evidence = evidence(of: resolver)
            expect(await resolver.resolve(name).error, is: ResolutionError(.malformed, "Misformatted domain name"))
            #expect(server.questions.isEmpty)
            #expect(evidence().isEmpty)
        }
    }
}
