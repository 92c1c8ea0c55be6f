// SPDX-License-Identifier: Apache-2.0

import DialtoneExpectations
import DialtoneNetworkPath
import DialtonePlatform
import DialtoneTestSupport
import Testing

@testable import DialtoneResolver

@AgentQueue
@Suite(.timeLimit(.minutes(2)))
struct ResolverTests {
    @Test func `both families are asked and merged in the order of the call`() async throws {
        let server = NameServerStub { .addresses([$0.type == 1 ? v4 : v6], ttl: $0.type == 1 ? 300 : 60) }
        try await withResolver(asking: server) { resolver, _ in
            let before = BootClock.now()
            let answer = try await resolver.resolve("sip.example.com").get()
            #expect(answer.addresses == [v6, v4])
            let expires = try #require(answer.expires)
            #expect(expires >= before + .seconds(60) && expires <= BootClock.now() + .seconds(60))
            #expect(answer.source == .nameServer)
            #expect(Set(server.questions.map(\.description)) == ["sip.example.com A", "sip.example.com AAAA"])
        }
    }

    @Test func `an alias that expires first takes its addresses along`() async throws {
        let server = NameServerStub { _ in
            .aliases([("www.example.com", 600), ("edge.example.net", 5), ("host.example.net", 60)], [v4], ttl: 300)
        }
        try await withResolver(asking: server) { resolver, _ in
            let answer = try await resolver.resolve("alias.example.com", [.v4]).get()
            #expect(answer.addresses == [v4])
            #expect(try #require(answer.expires) <= BootClock.now() + .seconds(5))
        }
    }

    @Test func `each family is answered when it comes and not later`() async throws {
        let server = NameServerStub { $0.type == 1 ? .addresses([v4], ttl: 60) : .silence }
        try await withResolver(asking: server) { resolver, _ in
            let answers = AsyncStream<(IPAddress.Family, Answer)>.makeStream()
            let query = resolver.answers(to: "sip.example.com") { answers.continuation.yield(($0, $1)) }
            var iterator = answers.stream.makeAsyncIterator()
            let first = await iterator.next(isolation: AgentQueue.shared)
            #expect(first?.0 == .v4)
            #expect(first?.1.addresses == [v4])
            query.cancel()
        }
    }

    @Test func `a server that swallows one family does not take the other with it`() async throws {
        let server = NameServerStub { $0.type == 1 ? .addresses([v4], ttl: 60) : .silence }
        try await withResolver(asking: server) { resolver, _ in
            let answer = try await resolver.resolve("sip.example.com").get()
            #expect(answer.addresses == [v4])
        }
    }

    @Test func `one family without addresses is no failure`() async throws {
        let server = NameServerStub { $0.type == 1 ? .addresses([v4], ttl: 60) : .empty }
        try await withResolver(asking: server) { resolver, _ in
            expect(await resolver.resolve("v4.example.com").addresses, is: [v4])
        }
    }

    @Test func `the next server is asked when the first is silent`() async throws {
        let silent = NameServerStub { _ in .silence }
        let second = NameServerStub("127.0.0.2", port: silent.port) { _ in .addresses([v4], ttl: 60) }
        let configuration = Configuration("nameserver 127.0.0.1\nnameserver 127.0.0.2\n")
        defer { withExtendedLifetime(configuration) {} }
        let resolver = Resolver(files: configuration.files, port: silent.port)
        expect(await resolver.resolve("sip.example.com", [.v4]).addresses, is: [v4])
        #expect(silent.asked.count == 1 && second.asked.count == 1)
    }

    @Test func `search domains complete a short name`() async throws {
        let server = NameServerStub { $0.name == "pbx.corp.example" ? .addresses([v4], ttl: 60) : .code(3) }
        try await withResolver(asking: server, "search lab.example corp.example") { resolver, _ in
            expect(await resolver.resolve("pbx", [.v4]).addresses, is: [v4])
            #expect(server.asked.map(\.name) == ["pbx.lab.example", "pbx.corp.example"])
        }
    }

    @Test(arguments: ["sip.example.com.", "pbx."]) func `a final dot keeps the search domains out`(name: String)
        async throws
    {
        let server = NameServerStub { _ in .code(3) }
        try await withResolver(asking: server, "search corp.example\noptions ndots:3") { resolver, _ in
            _ = await resolver.resolve(name, [.v4])
            #expect(server.asked.map(\.name) == [String(name.dropLast())])
        }
    }

    @Test(arguments: ["printer.local", "xn--bcher-kva.example", "b\u{FC}cher.example", "_sip._tcp.example.com"])
    func `a name is asked for as it is given`(name: String) async throws {
        let server = NameServerStub { _ in .addresses([v4], ttl: 60) }
        try await withResolver(asking: server, "search corp.example") { resolver, _ in
            expect(await resolver.resolve(name, [.v4]).addresses, is: [v4])
            #expect(server.asked.map(\.name) == [name])
        }
    }

    @Test func `a truncated answer is fetched over TCP`() async throws {
        // More than the 512 bytes that a datagram holds.
        let many = (0..<60).map { IPAddress(v4: 0xC633_6400 + $0) }
        let server = NameServerStub { _ in .truncated(.addresses(many, ttl: 60)) }
        try await withResolver(asking: server) { resolver, _ in
            expect(await resolver.resolve("big.example.com", [.v4]).addresses, is: Array(many.prefix(8)))
            #expect(server.asked.count == 2)
        }
    }

    @Test func `a changed configuration is read before the next question`() async throws {
        let former = NameServerStub { _ in .silence }
        let present = NameServerStub("127.0.0.2", port: former.port) { _ in .addresses([v4], ttl: 60) }
        let configuration = Configuration("nameserver 127.0.0.1\n")
        defer { withExtendedLifetime(configuration) {} }
        let resolver = Resolver(files: configuration.files, port: former.port)
        // Keeps the channel to the former server open, and is asked again over the new one.
        async let waiting = resolver.resolve("first.example.com", [.v4])
        await Task.yield()
        configuration.write("nameserver 127.0.0.2\n")
        expect(await resolver.resolve("second.example.com", [.v4]).addresses, is: [v4])
        expect(await waiting.addresses, is: [v4])
        #expect(Set(present.questions.map(\.name)) == ["first.example.com", "second.example.com"])
    }

    @Test func `a changed network repeats the questions that are under way`() async throws {
        let server = NameServerStub { $0.name == "end.example.com" ? .empty : .silence }
        try await withResolver(asking: server) { resolver, _ in
            let query = resolver.resolve("sip.example.com", [.v4]) { _ in }
            resolver.networkChanged()
            // The first sockets are closed at once; a further question proves that the second reached the server.
            _ = await resolver.resolve("end.example.com", [.v4])
            #expect(server.ports(askingFor: "sip.example.com").count == 2)
            query.cancel()
        }
    }

    @Test func `a cancelled query calls nobody`() async throws {
        let server = NameServerStub { _ in .addresses([v4], ttl: 60) }
        try await withResolver(asking: server) { resolver, _ in
            var calls = 0
            resolver.resolve("sip.example.com") { _ in calls += 1 }.cancel()
            let query = resolver.answers(to: "other.example.com") { _, _ in calls += 1 }
            query.cancel()
            _ = await resolver.resolve("last.example.com", [.v4])
            #expect(calls == 0)
        }
    }

    @Test func `a handler may ask again and cancel the others`() async throws {
        let server = NameServerStub { _ in .addresses([v4], ttl: 60) }
        try await withResolver(asking: server) { resolver, _ in
            let answer: Answer = await withCheckedContinuation { continuation in
                var other: Query?
                _ = resolver.resolve("sip.example.com", [.v4]) { _ in
                    other?.cancel()
                    _ = resolver.resolve("again.example.com", [.v4]) { continuation.resume(returning: $0) }
                }
                other = resolver.resolve("other.example.com", [.v4]) { _ in Issue.record("it was cancelled") }
            }
            #expect(answer.addresses == [v4])
        }
    }

    @Test func `an idle resolver holds no socket`() async throws {
        let server = NameServerStub { _ in .addresses([v4], ttl: 60) }
        try await withResolver(asking: server) { resolver, _ in
            _ = await resolver.resolve("sip.example.com", [.v4])
            #expect(resolver.channel == nil)
            let query = resolver.resolve("sip.example.com", [.v4]) { _ in }
            #expect(resolver.channel != nil)
            query.cancel()
            #expect(resolver.channel == nil)
        }
    }
}
