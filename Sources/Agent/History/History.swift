// SPDX-License-Identifier: Apache-2.0

internal import DequeModule
internal import DialtoneAPI
internal import DialtoneConnection
internal import DialtoneNetworkPath
internal import DialtonePersistence
internal import DialtonePlatform
internal import Glibc
internal import Logging
internal import Reachability

/// Writes down what happened, for the morning after: connections, the network and the agent itself, over restarts.
///
/// An event is put into words and written a turn of the queue later: connections that are dialled in this one are not
/// kept waiting for the disk. With nothing happening there is nothing to do.
@AgentQueue
final class History {
    private enum Happening {
        /// `omitted` events of the same owner before it are left out.
        case event(RecordedEvent, HistoryFiles.Share, sequence: UInt64, omitted: Int)
        case network(NetworkAPI.Path, [PathChange], before: (status: NetworkAPI.Status, lasted: Duration)?)
        case agent(ConnectionsAPI.AgentChange.Kind, slept: Duration? = nil)
    }

    /// So many lines are written in a turn: under a millisecond.
    private static let linesPerTurn = 16

    private let logger: Logger
    private let files: HistoryFiles
    private var allowance = HistoryAllowance()
    private var pending: Deque<(happening: Happening, clocks: ClockReading)> = []
    private var isWriting = false
    private var hasFailed = false
    /// How many happenings could not be written since it failed.
    private var lost = 0
    /// Whether damaged lines were told of.
    private var hasToldOfDamage = false
    private var observation: PathObservation?
    private var network: (status: NetworkAPI.Status, since: Duration)?

    /// A history that goes on where the last run's stopped.
    init(_ state: SavedState, _ logger: Logger, _ room: HistoryFiles.Room? = nil) {
        self.logger = logger
        files = HistoryFiles(state, room)
        record(.agent(.started))
    }

    /// Writes down the changes of the network's path from now on.
    func follow(_ engine: NetworkState) {
        observation = engine.observe(.network(.any), isPassive: true) { [weak self] path, changes in
            self?.heard(path, changes)
        }
    }

    private func heard(_ path: Path, _ changes: [PathChange]) {
        let wire = NetworkAPI.Path(path)
        let clocks = ClockReading.now()
        let before = network
        if before?.status != wire.status { network = (wire.status, clocks.boot) }
        record(.network(wire, changes, before: before.map { ($0.status, clocks.boot - $0.since) }), at: clocks)
    }

    /// An event of a connection, with its number.
    func heard(_ recorded: RecordedEvent, sequence: UInt64) {
        guard recorded.wake?.report?.isWorthTelling ?? recorded.event.isWorthTelling else { return }
        let share = HistoryFiles.Share.user(
            recorded.owner, recorded.wake?.report?.isRoutine == true ? .wakes : .connections)
        var omitted = 0
        // Root, and in a user's own daemon that user, are not held to a limit.
        if recorded.owner != 0, recorded.owner != geteuid() {
            guard let admitted = allowance.admit(share, now: recorded.clocks.boot) else { return }
            omitted = admitted
        }
        record(.event(recorded, share, sequence: sequence, omitted: omitted), at: recorded.clocks)
    }

    /// The machine woke from suspend.
    func resumed(after slept: Duration) {
        record(.agent(.resumed, slept: slept))
    }

    /// The agent was told to end. Everything is in the file when this returns.
    func end() {
        record(.agent(.ended))
        flush()
    }

    /// Whether all that happened is in the file. After a storm of events that takes some turns of the queue.
    var isWritten: Bool { pending.isEmpty }

    /// Reads what is kept and `user` may see, the oldest first.
    func reading(for user: UInt32) -> HistoryMerge? {
        flush()
        do throws(SystemError) {
            return try files.reading(for: RegisteredConnection.ownerVisible(to: user))
        } catch {
            report(error)
            return nil
        }
    }

    /// So many lines were found that are not as they were written. They are told of once: they stay where they are.
    func found(damaged count: Int) {
        guard count > 0, !hasToldOfDamage else { return }
        hasToldOfDamage = true
        logger.warning("some of the history is damaged and left out", metadata: ["lines": "\(count)"])
    }

    // MARK: - Writing

    private func record(_ happening: Happening, at clocks: ClockReading = .now()) {
        pending.append((happening, clocks))
        writeLater()
    }

    private func writeLater() {
        guard !isWriting else { return }
        isWriting = true
        AgentQueue.async { [weak self] in
            guard let self else { return }
            isWriting = false
            for _ in 0..<Self.linesPerTurn { writeNext() }
            guard pending.isEmpty else { return writeLater() }
            // A deque keeps its room. After an outage of ten thousand connections that is megabytes.
            pending = []
        }
    }

    private func flush() {
        while !pending.isEmpty { writeNext() }
    }

    private func writeNext() {
        guard let (happening, clocks) = pending.popFirst() else { return }
        do throws(SystemError) {
            let (share, entry) = line(of: happening, at: clocks)
            try files.append(entry, to: share)
            guard hasFailed else { return }
            logger.notice("the history is kept again", metadata: ["lost": "\(lost)"])
            (hasFailed, lost) = (false, 0)
        } catch {
            lost += 1
            report(error)
        }
    }

    private func line(
        of happening: Happening, at clocks: ClockReading
    ) -> (HistoryFiles.Share, ConnectionsAPI.History.Reply) {
        var share = HistoryFiles.Share.common
        var entry = ConnectionsAPI.History.Reply(uptime: clocks.boot)
        switch happening {
        case .event(let recorded, let ownersShare, let sequence, let omitted):
            var event = ConnectionsAPI.Event(recorded, sequence: sequence)
            event.connection.remote = recorded.remoteWithoutQuery
            (share, entry.event) = (ownersShare, event)
            entry.omitted = omitted > 0 ? omitted : nil
            entry.outages = recorded.outages
        case .network(let path, let changes, let before):
            entry.network = .init(
                time: clocks.wall, changes: changes.map(\.rawValue), to: path, previousStatus: before?.status,
                previousDuration: before?.lasted)
        case .agent(let kind, let slept):
            entry.agent = .init(time: clocks.wall, kind: kind, slept: slept)
        }
        return (share, entry)
    }

    /// Says what is wrong, once until it works again. It is no reason to stop.
    private func report(_ error: SystemError) {
        guard !hasFailed else { return }
        hasFailed = true
        logger.warning("the history is not kept for now", metadata: ["error": "\(error)"])
    }
}

extension ConnectionEvent {
    /// Whether the morning after wants to know: not each step on the way to a flow.
    fileprivate var isWorthTelling: Bool {
        switch kind {
        case .opened, .continued, .moveFailed, .pathChanged, .policyChanged, .abandoned, .sessionOpened, .openingFailed,
            .certificateEnds:
            return true
        // A client that is woken often takes and parks as often; the ledger of wakes tells of it.
        case .taken, .parked, .arrived, .wake: return false
        case .addressFailed, .attemptBegan: return false
        case .stateChanged:
            switch status.state {
            case .resolving, .connecting, .securing: return previousState.hasFlow
            case .waiting, .ready, .verifying, .backingOff, .failed, .closed: return true
            }
        }
    }
}
