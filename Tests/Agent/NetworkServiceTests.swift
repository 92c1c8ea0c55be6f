// SPDX-License-Identifier: Apache-2.0

import DialtoneAPI
import DialtonePlatform
import DialtoneTestSupport
import DialtoneVarlink
import Testing

@testable import DialtoneAgent

/// The answers about the network, with the machine's own kernel: its loopback interface is enough.
@Suite(.timeLimit(.minutes(2))) @AgentQueue
struct NetworkServiceTests {
    @Test func `the path to this machine is local`() async throws {
        let fixture = ServiceFixture()
        let path = try await fixture.client().ask(
            NetworkAPI.GetPath.self, .init(target: .init(host: "127.0.0.1", port: 80, protocol: .tcp))
        ).path
        #expect(path.status == .satisfied)
        #expect(path.isLocalAddress)
        #expect(path.destination == "127.0.0.1")
        #expect(path.interface?.kind == .loopback)
    }

    @Test func `without a target the path is the network's, and names no destination`() async throws {
        let fixture = ServiceFixture()
        let path = try await fixture.client().ask(NetworkAPI.GetPath.self, .init()).path
        #expect(path.destination == nil)
        #expect(path.status != .unknown)
    }

    @Test(arguments: [
        (NetworkAPI.Target(host: ""), "the host is empty"),
        (.init(host: "127.0.0.1", port: 0), "port 0 is out of range"),
        (.init(host: "127.0.0.1", port: 65_536), "port 65536 is out of range"),
        (.init(host: "127.0.0.1", port: -1), "port -1 is out of range"),
        (.init(host: "127.0.0.1", mark: -1), "mark -1 is out of range"),
        (.init(host: "127.0.0.1", mark: 4_294_967_296), "mark 4294967296 is out of range"),
        (.init(host: "127.0.0.1", source: "localhost"), "source localhost is not an IP address"),
        (.init(host: "two words"), "\"two words\" is neither a name nor an address"),
        (.init(host: "h:80"), "\"h:80\" is neither a name nor an address"),
        (.init(host: String(repeating: "a", count: 254)), "is neither a name nor an address"),
        (.init(host: "127.0.0.1", interface: ""), "the interface's name is empty"),
    ])
    func `a target that makes no sense is refused with the reason`(
        target: NetworkAPI.Target, reason: String
    ) async throws {
        let fixture = ServiceFixture()
        let error: NetworkAPI.InvalidTarget = try await fixture.client().refusal(
            of: NetworkAPI.GetPath.self, .init(target: target))
        #expect(error.reason.contains(reason), "\(error.reason)")
        let monitored: NetworkAPI.InvalidTarget = try await fixture.client().stream(
            NetworkAPI.MonitorPath.self, .init(target: target)
        ).refusal()
        #expect(monitored == error)
        let explained: NetworkAPI.InvalidTarget = try await fixture.client().refusal(
            of: NetworkAPI.Explain.self, .init(target: target))
        #expect(explained == error)
    }

    @Test func `the path to this machine is explained`() async throws {
        let fixture = ServiceFixture()
        let reply = try await fixture.client().ask(NetworkAPI.Explain.self, .init(target: .init(host: "127.0.0.1")))
        #expect(reply.path.isLocalAddress)
        #expect(reply.steps.map(\.subject) == [.rule, .route, .link, .source])
        #expect(reply.steps.filter(\.decisive).isEmpty)
        #expect(reply.others == nil && reply.without == nil)
        let name = try await fixture.client().ask(NetworkAPI.Explain.self, .init(target: .init(host: "localhost")))
        #expect(name.steps.first?.subject == .name && name.path.isLocalAddress)
    }

    @Test func `an interface that is not there cannot be thought away`() async throws {
        let fixture = ServiceFixture()
        let error: NetworkAPI.InvalidTarget = try await fixture.client().refusal(
            of: NetworkAPI.GetPath.self, .init(target: .init(host: "127.0.0.1"), without: "nosuch0"))
        #expect(error.reason.hasPrefix("there is no interface \"nosuch0\" here; there are "), "\(error.reason)")
        let network: NetworkAPI.InvalidTarget = try await fixture.client().refusal(
            of: NetworkAPI.GetPath.self, .init(without: "nosuch0"))
        #expect(network == error)
        let path = try await fixture.client().ask(
            NetworkAPI.GetPath.self, .init(target: .init(host: "127.0.0.1"), without: "lo")
        ).path
        // Other tests' routes come and go in this network meanwhile; a default route among them would lead there.
        #expect(path.interface?.name != "lo" && !path.isLocalAddress)
    }

    @Test func `an interface that is not there leads nowhere`() async throws {
        let fixture = ServiceFixture()
        let path = try await fixture.client().ask(
            NetworkAPI.GetPath.self, .init(target: .init(host: "192.0.2.1", interface: "nosuch0"))
        ).path
        #expect(path.status == .unsatisfied)
    }

    @Test func `the interfaces are listed in the order of their numbers`() async throws {
        let fixture = ServiceFixture()
        let interfaces = try await fixture.client().ask(NetworkAPI.ListInterfaces.self, .init()).interfaces
        #expect(interfaces.map(\.index) == interfaces.map(\.index).sorted())
        let loopback = try #require(interfaces.first { $0.name == "lo" })
        #expect(loopback.kind == .loopback)
    }

    @Test func `a monitor of a path begins with the present, and nothing changed`() async throws {
        let fixture = ServiceFixture()
        let first = try await fixture.client().stream(
            NetworkAPI.MonitorPath.self, .init(target: .init(host: "127.0.0.1"))
        ).one()
        #expect(first.changes.isEmpty)
        #expect(first.path.isLocalAddress)
    }
}
