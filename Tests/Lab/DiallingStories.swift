// SPDX-License-Identifier: Apache-2.0

import DialtoneAPI
import DialtoneClient
import DialtoneLabSupport
import DialtoneNetworkPath
import DialtonePlatform
import DialtoneTestSupport
import Foundation
import Testing

/// From a name to a flow: what name servers answer and which addresses are dead, with kamailio at the end of the way.
@Suite(.lab, .server("kamailio"))
struct DiallingStories {
    private static let domain = "lab.example"
    private static let alive = IPAddress(LabNetwork.serverAddress(.v4))
    /// An address of the server's network that nobody has: no answer, and no word of that for seconds.
    private static let nobody = IPAddress("203.0.113.66")

    /// A name server that knows one name, as long as it has no failure.
    private static func exchange(
        _ failure: @escaping @Sendable () -> NameServerStub.Reply?
    ) -> @Sendable (NameServerStub.Question) -> NameServerStub.Reply {
        { question in
            if let failure = failure() { return failure }
            guard question.name == "exchange.lab.example", question.isForV4 else { return .empty }
            return .addresses([alive].compactMap(\.self), ttl: 60)
        }
    }

    @Test(arguments: [(alive, UInt16(5099), ConnectionsAPI.EventKind.addressFailed), (nobody, 5060, .attemptBegan)])
    func `the first host of an SRV record is dead, and the second is taken`(
        dead: IPAddress?, port: UInt16, turn: ConnectionsAPI.EventKind
    ) async throws {
        let stub = try await DiallingFixture.run { question in
            switch (question.name, question.type) {
            case ("_sip._tcp.lab.example", 33):
                .records([.service(20, 0, 5060, "second.lab.example"), .service(10, 0, port, "first.lab.example")])
            case ("first.lab.example", 1): .addresses([dead].compactMap(\.self), ttl: 60)
            case ("second.lab.example", 1): .addresses([Self.alive].compactMap(\.self), ttl: 60)
            default: .empty
            }
        } body: { fixture in
            try await fixture.open("sip://\(Self.domain)")
            let ready = try await fixture.isReady()
            #expect(ready.connection.epoch == 2)
            // One that refuses makes room at once; beside one that is silent the next is tried.
            let attempts = fixture.events.events.filter { $0.connection.state == .connecting }
            #expect(attempts.map(\.connection.epoch) == [1, 2])
            #expect(attempts.first?.connection.remoteAddress == "\(dead.map(\.description) ?? ""):\(port)")
            // Where the refusal is faster than the second host's address, that is asked for in between.
            let turns: [ConnectionsAPI.EventKind] = turn == .addressFailed ? [turn, .state] : [turn]
            #expect(attempts.last.map { turns.contains($0.kind) } == true)
        }
        #expect(stub.questions.contains { $0.description == "_sip._tcp.lab.example SRV" })
    }

    @Test func `a NAPTR record leads to another service name, and that to the server`() async throws {
        let stub = try await DiallingFixture.run { question in
            switch (question.name, question.type) {
            case ("lab.example", 35):
                .records([
                    .rule(10, 0, "s", "SIP+D2U", "", "_sip._udp.lab.example"),
                    .rule(20, 0, "s", "SIP+D2T", "", "_sip._tcp.phones.lab.example"),
                ])
            case ("_sip._tcp.phones.lab.example", 33): .records([.service(10, 0, 5060, "exchange.lab.example")])
            // Where it would lead without the rule: nobody listens there.
            case ("_sip._tcp.lab.example", 33): .records([.service(10, 0, 5099, "exchange.lab.example")])
            case ("exchange.lab.example", 1): .addresses([Self.alive].compactMap(\.self), ttl: 60)
            default: .empty
            }
        } body: { fixture in
            try await fixture.open("sip://\(Self.domain)")
            try await fixture.isReady()
        }
        #expect(stub.questions.contains { $0.description == "_sip._tcp.phones.lab.example SRV" })
    }

    @Test func `IPv6 is a black hole: IPv4 is tried beside it, and is what stands`() async throws {
        try await DiallingFixture.run { question in
            guard question.name == "exchange.lab.example" else { return .empty }
            let address = question.isForV4 ? Self.alive : IPAddress(LabNetwork.serverAddress(.v6))
            return .addresses([address].compactMap(\.self), ttl: 60)
        } body: { fixture in
            try await fixture.lab.router.nft(["add rule inet lab forward meta nfproto ipv6 drop"])
            try await fixture.open("sip://exchange.lab.example:5060")
            let ready = try await fixture.isReady()
            let attempts = fixture.events.events.filter { $0.connection.state == .connecting }
            #expect(attempts.map(\.connection.epoch) == [1, 2])
            #expect(attempts.first?.connection.remoteAddress == "[\(LabNetwork.serverAddress(.v6))]:5060")
            #expect(attempts.last?.kind == .attemptBegan)
            #expect(ready.connection.epoch == 2)
        }
    }

    @Test(arguments: [NameServerStub.Reply.code(2), .silence])
    func `the name server is dead, and the address that answered last is dialled`(
        failure: NameServerStub.Reply
    ) async throws {
        let works = Lock(true)
        try await DiallingFixture.run(answering: Self.exchange { works.withLock { $0 } ? nil : failure }) { fixture in
            try await fixture.open("sip://exchange.lab.example:5060")
            let first = try await fixture.isReady()
            works.withLock { $0 = false }
            let before = fixture.events.events.count
            try await fixture.server.restart()
            let second = try await fixture.events.state(.ready, of: "office", after: before)
            #expect(second.connection.remoteAddress == first.connection.remoteAddress)
            // The name was asked for, and nobody answered.
            #expect(fixture.events.events.dropFirst(before).contains { $0.connection.state == .resolving })
        }
    }

    @Test(arguments: [
        (NameServerStub.Reply.code(2), "the name server gives no answer"), (.silence, "no name server answers"),
    ])
    func `no name server has an answer, and then there is one`(failure: NameServerStub.Reply, word: String)
        async throws
    {
        let works = Lock(false)
        try await DiallingFixture.run(answering: Self.exchange { works.withLock { $0 } ? nil : failure }) { fixture in
            try await fixture.open("sip://exchange.lab.example:5060")
            // After seven seconds of silence nobody dials any more: the way to an answer is what is waited for.
            let failed = try await fixture.events.event("\"\(word)\"") { $0.reason == word }
            #expect(failed.connection.epoch == 0)
            works.withLock { $0 = true }
            try await fixture.isReady()
            // No dial in between has had an address.
            #expect(fixture.events.events.filter { $0.connection.state == .connecting }.count == 1)
        }
    }
}

/// A host whose names come from a name server on the Lab's server, where kamailio is too.
private struct DiallingFixture {
    let lab: LabNetwork
    let server: LabServer
    let agent: LabAgent
    let events: EventRecorder

    /// - Returns: the name server, when all is over.
    @discardableResult
    static func run(
        answering reply: @escaping @Sendable (NameServerStub.Question) -> NameServerStub.Reply,
        body: (DiallingFixture) async throws -> Void
    ) async throws -> NameServerStub {
        try await LabNetwork.with { lab in
            let stub = try await lab.server.run {
                NameServerStub(LabNetwork.serverAddress(.v4), port: 53, reply: reply)
            }
            let server = try await LabServer.start(.kamailio(), on: lab.server)
            let file = FileManager.default.temporaryDirectory.appending(path: "resolv-\(UUID().uuidString).conf")
            defer { try? FileManager.default.removeItem(at: file) }
            try Data("nameserver \(LabNetwork.serverAddress(.v4))\n".utf8).write(to: file)
            // Seen by this machine alone.
            try await lab.host.command(["mount", "--bind", file.path, "/etc/resolv.conf"])
            let agent = try await LabAgent.start(on: lab.host)
            let events = try await EventRecorder.start(on: agent)
            try await body(DiallingFixture(lab: lab, server: server, agent: agent, events: events))
            #expect(events.disorder == nil)
            stub.stop()
            return stub
        }
    }

    func open(_ remote: String) async throws {
        _ = try await agent.client.open(
            .init(
                remote: remote, name: "office",
                settings: .init(backoff: .init(initial: .milliseconds(100), maximum: .milliseconds(200)))))
    }

    /// Waits for the connection to stand over IPv4, and holds that the daemon's list and both sides agree.
    @discardableResult
    func isReady() async throws -> ConnectionsAPI.Event {
        let ready = try await events.state(.ready, of: "office")
        #expect(ready.connection.remoteAddress == "\(LabNetwork.serverAddress(.v4)):\(server.port)")
        let listed = try #require(try await agent.client.connections().first)
        #expect(listed.state == .ready && listed.epoch == ready.connection.epoch)
        let hosts = try await lab.host.connections().filter { $0.state != "TIME-WAIT" && $0.peerPort != 53 }
        #expect(hosts.map { "\($0.address):\($0.port)" } == [listed.localAddress])
        let servers = try await lab.server.connections().filter { $0.port == server.port && $0.state == "ESTAB" }
        #expect(servers.map { "\($0.peerAddress):\($0.peerPort)" } == [listed.localAddress])
        return ready
    }
}
