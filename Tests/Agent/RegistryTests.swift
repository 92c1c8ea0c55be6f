// SPDX-License-Identifier: Apache-2.0

import DialtoneAPI
import DialtoneConnectionIO
import DialtoneNetworkPath
import DialtonePlatform
import DialtoneProcesses
import DialtoneTestSupport
import Glibc
import Testing

@testable import DialtoneAgent
@testable import DialtoneConfiguration
@testable import DialtoneConnection
@testable import DialtonePersistence

/// A registry in a network of the test's, and what it wrote down.
@AgentQueue
final class RegistryFixture {
    let network = FakeNetwork()
    let wakes = WakeContext()
    let registry: ConnectionRegistry
    private(set) var events: [RecordedEvent] = []

    init(connectionsPerUser: Int = 100, continuity: Continuity? = nil) {
        registry = ConnectionRegistry(
            DialerContext(paths: network, names: network), wakes, connectionsPerUser: connectionsPerUser,
            continuity: continuity)
        registry.onEvent { [weak self] in self?.events.append($0) }
    }

    isolated deinit { registry.closeAll() }

    /// Opens a connection for a client; throws the refusal.
    @discardableResult
    func open(
        _ name: String? = nil, _ remote: String = "tcp://192.0.2.7:5060", owner: UInt32 = 1000
    ) throws -> String {
        try registry.open(name, policy(remote), owner: owner, origin: .client)
    }

    func policy(_ remote: String = "tcp://192.0.2.7:5060", _ change: (inout ConnectionPolicy) -> Void = { _ in })
        throws -> ConnectionPolicy
    {
        var policy = ConnectionPolicy(remote: try Remote(remote))
        change(&policy)
        return policy
    }

    func configured(_ name: String, _ policy: ConnectionPolicy, owner: UInt32 = 1000) -> ConfiguredConnection {
        ConfiguredConnection(name: name, policy: policy, owner: owner)
    }

    func names(visibleTo user: UInt32 = 0) -> [String] { registry.visible(to: user).map(\.name) }

    /// What happened before is of no interest any more.
    func forget() { events = [] }

    /// What happened since the last call: `office opened`.
    func story() -> [String] {
        defer { events = [] }
        return events.map { "\($0.name) \($0.event.wireKind.rawValue)" }
    }
}

/// The registry of connections.
@Suite @AgentQueue
struct RegistryTests {
    /// How it becomes known that a client has what was left of a connection that ended with its flow.
    enum Proof: CaseIterable {
        case ends, comesAgain, parks, usesTheName
    }

    @Test func `a flow that the kernel does not let be watched leaves no connection, and no event`() throws {
        let fixture = RegistryFixture()
        let file = OwnedDescriptor(open("/dev/null", O_RDWR | O_CLOEXEC))
        let (end, policy) = (Endpoint(address: .loopback, port: 1), try fixture.policy())
        do throws(RegistryError) {
            let adoption = Adoption(epoch: 1, local: end, remote: end)
            _ = try fixture.registry.adopt("brought", file, adoption, policy, owner: 1000)
            Issue.record("it was adopted")
        } catch {
            guard case .system(let refusal) = error else { throw error }
            #expect(refusal.code == EPERM)
        }
        #expect(fixture.names() == [])
        #expect(fixture.story() == [])
    }

    @Test(arguments: Proof.allCases)
    func `a connection that ended with its flow is forgotten once its client has what was left`(proof: Proof)
        async throws
    {
        let (fixture, listener, client) = (RegistryFixture(), try LoopbackListener(), try Sleeper())
        defer { client.end() }
        fixture.network.becomeReachable()
        let brought = try listener.connect()
        let peer = try listener.accept()
        let ends = try AdoptedSocket(brought.number)
        let policy = try fixture.policy("tcp://127.0.0.1:\(listener.port)") { $0.redials = false }
        _ = try fixture.registry.adopt(
            "once", brought, Adoption(local: ends.local, remote: ends.remote), policy, owner: 1000)
        _ = send(peer.number, "BYE", 3, 0)
        try await eventually("it came") { fixture.registry.visible(to: 0).first?.wire?.unreadBytes == 3 }
        peer.close()
        try await eventually("it has ended") { fixture.registry.visible(to: 0).first?.wire?.state == .closed }
        let process = try ProcessHandle(client.process)
        let socket = try fixture.registry.take("once", by: process, for: 1000).release()
        #expect(fixture.names() == ["once"])
        var bytes = [UInt8](repeating: 0, count: 9)
        #expect(recv(socket.number, &bytes, 9, 0) == 3)
        switch proof {
        case .ends: client.end()
        case .comesAgain:
            #expect(throws: RegistryError.self) { _ = try fixture.registry.take("once", by: process, for: 1000) }
        case .parks: #expect(throws: RegistryError.self) { try fixture.registry.park("once", 1, for: 1000) }
        case .usesTheName:
            #expect(try fixture.open("once") == "once")
            return
        }
        try await eventually("it is forgotten") { fixture.names().isEmpty }
    }

    @Test func `a connection is named as its client says, else after its host`() throws {
        let fixture = RegistryFixture()
        #expect(try fixture.open("office") == "office")
        #expect(try fixture.open() == "192.0.2.7")
        #expect(try fixture.open() == "192.0.2.7-2")
        #expect(try fixture.open() == "192.0.2.7-3")
        #expect(try fixture.open(nil, "tcp://[2001:db8::7]:1") == "2001:db8::7")
        #expect(try fixture.open(nil, "tcp://SIP.Example.com.:1") == "sip.example.com")
        #expect(fixture.names().count == 6)
    }

    @Test func `a host of any length gives a name that can be one`() throws {
        let fixture = RegistryFixture()
        let host = String(repeating: "a", count: 63) + "." + String(repeating: "b", count: 63) + ".example"
        let names = try (1...11).map { _ in try fixture.open(nil, "tcp://\(host):1") }
        #expect(Set(names).count == names.count)
        for name in names {
            #expect(ConnectionName.problem(name) == nil, "\(name)")
            #expect(host.hasPrefix(name.prefix(60)), "it is still told by its beginning")
        }
    }

    @Test(arguments: ["", "a b", "-a", ".a", "a/b", "ä", String(repeating: "a", count: 65), "a\u{0}"])
    func `a name that cannot be one is refused`(name: String) {
        let fixture = RegistryFixture()
        #expect(throws: RegistryError.invalidName) { try fixture.open(name) }
        #expect(fixture.registry.count == 0)
        #expect(fixture.story().isEmpty)
    }

    @Test func `a name is taken for its owner alone`() throws {
        let fixture = RegistryFixture()
        try fixture.open("office", owner: 1000)
        #expect(throws: RegistryError.nameTaken) { try fixture.open("office", owner: 1000) }
        #expect(try fixture.open("office", owner: 1001) == "office")
        #expect(fixture.registry.count == 2)
        try fixture.registry.close("office", for: 1000)
        #expect(fixture.names(visibleTo: 1000) == [])
        #expect(fixture.names(visibleTo: 1001) == ["office"])
    }

    @Test func `root's own connection of a name comes first, then the only one, and namesakes are told apart by owner`()
        throws
    {
        let fixture = RegistryFixture()
        for owner: UInt32 in [0, 1000, 1001] { try fixture.open("office", owner: owner) }
        func owners() -> [UInt32] { fixture.registry.visible(to: 0).map(\.owner) }
        try fixture.registry.close("office", for: 0)
        #expect(owners() == [1000, 1001])
        #expect(throws: RegistryError.ambiguous(owners: [1000, 1001])) { try fixture.registry.close("office", for: 0) }
        try fixture.registry.redial(ConnectionReference("office", of: 1001), for: 0)
        try fixture.registry.close(ConnectionReference("office", of: 1001), for: 0)
        #expect(owners() == [1000])
        #expect(throws: RegistryError.noSuchConnection) {
            try fixture.registry.close(ConnectionReference("office", of: 0), for: 0)
        }
        try fixture.registry.close("office", for: 0)
        #expect(owners() == [])
    }

    @Test func `a user who names another owner finds nothing`() throws {
        let fixture = RegistryFixture()
        for owner: UInt32 in [1000, 1001] { try fixture.open("office", owner: owner) }
        #expect(throws: RegistryError.noSuchConnection) {
            try fixture.registry.close(ConnectionReference("office", of: 1001), for: 1000)
        }
        try fixture.registry.close(ConnectionReference("office", of: 1000), for: 1000)
        #expect(fixture.registry.visible(to: 0).map(\.owner) == [1001])
    }

    @Test func `a made-up name says nothing of the names that others have`() throws {
        let fixture = RegistryFixture()
        #expect(try fixture.open(owner: 1000) == "192.0.2.7")
        #expect(try fixture.open(owner: 1001) == "192.0.2.7")
        #expect(try fixture.open(owner: 1001) == "192.0.2.7-2")
    }

    @Test func `a user sees and touches what is the user's, and root all`() throws {
        let fixture = RegistryFixture()
        try fixture.open("one", owner: 1000)
        try fixture.open("two", owner: 1001)
        #expect(fixture.names(visibleTo: 1000) == ["one"])
        #expect(fixture.names(visibleTo: 1001) == ["two"])
        #expect(fixture.names(visibleTo: 1002) == [])
        #expect(fixture.names(visibleTo: 0) == ["one", "two"])
        #expect(throws: RegistryError.noSuchConnection) { try fixture.registry.close("two", for: 1000) }
        #expect(throws: RegistryError.noSuchConnection) { try fixture.registry.redial("two", for: 1000) }
        #expect(throws: RegistryError.noSuchConnection) { try fixture.registry.close("three", for: 0) }
        try fixture.registry.redial("two", for: 0)
        try fixture.registry.close("two", for: 0)
        try fixture.registry.close("one", for: 1000)
        #expect(fixture.registry.count == 0)
        #expect(fixture.network.targets.isEmpty, "nobody watches a path for a connection that is closed")
    }

    @Test func `a user has as many connections as the limit says, and gets them back by closing`() throws {
        let fixture = RegistryFixture(connectionsPerUser: 2)
        try fixture.open("a")
        try fixture.open("b")
        #expect(throws: RegistryError.quotaExceeded(limit: 2)) { try fixture.open("c") }
        #expect(throws: RegistryError.nameTaken, "a mistake is told before a limit") { try fixture.open("a") }
        try fixture.open("d", owner: 1001)
        for name in ["e", "f", "g"] { try fixture.open(name, owner: 0) }
        try fixture.registry.close("a", for: 0)
        try fixture.open("c")
        fixture.registry.connectionsPerUser = 3
        try fixture.open("a")
        #expect(fixture.registry.count == 7)
    }

    @Test func `what a file names counts against nobody, and no client closes it`() throws {
        let fixture = RegistryFixture(connectionsPerUser: 1)
        let wanted = try ["x", "y"].map { fixture.configured($0, try fixture.policy()) }
        #expect(fixture.registry.reconcile(with: wanted) == [])
        try fixture.open("mine")
        for user: UInt32 in [0, 1000] {
            #expect(throws: RegistryError.configured) { try fixture.registry.close("x", for: user) }
        }
        #expect(throws: RegistryError.noSuchConnection) { try fixture.registry.close("x", for: 1001) }
        try fixture.registry.redial("x", for: 1000)
        #expect(fixture.names() == ["x", "y", "mine"])
    }

    @Test func `the end closes everything`() throws {
        let fixture = RegistryFixture()
        _ = fixture.registry.reconcile(with: [fixture.configured("x", try fixture.policy())])
        try fixture.open("a")
        _ = fixture.story()
        fixture.registry.closeAll()
        #expect(fixture.story() == ["x closed", "a closed"])
        #expect(fixture.registry.count == 0)
        #expect(fixture.network.targets.isEmpty)
    }
}
