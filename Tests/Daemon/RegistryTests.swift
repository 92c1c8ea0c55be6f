// SPDX-License-Identifier: Apache-2.0

import Dialer
import DialtoneAPI
import NetworkPath
import Platform
import Supervisor
import Testing

@testable import Daemon

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

    /// What happened since the last call: `office opened`.
    func story() -> [String] {
        defer { events = [] }
        return events.map { "\($0.name) \($0.event.wireKind.rawValue)" }
    }
}

@Suite("The registry of connections") @AgentQueue
struct RegistryTests {
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

    @Test func `a name that is taken is refused, whoever has it`() throws {
        let bench = RegistryBench()
        try bench.open("office", owner: 1000)
        #expect(throws: RegistryError.nameTaken) { try bench.open("office", owner: 1000) }
        #expect(throws: RegistryError.nameTaken) { try bench.open("office", owner: 1001) }
        try bench.registry.close("office", for: 1000)
        #expect(try bench.open("office", owner: 1001) == "office")
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
