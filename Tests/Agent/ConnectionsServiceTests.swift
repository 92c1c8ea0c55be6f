// SPDX-License-Identifier: Apache-2.0

import DialtoneAPI
import DialtoneExpectations
import DialtonePlatform
import DialtoneTestSupport
import DialtoneVarlink
import Glibc
import Testing

@testable import DialtoneAgent

/// org.dialtone.Connections.
@Suite(.timeLimit(.minutes(2))) @AgentQueue
struct ConnectionsServiceTests {
    @Test func `every method that is declared is answered`() {
        #expect(ServiceFixture().service.unansweredMethods == [])
    }

    @Test func `a connection is opened, listed, dialled and closed`() async throws {
        let fixture = ServiceFixture()
        let client = try fixture.client()
        let name = try await client.ask(
            ConnectionsAPI.Open.self, .init(remote: "TCP://192.0.2.7:05060/", name: "office")
        ).name
        #expect(name == "office")
        let listed = try await client.ask(ConnectionsAPI.List.self, .init()).connections
        #expect(listed.map(\.name) == ["office"])
        let office = try #require(listed.first)
        #expect(office.remote == "tcp://192.0.2.7:5060", "in its canonical form")
        #expect(office.state == .waiting)
        #expect(office.epoch == 0)
        #expect(office.holder == .daemon)
        #expect(office.session == .none)
        #expect(office.attempt == 1)
        #expect(office.localAddress == nil && office.lastProof == nil && office.unreadBytes == nil)
        _ = try await client.ask(ConnectionsAPI.Redial.self, .init(name: "office"))
        _ = try await client.ask(ConnectionsAPI.Close.self, .init(name: "office"))
        expect(try await client.ask(ConnectionsAPI.List.self, .init()).connections) { $0.isEmpty }
    }

    @Test func `a flow that stands shows its ends, its proof and what nobody read`() async throws {
        let (fixture, server) = (ServiceFixture(), try LoopbackListener())
        fixture.network.becomeReachable()
        let client = try fixture.client()
        let events = try fixture.client().monitor()
        _ = try await events.one()
        _ = try await client.ask(
            ConnectionsAPI.Open.self, .init(remote: "tcp://127.0.0.1:\(server.port)", name: "loop"))
        var state = ConnectionsAPI.State.waiting
        while state != .ready { state = try #require(try await events.one().connections.first).state }
        let loop = try #require(try await client.ask(ConnectionsAPI.List.self, .init()).connections.first)
        #expect(loop.state == .ready)
        #expect(loop.epoch == 1)
        #expect(loop.remoteAddress == "127.0.0.1:\(server.port)")
        #expect(loop.localAddress?.hasPrefix("127.0.0.1:") == true)
        #expect(loop.lastProof != nil)
        #expect(loop.unreadBytes == 0)
        #expect(loop.session == .none)
    }

    @Test(arguments: [
        ("tcp://192.0.2.7", "the port is missing"), ("192.0.2.7:1", "the scheme is missing"),
        ("tcp://192.0.2.7:0", "invalid port \"0\""), ("tcp://192.0.2.7:65536", "invalid port \"65536\""),
        ("tls://192.0.2.7", "the port is missing"), ("tcp://user@192.0.2.7:1", "password"), ("", "scheme"),
        ("tcp://300.1.1.1:1", "not a complete IPv4 address"),
    ])
    func `a remote that cannot be dialled is refused with the reason`(remote: String, reason: String) async throws {
        let fixture = ServiceFixture()
        let error: ConnectionsAPI.InvalidRemote = try await fixture.client().refusal(
            of: ConnectionsAPI.Open.self, .init(remote: remote))
        #expect(error.remote == remote)
        #expect(error.reason.contains(reason), "\(error.reason)")
        #expect(fixture.registry.count == 0)
    }

    /// The parameter is named as the interface has it, since that is what the caller can look up.
    @Test(arguments: [
        ("tcp://h:1", ConnectionsAPI.Settings(mark: -1), "mark"),
        ("tcp://h:1", .init(mark: 4_294_967_296), "mark"),
        ("tcp://h:1", .init(userTimeout: .zero), "userTimeoutMilliseconds"),
        ("tcp://h:1", .init(userTimeout: .milliseconds(Int.max)), "userTimeoutMilliseconds"),
        ("tcp://h:1", .init(grace: .milliseconds(60_001)), "graceMilliseconds"),
        ("tcp://h:1", .init(keepalive: .init(protocol: "smoke")), "keepalive.protocol"),
        (
            "tcp://h:1", .init(keepalive: .init(protocol: "tcp", interval: .milliseconds(1))),
            "keepalive.intervalMilliseconds"
        ),
        (
            "tcp://h:1", .init(keepalive: .init(protocol: "tcp", interval: .milliseconds(-Int.max))),
            "keepalive.intervalMilliseconds"
        ),
        ("sip://h", .init(keepalive: .init(interval: .milliseconds(29_999))), "keepalive.intervalMilliseconds"),
        (
            "tcp://h:1", .init(keepalive: .init(protocol: "tcp", interval: .milliseconds(1500))),
            "keepalive.intervalMilliseconds"
        ),
        (
            "tcp://h:1", .init(keepalive: .init(protocol: "client", interval: .seconds(1))),
            "keepalive.intervalMilliseconds"
        ),
        ("tcp://h:1", .init(keepalive: .init(protocol: "custom")), "keepalive.send"),
        ("tcp://h:1", .init(keepalive: .init(protocol: "custom", send: #"\q"#)), "keepalive.send"),
        ("tcp://h:1", .init(keepalive: .init(protocol: "crlf", expect: "x")), "keepalive.expect"),
        ("tcp://h:1", .init(trafficClass: "gold"), "trafficClass"),
        ("tcp://h:1", .init(priority: 7), "priority"),
        ("tcp://h:1", .init(backoff: .init(initial: .zero)), "backoff.initialMilliseconds"),
        (
            "tcp://h:1", .init(backoff: .init(initial: .milliseconds(500), maximum: .milliseconds(499))),
            "backoff.maximumMilliseconds"
        ),
        ("tcp://h:1", .init(backoff: .init(factor: 0.5)), "backoff.factor"),
        ("tcp://h:1", .init(backoff: .init(stableAfter: .milliseconds(1))), "backoff.stableAfterMilliseconds"),
        ("tls://h:1", .init(tls: .init(pins: ["AAAA"])), "tls.pins[0]"),
        ("tls://h:1", .init(tls: .init(minVersion: "1.1")), "tls.minVersion"),
        ("tls://h:1", .init(tls: .init(serverName: "a b")), "tls.serverName"),
        ("tls://h:1", .init(tls: .init(alpn: [""])), "tls.alpn"),
        ("tls://h:1", .init(tls: .init(key: "/key.pem")), "tls.key"),
        ("tcp://h:1", .init(tls: .init(verify: false)), "tls"),
    ])
    func `a figure that makes no sense is refused by its name`(
        remote: String, settings: ConnectionsAPI.Settings, name: String
    ) async throws {
        let fixture = ServiceFixture()
        let error: ServiceAPI.InvalidParameter = try await fixture.client().refusal(
            of: ConnectionsAPI.Open.self, .init(remote: remote, settings: settings))
        #expect(error.parameter == "settings.\(name)")
        #expect(fixture.registry.count == 0)
    }

    @Test(arguments: ["", "a b", "-a", ".a", String(repeating: "a", count: 65)])
    func `a name that makes no sense is refused as that parameter`(name: String) async throws {
        let fixture = ServiceFixture()
        let error: ServiceAPI.InvalidParameter = try await fixture.client().refusal(
            of: ConnectionsAPI.Open.self, .init(remote: "tcp://192.0.2.7:1", name: name))
        #expect(error.parameter == "name")
        #expect(fixture.registry.count == 0)
    }

    @Test func `each refusal is the interface's error with the name`() async throws {
        let fixture = ServiceFixture()
        try await fixture.open("office")
        let client = try fixture.client()
        let taken: ConnectionsAPI.NameTaken = try await client.refusal(
            of: ConnectionsAPI.Open.self, .init(remote: "tcp://192.0.2.7:1", name: "office"))
        #expect(taken.name == "office")
        let missing: ConnectionsAPI.NoSuchConnection = try await client.refusal(
            of: ConnectionsAPI.Close.self, .init(name: "nobody"))
        #expect(missing.name == "nobody")
        let alsoMissing: ConnectionsAPI.NoSuchConnection = try await client.refusal(
            of: ConnectionsAPI.Redial.self, .init(name: "nobody"))
        #expect(alsoMissing.name == "nobody")
    }

    @Test func `a connection outlives its client`() async throws {
        let fixture = ServiceFixture()
        let client = try fixture.client()
        _ = try await client.ask(ConnectionsAPI.Open.self, .init(remote: "tcp://192.0.2.7:1", name: "office"))
        client.close()
        expect(
            try await fixture.client().ask(ConnectionsAPI.List.self, .init()).connections.map(\.name), is: ["office"])
    }
}

/// What one user may know and do of another's.
@Suite(
    "Connections of several users", .timeLimit(.minutes(2)),
    .enabled(if: Client.obstacle == nil, Client.obstacle ?? "there are two users")) @AgentQueue
struct SeveralUsersTests {
    @Test func `names are by owner, and nobody learns from them what others have`() async throws {
        let fixture = ServiceFixture()
        try await fixture.open("office")
        try await fixture.open("office", for: .nobody)
        let made = [try await fixture.open(), try await fixture.open(for: .nobody)]
        #expect(made == ["192.0.2.7", "192.0.2.7"])
        let (root, nobody) = (try fixture.client(), try fixture.client(.nobody))
        let seen = try await root.ask(ConnectionsAPI.List.self, .init()).connections
        #expect(seen.map(\.owner) == [0, 65534, 0, 65534])
        let nobodys = try await fixture.client().monitor(names: ["office"], owner: 65534).one()
        #expect(nobodys.connections.map(\.owner) == [65534])
        let _: ConnectionsAPI.NoSuchConnection = try await nobody.refusal(
            of: ConnectionsAPI.Redial.self, .init(name: "office", owner: 0))
        for owner in [-1, 1 << 32] {
            let invalid: ServiceAPI.InvalidParameter = try await root.refusal(
                of: ConnectionsAPI.Close.self, .init(name: "office", owner: owner))
            #expect(invalid.parameter == "owner")
        }
        _ = try await root.ask(ConnectionsAPI.Close.self, .init(name: "office", owner: 65534))
        #expect(fixture.registry.visible(to: 0).filter { $0.name == "office" }.map(\.owner) == [0])
    }

    @Test func `a monitor tells of one's own, and its numbers have holes where others' were`() async throws {
        let fixture = ServiceFixture()
        try await fixture.open("roots")
        let events = try fixture.client(.nobody).monitor()
        let snapshot = try await events.one()
        #expect(snapshot.kind == .snapshot)
        #expect(snapshot.connections.isEmpty)
        fixture.network.change()
        fixture.network.change()
        try await fixture.open("nobodys", for: .nobody)
        let opened = try await events.one()
        #expect(opened.event?.kind == .opened)
        #expect(opened.connections.map(\.name) == ["nobodys"])
        #expect(opened.sequence == snapshot.sequence + 3)
    }

    @Test func `others' events are no gap for one who resumes`() async throws {
        let fixture = ServiceFixture()
        try await fixture.open("roots")
        try await fixture.open("nobodys", for: .nobody)
        let sequence = try await fixture.client(.nobody).monitor().one().sequence
        _ = try await fixture.client().ask(ConnectionsAPI.Close.self, .init(name: "roots"))
        fixture.network.change()
        let resumed = try await fixture.client(.nobody).monitor(after: sequence).one()
        #expect(resumed.kind == .change)
        #expect(resumed.connections.map(\.name) == ["nobodys"])
    }

    @Test func `a user has so many connections and monitors, and root as many as it likes`() async throws {
        let fixture = ServiceFixture(connectionsPerUser: 1, subscriptionsPerUser: 2)
        try await fixture.open("a", for: .nobody)
        let full: ConnectionsAPI.QuotaExceeded = try await fixture.client(.nobody).refusal(
            of: ConnectionsAPI.Open.self, .init(remote: "tcp://192.0.2.7:1"))
        #expect(full.limit == 1)
        for _ in 1...3 { try await fixture.open() }

        let clients = try (1...3).map { _ in try fixture.client(.nobody) }
        let first = clients[0].monitor()
        _ = try await first.one()
        _ = try await clients[1].monitor().one()
        let refused: ConnectionsAPI.QuotaExceeded = try await clients[2].monitor().refusal()
        #expect(refused.limit == 2)
        for _ in 1...3 { _ = try await fixture.client().monitor().one() }
        // Hanging up gives it back.
        try await fixture.hangUp(clients[0])
        _ = try await clients[2].monitor().one()
    }

    @Test func `a path is monitored so many times, too`() async throws {
        let fixture = ServiceFixture(subscriptionsPerUser: 1)
        let first = try fixture.client(.nobody)
        _ = try await first.stream(NetworkAPI.MonitorPath.self, .init()).one()
        let second = try fixture.client(.nobody)
        let refused: NetworkAPI.QuotaExceeded = try await second.stream(NetworkAPI.MonitorPath.self, .init()).refusal()
        #expect(refused.limit == 1)
        try await fixture.hangUp(first)
        _ = try await second.stream(NetworkAPI.MonitorPath.self, .init()).one()
    }
}
