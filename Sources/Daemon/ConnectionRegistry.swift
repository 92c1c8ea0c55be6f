// SPDX-License-Identifier: Apache-2.0

internal import Dialer
internal import DialtoneAPI
internal import NetworkPath
internal import OrderedCollections
internal import Platform
internal import Supervisor

/// A connection with its name and owner.
@AgentQueue
final class RegisteredConnection {
    /// Who brought it.
    enum Origin: Hashable {
        /// A configuration file; a reload without it closes it.
        case configuration
        /// A client's `Open`.
        case client
    }

    nonisolated let name: String
    nonisolated let owner: UInt32
    nonisolated let origin: Origin
    private let record: @AgentQueue (RecordedEvent) -> Void
    private var driver: ConnectionDriver?
    private var remoteText: (remote: Remote, text: String)?

    fileprivate init(
        name: String, owner: UInt32, origin: Origin, record: @escaping @AgentQueue (RecordedEvent) -> Void
    ) {
        self.name = name
        self.owner = owner
        self.origin = origin
        self.record = record
    }

    /// Whether `user` may see it and act on it.
    func isVisible(to user: UInt32) -> Bool { Self.isVisible(ownedBy: owner, to: user) }

    /// The rule, for whoever has the owner and not the connection: a connection is its owner's and root's to see.
    nonisolated static func isVisible(ownedBy owner: UInt32, to user: UInt32) -> Bool { user == 0 || user == owner }

    /// The connection as the socket shows it now; `nil` before it is at work.
    var wire: ConnectionsAPI.Connection? {
        driver.map { .init(name, remote: remote(of: $0), $0.status, unreadBytes: $0.unreadBytes, at: .now()) }
    }

    fileprivate func start(_ policy: ConnectionPolicy, in context: DialerContext) {
        let driver = ConnectionDriver(policy: policy, context: context, observer: self)
        self.driver = driver
        driver.open()
    }

    fileprivate func redial(after pause: Duration?) { driver?.redial(after: pause) }

    fileprivate func close() { driver?.close() }

    fileprivate func addressRemoved(_ address: IPAddress) { driver?.localAddressRemoved(address) }

    fileprivate func resumed() { driver?.resumed() }

    fileprivate func change(to policy: ConnectionPolicy) {
        guard let driver, driver.policy != policy else { return }
        driver.change(to: policy)
    }
}

extension RegisteredConnection: ConnectionObserver {
    func connection(_ connection: ConnectionDriver, did event: ConnectionEvent) {
        record(RecordedEvent(clocks: .now(), name: name, owner: owner, remote: remote(of: connection), event: event))
    }

    /// The remote's text, made once for as long as it stays: every event of the connection shares it.
    private func remote(of connection: ConnectionDriver) -> String {
        let remote = connection.policy.remote
        if let known = remoteText, known.remote == remote { return known.text }
        let text = remote.description
        remoteText = (remote, text)
        return text
    }
}

/// An event of a connection, as the journal keeps it: without the path, which is most of an event and is not told.
struct RecordedEvent {
    let clocks: ClockReading
    let name: String
    let owner: UInt32
    let remote: String
    let event: ConnectionEvent

    init(clocks: ClockReading, name: String, owner: UInt32, remote: String, event: ConnectionEvent) {
        self.clocks = clocks
        self.name = name
        self.owner = owner
        self.remote = remote
        var event = event
        event.status.path = nil
        self.event = event
    }

    /// The remote without what follows a question mark: a token there, of a WebSocket, is not for a log or a file.
    var remoteWithoutQuery: String { remote.split(separator: "?", maxSplits: 1).first.map { "\($0)" } ?? remote }
}

/// A connection that the configuration names.
struct ConfiguredConnection: Hashable {
    let name: String
    let policy: ConnectionPolicy
    let owner: UInt32
}

/// Why the registry refuses.
enum RegistryError: Error, Hashable {
    case nameTaken
    case noSuchConnection
    case quotaExceeded(limit: Int)
    /// The name cannot be one.
    case invalidName
    /// A file brought it, and would bring it back.
    case configured
}

/// The connections by name: opens, closes and finds them, and writes down what happens to them.
@AgentQueue
final class ConnectionRegistry {
    /// What happened, for subscribers.
    private(set) var journal: EventJournal<RecordedEvent>
    /// Called after each event was written down, in this order.
    private var observers: [@AgentQueue (RecordedEvent) -> Void] = []

    private var connections: OrderedDictionary<String, RegisteredConnection> = [:]
    private var quota: Quota
    private let context: DialerContext

    /// The fewest events kept. A subscriber that reconnects after a second of a busy network resumes without a gap.
    private static let fewestEvents = 1024
    /// Events kept for each connection. When the network goes and returns, each makes four within one turn of the queue
    /// (waiting, resolving, connecting, ready), and a subscriber that reads at its own pace must find them all.
    private static let eventsPerConnection = 8

    init(_ context: DialerContext, connectionsPerUser: Int) {
        self.context = context
        quota = Quota(limit: connectionsPerUser)
        // Above every number of a daemon that ran before on this boot; see docs/decisions/0005.
        journal = EventJournal(
            startingAfter: UInt64(BootClock.now().milliseconds), capacity: Self.fewestEvents)
    }

    /// Calls `observer` after each event was written down.
    func onEvent(_ observer: @escaping @AgentQueue (RecordedEvent) -> Void) {
        observers.append(observer)
    }

    /// The most connections that one user may have opened.
    var connectionsPerUser: Int {
        get { quota.limit }
        set { quota.limit = newValue }
    }

    /// The connections that `user` may see, in the order in which they were opened.
    func visible(to user: UInt32) -> [RegisteredConnection] {
        connections.values.filter { $0.isVisible(to: user) }
    }

    /// How many connections there are.
    var count: Int { connections.count }

    /// Supervises a connection from now on, and returns its name.
    ///
    /// - Parameter name: `nil` makes one from the remote's host.
    func open(
        _ name: String?, _ policy: ConnectionPolicy, owner: UInt32, origin: RegisteredConnection.Origin
    ) throws(RegistryError) -> String {
        let name = name ?? freeName(for: policy.remote)
        guard ConnectionSettings.nameProblem(name) == nil else { throw .invalidName }
        guard connections[name] == nil else { throw .nameTaken }
        // What a file names is the administrator's word, and counts against nobody.
        if origin == .client, !quota.take(for: owner) { throw .quotaExceeded(limit: quota.limit) }
        let connection = RegisteredConnection(name: name, owner: owner, origin: origin) { [weak self] in
            self?.record($0)
        }
        connections[name] = connection
        resizeJournal()
        connection.start(policy, in: context)
        return name
    }

    /// Supervises a connection no longer, for `user`.
    func close(_ name: String, for user: UInt32) throws(RegistryError) {
        let connection = try find(name, for: user)
        if connection.origin == .configuration { throw .configured }
        remove(connection)
    }

    /// Dials a connection anew at once, for `user`.
    func redial(_ name: String, after pause: Duration? = nil, for user: UInt32) throws(RegistryError) {
        try find(name, for: user).redial(after: pause)
    }

    /// Makes the connections of the configuration those of `wanted`: new ones are opened, missing ones closed, changed
    /// ones told. Connections that are the same are not touched.
    ///
    /// - Returns: the names that a client's connection has already; those of the file wait until it is closed.
    func reconcile(with wanted: [ConfiguredConnection]) -> [String] {
        let names = Set(wanted.map(\.name))
        for connection in connections.values
        where connection.origin == .configuration && !names.contains(connection.name) {
            remove(connection)
        }
        var taken: [String] = []
        for configured in wanted {
            if let existing = connections[configured.name], existing.origin == .configuration {
                if existing.owner == configured.owner {
                    existing.change(to: configured.policy)
                    continue
                }
                remove(existing)
            }
            do throws(RegistryError) {
                _ = try open(
                    configured.name, configured.policy, owner: configured.owner, origin: .configuration)
            } catch {
                taken.append(configured.name)
            }
        }
        return taken
    }

    /// Tells every connection of addresses that this machine has no more.
    func addressesLost(_ addresses: Set<IPAddress>) {
        for connection in connections.values {
            for address in addresses { connection.addressRemoved(address) }
        }
    }

    /// The machine woke from suspend.
    func resumed() {
        for connection in connections.values { connection.resumed() }
    }

    /// Closes every connection, for the end of the daemon.
    func closeAll() {
        for connection in connections.values { remove(connection) }
    }

    private func find(_ name: String, for user: UInt32) throws(RegistryError) -> RegisteredConnection {
        // Others' connections do not exist for a user: their names are nobody's business either.
        guard let connection = connections[name], connection.isVisible(to: user) else { throw .noSuchConnection }
        return connection
    }

    private func remove(_ connection: RegisteredConnection) {
        connection.close()
        connections[connection.name] = nil
        if connection.origin == .client { quota.giveBack(for: connection.owner) }
        resizeJournal()
    }

    private func record(_ event: RecordedEvent) {
        _ = journal.append(event)
        for observer in observers { observer(event) }
    }

    private func resizeJournal() {
        journal.reserve(max(Self.fewestEvents, Self.eventsPerConnection * connections.count))
    }

    /// A name that nobody has: the remote's host, cut where it is longer than a name may be, with a number if need be.
    private func freeName(for remote: Remote) -> String {
        let host = remote.host.description
        var name = String(host.prefix(ConnectionSettings.longestName))
        var number = 1
        while connections[name] != nil {
            number += 1
            name = host.prefix(ConnectionSettings.longestName - 1 - "\(number)".count) + "-\(number)"
        }
        return name
    }
}
