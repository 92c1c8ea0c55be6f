// SPDX-License-Identifier: Apache-2.0

internal import DialtoneAPI
internal import DialtonePersistence
internal import DialtonePlatform
internal import DialtoneVarlink

/// Answers `History` of `org.dialtone.Connections`: to each user about that user's connections, to root about all, and
/// to everybody about the network.
@AgentQueue
final class HistoryService {
    private let history: History
    private var subscriptions: Quota
    private let memory: MemoryGuard?

    init(_ history: History, subscriptionsPerUser: Int, memory: MemoryGuard? = nil) {
        self.history = history
        self.memory = memory
        subscriptions = Quota(limit: subscriptionsPerUser)
    }

    /// How many histories one user may read at a time.
    var subscriptionsPerUser: Int {
        get { subscriptions.limit }
        set { subscriptions.limit = newValue }
    }

    /// Adds the method to `service`, which has the interface.
    func register(in service: VarlinkService) {
        service.handleStream(ConnectionsAPI.History.self) {
            [unowned self] parameters, stream throws(VarlinkFailure) in
            let user = stream.peer.account
            let filter = try ConnectionFilter(names: parameters.names, owner: parameters.owner)
            guard subscriptions.hasRoom(for: user) else {
                throw VarlinkFailure(ConnectionsAPI.QuotaExceeded(limit: subscriptions.limit))
            }
            try memory?.admitOrFail(.subscription, for: user)
            _ = subscriptions.take(for: user)
            return HistoryReading(history, filter, since: parameters.since, stream) { [unowned self] in
                subscriptions.giveBack(for: user)
            }
        }
    }
}

/// One reading of the history: places in files, nothing else.
@AgentQueue
private final class HistoryReading: VarlinkSubscription {
    /// So many lines of others are passed over in a turn: a millisecond.
    private static let linesPerTurn = 32

    private let history: History
    /// What was there when everything was written that happened before somebody asked.
    private var reading: HistoryMerge?
    /// How many lines were damaged.
    private var damaged = 0
    private let filter: ConnectionFilter
    private let since: Timestamp?
    private let stream: VarlinkStream
    private let onEnd: @AgentQueue () -> Void

    init(
        _ history: History, _ filter: ConnectionFilter, since: Timestamp?, _ stream: VarlinkStream,
        onEnd: @escaping @AgentQueue () -> Void
    ) {
        self.history = history
        self.filter = filter
        self.since = since
        self.stream = stream
        self.onEnd = onEnd
    }

    func next() -> VarlinkMessage? {
        if reading == nil {
            guard history.isWritten else { return later() }
            reading = history.reading(for: stream.peer.uid)
        }
        for _ in 0..<Self.linesPerTurn {
            switch reading?.next() {
            case .line(let line)?: if isWanted(line) { return .reply(line.entry, continues: true) }
            case .dropped(let dropped)?:
                if isWanted(dropped) { return .reply(ConnectionsAPI.History.Reply(dropped: dropped), continues: true) }
            case .damaged?: damaged += 1
            case .end?, nil:
                history.found(damaged: damaged)
                return .reply(ConnectionsAPI.History.Reply())
            }
        }
        return later()
    }

    /// Lets others have their turn first.
    private func later() -> VarlinkMessage? {
        stream.wakeInTurn()
        return nil
    }

    func ended() { onEnd() }

    private func isWanted(_ dropped: ConnectionsAPI.Dropped) -> Bool {
        guard since.map({ $0 < dropped.until }) ?? true else { return false }
        return dropped.owner.map { filter.matches(anyOf: UInt32(clamping: $0)) } ?? !filter.isNarrow
    }

    private func isWanted(_ line: HistoryFiles.Line) -> Bool {
        guard let time = line.entry.time, since.map({ time >= $0 }) ?? true else { return false }
        guard let event = line.entry.event else { return !filter.isNarrow || line.entry.agent != nil }
        guard let owner = line.owner, RegisteredConnection.isVisible(ownedBy: owner, to: stream.peer.uid) else {
            return false
        }
        return filter.matches(event.connection.name, of: owner)
    }
}
