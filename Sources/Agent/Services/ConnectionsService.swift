// SPDX-License-Identifier: Apache-2.0

internal import DialtoneAPI
internal import DialtoneConnection
internal import DialtoneNetworkPath
internal import DialtonePersistence
internal import DialtonePlatform
internal import DialtoneProcesses
internal import DialtoneVarlink

/// Answers `org.dialtone.Connections`: to each user about that user's connections, to root about all.
@AgentQueue
final class ConnectionsService {
    private let registry: ConnectionRegistry
    private let boundary: NetworkBoundary
    private let waitingTakes: WaitingTakes
    private var subscriptions: Quota
    private let memory: MemoryGuard?
    /// By user: an event concerns its owner's and root's.
    private var subscribers: [UInt32: [ObjectIdentifier: ConnectionSubscription]] = [:]
    /// The message of the event told last: a thousand subscribers get the same bytes.
    private var encoded: (sequence: UInt64, message: VarlinkMessage)?

    init(
        _ registry: ConnectionRegistry, _ boundary: NetworkBoundary = NetworkBoundary(), subscriptionsPerUser: Int,
        memory: MemoryGuard? = nil
    ) {
        self.registry = registry
        self.boundary = boundary
        waitingTakes = HandoverService.waitingTakes(of: registry)
        self.memory = memory
        subscriptions = Quota(limit: subscriptionsPerUser)
        registry.onEvent { [unowned self] event in
            let sequence = self.registry.journal.latest
            for user in event.owner == 0 ? [0] : [event.owner, 0] {
                for subscriber in subscribers[user, default: [:]].values { subscriber.wake(for: sequence) }
            }
        }
    }

    /// The most monitors that one user may have at a time.
    var subscriptionsPerUser: Int {
        get { subscriptions.limit }
        set { subscriptions.limit = newValue }
    }

    /// Adds the interface and its methods to `service`.
    func register(in service: VarlinkService) {
        service.add(interface: ConnectionsAPI.name, description: ConnectionsAPI.description)
        service.handleLater(ConnectionsAPI.List.self) { [unowned self] _, exchange in
            let user = exchange.peer.uid
            let empty = ConnectionsAPI.List.Reply(connections: [])
            listing(registry.visible(to: user), in: empty, for: user).answer(exchange)
        }
        service.handleStream(ConnectionsAPI.Monitor.self) {
            [unowned self] parameters, stream throws(VarlinkFailure) in
            try monitor(parameters, stream)
        }
        service.handle(ConnectionsAPI.Open.self) { [unowned self] parameters, peer throws(VarlinkFailure) in
            try boundary.check(peer)
            return .init(name: try open(parameters, for: peer.uid))
        }
        HandoverService.register(in: service, registry, boundary, waitingTakes)
        KeepAliveService.register(in: service, registry)
        service.handle(ConnectionsAPI.Close.self) { [unowned self] parameters, peer throws(VarlinkFailure) in
            let which = try ConnectionReference(parameters.name, owner: parameters.owner)
            try answer(about: parameters.name) { () throws(RegistryError) in
                try registry.close(which, for: peer.uid)
            }
            return VarlinkEmpty()
        }
        service.handle(ConnectionsAPI.Redial.self) { [unowned self] parameters, peer throws(VarlinkFailure) in
            try boundary.check(peer)
            let which = try ConnectionReference(parameters.name, owner: parameters.owner)
            try answer(about: parameters.name) { () throws(RegistryError) in
                try registry.redial(which, after: parameters.after, for: peer.uid)
            }
            return VarlinkEmpty()
        }
    }

    /// Whether a subscriber is still to be told of an event.
    var isBehind: Bool { subscribers.values.contains { $0.values.contains(where: \.isBehind) } }

    private func open(
        _ parameters: ConnectionsAPI.Open.Parameters, for user: UInt32
    ) throws(VarlinkFailure) -> String {
        let policy = try ConnectionPolicy(parameters, user: user)
        return try answer(about: parameters.name ?? policy.remote.host.description) { () throws(RegistryError) in
            try registry.open(
                parameters.name, policy, owner: user, origin: .client, given: parameters.json)
        }
    }

    private func monitor(
        _ parameters: ConnectionsAPI.Monitor.Parameters, _ stream: VarlinkStream
    ) throws(VarlinkFailure) -> any VarlinkSubscription {
        var after: UInt64?
        if let number = parameters.after {
            guard let valid = UInt64(exactly: number) else {
                throw VarlinkFailure(ServiceAPI.InvalidParameter(parameter: "after"))
            }
            after = valid
        }
        let filter = try ConnectionFilter(names: parameters.names, owner: parameters.owner)
        let user = stream.peer.uid
        guard subscriptions.hasRoom(for: stream.peer.account) else {
            throw VarlinkFailure(ConnectionsAPI.QuotaExceeded(limit: subscriptions.limit))
        }
        try memory?.admitOrFail(.subscription, for: user)
        _ = subscriptions.take(for: stream.peer.account)
        let subscription = ConnectionSubscription(of: self, stream, filter, after: after)
        subscribers[user, default: [:]][ObjectIdentifier(subscription)] = subscription
        registry.subscriptionsChanged(of: user)
        return subscription
    }

    fileprivate func ended(_ subscription: ConnectionSubscription, of peer: VarlinkPeer) {
        let user = peer.uid
        subscribers[user]?[ObjectIdentifier(subscription)] = nil
        if subscribers[user]?.isEmpty == true { subscribers[user] = nil }
        subscriptions.giveBack(for: peer.account)
        registry.subscriptionsChanged(of: user)
    }

    /// Whether somebody of its owner's watches a connection who may be its client.
    ///
    /// - Parameter process: the client, where it is known: while it lives nobody else is, and a `dialtone watch` beside
    /// it
    ///   is not waited for.
    func isWatched(_ connection: RegisteredConnection, by process: ProcessHandle?) -> Bool {
        let client = process.flatMap { $0.isAlive ? $0 : nil }
        return waitingTakes.areAbout(connection)
            || subscribers[connection.owner, default: [:]].values.contains { $0.may(be: client, of: connection) }
    }

    // MARK: What subscriptions are made of

    /// Everything that `user` may see, and the number of the last event that is in it.
    fileprivate func state(
        _ kind: ConnectionsAPI.Monitor.Reply.Kind, for user: UInt32, _ filter: ConnectionFilter
    ) -> (sequence: UInt64, listing: ConnectionListing) {
        let connections = registry.visible(to: user).filter { filter.matches($0.name, of: $0.owner) }
        let reply = ConnectionsAPI.Monitor.Reply(sequence: Int(clamping: latest), kind: kind, connections: [])
        return (latest, listing(connections, in: reply, continues: true, for: user))
    }

    private func listing(
        _ connections: [RegisteredConnection], in reply: some VarlinkWritable, continues: Bool = false, for user: UInt32
    ) -> ConnectionListing {
        ConnectionListing(connections, in: reply, continues: continues, for: user, memory)
    }

    fileprivate func continuation(after sequence: UInt64, for user: UInt32) -> EventJournal.Continuation {
        registry.journal.continuation(after: sequence, for: RegisteredConnection.ownerVisible(to: user))
    }

    fileprivate var latest: UInt64 { registry.journal.latest }

    fileprivate func message(for entry: NumberedEvent) -> VarlinkMessage {
        if let encoded, encoded.sequence == entry.sequence { return encoded.message }
        let message = VarlinkMessage.reply(ConnectionsAPI.Monitor.Reply(entry), continues: true)
        encoded = (entry.sequence, message)
        return message
    }
}

/// One subscriber of `Monitor`: a cursor into the journal, nothing else.
@AgentQueue
private final class ConnectionSubscription: VarlinkSubscription {
    private unowned let service: ConnectionsService
    private let stream: VarlinkStream
    private let filter: ConnectionFilter
    /// The number of the event told last; `nil` while the snapshot is still to be told.
    private var cursor: UInt64?
    /// What is told of all connections, while it is made.
    private var state: (sequence: UInt64, listing: ConnectionListing)?
    /// Whether everything was told that it may see. Then it hears of nothing before the next event that it may see.
    private var isUpToDate = false

    init(of service: ConnectionsService, _ stream: VarlinkStream, _ filter: ConnectionFilter, after: UInt64?) {
        self.service = service
        self.stream = stream
        self.filter = filter
        cursor = after
    }

    /// An event happened that the subscriber's user may see.
    func wake(for sequence: UInt64) {
        // What happened in between is others', and may be gone from the journal: that is no gap.
        if isUpToDate { (cursor, isUpToDate) = (sequence - 1, false) }
        stream.wakeInTurn()
    }

    func next() -> VarlinkMessage? {
        if state != nil { return tellState() }
        guard var cursor else { return tell(.snapshot) }
        while true {
            switch service.continuation(after: cursor, for: stream.peer.uid) {
            case .upToDate:
                (self.cursor, isUpToDate) = (service.latest, true)
                return nil
            case .gap:
                return tell(.gap)
            case .next(let entry):
                cursor = entry.sequence
                guard isWanted(entry.event) else { continue }
                self.cursor = cursor
                return service.message(for: entry)
            }
        }
    }

    /// Whether the journal has something that was not looked at yet.
    var isBehind: Bool { !isUpToDate }

    func ended() {
        service.ended(self, of: stream.peer)
    }

    private func tell(_ kind: ConnectionsAPI.Monitor.Reply.Kind) -> VarlinkMessage? {
        state = service.state(kind, for: stream.peer.uid, filter)
        return tellState()
    }

    /// What happens to a connection meanwhile is an event after the number told, whether it is in the state or not.
    private func tellState() -> VarlinkMessage? {
        guard let (sequence, listing) = state else { return nil }
        guard let message = listing.step() else {
            stream.wakeInTurn(isGoingOn: true)
            return nil
        }
        state = nil
        cursor = sequence
        return message
    }

    func may(be process: ProcessHandle?, of connection: RegisteredConnection) -> Bool {
        stream.peer.uid == connection.owner && filter.matches(connection.name, of: connection.owner)
            && process.map { $0.number == stream.peer.pid } ?? true
    }

    private func isWanted(_ event: SavedEvent) -> Bool {
        RegisteredConnection.isVisible(ownedBy: event.owner, to: stream.peer.uid)
            && filter.matches(event.name, of: event.owner)
    }
}

extension ConnectionsAPI.Monitor.Reply {
    fileprivate init(_ entry: NumberedEvent) {
        let event = entry.event.wire(sequence: entry.sequence)
        self.init(sequence: event.sequence, kind: .change, connections: [event.connection], event: event)
    }
}
