// SPDX-License-Identifier: Apache-2.0

internal import DialtoneAPI
package import DialtonePlatform
internal import DialtoneSystemd
package import DialtoneVarlink
internal import Glibc
package import Logging

/// What the processes before this one ended of, and who is refused for it (``CrashLedger``); and the note that the next
/// one finds of this.
package final class CrashGuard: Sendable {
    /// How the process before ended; `nil` if in order, or if nobody knows.
    let crash: BlackBox.Crash?
    private let ledger: CrashLedger
    // Written to by this class at the start, and on the agent's queue.
    private let box: BlackBox

    /// Goes on from what was inherited, and has all that happens from now on noted. Before there is a second thread.
    ///
    /// - Parameter inherited: the file that an earlier process left; taken over.
    package init(_ inherited: CInt?, _ logger: Logger) throws(SystemError) {
        let box = try Self.box(inherited)
        var ledger = CrashLedger(box.entries)
        let (crash, now) = (box.crash, BootClock.now())
        let subject = crash.flatMap { ledger.note($0, now: now) }
        box.entries = ledger.entries
        box.unsettledStarts += 1
        (self.box, self.crash, self.ledger) = (box, crash, ledger)
        box.watch(program: "dialtoned", isJournal: LogOutput.detect() == .journal)
        guard let crash else { return }
        logger.error("the process before did not end in order", metadata: Self.metadata(of: crash))
        if let subject, let rest = ledger.refusal(of: subject, now: now) {
            let count = ledger.entries.first?.count ?? 0
            logger.error(
                "\(subject) is refused: processes crashed for it again and again",
                metadata: ["crashes": "\(count)", "for": "\(rest)"])
        }
    }

    private static func box(_ inherited: CInt?) throws(SystemError) -> BlackBox {
        if let inherited {
            let file = OwnedDescriptor(inherited)
            // A file that is none is of another version: another one takes its place.
            if let box = try? BlackBox(file) { return box }
            _ = try ServiceManager.removeStored(Inheritance.boxName)
        }
        guard ServiceManager.storeLimit > 0 else { return try BlackBox() }
        let file = try BlackBox.file()
        _ = try ServiceManager.store([file.number], as: Inheritance.boxName)
        return try BlackBox(file)
    }

    private static func metadata(of crash: BlackBox.Crash) -> Logger.Metadata {
        var metadata: Logger.Metadata = ["signal": "\(crash.signal.map { "\($0)" } ?? "not noted")"]
        switch crash.work {
        case .call(let method, let user)?:
            metadata["user"] = "\(user)"
            metadata["method"] = "\(method)"
        case .bytes(let connection, let user)?:
            metadata["user"] = "\(user)"
            metadata["connection"] = "\(connection)"
        case .configuration?: metadata["file"] = "the configuration"
        case nil: break
        }
        return metadata
    }

    /// Why nothing is done for a user now; `nil` where it is served.
    package func refusal(of user: UInt32) -> VarlinkFailure? {
        // A user's own agent would refuse the one whom it serves.
        guard !ledger.entries.isEmpty, user != geteuid(),
            let rest = ledger.refusal(of: .user(user), now: BootClock.now())
        else { return nil }
        return VarlinkFailure(
            ConnectionsAPI.Suspended(
                reason: "the agent crashed \(CrashLedger.mostCrashes) times in a row while it answered this user",
                seconds: Int(rest.components.seconds) + 1))
    }

    /// The connections that are not dialled now, and for how much longer.
    package var connectionsLeftAlone: [(key: ConnectionKey, rest: Duration)] {
        ledger.connectionsLeftAlone(now: BootClock.now())
    }

    /// This process has run for long enough.
    @AgentQueue
    func hasSettled() { box.unsettledStarts = 0 }

    /// So many processes may begin and end at once before the next ones wait.
    private static let promptStarts = 10
    /// The longest wait; systemd gives a start ninety seconds.
    private static let longestPause = Duration.seconds(30)

    /// How long a process waits before it begins, after so many that ended at once.
    package static func pause(afterStarts starts: Int) -> Duration {
        starts <= promptStarts
            ? .zero : min(Duration.seconds(1) * (1 << min(starts - promptStarts - 1, 10)), longestPause)
    }

    /// Waits, where process after process ended at once: for what crashes each time the service is not given up, and
    /// does not take the processor either. A signal to end it ends the wait, and the process.
    package func pauseBeforeStart() {
        let pause = Self.pause(afterStarts: box.unsettledStarts)
        guard pause > .zero else { return }
        var (signals, limit) = (sigset_t(), timespec(tv_sec: Int(pause.components.seconds), tv_nsec: 0))
        sigemptyset(&signals)
        sigaddset(&signals, SIGTERM)
        sigaddset(&signals, SIGINT)
        if sigtimedwait(&signals, nil, &limit) > 0 { exit(EXIT_SUCCESS) }
    }
}

extension CrashLedger.Subject: CustomStringConvertible {
    /// For a line of the log.
    package var description: String {
        switch self {
        case .user(let user): "user \(user)"
        case .connection(let name, let owner): "connection \(name) of user \(owner)"
        }
    }
}
