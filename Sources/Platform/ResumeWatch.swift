// SPDX-License-Identifier: Apache-2.0

internal import CDialtonePlatform
internal import Glibc

/// Notices that the machine woke from suspend, without a tick.
///
/// Two things have it look at the clocks, and neither costs anything while nothing happens. A `timerfd` on the wall
/// clock that is due at the end of time, and is cancelled when that clock is set (`TFD_TIMER_CANCEL_ON_SET`,
/// timerfd_create(2)): the kernel sets it on resume. And every wake-up of the ``Poller``, whatever it was for, before
/// its events are handled; it is the only one where a sandbox refuses the timer. ``SuspendDetector`` then says whether
/// it was a resume. A step of the wall clock fires the timer too, and comes to nothing.
@AgentQueue
package final class ResumeWatch {
    /// The process's own.
    package static let shared: ResumeWatch = {
        let watch = ResumeWatch(reading: Reading.now)
        watch.followTheWallClock()
        Poller.shared.beforeEvents = { watch.check() }
        return watch
    }()

    /// The clocks of a moment.
    package typealias Reading = SuspendDetector.Reading

    private let reading: @AgentQueue () -> Reading
    private var detector: SuspendDetector
    private var handlers: [@AgentQueue (Duration) -> Void] = []
    private var timer: OwnedDescriptor?
    private var registration: Poller.Registration?

    /// Whether somebody said that the machine goes to sleep, and no resume was told since.
    private var isSleepAnnounced = false

    /// How often the wall clock was set; tests look at it.
    private(set) var wallClockSteps = 0

    /// A watch by clocks of a test's own, which looks only when it is told to by ``check()``.
    package init(reading: @escaping @AgentQueue () -> Reading) {
        self.reading = reading
        detector = SuspendDetector(from: reading())
    }

    isolated deinit { registration?.cancel() }

    /// Calls `handler` on the agent's queue after each resume, in the order of these calls, with how long the machine
    /// slept at least: zero where the clocks know of no sleep. For the life of the watch.
    package func onResume(_ handler: @escaping @AgentQueue (Duration) -> Void) {
        handlers.append(handler)
    }

    /// Looks at the clocks now, and calls the handlers if the machine slept since the last look.
    package func check() {
        if let slept = detector.slept(until: reading()) { tell(slept) }
    }

    /// The machine is about to sleep, somebody says who puts it to sleep.
    package func sleepWasAnnounced() {
        check()
        isSleepAnnounced = true
    }

    /// The machine is awake again, says who announced its sleep.
    ///
    /// A resume that the clocks told of since then is not told again. But processes stand still, and links go down,
    /// before the clocks stop and where they never do.
    package func wakeWasAnnounced() {
        check()
        if isSleepAnnounced { tell(.zero) }
    }

    private func tell(_ slept: Duration) {
        isSleepAnnounced = false
        for handler in handlers { handler(slept) }
    }

    /// Has the kernel tell of each step of the wall clock.
    func followTheWallClock() {
        let number = timerfd_create(CLOCK_REALTIME, CInt(TFD_NONBLOCK) | CInt(TFD_CLOEXEC))
        guard number >= 0 else { return }
        timer = OwnedDescriptor(number)
        var setting = itimerspec()
        // Later than any time there is; the kernel takes it for its own latest.
        setting.it_value.tv_sec = Int.max
        let flags = CInt(TFD_TIMER_ABSTIME) | CInt(TFD_TIMER_CANCEL_ON_SET)
        guard timerfd_settime(number, flags, &setting, nil) == 0 else { return }
        registration = try? Poller.shared.register(number, .readable) { [weak self] _ in
            var expirations: UInt64 = 0
            // Comes back with ECANCELED. The timer need not be set again: it is cancelled at each step.
            _ = read(number, &expirations, MemoryLayout.size(ofValue: expirations))
            self?.wallClockSteps += 1
            self?.check()
        }
    }
}

extension SuspendDetector.Reading {
    /// The clocks as they are now.
    package static func now() -> Self {
        let before = monotonic()
        let boot = BootClock.now()
        return Self(before: before, boot: boot, after: monotonic())
    }

    private static func monotonic() -> Duration {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC, &time)
        return .seconds(time.tv_sec) + .nanoseconds(time.tv_nsec)
    }
}
