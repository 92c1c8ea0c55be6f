// SPDX-License-Identifier: Apache-2.0

import DialtoneAPI
import DialtoneConnection
import DialtoneConnectionIO
import DialtoneNetworkPath
import DialtonePlatform
import DialtoneTestSupport
import DialtoneVarlink
import Glibc
import Logging
import Testing

@testable import DialtoneAgent
@testable import DialtonePersistence

/// A service manager that keeps descriptors.
@AgentQueue
final class StoreStub {
    /// Copies of what is stored, by name, in the order in which it came.
    private(set) var stored: [(name: String, descriptor: CInt)] = []
    var refuses = false
    /// Called with the name of what is to be removed.
    var onRemove: @AgentQueue (String) -> Void = { _ in }

    var manager: DescriptorStore.Manager {
        .init(
            // The store of a process may outlive the fixture by some turns.
            store: { [self] (descriptors, name) throws(SystemError) in
                if refuses { throw SystemError("storing", code: ECONNREFUSED) }
                for number in descriptors { stored.append((name, fcntl(number, F_DUPFD_CLOEXEC, 0))) }
            },
            remove: { [self] (name) throws(SystemError) in
                onRemove(name)
                for entry in stored where entry.name == name { close(entry.descriptor) }
                stored.removeAll { $0.name == name }
            })
    }

    isolated deinit { for entry in stored { close(entry.descriptor) } }

    var names: [String] { stored.map(\.name) }

    /// What the next process is given: copies of what is there.
    func inheritance() -> Inheritance {
        var inheritance = Inheritance()
        for (name, descriptor) in stored {
            let copy = fcntl(descriptor, F_DUPFD_CLOEXEC, 0)
            if let number = DescriptorStore.number(of: name) {
                inheritance.stored[number, default: []].append(copy)
            } else if name == Inheritance.countsName {
                inheritance.counts = copy
            } else {
                inheritance.state.append(copy)
            }
        }
        return inheritance
    }
}

/// One process of the agent after the other, as far as connections go: each with what the one before left in the store.
@AgentQueue
final class RestartFixture {
    let store = StoreStub()
    let network = FakeNetwork()
    private(set) var registry: ConnectionRegistry
    private(set) var continuity: Continuity
    private(set) var resumption = ConnectionRegistry.Resumption()
    private(set) var events: [RecordedEvent] = []
    let limit: Int
    private let makeWakes: @AgentQueue () -> WakeContext

    /// - Parameter wakes: what wakes the clients, for each process anew; by default each client watches its connection.
    init(limit: Int = 64, wakes: @escaping @AgentQueue () -> WakeContext = RestartFixture.watched) throws {
        self.limit = limit
        makeWakes = wakes
        network.becomeReachable()
        let (continuity, registry) = try Self.process(store, store.inheritance(), network, limit, wakes())
        (self.continuity, self.registry) = (continuity, registry)
        follow()
    }

    isolated deinit { registry.closeAll() }

    private static func watched() -> WakeContext {
        let wakes = WakeContext()
        wakes.isWatched = { _, _ in true }
        return wakes
    }

    private static func process(
        _ store: StoreStub, _ inheritance: Inheritance, _ network: FakeNetwork, _ limit: Int, _ wakes: WakeContext
    ) throws -> (Continuity, ConnectionRegistry) {
        let continuity = try Continuity(
            inheritance, limit: limit, manager: store.manager, settlingAfter: .seconds(86_400),
            Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
        let context = DialerContext(paths: network, names: network)
        return (continuity, ConnectionRegistry(context, wakes, connectionsPerUser: 100, continuity: continuity))
    }

    private func follow() {
        registry.onEvent { [weak self] in self?.events.append($0) }
    }

    /// Ends the process as SIGKILL does, without a last word, and starts the next one.
    func kill(configured: [ConfiguredConnection] = []) throws {
        // What its flows would do from here on, no process does.
        _ = registry.stepDown()
        try begin(configured)
    }

    /// Likewise, and has something happen before the next process begins.
    func kill(configured: [ConfiguredConnection], _ meanwhile: () async throws -> Void) async throws {
        _ = registry.stepDown()
        try await meanwhile()
        try begin(configured)
    }

    private func begin(_ configured: [ConfiguredConnection]) throws {
        let (continuity, registry) = try Self.process(store, store.inheritance(), network, limit, makeWakes())
        (self.continuity, self.registry) = (continuity, registry)
        events = []
        follow()
        resumption = registry.resume(configured)
        _ = registry.reconcile(with: configured)
    }

    /// Opens a connection for a client.
    func open(
        _ name: String, _ remote: String, owner: UInt32 = 1000, backoff: ConnectionsAPI.Backoff? = nil,
        grace: Duration? = nil
    ) throws {
        let parameters = ConnectionsAPI.Open.Parameters(
            remote: remote, name: name, settings: .init(backoff: backoff, grace: grace))
        _ = try registry.open(
            name, try ConnectionPolicy(parameters, user: owner), owner: owner, origin: .client,
            given: parameters.json)
    }

    func connection(_ name: String, of owner: UInt32? = nil) -> ConnectionsAPI.Connection? {
        registry.visible(to: 0).first { $0.name == name && $0.owner == owner ?? $0.owner }?.wire
    }

    /// Waits until a connection is as the test wants it, by the events of the process that runs.
    func wait(
        for name: String, _ awaited: String, of owner: UInt32? = nil,
        _ isRight: @escaping (ConnectionsAPI.Connection) -> Bool
    ) async throws {
        do {
            try await appearance(of: name, awaited, owner, isRight)
        } catch {
            let story = events.map { "\($0.event.wireKind.rawValue) \($0.event.status.state), \($0.event.reason)" }
            let state = connection(name, of: owner)?.state.rawValue ?? "gone"
            throw NothingCame(description: "\(error): it is \(state) after \(story)")
        }
    }

    private func appearance(
        of name: String, _ awaited: String, _ owner: UInt32?,
        _ isRight: @escaping (ConnectionsAPI.Connection) -> Bool
    ) async throws {
        try await answer("\(name) to be \(awaited)") { done in
            var isDone = false
            let look = { @AgentQueue [weak self] in
                guard !isDone, self?.connection(name, of: owner).map(isRight) ?? false else { return }
                isDone = true
                done(())
            }
            registry.onEvent { _ in look() }
            look()
        }
    }

    /// Waits until a flow of it stands.
    func ready(_ name: String) async throws {
        try await wait(for: name, "ready") { $0.state == .ready }
    }

    /// What was told after a number, by number and kind; `nil` where a subscriber would be told of a gap.
    ///
    /// - Parameter owner: whose events the subscriber may see; everybody's, where there is none.
    func told(after sequence: UInt64, for owner: UInt32? = nil) -> [String]? {
        var (cursor, told) = (sequence, [String]())
        while true {
            switch registry.journal.continuation(after: cursor, for: owner) {
            case .upToDate: return told
            case .gap: return nil
            case .next(let entry):
                cursor = entry.sequence
                let event = entry.event.wire(sequence: cursor)
                told.append("\(event.sequence) \(event.connection.name) \(event.kind.rawValue)")
            }
        }
    }
}

extension ConnectionsAPI.Backoff {
    /// Waits that no test outlasts.
    static let lasting = ConnectionsAPI.Backoff(initial: .seconds(600), maximum: .seconds(600))
}

extension SavedConnection {
    /// Under which number the store has the process that had a flow last.
    var storedClient: UInt64? { processes.first { $0.process == clients.client }?.stored }
}
