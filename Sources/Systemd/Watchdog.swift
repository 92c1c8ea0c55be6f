// SPDX-License-Identifier: Apache-2.0

package import DialtonePlatform

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
