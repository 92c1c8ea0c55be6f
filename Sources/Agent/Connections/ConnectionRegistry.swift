// SPDX-License-Identifier: Apache-2.0

internal import DialtoneAPI
internal import DialtoneConfiguration
internal import DialtoneConnection
internal import DialtoneConnectionIO
internal import DialtoneNetworkPath
internal import DialtonePersistence
internal import DialtonePlatform
internal import DialtoneProcesses

/// A connection that the configuration names.
struct ConfiguredConnection: Hashable {
    let name: String
    let policy: ConnectionPolicy
    let owner: UInt32
    var wake: WakeSettings?

    var key: ConnectionKey { ConnectionKey(name, of: owner) }
}

/// Why the registry refuses.
enum RegistryError: Error, Hashable {
    case nameTaken
    case noSuchConnection
    /// Several users have a connection of this name, and root did not say whose is meant.
    case ambiguous(owners: [UInt32])
    case quotaExceeded(limit: Int)
    /// There is no memory for it, or no descriptor.
    case outOfResources(ResourceShortage)
    /// The name cannot be one.
    case invalidName
    /// A file brought it, and would bring it back.
    case configured
    /// There is no flow to be taken.
    case notReady(ConnectionStatus.State)
    /// Another process has the flow: this one; 0 where it is not known.
    case heldByClient(Int32)
    /// The flow of that number is over; this is the newest.
    case staleEpoch(current: UInt64)
    /// Nobody has taken the flow that is to be parked.
    case notTaken
    /// A handler with this timeout would be of no use; why, for the end of a sentence.
    case invalidTimeout(String)
    /// The kernel refused.
    case system(SystemError)
}

/// The connections by owner and name: opens, closes and finds them, and writes down what happens to them.
@AgentQueue
final class ConnectionRegistry {
    /// What happened, for subscribers.
    private(set) var journal: EventJournal
    /// Called after each event was written down, in this order.
    private var observers: [@AgentQueue (RecordedEvent) -> Void] = []

    private var connections = OrderedTable<ConnectionKey, RegisteredConnection>()
    /// The same by owner: what one user asks for must not cost by what all users have.
    private var connectionsByOwner: [UInt32: OrderedTable<String, RegisteredConnection>] = [:]
    private let presence = PresenceReview()
    private var quota: Quota
    let context: DialerContext
    let continuity: Continuity?
    private let wakes: WakeContext
    /// Says whether there is memory for another connection; `nil` where nobody asks.
    private let memory: MemoryGuard?
    /// What an earlier process supervised, until it is resumed.
    private var inherited: [SavedConnection]

    /// No connections.
    ///
    /// - Parameter continuity: where everything is written down for the next process; `nil` where nothing outlives this
    ///   one.
    init(
        _ context: DialerContext, _ wakes: WakeContext = WakeContext(), connectionsPerUser: Int,
        continuity: Continuity? = nil, memory: MemoryGuard? = nil, events: EventJournal.Room = .standard
    ) {
        self.memory = memory
        self.context = context
        self.wakes = wakes
        self.continuity = continuity
        quota = Quota(limit: connectionsPerUser)
        let state = continuity?.takeInherited() ?? AgentState()
        inherited = state.connections.values
        // Where nothing is known, above every number of a daemon that ran before on this boot; see docs/decisions/0005.
        // The clock of this boot, which has no negative times and no million years.
        let latest = state.latest > 0 ? state.latest : UInt64(BootClock.now() / .microseconds(1))
        journal = state.journal(upTo: latest, events)
        continuity?.write([.latest(journal.latest), .lost(journal.losses)])
        continuity?.snapshot = { [unowned self] in snapshot }
    }

    /// Called when a message of the server's of a connection was answered while its client slept.
    var onAnswered: @AgentQueue (ConnectionKey) -> Void = { _ in }

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
        user == 0 ? connections.values : owned(by: user)
    }

    private func owned(by user: UInt32) -> [RegisteredConnection] { connectionsByOwner[user]?.values ?? [] }

    /// How many connections there are.
    var count: Int { connections.count }

    /// Supervises a connection from now on, and returns its name.
    ///
    /// - Parameters:
    ///   - name: `nil` makes one from the remote's host.
    ///   - parameters: those of `Open`, in JSON, for the next process to make the same policy of.
    func open(
        _ name: String?, _ policy: ConnectionPolicy, wake: WakeSettings? = nil, owner: UInt32,
        origin: RegisteredConnection.Origin, given parameters: [UInt8] = []
    ) throws(RegistryError) -> String {
        let connection = try enroll(name, policy, wake: wake, owner: owner, origin: origin, given: parameters)
        connection.start(policy, in: context)
        return connection.name
    }

    /// Gives a connection its place, before it is at work.
    private func enroll(
        _ name: String?, _ policy: ConnectionPolicy, wake: WakeSettings? = nil, owner: UInt32,
        origin: RegisteredConnection.Origin, given parameters: [UInt8]
    ) throws(RegistryError) -> RegisteredConnection {
        let name = name ?? freeName(for: policy.remote, owner: owner)
        guard ConnectionName.problem(name) == nil else { throw .invalidName }
        // Nobody tells that a client has read the last of one that ended.
        let key = ConnectionKey(name, of: owner)
        if let namesake = connections[key] { forgetIfOver(namesake) }
        guard connections[key] == nil else { throw .nameTaken }
        // What a file names is the administrator's word, and counts against nobody.
        if origin == .client { try admit(given: parameters.count, for: owner) }
        return enter(name, wake: wake, owner: owner, origin: origin, given: parameters)
    }

    private func admit(given: Int, for owner: UInt32) throws(RegistryError) {
        if !quota.hasRoom(for: owner) {
            for connection in owned(by: owner) { forgetIfOver(connection) }
            if !quota.hasRoom(for: owner) { throw .quotaExceeded(limit: quota.limit) }
        }
        // After the quota: what that refuses is not to count as about to be used.
        do throws(ResourceShortage) {
            try memory?.admit(.connection(given: given), for: owner)
        } catch {
            throw .outOfResources(error)
        }
        _ = quota.take(for: owner)
    }

    private func enter(
        _ name: String, wake: WakeSettings?, owner: UInt32, origin: RegisteredConnection.Origin,
        given parameters: [UInt8]
    ) -> RegisteredConnection {
        let connection = RegisteredConnection(
            name: name, owner: owner, origin: origin, given: parameters, wake: wake, wakes, store: continuity?.store
        ) { [weak self] in
            self?.record($0)
        } writeDown: { [weak self] in
            self?.writeDown($0)
        }
        connection.mayBeOver = { [weak self, weak connection] in
            guard let connection, connection.isOver else { return }
            // Not within what its client asked for.
            AgentQueue.async { self?.forgetIfOver(connection) }
        }
        connection.answered = { [weak self, weak connection] in
            if let self, let connection { onAnswered(connection.key) }
        }
        connections[connection.key] = connection
        connectionsByOwner[owner, default: OrderedTable()][name] = connection
        journal.connectionCame(of: owner)
        memory?.connectionCame(given: parameters.count)
        return connection
    }

    /// Supervises a connection no longer, for `user`.
    func close(_ which: ConnectionReference, for user: UInt32) throws(RegistryError) {
        let connection = try find(which, for: user)
        if connection.origin == .configuration { throw .configured }
        remove(connection)
    }

    /// Dials a connection anew at once, for `user`.
    func redial(
        _ which: ConnectionReference, after pause: Duration? = nil, for user: UInt32
    ) throws(RegistryError) {
        try find(which, for: user).redial(after: pause)
    }

    /// Drops the socket of a connection, and dials again after a pause; says whether there is such a connection.
    func leaveAlone(_ key: ConnectionKey, for pause: Duration) -> Bool {
        connections[key]?.redial(after: pause)
        return connections[key] != nil
    }

    /// Supervises a flow that a client brought, and returns its name.
    ///
    /// - Parameter process: the client; `nil` where it cannot be watched.
    func adopt(
        _ name: String?, _ descriptor: consuming OwnedDescriptor, _ adoption: Adoption, _ policy: ConnectionPolicy,
        by process: ProcessHandle? = nil, owner: UInt32, given parameters: [UInt8] = []
    ) throws(RegistryError) -> String {
        let connection = try enroll(name, policy, owner: owner, origin: .client, given: parameters)
        do throws(SystemError) {
            try connection.adopt(descriptor, adoption, policy, by: process, in: context)
        } catch {
            remove(connection)
            throw .system(error)
        }
        return connection.name
    }

    /// Whether the launcher may have to wake the process that takes a connection's flow, and is to be shown that it
    /// did.
    func needsProof(of which: ConnectionReference, for user: UInt32) -> Bool {
        (try? find(which, for: user))?.isWokenByLauncher ?? false
    }

    /// Which connection `user` means.
    func key(of which: ConnectionReference, for user: UInt32) throws(RegistryError) -> ConnectionKey {
        try find(which, for: user).key
    }

    /// Whether bytes wait to be read, on a connection's flow or on one that has ended.
    func hasInput(_ which: ConnectionReference, for user: UInt32) throws(RegistryError) -> Bool {
        try find(which, for: user).hasInput
    }

    /// Gives a connection's flow to a client of `user`.
    func take(
        _ which: ConnectionReference, by process: ProcessHandle?, for user: UInt32
    ) throws(RegistryError) -> HandedFlow {
        let connection = try find(which, for: user)
        // Who comes again shows what it has.
        defer { connection.mayBeOver() }
        let flow = try connection.take(by: process)
        writeDown(connection)
        return flow
    }

    /// Has `caller`, a client of `user`, called to keep a connection alive itself; until the end of what is returned.
    func keepAlive(
        _ which: ConnectionReference, timeout: Duration, wakesMachine: Bool, _ caller: any KeepaliveCaller,
        for user: UInt32
    ) throws(RegistryError) -> RegisteredConnection {
        let connection = try find(which, for: user)
        try connection.keepAlive(timeout: timeout, wakesMachine: wakesMachine, caller)
        return connection
    }

    /// What the socket shows `user` of a connection.
    func wire(
        of which: ConnectionReference, for user: UInt32
    ) throws(RegistryError) -> ConnectionsAPI.Connection? {
        try find(which, for: user).wire
    }

    /// Takes a connection's flow back from a client of `user`, who leaves an opening for the next ones and messages to
    /// be answered, or `nil` for those of before.
    func park(
        _ which: ConnectionReference, _ epoch: UInt64, leaving opening: LeftOpening? = nil,
        answering answers: LeftAnswers? = nil, for user: UInt32
    ) throws(RegistryError) {
        let connection = try find(which, for: user)
        let before = connection.leftBytes
        let after = connection.leftBytes(leaving: opening, answering: answers)
        if let memory, after > before {
            do throws(ResourceShortage) {
                try memory.admit(.text(bytes: after - before), for: user)
            } catch {
                throw .outOfResources(error)
            }
        }
        defer {
            textChanged(of: connection, from: before)
            connection.mayBeOver()
        }
        try connection.park(epoch, leaving: opening, answering: answers)
        writeDown(connection)
    }

    /// What a client left with a connection had so many bytes before.
    func textChanged(of connection: RegisteredConnection, from before: Int) {
        memory?.textChanged(from: before, to: connection.leftBytes)
    }

    /// A client of `user` sees to what it was woken for.
    ///
    /// - Parameter process: the client's number; `nil` where it has none here.
    func acknowledge(
        _ which: ConnectionReference, wake: UInt64, by process: Int32? = nil, for user: UInt32
    ) throws(RegistryError) {
        let connection = try find(which, for: user)
        connection.acknowledge(wake, by: process)
        connection.mayBeOver()
        writeDown(connection)
    }

    /// Subscribers of `user` came or went: that concerns the wakes of this user's clients and nobody else's.
    func subscriptionsChanged(of user: UInt32) {
        presence.begin(for: user) { [weak self] in
            self?.owned(by: user).filter(\.concernsWatchers) ?? []
        }
    }

    /// Makes the connections of the configuration those of `wanted`: new ones are opened, missing ones closed, changed
    /// ones told. Connections that are the same are not touched. Where a client of the owner has a connection of the
    /// name, that one is closed: what a file says is root's word.
    ///
    /// - Returns: the connections of clients that were closed for their name.
    func reconcile(with wanted: [ConfiguredConnection]) -> [ConnectionKey] {
        let keys = Set(wanted.map(\.key))
        for connection in connections.values
        where connection.origin == .configuration && !keys.contains(connection.key) {
            remove(connection)
        }
        var superseded: [ConnectionKey] = []
        for configured in wanted {
            if let existing = connections[configured.key] {
                if existing.origin == .configuration {
                    let before = existing.leftBytes
                    existing.change(to: configured.policy, wake: configured.wake)
                    textChanged(of: existing, from: before)
                    continue
                }
                if !existing.isOver { superseded.append(existing.key) }
                remove(existing, because: .nameConfigured)
            }
            // The load judged the name, which is free by now, and there is no quota for root's word.
            _ = try? open(
                configured.name, configured.policy, wake: configured.wake, owner: configured.owner,
                origin: .configuration)
        }
        return superseded
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
        for connection in connections.values { remove(connection, because: .agentEnded) }
    }

    /// What an earlier process supervised, once.
    func takeInherited() -> [SavedConnection] {
        defer { inherited = [] }
        return inherited
    }

    /// Gives a connection of an earlier process its place. It counts against its owner's quota, and has passed it.
    func enterAgain(_ kept: SavedConnection, wake: WakeSettings?) -> RegisteredConnection {
        if !kept.isConfigured { quota.takeAgain(for: kept.owner) }
        return enter(
            kept.name, wake: wake, owner: kept.owner, origin: kept.isConfigured ? .configuration : .client,
            given: kept.parameters)
    }

    /// All that there is to be known, for the records to be written anew.
    private var snapshot: some Sequence<[AgentState.Entry]> {
        let connections = connections.values.lazy.compactMap { $0.kept.map { [AgentState.Entry.connection($0)] } }
        let events = journal.all.lazy.map { [AgentState.Entry.event(.init(sequence: $0.sequence, event: $0.event))] }
        return [
            AnySequence([[.latest(journal.latest), .lost(journal.losses)]]), AnySequence(connections),
            AnySequence(events),
        ].joined()
    }

    private func find(_ which: ConnectionReference, for user: UInt32) throws(RegistryError) -> RegisteredConnection {
        // Others' connections do not exist for a user: their names are nobody's business either.
        if let found = existing(ConnectionKey(which.name, of: which.owner ?? user)), found.isVisible(to: user) {
            return found
        }
        guard which.owner == nil, user == 0 else { throw .noSuchConnection }
        let namesakes = connections.values.filter { $0.name == which.name }.compactMap { existing($0.key) }
        guard let first = namesakes.first else { throw .noSuchConnection }
        guard namesakes.count == 1 else { throw .ambiguous(owners: namesakes.map(\.owner).sorted()) }
        return first
    }

    /// The connection of a key. Nobody tells that a client has read the last of one that ended.
    private func existing(_ key: ConnectionKey) -> RegisteredConnection? {
        if let connection = connections[key] { forgetIfOver(connection) }
        return connections[key]
    }

    private func remove(_ connection: RegisteredConnection, because reason: StatusReason = .closeRequested) {
        connection.close(because: reason)
        connections[connection.key] = nil
        connectionsByOwner[connection.owner]?[connection.name] = nil
        if connectionsByOwner[connection.owner]?.isEmpty == true { connectionsByOwner[connection.owner] = nil }
        continuity?.write([.removed(connection.key)])
        if connection.origin == .client { quota.giveBack(for: connection.owner) }
        journal.connectionWent(of: connection.owner)
        memory?.connectionWent(
            given: connection.parameters.count, left: connection.leftBytes)
    }

    private func record(_ recorded: RecordedEvent) {
        let sequence = journal.latest + 1
        let event = SavedEvent(ConnectionsAPI.Event(recorded, sequence: sequence), owner: recorded.owner)
        if let continuity {
            var entries = [AgentState.Entry.event(.init(sequence: sequence, event: event))]
            if let connection = connections[recorded.key] {
                if connection.isOver {
                    entries.append(.removed(recorded.key))
                } else if let kept = connection.changes() {
                    entries.append(.connection(kept))
                } else if connection.hasNewTotals {
                    entries.append(.totals(recorded.key, connection.totals))
                }
            }
            continuity.write(entries)
            connections[recorded.key]?.changesAreWritten()
        }
        journal.append(event)
        for observer in observers { observer(recorded) }
        guard recorded.event.status.state == .closed, let connection = connections[recorded.key] else { return }
        // Not within its own event.
        AgentQueue.async { [weak self] in self?.forgetIfOver(connection) }
    }

    /// Forgets a connection that ended with its flow, once its client has read what was left of that.
    private func forgetIfOver(_ connection: RegisteredConnection) {
        guard connection.isOver, connections[connection.key] === connection else { return }
        remove(connection)
    }

    /// Writes down what changed without an event.
    private func writeDown(_ connection: RegisteredConnection) {
        guard let continuity, connections[connection.key] === connection, let kept = connection.changes() else {
            return
        }
        continuity.write([.connection(kept)])
        connection.changesAreWritten()
    }

    /// A name that none of the owner's connections has: the remote's host, cut where it is longer than a name may be,
    /// with a number if need be.
    private func freeName(for remote: Remote, owner: UInt32) -> String {
        let host = remote.host.description
        var name = String(host.prefix(ConnectionName.longest))
        var number = 1
        while connections[ConnectionKey(name, of: owner)] != nil {
            number += 1
            name = host.prefix(ConnectionName.longest - 1 - "\(number)".count) + "-\(number)"
        }
        return name
    }
}
