// SPDX-License-Identifier: Apache-2.0

internal import CDialtonePlatform
internal import Glibc

/// A timer that wakes a sleeping machine: a `timerfd` on `CLOCK_BOOTTIME_ALARM`, for which the kernel sets the
/// machine's real-time clock when it goes to sleep. On a machine without one it rings on resume at the earliest.
///
/// Apart from ``Timers``: what rings here costs a sleeping machine its sleep, so nothing gets here by chance.
@AgentQueue
package final class AlarmTimer {
    private let handler: @AgentQueue () -> Void
    private var registration: Poller.Registration?
    private var number: CInt = -1
    /// When it rings, on ``BootClock``; `nil` while it is not set.
    package private(set) var deadline: Duration?

    /// A timer that is not set.
    ///
    /// - Parameter handler: is called each time that it rings.
    /// - Throws: `EPERM` where this process has no `CAP_WAKE_ALARM`, which no user namespace gives.
    package init(_ handler: @escaping @AgentQueue () -> Void) throws(SystemError) {
        self.handler = handler
        let flags = CInt(TFD_NONBLOCK) | CInt(TFD_CLOEXEC)
        number = try retryingInterrupts("creating a timer that wakes the machine") {
            timerfd_create(CLOCK_BOOTTIME_ALARM, flags)
        }
        do throws(SystemError) {
            registration = try Poller.shared.register(number, .readable) { [weak self] _ in self?.ring() }
        } catch {
            close(number)
            throw error
        }
    }

    isolated deinit {
        registration?.cancel()
        close(number)
    }

    /// Has it ring at `deadline`, on ``BootClock``, in place of an earlier setting; `nil` for not at all.
    package func set(to deadline: Duration?) {
        guard deadline != self.deadline else { return }
        self.deadline = deadline
        var setting = itimerspec()
        // An all-zero value disarms.
        if let deadline { setting.it_value = max(deadline, .nanoseconds(1)).kernelTime }
        timerfd_settime(number, CInt(TFD_TIMER_ABSTIME), &setting, nil)
    }

    private func ring() {
        var expirations: UInt64 = 0
        // Nothing to read: it was set anew after the poller saw it ring.
        guard read(number, &expirations, MemoryLayout.size(ofValue: expirations)) > 0 else { return }
        deadline = nil
        handler()
    }
}
