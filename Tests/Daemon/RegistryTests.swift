// SPDX-License-Identifier: Apache-2.0

import Activation
import Dialer
import DialtoneAPI
import Glibc
import NetworkPath
import Platform
import TestSupport
import Testing

@testable import Daemon
@testable import Supervisor

/// A registry in a network of the test's, and what it wrote down.
@AgentQueue
final class RegistryBench {
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

@Suite("The registry of connections") @AgentQueue
struct RegistryTests {
    /// How it becomes known that a client has what was left of a connection that ended with its flow.
    enum Proof: CaseIterable {
        case ends, comesAgain, parks, usesTheName
    }

    @Test(arguments: Proof.allCases)
    func `a connection that ended with its flow is forgotten once its client has what was left`(proof: Proof)
        async throws
    {
        let (bench, listener, client) = (RegistryBench(), try LoopbackListener(), try Sleeper())
        defer { client.end() }
        bench.network.becomeReachable()
        let brought = OwnedDescriptor(Glibc.socket(AF_INET, CInt(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0))
        let number = brought.number
        let address = SocketAddress(IPAddress(v4: 0x7F00_0001), port: listener.port)
        #expect(address.withPointer { connect(number, $0, $1) } == 0)
        let peer = try listener.accept()
        let ends = try AdoptedSocket(number)
        let policy = try bench.policy("tcp://127.0.0.1:\(listener.port)") { $0.redials = false }
        _ = try bench.registry.adopt(
            "once", brought, Adoption(local: ends.local, remote: ends.remote), policy, owner: 1000)
        _ = send(peer.number, "BYE", 3, 0)
        try await eventually("it came") { bench.registry.visible(to: 0).first?.wire?.unreadBytes == 3 }
        peer.close()
        try await eventually("it has ended") { bench.registry.visible(to: 0).first?.wire?.state == .closed }
        let process = try ProcessHandle(client.process)
        let socket = try bench.registry.take("once", by: process, for: 1000).release()
        #expect(bench.names() == ["once"])
        var bytes = [UInt8](repeating: 0, count: 9)
        #expect(recv(socket.number, &bytes, 9, 0) == 3)
        switch proof {
        case .ends: client.end()
        case .comesAgain:
            #expect(throws: RegistryError.self) { _ = try bench.registry.take("once", by: process, for: 1000) }
        case .parks: #expect(throws: RegistryError.self) { try bench.registry.park("once", 1, for: 1000) }
        case .usesTheName:
            #expect(try bench.open("once") == "once")
            return
        }
        try await eventually("it is forgotten") { bench.names().isEmpty }
    }

    @Test func `a connection is named as its client says, else after its host`() throws {
        let bench = RegistryBench()
        #expect(try bench.open("office") == "office")
        #expect(try bench.open() == "192.0.2.7")
        #expect(try bench.open() == "192.0.2.7-2")
        #expect(try bench.open() == "192.0.2.7-3")
        #expect(try bench.open(nil, "tcp://[2001:db8::7]:1") == "2001:db8::7")
        #expect(try bench.open(nil, "tcp://SIP.Example.com.:1") == "sip.example.com")
        #expect(bench.names().count == 6)
    }

    @Test func `a host of any length gives a name that can be one`() throws {
        let bench = RegistryBench()
        let host = String(repeating: "a", count: 63) + "." + String(repeating: "b", count: 63) + ".example"
        let names = try (1...11).map { _ in try bench.open(nil, "tcp://\(host):1") }
        #expect(Set(names).count == names.count)
        for name in names {
            #expect(ConnectionSettings.nameProblem(name) == nil, "\(name)")
            #expect(host.hasPrefix(name.prefix(60)), "it is still told by its beginning")
        }
    }

    @Test(arguments: ["", "a b", "-a", ".a", "a/b", "ä", String(repeating: "a", count: 65), "a\u{0}"])
    func `a name that cannot be one is refused`(name: String) {
        let bench = RegistryBench()
        #expect(throws: RegistryError.invalidName) { try bench.open(name) }
        #expect(bench.registry.count == 0)
        #expect(bench.story().isEmpty)
    }

    @Test func `a name is taken for its owner alone`() throws {
        let bench = RegistryBench()
        try bench.open("office", owner: 1000)
        #expect(throws: RegistryError.nameTaken) { try bench.open("office", owner: 1000) }
        #expect(try bench.open("office", owner: 1001) == "office")
        #expect(bench.registry.count == 2)
        try bench.registry.close("office", for: 1000)
        #expect(bench.names(visibleTo: 1000) == [])
        #expect(bench.names(visibleTo: 1001) == ["office"])
    }

    @Test func `root's own connection of a name comes first, then the only one, and namesakes are told apart by owner`()
        throws
    {
        let bench = RegistryBench()
        for owner: UInt32 in [0, 1000, 1001] { try bench.open("office", owner: owner) }
        func owners() -> [UInt32] { bench.registry.visible(to: 0).map(\.owner) }
        try bench.registry.close("office", for: 0)
        #expect(owners() == [1000, 1001])
        #expect(throws: RegistryError.ambiguous(owners: [1000, 1001])) { try bench.registry.close("office", for: 0) }
        try bench.registry.redial(ConnectionReference("office", of: 1001), for: 0)
        try bench.registry.close(ConnectionReference("office", of: 1001), for: 0)
        #expect(owners() == [1000])
        #expect(throws: RegistryError.noSuchConnection) {
            try bench.registry.close(ConnectionReference("office", of: 0), for: 0)
        }
        try bench.registry.close("office", for: 0)
        #expect(owners() == [])
    }

    @Test func `a user who names another owner finds nothing`() throws {
        let bench = RegistryBench()
        for owner: UInt32 in [1000, 1001] { try bench.open("office", owner: owner) }
        #expect(throws: RegistryError.noSuchConnection) {
            try bench.registry.close(ConnectionReference("office", of: 1001), for: 1000)
        }
        try bench.registry.close(ConnectionReference("office", of: 1000), for: 1000)
        #expect(bench.registry.visible(to: 0).map(\.owner) == [1001])
    }

    @Test func `a made-up name says nothing of the names that others have`() throws {
        let bench = RegistryBench()
        #expect(try bench.open(owner: 1000) == "192.0.2.7")
        #expect(try bench.open(owner: 1001) == "192.0.2.7")
        #expect(try bench.open(owner: 1001) == "192.0.2.7-2")
    }

    @Test func `a user sees and touches what is the user's, and root all`() throws {
        let bench = RegistryBench()
        try bench.open("one", owner: 1000)
        try bench.open("two", owner: 1001)
        #expect(bench.names(visibleTo: 1000) == ["one"])
        #expect(bench.names(visibleTo: 1001) == ["two"])
        #expect(bench.names(visibleTo: 1002) == [])
        #expect(bench.names(visibleTo: 0) == ["one", "two"])
        #expect(throws: RegistryError.noSuchConnection) { try bench.registry.close("two", for: 1000) }
        #expect(throws: RegistryError.noSuchConnection) { try bench.registry.redial("two", for: 1000) }
        #expect(throws: RegistryError.noSuchConnection) { try bench.registry.close("three", for: 0) }
        try bench.registry.redial("two", for: 0)
        try bench.registry.close("two", for: 0)
        try bench.registry.close("one", for: 1000)
        #expect(bench.registry.count == 0)
        #expect(bench.network.targets.isEmpty, "nobody watches a path for a connection that is closed")
    }

    @Test func `a user has as many connections as the limit says, and gets them back by closing`() throws {
        let bench = RegistryBench(connectionsPerUser: 2)
        try bench.open("a")
        try bench.open("b")
        #expect(throws: RegistryError.quotaExceeded(limit: 2)) { try bench.open("c") }
        #expect(throws: RegistryError.nameTaken, "a mistake is told before a limit") { try bench.open("a") }
        try bench.open("d", owner: 1001)
        for name in ["e", "f", "g"] { try bench.open(name, owner: 0) }
        try bench.registry.close("a", for: 0)
        try bench.open("c")
        bench.registry.connectionsPerUser = 3
        try bench.open("a")
        #expect(bench.registry.count == 7)
    }

    @Test func `what a file names counts against nobody, and no client closes it`() throws {
        let bench = RegistryBench(connectionsPerUser: 1)
        let wanted = try ["x", "y"].map { bench.configured($0, try bench.policy()) }
        #expect(bench.registry.reconcile(with: wanted) == [])
        try bench.open("mine")
        for user: UInt32 in [0, 1000] {
            #expect(throws: RegistryError.configured) { try bench.registry.close("x", for: user) }
        }
        #expect(throws: RegistryError.noSuchConnection) { try bench.registry.close("x", for: 1001) }
        try bench.registry.redial("x", for: 1000)
        #expect(bench.names() == ["x", "y", "mine"])
    }

    @Test func `the end closes everything`() throws {
        let bench = RegistryBench()
        _ = bench.registry.reconcile(with: [bench.configured("x", try bench.policy())])
        try bench.open("a")
        _ = bench.story()
        bench.registry.closeAll()
        #expect(bench.story() == ["x closed", "a closed"])
        #expect(bench.registry.count == 0)
        #expect(bench.network.targets.isEmpty)
    }
}
