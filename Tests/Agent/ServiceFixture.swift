// SPDX-License-Identifier: Apache-2.0

import CDialtoneLabSupport
import DialtoneAPI
import DialtoneConnectionIO
import DialtonePlatform
import DialtoneTestSupport
import DialtoneVarlink
import Glibc
import Logging
import Reachability
import Testing

@testable import DialtoneAgent
@testable import DialtonePersistence

/// Who a client is: the kernel tells the server, the client cannot.
enum Client {
    /// The user that runs the tests.
    case oneself
    /// "nobody": no member of anything, as far as the daemon is concerned an ordinary user.
    case nobody

    static let nobodysNumber: UInt32 = 65_534

    /// Why there is no client of another user here; `nil` if there is.
    static let obstacle: Comment? = {
        guard geteuid() == 0 else { return "only root can have clients of another user" }
        var pair: (CInt, CInt) = (-1, -1)
        guard socketPair(as: nobodysNumber, &pair) == 0 else {
            return "the user 65534 is not mapped into this user namespace"
        }
        close(pair.0)
        close(pair.1)
        return nil
    }()

    fileprivate func sockets() throws(SystemError) -> (CInt, CInt) {
        let user = self == .oneself ? geteuid() : Self.nobodysNumber
        if user == geteuid() { return DialtoneTestSupport.socketPair(isBlocking: false) }
        var pair: (CInt, CInt) = (-1, -1)
        try retryingInterrupts("making a pair of sockets") { Self.socketPair(as: user, &pair) }
        return pair
    }

    private static func socketPair(as user: UInt32, _ pair: inout (CInt, CInt)) -> CInt {
        withUnsafeMutableBytes(of: &pair) { clab_socket_pair_as(user, $0.bindMemory(to: CInt.self).baseAddress) }
    }
}

/// Both services of the daemon on a server, in a network of the test's.
@AgentQueue
final class ServiceFixture {
    let network = FakeNetwork()
    let wakes = WakeContext()
    let registry: ConnectionRegistry
    let connections: ConnectionsService
    let paths: NetworkService
    let server: VarlinkServer
    /// All that the daemon answers.
    let service = VarlinkService(vendor: "Dialtone", product: "test", version: "0", url: "https://example.org")
    let history: History
    private let past: HistoryService
    private let metrics: MetricsService

    init(
        connectionsPerUser: Int = 100, subscriptionsPerUser: Int = 64, state: SavedState = SavedState(),
        history: History? = nil, memory: MemoryGuard? = nil
    ) {
        registry = ConnectionRegistry(
            DialerContext(paths: network, names: network), wakes, connectionsPerUser: connectionsPerUser,
            memory: memory)
        connections = ConnectionsService(registry, subscriptionsPerUser: subscriptionsPerUser, memory: memory)
        paths = NetworkService(.shared, subscriptionsPerUser: subscriptionsPerUser, memory: memory)
        let history = history ?? History(state, Logger(label: "test"))
        self.history = history
        past = HistoryService(history, subscriptionsPerUser: subscriptionsPerUser, memory: memory)
        metrics = MetricsService(registry, NetworkCount(of: .shared, nil), .shared, memory: memory)
        registry.onEvent { [unowned registry] in history.heard($0, sequence: registry.journal.latest) }
        connections.register(in: service)
        paths.register(in: service)
        past.register(in: service)
        metrics.register(in: service)
        server = VarlinkServer(service)
        if let memory {
            server.admission = { peer throws(VarlinkFailure) in try memory.admitOrFail(.client, for: peer.uid) }
        }
    }

    isolated deinit {
        registry.closeAll()
        server.close()
    }

    /// A client on a connection of its own.
    func client(_ client: Client = .oneself) throws -> VarlinkConnection {
        let (ours, theirs) = try client.sockets()
        try server.serve(OwnedDescriptor(ours))
        return try VarlinkConnection(OwnedDescriptor(theirs))
    }

    /// Hangs a client up, and returns when the server has noticed.
    func hangUp(_ client: VarlinkConnection) async throws {
        let before = server.connectionCount
        client.close()
        // Each round trip goes through the poller, which has the hang-up to report as well.
        let other = try self.client()
        for _ in 0..<10_000 where server.connectionCount > before {
            _ = try await other.ask(ConnectionsAPI.List.self, .init())
        }
        #expect(server.connectionCount == before, "one went, and the one that asked came")
    }

    /// Opens a connection that waits for a path, and returns its name.
    @discardableResult
    func open(_ name: String? = nil, for client: Client = .oneself) async throws -> String {
        try await self.client(client).ask(ConnectionsAPI.Open.self, .init(remote: "tcp://192.0.2.7:1", name: name)).name
    }
}

extension VarlinkConnection {
    /// Calls `method` and waits for its answer.
    func ask<M: VarlinkMethod>(_ method: M.Type, _ parameters: M.Parameters) async throws -> M.Reply {
        let result: Result<M.Reply, VarlinkCallError> = try await answer("an answer to \(M.name)") { done in
            call(method, parameters, done)
        }
        return try result.get()
    }

    /// Calls `method` and returns the error that it must answer with.
    func refusal<M: VarlinkMethod, E: VarlinkErrorReply>(
        _ error: E.Type = E.self, of method: M.Type, _ parameters: M.Parameters,
        sourceLocation: SourceLocation = #_sourceLocation
    ) async throws -> E {
        do {
            let reply = try await ask(method, parameters)
            Issue.record("answered \(reply)", sourceLocation: sourceLocation)
        } catch VarlinkCallError.refused(let failure) {
            return try #require(failure.decoded(as: E.self), "\(failure)", sourceLocation: sourceLocation)
        }
        throw NothingCame(description: "\(E.errorName) was expected")
    }

    /// Follows the connections.
    func monitor(
        names: [String]? = nil, owner: Int? = nil, after: Int? = nil
    ) -> VarlinkReplies<ConnectionsAPI.Monitor> {
        stream(ConnectionsAPI.Monitor.self, .init(names: names, owner: owner, after: after))
    }
}

extension VarlinkReplies {
    /// The next reply, which must come.
    func one() async throws -> M.Reply {
        let result: Result<M.Reply?, VarlinkCallError> = try await answer("a reply of \(M.name)") { done in
            next(done)
        }
        guard let reply = try result.get() else { throw NothingCame(description: "the stream of \(M.name) ended") }
        return reply
    }

    /// The next replies.
    func many(_ count: Int) async throws -> [M.Reply] {
        var replies: [M.Reply] = []
        while replies.count < count { replies.append(try await one()) }
        return replies
    }

    /// The error that the stream must be refused with.
    func refusal<E: VarlinkErrorReply>(_ error: E.Type = E.self) async throws -> E {
        do {
            _ = try await one()
        } catch VarlinkCallError.refused(let failure) {
            return try #require(failure.decoded(as: E.self), "\(failure)")
        }
        throw NothingCame(description: "\(E.errorName) was expected")
    }
}
