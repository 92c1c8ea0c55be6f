// SPDX-License-Identifier: Apache-2.0

import DialtoneExpectations
import DialtoneNetworkPath
import DialtonePlatform
import DialtoneTestSupport
import Testing

@testable import DialtoneResolver

extension Resolver {
    @AgentQueue
    fileprivate func services(of name: String) async -> Result<[ServiceLocation], ResolutionError> {
        await withCheckedContinuation { continuation in
            _ = services(of: name) { continuation.resume(returning: $0) }
        }
    }

    @AgentQueue
    fileprivate func pointers(of name: String) async -> Result<[NamingRule], ResolutionError> {
        await withCheckedContinuation { continuation in
            _ = pointers(of: name) { continuation.resume(returning: $0) }
        }
    }
}

extension Result where Failure == ResolutionError {
    fileprivate var failure: ResolutionError? {
        if case .failure(let error) = self { error } else { nil }
    }
}

/// What is found of services: the hosts that offer them, and the rules that lead to their names.
@AgentQueue
@Suite(.timeLimit(.minutes(2)))
struct ServicesTests {
    private let service = "_sip._tcp.example.com"
    private let hosts = [
        ServiceLocation(priority: 10, weight: 60, port: 5060, target: "SIP1.example.com"),
        ServiceLocation(priority: 10, weight: 0, port: 5070, target: "sip2.example.net"),
        ServiceLocation(priority: 20, weight: 1, port: 5080, target: "sip.backup.example"),
    ]

    /// The hosts as a server sends them.
    private nonisolated func records(_ hosts: [ServiceLocation]) -> [NameServerStub.Record] {
        hosts.map { .service($0.priority, $0.weight, $0.port, $0.target) }
    }

    @Test func `the hosts of a service come in the order of the answer`() async throws {
        let server = NameServerStub { [hosts] _ in .records(records(hosts)) }
        try await withResolver(asking: server) { resolver, _ in
            var evidence: [Resolver.Evidence] = []
            resolver.onEvidence = { shown, _ in evidence.append(shown) }
            resolver.onAnswer = { name, _, _ in Issue.record("\(name) was not asked for its addresses") }
            expect(await resolver.services(of: service), is: .success(hosts))
            #expect(server.asked.map(\.description) == ["_sip._tcp.example.com SRV"])
            #expect(evidence == [.answered])
            #expect(resolver.channel == nil)
        }
    }

    @Test func `of a service on a thousand hosts the first are kept`() async throws {
        let many = (1...200).map { ServiceLocation(priority: 1, weight: 1, port: UInt16($0), target: "h") }
        let server = NameServerStub { _ in .truncated(.records(records(many))) }
        try await withResolver(asking: server) { resolver, _ in
            let found = try await resolver.services(of: service).get()
            #expect(found.count == 64)
            #expect(found == Array(many.prefix(64)))
        }
    }

    @Test func `of a name with a thousand addresses eight of each family are kept`() async throws {
        let many = (0..<200).map { IPAddress(v4: 0xC000_0200 + UInt32($0)) }
        let server = NameServerStub { question in
            .truncated(
                .addresses(question.isForV4 ? many : many.indices.map { IPAddress(v6: UInt128($0 + 2)) }, ttl: 60))
        }
        try await withResolver(asking: server) { resolver, _ in
            let answer = await withCheckedContinuation { continuation in
                _ = resolver.resolve("www.example.com") { continuation.resume(returning: $0) }
            }
            let found = try answer.get().addresses
            print("\(found.count) of 400 addresses are kept")
            #expect(found.filter { $0.family == .v4 } == Array(many.prefix(8)))
            #expect(found.filter { $0.family == .v6 }.count == 8)
        }
    }

    @Test func `the rules of a domain are read with all their fields`() async throws {
        let server = NameServerStub { _ in
            .records([
                .rule(50, 50, "s", "SIPS+D2T", "", "_sips._tcp.example.com"),
                .rule(90, 50, "S", "sip+d2t", "", "_SIP._tcp.example.com"),
                .rule(100, 10, "u", "E2U+sip", "!^.*$!sip:info@example.com!", "."),
            ])
        }
        try await withResolver(asking: server) { resolver, _ in
            let rules = try await resolver.pointers(of: "example.com").get()
            #expect(server.asked.map(\.description) == ["example.com NAPTR"])
            #expect(rules.map(\.order) == [50, 90, 100])
            #expect(rules.map(\.preference) == [50, 50, 10])
            #expect(rules.map(\.flags) == ["s", "S", "u"])
            #expect(rules.map(\.service) == ["SIPS+D2T", "sip+d2t", "E2U+sip"])
            #expect(rules.map(\.regexp) == ["", "", "!^.*$!sip:info@example.com!"])
            #expect(rules.map(\.replacement) == ["_sips._tcp.example.com", "_SIP._tcp.example.com", ""])
        }
    }

    @Test func `a service that is not offered has the root for a host`() async throws {
        let server = NameServerStub { _ in .records([.service(0, 0, 0, ".")]) }
        try await withResolver(asking: server) { resolver, _ in
            let locations = try await resolver.services(of: service).get()
            #expect(locations == [ServiceLocation(priority: 0, weight: 0, port: 0, target: "")])
        }
    }

    @Test func `the hosts behind an alias count and those of other names do not`() async throws {
        let server = NameServerStub { _ in
            .records([
                .alias("_sip._tcp.hosting.example"),
                .service(1, 1, 5061, "other.example", owner: "_sip._tcp.other.example"),
                .service(1, 1, 5060, "sip.hosting.example", owner: "_SIP._tcp.Hosting.example"),
            ])
        }
        try await withResolver(asking: server) { resolver, _ in
            let locations = try await resolver.services(of: service).get()
            #expect(locations.map(\.target) == ["sip.hosting.example"])
        }
    }

    @Test(arguments: ["_sip._tcp.example.com", "_sip._tcp.example.com.", "_sip"])
    func `the name is complete and not looked for in a file`(name: String) async throws {
        let server = NameServerStub { _ in .code(3) }
        try await withResolver(asking: server, "search corp.example\noptions ndots:5") { resolver, configuration in
            configuration.writeHosts("192.0.2.9 \(name) _sip._tcp.example.com\n")
            for order in ["hosts: files dns\n", "hosts: dns files\n"] {
                configuration.writeNsswitch(order)
                expect(await resolver.services(of: name).failure?.kind, is: .noSuchName)
                expect(await resolver.pointers(of: name).failure?.kind, is: .noSuchName)
            }
            let asked = name.hasSuffix(".") ? String(name.dropLast()) : name
            #expect(server.asked.map(\.name) == [asked, asked, asked, asked])
        }
    }

    @Test func `without DNS there is no answer`() async throws {
        let server = NameServerStub { [hosts] _ in .records(records(hosts)) }
        try await withResolver(asking: server) { resolver, configuration in
            configuration.writeNsswitch("hosts: files\n")
            let error = try #require(await resolver.services(of: service).failure)
            #expect(error.kind == .noSuchName && error.isFinal)
            expect(await resolver.pointers(of: "example.com").failure, is: error)
            #expect(server.questions.isEmpty)
        }
    }

    @Test func `localhost offers nothing and no server is asked for it`() async throws {
        let server = NameServerStub { [hosts] _ in .records(records(hosts)) }
        try await withResolver(asking: server) { resolver, _ in
            let error = ResolutionError(.noRecord, "localhost has addresses only")
            expect(await resolver.services(of: "_sip._tcp.localhost").failure, is: error)
            expect(await resolver.pointers(of: "localhost.").failure, is: error)
            #expect(server.questions.isEmpty)
        }
    }

    @Test(arguments: [
        NameServerStub.Reply.empty, .records([.alias("_sip._tcp.hosting.example")]),
        .records([NameServerStub.Record(1, [198, 51, 100, 7])]),
        .records([.rule(1, 1, "s", "SIP+D2T", "", "_sip._tcp.example.com")]),
    ])
    func `a name without such a record is finally without it`(reply: NameServerStub.Reply) async throws {
        let server = NameServerStub { _ in reply }
        try await withResolver(asking: server) { resolver, _ in
            var evidence: [Resolver.Evidence] = []
            resolver.onEvidence = { shown, _ in evidence.append(shown) }
            let error = try #require(await resolver.services(of: service).failure)
            #expect(error == ResolutionError(.noRecord, "DNS server returned answer with no data"))
            #expect(error.isFinal)
            #expect(evidence == [.answered])
        }
    }

    @Test func `an absence holds as long as its authority says`() async throws {
        let server = NameServerStub { .negative($0.type == 33 ? 3 : 0, ttl: 600, minimum: 30) }
        try await withResolver(asking: server) { resolver, _ in
            let before = BootClock.now()
            let errors = [
                await resolver.services(of: service).failure, await resolver.pointers(of: "example.com").failure,
            ]
            #expect(errors.map(\.?.kind) == [.noSuchName, .noRecord])
            for error in errors {
                let expires = try #require(error?.expires)
                #expect(expires >= before + .seconds(30) && expires <= BootClock.now() + .seconds(30))
            }
        }
    }

    @Test(arguments: [UInt8(2), 4, 5]) func `a server that cannot answer leaves hope`(code: UInt8) async throws {
        let server = NameServerStub { _ in .code(code) }
        try await withResolver(asking: server) { resolver, _ in
            resolver.onEvidence = { evidence, _ in Issue.record("a refusal shows \(evidence)") }
            let error = try #require(await resolver.services(of: service).failure)
            #expect(error.kind == .serverFailure && !error.isFinal)
        }
    }

    @Test func `a malformed record is no answer even beside good ones`() async throws {
        let server = NameServerStub { [hosts] _ in
            .records(records(hosts) + [NameServerStub.Record(33, [0, 1, 0, 2, 0, 3, 9, 98])])
        }
        try await withResolver(asking: server) { resolver, _ in
            let error = try #require(await resolver.services(of: service).failure)
            #expect(!error.isFinal)
        }
    }

    @Test func `a server that is silent is given up after three rounds`() async throws {
        let server = NameServerStub { _ in .silence }
        try await withResolver(asking: server) { resolver, _ in
            var evidence: [Resolver.Evidence] = []
            resolver.onEvidence = { shown, _ in evidence.append(shown) }
            let error = try #require(await resolver.services(of: service).failure)
            #expect(error == ResolutionError(.noAnswer, "Timeout while contacting DNS servers"))
            #expect(!error.isFinal)
            #expect(server.questions.count == Int(Resolver.rounds))
            #expect(evidence == [.silent])
        }
    }

    @Test func `servers that are silent are given up at the limit`() async throws {
        let server = NameServerStub { _ in .silence }
        let others = ["127.0.0.2", "127.0.0.3"].map { NameServerStub($0, port: server.port) { _ in .silence } }
        try await withResolver(asking: server, "nameserver 127.0.0.2\nnameserver 127.0.0.3") { resolver, _ in
            let error = await resolver.pointers(of: "example.com").failure
            #expect(error == ResolutionError(.noAnswer, "no answer in \(Resolver.answerLimit)"))
            #expect(others.map(\.questions.count) == [2, 2])
        }
    }

    @Test func `a truncated answer is fetched over TCP`() async throws {
        let many = (1...40).map {
            ServiceLocation(priority: 1, weight: $0, port: 5060, target: "sip\($0).example.com")
        }
        let server = NameServerStub { _ in .truncated(.records(records(many))) }
        try await withResolver(asking: server) { resolver, _ in
            expect(await resolver.services(of: service), is: .success(many))
            #expect(server.questions.count == 2)
        }
    }

    @Test(arguments: ["", "a..example", "nul\0.example", String(repeating: "long", count: 20) + ".example"])
    func `what is no name is malformed`(name: String) async throws {
        let server = NameServerStub { [hosts] _ in .records(records(hosts)) }
        try await withResolver(asking: server, "search corp.example") { resolver, _ in
            let error = ResolutionError(.malformed, "Misformatted domain name")
            expect(await resolver.services(of: name).failure, is: error)
            expect(await resolver.pointers(of: name).failure, is: error)
            #expect(server.questions.isEmpty)
        }
    }

    @Test func `a cancelled query calls nobody even when its answer was under way`() async throws {
        let server = NameServerStub { [hosts] in
            $0.name == service ? .held(.records(records(hosts))) : .records(records(hosts))
        }
        try await withResolver(asking: server) { resolver, configuration in
            let query = resolver.services(of: service) { _ in Issue.record("it was cancelled") }
            // Its answer shows that the server has the first question.
            _ = await resolver.services(of: "_sips._tcp.example.com")
            query.cancel()
            #expect(resolver.channel == nil)
            server.releaseHeld()
            // Answered in this turn, and cancelled before the turn that hands it on.
            configuration.writeNsswitch("hosts: files\n")
            resolver.pointers(of: "example.com") { _ in Issue.record("it was cancelled") }.cancel()
            configuration.writeNsswitch("hosts: dns\n")
            _ = await resolver.services(of: "_sips._tcp.example.com")
        }
    }

    @Test func `a handler is not called in the turn of the question`() async throws {
        let server = NameServerStub { [hosts] _ in .records(records(hosts)) }
        try await withResolver(asking: server) { resolver, configuration in
            configuration.writeNsswitch("hosts: files\n")
            var calls = 0
            _ = resolver.services(of: service) { _ in calls += 1 }
            #expect(calls == 0)
            _ = await resolver.services(of: service)
            #expect(calls == 1)
        }
    }

    @Test func `a changed network repeats the questions that are under way`() async throws {
        let server = NameServerStub { $0.name == "end.example.com" ? .empty : .silence }
        try await withResolver(asking: server) { resolver, _ in
            let queries = [
                resolver.services(of: service) { _ in }, resolver.pointers(of: "example.com") { _ in },
            ]
            resolver.networkChanged()
            // The first sockets are closed at once; a further question proves that the second reached the server.
            _ = await resolver.services(of: "end.example.com")
            for name in [service, "example.com"] { #expect(server.ports(askingFor: name).count == 2) }
            let asked = Set(server.questions.map(\.description))
            #expect(asked == ["_sip._tcp.example.com SRV", "example.com NAPTR", "end.example.com SRV"])
            for query in queries { query.cancel() }
        }
    }
}
