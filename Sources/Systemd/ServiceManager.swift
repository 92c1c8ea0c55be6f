// SPDX-License-Identifier: Apache-2.0

internal import CDialtoneSystemd
package import DialtonePlatform
internal import Glibc
package import Logging

/// What the daemon tells the service manager that started it, sd_notify(3).
///
/// Each call is one datagram to `$NOTIFY_SOCKET`, and returns whether there is such a manager. Without one (run from a
/// shell) nothing is sent and nothing fails. The variable stays in the environment, since each call reads it; whoever
/// starts a program for somebody else takes it out of that program's.
package enum ServiceManager {
    /// Tells the manager something. One that does not listen is no reason to stop serving.
    package static func tell(_ logger: Logger, _ notify: () throws(SystemError) -> Bool) {
        do throws(SystemError) {
            _ = try notify()
        } catch {
            logger.warning("the service manager does not listen", metadata: ["error": "\(error)"])
        }
    }

    /// The start is over: the socket serves, and the first snapshot of the network is in. Also ends a reload.
    ///
    /// - Parameter status: a line for `systemctl status`.
    /// - Throws: the kernel's refusal to send.
    @discardableResult
    package static func notifyReady(status: String? = nil) throws(SystemError) -> Bool {
        try notify(["READY=1"] + (status.map { [assignment(status: $0)] } ?? []))
    }

    /// A reload begins; ``notifyReady(status:)`` ends it. The moment lets a manager from version 253 on tell this
    /// reload from one that it asked for later (`Type=notify-reload`); older ones ignore it.
    @discardableResult
    package static func notifyReloading() throws(SystemError) -> Bool {
        var now = timespec()
        clock_gettime(CLOCK_MONOTONIC, &now)
        return try notify(["RELOADING=1", "MONOTONIC_USEC=\(now.tv_sec * 1_000_000 + now.tv_nsec / 1000)"])
    }

    /// The end begins.
    @discardableResult
    package static func notifyStopping() throws(SystemError) -> Bool {
        try notify(["STOPPING=1"])
    }

    /// The line that `systemctl status` shows.
    @discardableResult
    package static func notifyStatus(_ text: String) throws(SystemError) -> Bool {
        try notify([assignment(status: text)])
    }

    /// The agent's queue still runs; see ``Watchdog``.
    @discardableResult
    package static func notifyWatchdog() throws(SystemError) -> Bool {
        try notify(["WATCHDOG=1"])
    }

    /// How long the manager waits for a sign of life before it takes the process for hung, or `nil` if it does not
    /// wait. From `$WATCHDOG_USEC`, when `$WATCHDOG_PID` is this process.
    package static var watchdogTimeout: Duration? {
        var microseconds: UInt64 = 0
        guard sd_watchdog_enabled(0, &microseconds) > 0 else { return nil }
        return .microseconds(Int64(clamping: microseconds))
    }

    /// How many descriptors the manager keeps for this service over its death and restart; 0 where it keeps none.
    ///
    /// From `$FDSTORE`, which managers set from version 254 on; for older ones the unit file does (`Environment=`).
    /// Above the limit a descriptor is dropped without a word, so whoever stores some counts them.
    package static var storeLimit: Int {
        guard getenv("NOTIFY_SOCKET") != nil, let text = getenv("FDSTORE") else { return 0 }
        return max(Int(String(cString: text)) ?? 0, 0)
    }

    /// Leaves a copy of a descriptor with the manager, which gives it to the next process of this service
    /// (``PassedDescriptors``), whatever this one dies of. A descriptor that it has already is not stored twice.
    ///
    /// When this returns, the copy is safe from this process's death: it is in the manager's queue, and the manager
    /// reads its queue before it looks after dead children (`manager_setup_notify` and
    /// `manager_setup_sigchld_event_source` in systemd's src/core/manager.c give them priorities in this order). So no
    /// barrier (sd_notify_barrier(3)) is waited for, which would cost a round trip through the manager for each
    /// connection. Where that queue is full (512 messages, `net.unix.max_dgram_qlen`) the call waits for the manager.
    ///
    /// - Parameter name: at most 255 printable ASCII characters without a colon. Several may have the same.
    @discardableResult
    package static func store(_ descriptors: [CInt], as name: String) throws(SystemError) -> Bool {
        // Not watched for a hang-up: a connection that ended still has bytes for its client.
        let result = sd_pid_notify_with_fds(
            0, 0, "FDSTORE=1\nFDNAME=\(name)\nFDPOLL=0", descriptors, CUnsignedInt(descriptors.count))
        guard result >= 0 else { throw SystemError("storing descriptor \"\(name)\"", code: -result) }
        return result > 0
    }

    /// Has the manager close what it keeps under a name.
    @discardableResult
    package static func removeStored(_ name: String) throws(SystemError) -> Bool {
        try notify(["FDSTOREREMOVE=1", "FDNAME=\(name)"])
    }

    /// The status on one line: a further line would be read as a variable of its own.
    private static func assignment(status: String) -> String {
        "STATUS=" + String(status.map { $0.isNewline ? " " : $0 })
    }

    private static func notify(_ variables: [String]) throws(SystemError) -> Bool {
        let result = sd_notify(0, variables.joined(separator: "\n"))
        guard result >= 0 else { throw SystemError("telling the service manager \(variables[0])", code: -result) }
        return result > 0
    }
}
