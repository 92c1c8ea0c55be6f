// SPDX-License-Identifier: Apache-2.0

package import DialtonePlatform
package import Logging

/// Tells the service manager, as long as the agent's queue runs, that it does.
///
/// It is the one timer of an idle agent, and it is there only when the manager asks for it (`WatchdogSec=`). It fires
/// at half the time the manager waits, as sd_watchdog_enabled(3) advises, so one late ping is forgiven. Nothing is sent
/// from anywhere but the queue: a ping says that the queue, and with it every deadline and every subscriber, is served.
@AgentQueue
package final class Watchdog {
    let interval: Duration
    private let ping: @AgentQueue () -> Void
    private var timer: Timers.Timer?

    /// A watchdog for a manager that waits `timeout`.
    ///
    /// - Parameter ping: sends the sign of life, ``ServiceManager/notifyWatchdog()``.
    package init(timeout: Duration, ping: @escaping @AgentQueue () -> Void) {
        interval = timeout / 2
        self.ping = ping
    }

    /// One that has begun, for the manager of this process; `nil` where it does not wait for signs of life.
    package static func begin(_ logger: Logger) -> Watchdog? {
        guard let timeout = ServiceManager.watchdogTimeout else { return nil }
        let watchdog = Watchdog(timeout: timeout) {
            ServiceManager.tell(logger) { () throws(SystemError) in try ServiceManager.notifyWatchdog() }
        }
        watchdog.start()
        return watchdog
    }

    /// Sends the first sign of life and keeps on until ``cancel()``.
    package func start() {
        ping()
        timer = Timers.shared.schedule(after: interval) { self.start() }
    }

    /// Sends no more.
    package func cancel() {
        timer?.cancel()
        timer = nil
    }
}
