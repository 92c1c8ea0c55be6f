// SPDX-License-Identifier: Apache-2.0

internal import DialtonePlatform
internal import Glibc

/// One hook that runs.
@AgentQueue
enum HookProcess {
    /// How it ended.
    enum End: Hashable, Sendable {
        /// With this exit status; 128 and the signal's number if a signal ended it.
        case exited(CInt)
        /// It was ended at its time limit, with all processes of its group.
        case overran
    }

    /// What a hook is allowed to do after SIGTERM, until SIGKILL.
    private static let grace = Duration.seconds(2)

    /// Runs a hook to its end.
    ///
    /// - Parameters:
    ///   - path: its file.
    ///   - change: its first argument, its environment and its standard input.
    ///   - limit: how long it may take.
    /// - Throws: the kernel's refusal.
    static func run(_ path: String, _ change: HookChange, limit: Duration) async throws(SystemError) -> End {
        let input = try OwnedDescriptor.fileInMemory("dialtone-hook")
        try input.fill(change.json)
        // A group of its own, so that what it started ends with it at the limit.
        let process = try Spawn.start(
            "running it", path, [path, change.name.rawValue],
            environment: environment(change, in: processEnvironment()), inOwnGroup: true,
            descriptors: [(STDIN_FILENO, .descriptor(input.number))])
        let state = State()
        let killer = Task { @AgentQueue in
            for (pause, signal) in [(limit, SIGTERM), (grace, SIGKILL)] {
                try await ContinuousClock().sleep(for: pause)
                // Afterwards the number may be another process's.
                if state.isOver { return }
                state.hasOverrun = true
                kill(-process, signal)
            }
        }
        try await Spawn.awaitEnd(of: process)
        killer.cancel()
        state.isOver = true
        // Those of its group that took no notice of SIGTERM: the number is theirs until the process was waited for.
        if state.hasOverrun { kill(-process, SIGKILL) }
        let status = try Spawn.exitStatus(of: process)
        return state.hasOverrun ? .overran : .exited(status)
    }

    @AgentQueue
    private final class State {
        /// It was told to end.
        var hasOverrun = false
        /// It has ended.
        var isOver = false
    }

    /// A hook's environment: that of this process, without what is for this process alone (sd_notify(3),
    /// sd_listen_fds(3)) or tells of something else, and with the change.
    nonisolated static func environment(_ change: HookChange, in own: [String: String]) -> [String] {
        var all = own
        for name in ["NOTIFY_SOCKET", "WATCHDOG_PID", "WATCHDOG_USEC", "LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES"] {
            all[name] = nil
        }
        for name in all.keys where name.hasPrefix("DIALTONE_") && name != "DIALTONE_SOCKET" { all[name] = nil }
        all.merge(change.variables) { $1 }
        return all.map { "\($0.key)=\($0.value)" }
    }
}

extension OwnedDescriptor {
    /// Writes to a file, and goes back to its beginning.
    fileprivate borrowing func fill(_ bytes: [UInt8]) throws(SystemError) {
        var done = 0
        while done < bytes.count {
            let number = self.number
            done += try retryingInterrupts("writing what a hook reads") {
                bytes[done...].withUnsafeBytes { write(number, $0.baseAddress, $0.count) }
            }
        }
        lseek(number, 0, SEEK_SET)
    }
}
