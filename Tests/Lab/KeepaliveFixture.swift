// SPDX-License-Identifier: Apache-2.0

import DialtoneConnectionIO
import DialtoneLabSupport
import DialtoneNetlink
import DialtoneNetworkPath
import DialtonePlatform
import DialtoneTLSTestSupport
import Reachability
import Testing

@testable import DialtoneConnection

/// A connection of this process to a real server.
final class KeepaliveFixture: Sendable {
    let lab: LabNetwork
    let server: LabServer
    private let changes = ChangeSignal()
    private let core: Core

    static func run(
        _ recipe: LabServer.Recipe, _ remote: String, _ heartbeat: Heartbeat? = nil, trusting authority: String? = nil,
        _ body: (KeepaliveFixture) async throws -> Void
    ) async throws {
        try await LabNetwork.withThisProcessAsHost { lab in
            let server = try await LabServer.start(recipe, on: lab.server)
            var policy = ConnectionPolicy(remote: try Remote(remote))
            policy.backoff = BackoffPolicy(
                base: .milliseconds(100), multiplier: 1, ceiling: .milliseconds(200), jitter: .half)
            policy.tls.authorities = authority
            if let heartbeat { policy.heartbeat = heartbeat }
            let fixture = try await KeepaliveFixture(lab, server, policy)
            await fixture.core.connection.open()
            let result: Result<Void, any Error>
            do {
                result = .success(try await body(fixture))
            } catch {
                result = .failure(error)
            }
            await fixture.core.connection.close()
            try result.get()
        }
    }

    private init(_ lab: LabNetwork, _ server: LabServer, _ policy: ConnectionPolicy) async throws {
        (self.lab, self.server) = (lab, server)
        let sockets = try await lab.host.run { try KernelSockets() }
        core = await Core(policy, NetworkState(sockets), changes)
    }

    /// What the connection has told so far.
    var events: [ConnectionEvent] { get async { await core.events } }

    var status: ConnectionStatus { get async { await core.connection.status } }

    var unreadBytes: Int? { get async { await core.connection.unreadBytes } }

    /// Takes the flow as a client does.
    func take() async throws -> ClientSocket { try await core.take() }

    /// Gives the flow that stands back, with a session on it.
    func park() async throws { try await core.park() }

    /// Tells the connection that the machine woke from suspend.
    func resume() async { await core.connection.resumed() }

    /// Waits for an event after the `count` first that `matches`.
    func event(
        _ awaited: String, after count: Int, where matches: (ConnectionEvent) -> Bool
    ) async throws -> ConnectionEvent {
        var told: [ConnectionEvent] = []
        return try await changes.wait(
            for: awaited, describe: { told.map { "\($0.status.state): \($0.reason)" }.joined(separator: "\n") }
        ) {
            told = await core.events
            return told.dropFirst(count).first(where: matches)
        }
    }

    /// Waits for the connection to be ready, and holds that its status and the sockets of both sides agree.
    @discardableResult
    func isReady(after count: Int = 0) async throws -> ConnectionEvent {
        let ready = try await event("the connection to be ready", after: count) { $0.status.state == .ready }
        let local = try #require(await status.localAddress)
        #expect(local == ready.status.localAddress)
        let sockets = try await lab.host.connections().filter { $0.peerPort == server.port && $0.state == "ESTAB" }
        #expect(sockets.map { "\($0.address):\($0.port)" } == ["\(local)"])
        let peers = try await lab.server.connections().filter { $0.port == server.port && $0.state == "ESTAB" }
        #expect(peers.contains { "\($0.peerAddress):\($0.peerPort)" == "\(local)" })
        return ready
    }

    /// How many bytes the server's kernel has received on the connection, and sent.
    func serverCounts() async throws -> (received: Int, sent: Int) {
        let port = try #require(await status.localAddress).port
        let text = try await lab.server.command(["ss", "-Htni", "dport", "= :\(port)"])
        let count = { (name: Regex<(Substring, Substring)>) in
            text.firstMatch(of: name).flatMap { Int($0.output.1) } ?? 0
        }
        return (count(/bytes_received:(\d+)/), count(/bytes_sent:(\d+)/))
    }

    @AgentQueue
    private final class Core: ConnectionObserver {
        private(set) var events: [ConnectionEvent] = []
        private(set) lazy var connection = ConnectionDriver(
            policy: policy,
            wakes: .init(policy: WakePolicy(), reasons: [], isTended: false, budget: .seconds(30)), context: context,
            observer: self)
        private let policy: ConnectionPolicy
        private let context: DialerContext
        private let changes: ChangeSignal

        init(_ policy: ConnectionPolicy, _ engine: NetworkState, _ changes: ChangeSignal) {
            (self.policy, self.changes) = (policy, changes)
            let network = SystemNetwork(engine)
            context = DialerContext(paths: network, names: network, relay: .test)
            engine.onLostAddresses { [weak self] addresses in
                for address in addresses { self?.connection.localAddressRemoved(address) }
            }
        }

        func take() throws -> sending ClientSocket { ClientSocket(try connection.take().release()) }

        func park() throws { try connection.park(connection.status.epoch) }

        func connection(
            _ connection: ConnectionDriver, did event: ConnectionEvent, wake: StandingWake?, _ report: WakeReport?
        ) {
            events.append(event)
            changes.notify()
        }

        func connectionAnswered(_ connection: ConnectionDriver) {}

        func connection(_ connection: ConnectionDriver, attempts attempt: WakeAttempt, _ process: KnownProcess?) {}

        func connection(
            _ connection: ConnectionDriver, launches attempt: WakeAttempt, with flow: consuming HandedFlow?
        ) {}
        func connection(_ connection: ConnectionDriver, finds attempt: WakeAttempt.ID) {}

        func presence(of process: KnownProcess) -> ClientPresence { [] }

        func isWatched(by process: KnownProcess?) -> Bool { false }
    }
}
