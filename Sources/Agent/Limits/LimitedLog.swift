// SPDX-License-Identifier: Apache-2.0

internal import DialtoneConnection
internal import DialtoneNetworkPath
internal import DialtonePlatform
internal import Glibc
internal import Logging

/// Decides which lines about what users' connections do are written (``LogBudget``), and tells once a minute how many
/// were left out. What clients do wrong is bounded where it is told (``VarlinkServer/onIncident``).
@AgentQueue
final class LimitedLog {
    /// What a line tells of. Each is seen at least once a minute, and there are few of them for one user.
    enum Kind: Hashable {
        case network
        case event(ConnectionEvent.Kind, ConnectionStatus.State)
        case advice
        case answer
        case wake(Logger.Level)
        case objection
    }

    private let logger: Logger
    private let pause: Duration
    private var budget = LogBudget<Kind>()
    private var account: Timers.Timer?

    /// - Parameter pause: how long after the first line that is left out their number is told.
    init(_ logger: Logger, pause: Duration = LogBudget<Kind>.period) {
        self.logger = logger
        self.pause = pause
    }

    /// Whether a line is to be written that this user caused; `nil` for nobody known. To be asked before it is put into
    /// words, and once for each line.
    func admits(_ level: Logger.Level, _ kind: Kind, of user: UInt32?) -> Bool {
        guard logger.logLevel <= level else { return false }
        // A user's own daemon is as free with that user's lines as root's is with root's.
        let user = user == geteuid() ? 0 : user
        if budget.admits(kind, of: user, now: BootClock.now()) { return true }
        if account == nil { account = Timers.shared.schedule(after: pause) { [weak self] in self?.tell() } }
        return false
    }

    private func tell() {
        account = nil
        for leftOut in budget.takeLeftOut(now: BootClock.now()) {
            let whose = leftOut.user.map { "user \($0)" } ?? "nobody known"
            logger.warning("left out \(leftOut.lines) lines of \(whose) in the last \(pause.short)")
        }
    }
}
