// SPDX-License-Identifier: Apache-2.0

import Foundation
import NetworkPath
import Platform
import Testing

@testable import Resolver

/// A resolv.conf of a test's own.
struct ConfigurationFile {
    let path: String

    init(_ text: String) {
        path = NSTemporaryDirectory() + "resolv.conf.\(UUID().uuidString)"
        write(text)
    }

    func write(_ text: String) {
        try? Data(text.utf8).write(to: URL(fileURLWithPath: path), options: .atomic)
    }

    func remove() { try? FileManager.default.removeItem(atPath: path) }
}

typealias Answer = Result<Resolution, ResolutionError>

extension Answer {
    var addresses: [IPAddress]? { try? get().addresses }
}

extension Resolver {
    @AgentQueue
    func resolve(_ name: String, _ families: [IPAddress.Family] = [.v6, .v4]) async -> Answer {
        await withCheckedContinuation { continuation in
            _ = resolve(name, families) { continuation.resume(returning: $0) }
        }
    }
}

private let v4 = IPAddress(v4: 0xC633_6407)
private let v6 = IPAddress(v6: 0x2001_0db8 << 96 | 7)

@AgentQueue
@Suite(.timeLimit(.minutes(2)))
struct ResolverTests {
    /// Runs `body` with a resolver that asks `server`, and no other file than its own.
    private func with(
        _ server: NameServerStub, _ options: String = "", _ body: @AgentQueue (Resolver) async throws -> Void
    ) async throws {
        let file = ConfigurationFile("nameserver 127.0.0.1\n\(options)\n")
        defer { file.remove() }
        try await body(Resolver(configurationFile: file.path, port: server.port))
        server.stop()
    }

    @Test func bothFamiliesAreAskedAndMergedInTheOrderOfTheCall() async throws {
        let server = NameServerStub { .addresses([$0.type == 1 ? v4 : v6], ttl: $0.type == 1 ? 300 : 60) }
        try await with(server) { resolver in
            let before = BootClock.now()
            let answer = try await resolver.resolve("sip.example.com").get()
            #expect(answer.addresses == [v6, v4])
            #expect(answer.expires >= before + .seconds(60) && answer.expires <= BootClock.now() + .seconds(60))
            #expect(Set(server.questions.map(\.description)) == ["sip.example.com A", "sip.example.com AAAA"])
        }
    }

    @Test func anAliasThatExpiresFirstTakesItsAddressesAlong() async throws {
        let server = NameServerStub { _ in .alias("real.example.com", aliasTTL: 5, [v4], ttl: 300) }
        try await with(server) { resolver in
            let answer = try await resolver.resolve("alias.example.com", [.v4]).get()
            #expect(answer.addresses == [v4])
            #expect(answer.expires <= BootClock.now() + .seconds(5))
        }
    }

    @Test func eachFamilyIsAnsweredWhenItComesAndNotLater() async throws {
        let server = NameServerStub { $0.type == 1 ? .addresses([v4], ttl: 60) : .silence }
        try await with(server) { resolver in
            let answers = AsyncStream<(IPAddress.Family, Answer)>.makeStream()
            let query = resolver.answers(to: "sip.example.com") { answers.continuation.yield(($0, $1)) }
            var iterator = answers.stream.makeAsyncIterator()
            let first = await iterator.next(isolation: AgentQueue.shared)
            #expect(first?.0 == .v4)
            #expect(first?.1.addresses == [v4])
            query.cancel()
        }
    }

    @Test func aServerThatSwallowsOneFamilyDoesNotTakeTheOtherWithIt() async throws {
        let server = NameServerStub { $0.type == 1 ? .addresses([v4], ttl: 60) : .silence }
        try await with(server) { resolver in
            let answer = try await resolver.resolve("sip.example.com").get()
            #expect(answer.addresses == [v4])
        }
    }

    @Test func aNameThatDoesNotExistIsToldFromOneThatHasNoAddress() async throws {
        let server = NameServerStub { $0.name == "nobody.example.com" ? .code(3) : .empty }
        try await with(server) { resolver in
            #expect(await resolver.resolve("nobody.example.com") == .failure(.noSuchName("Domain name not found")))
            let text = "DNS server returned answer with no data"
            #expect(await resolver.resolve("mail.example.com") == .failure(.noSuchName(text)))
        }
    }

    @Test func oneFamilyWithoutAddressesIsNoFailure() async throws {
        let server = NameServerStub { $0.type == 1 ? .addresses([v4], ttl: 60) : .empty }
        try await with(server) { resolver in
            #expect(await resolver.resolve("v4.example.com").addresses == [v4])
        }
    }

    @Test(arguments: [UInt8(2), 5]) func aServerThatCannotAnswerIsATransientFailure(code: UInt8) async throws {
        let server = NameServerStub { _ in .code(code) }
        try await with(server) { resolver in
            let answer = await resolver.resolve("sip.example.com")
            #expect(answer == .failure(.transient("Could not contact DNS servers")))
        }
    }

    @Test(arguments: [UInt16(1), 28]) func oneFamilyThatFailedForNowLeavesHope(type: UInt16) async throws {
        let server = NameServerStub { $0.type == type ? .code(2) : .code(3) }
        try await with(server) { resolver in
            let answer = await resolver.resolve("sip.example.com")
            #expect(answer == .failure(.transient("Could not contact DNS servers")))
        }
    }

    @Test func aPortThatNobodyListensOnIsATransientFailure() async throws {
        let server = NameServerStub { _ in .silence }
        server.stop()
        try await with(server) { resolver in
            let answer = await resolver.resolve("sip.example.com", [.v4])
            // On a busy machine c-ares' timer may come before the kernel's refusal, and its words are others then.
            guard case .failure(.transient) = answer else {
                Issue.record("\(answer)")
                return
            }
        }
    }

    @Test func theNextServerIsAskedWhenTheFirstIsSilent() async throws {
        let silent = NameServerStub { _ in .silence }
        let second = NameServerStub("127.0.0.2", port: silent.port) { _ in .addresses([v4], ttl: 60) }
        let file = ConfigurationFile("nameserver 127.0.0.1\nnameserver 127.0.0.2\n")
        defer { file.remove() }
        let resolver = Resolver(configurationFile: file.path, port: silent.port)
        #expect(await resolver.resolve("sip.example.com", [.v4]).addresses == [v4])
        #expect(silent.questions.count == 1 && second.questions.count == 1)
    }

    @Test func aSingleServerThatIsSilentIsGivenUpAfterThreeRounds() async throws {
        let server = NameServerStub { _ in .silence }
        try await with(server) { resolver in
            let answer = await resolver.resolve("sip.example.com")
            #expect(answer == .failure(.transient("Timeout while contacting DNS servers")))
            #expect(server.questions.count == 2 * Int(Resolver.rounds))
        }
    }

    @Test func threeServersThatAreSilentAreGivenUpAtTheLimit() async throws {
        let server = NameServerStub { _ in .silence }
        let others = ["127.0.0.2", "127.0.0.3"].map { NameServerStub($0, port: server.port) { _ in .silence } }
        try await with(server, "nameserver 127.0.0.2\nnameserver 127.0.0.3") { resolver in
            let answer = await resolver.resolve("sip.example.com", [.v4])
            #expect(answer == .failure(.transient("no answer in \(Resolver.answerLimit)")))
            #expect(others.map(\.questions.count) == [2, 2])
        }
    }

    @Test(arguments: ["", "a..example", "nul\0.example", String(repeating: "long", count: 20) + ".example"])
    func whatIsNoNameIsNoSuchName(name: String) async throws {
        let server = NameServerStub { _ in .addresses([v4], ttl: 60) }
        try await with(server, "search corp.example") { resolver in
            let answer = await resolver.resolve(name)
            #expect(answer == .failure(.noSuchName("Misformatted domain name")))
            #expect(server.questions.isEmpty)
        }
    }

    @Test func searchDomainsCompleteAShortName() async throws {
        let server = NameServerStub { $0.name == "pbx.corp.example" ? .addresses([v4], ttl: 60) : .code(3) }
        try await with(server, "search lab.example corp.example") { resolver in
            #expect(await resolver.resolve("pbx", [.v4]).addresses == [v4])
            #expect(server.questions.map(\.name) == ["pbx.lab.example", "pbx.corp.example"])
        }
    }

    @Test func aTruncatedAnswerIsFetchedOverTCP() async throws {
        let server = NameServerStub { _ in .truncated(.addresses([v4], ttl: 60)) }
        try await with(server) { resolver in
            #expect(await resolver.resolve("big.example.com", [.v4]).addresses == [v4])
            #expect(server.questions.count == 2)
        }
    }

    @Test(arguments: ["localhost", "LocalHost"]) func localhostIsTheLoopbackAndNoServerIsAskedForIt(name: String)
        async throws
    {
        let server = NameServerStub { _ in .addresses([v4], ttl: 60) }
        try await with(server) { resolver in
            let addresses = try #require(await resolver.resolve(name).addresses)
            #expect(!addresses.isEmpty && addresses.allSatisfy(\.isLoopback))
            #expect(server.questions.isEmpty)
        }
    }

    @Test func theHostsFileIsAuthoritativeForBothFamilies() async throws {
        let server = NameServerStub { _ in .addresses([v6], ttl: 60) }
        let hosts = try String(contentsOfFile: "/etc/hosts", encoding: .utf8)
        // Not localhost, which c-ares never asks a server for.
        let entry = hosts.split(separator: "\n").map { $0.split(whereSeparator: \.isWhitespace) }
            .first { $0.count > 1 && IPAddress(String($0[0]))?.family == .v4 && $0[1] != "localhost" }
        guard let entry else { try Test.cancel("/etc/hosts has no IPv4 address but localhost") }
        try await with(server) { resolver in
            let answer = try await resolver.resolve(String(entry[1]), [.v4]).get()
            #expect(answer.addresses.contains { $0.description == entry[0] })
            #expect(answer.expires <= BootClock.now())
            _ = await resolver.resolve(String(entry[1]))
            #expect(server.questions.isEmpty)
        }
    }

    @Test func aChangedConfigurationIsReadBeforeTheNextQuestion() async throws {
        let former = NameServerStub { _ in .silence }
        let present = NameServerStub("127.0.0.2", port: former.port) { _ in .addresses([v4], ttl: 60) }
        let file = ConfigurationFile("nameserver 127.0.0.1\n")
        defer { file.remove() }
        let resolver = Resolver(configurationFile: file.path, port: former.port)
        // Keeps the channel to the former server open, and is asked again over the new one.
        async let waiting = resolver.resolve("first.example.com", [.v4])
        await Task.yield()
        file.write("nameserver 127.0.0.2\n")
        #expect(await resolver.resolve("second.example.com", [.v4]).addresses == [v4])
        #expect(await waiting.addresses == [v4])
        #expect(Set(present.questions.map(\.name)) == ["first.example.com", "second.example.com"])
    }

    @Test func aChangedNetworkRepeatsTheQuestionsThatAreUnderWay() async throws {
        let server = NameServerStub { $0.name == "end.example.com" ? .empty : .silence }
        try await with(server) { resolver in
            let query = resolver.resolve("sip.example.com", [.v4]) { _ in }
            resolver.networkChanged()
            // The first sockets are closed at once; a further question proves that the second reached the server.
            _ = await resolver.resolve("end.example.com", [.v4])
            #expect(server.ports(askingFor: "sip.example.com").count == 2)
            query.cancel()
        }
    }

    @Test func aCancelledQueryCallsNobody() async throws {
        let server = NameServerStub { _ in .addresses([v4], ttl: 60) }
        try await with(server) { resolver in
            var calls = 0
            resolver.resolve("sip.example.com") { _ in calls += 1 }.cancel()
            let query = resolver.answers(to: "other.example.com") { _, _ in calls += 1 }
            query.cancel()
            _ = await resolver.resolve("last.example.com", [.v4])
            #expect(calls == 0)
        }
    }

    @Test func aHandlerMayAskAgainAndCancelTheOthers() async throws {
        let server = NameServerStub { _ in .addresses([v4], ttl: 60) }
        try await with(server) { resolver in
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

    @Test func anIdleResolverHoldsNoSocket() async throws {
        let server = NameServerStub { _ in .addresses([v4], ttl: 60) }
        try await with(server) { resolver in
            _ = await resolver.resolve("sip.example.com", [.v4])
            #expect(resolver.channel == nil)
            let query = resolver.resolve("sip.example.com", [.v4]) { _ in }
            #expect(resolver.channel != nil)
            query.cancel()
            #expect(resolver.channel == nil)
        }
    }
}
