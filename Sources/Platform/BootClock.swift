// SPDX-License-Identifier: Apache-2.0

// `timespec` belongs to whichever C module the compiler reads first.
internal import CDialtonePlatform
internal import Glibc

/// The clock that deadlines are kept on: `CLOCK_BOOTTIME`, nanoseconds since boot, time asleep included.
///
/// Not the wall clock, which an administrator or NTP may step, and not `CLOCK_MONOTONIC` (which Dispatch's own timers
/// follow), which stands still while the machine sleeps: a keepalive due during the sleep must be due on resume.
package enum BootClock {
    /// The time since boot.
    package static func now() -> Duration {
        var time = timespec()
        // Fails only for a clock the kernel does not know, and this one is as old as Linux 2.6.39.
        clock_gettime(CLOCK_BOOTTIME, &time)
        return .seconds(time.tv_sec) + .nanoseconds(time.tv_nsec)
    }
}

extension Duration {
    /// This duration as the kernel takes it.
    var kernelTime: timespec {
        let (seconds, attoseconds) = components
        return timespec(tv_sec: Int(seconds), tv_nsec: Int(attoseconds / 1_000_000_000))
    }

    /// Whole milliseconds, rounded toward zero.
    package var milliseconds: Int64 {
        let (seconds, attoseconds) = components
        return Int64(clamping: Int128(seconds) * 1000 + Int128(attoseconds / 1_000_000_000_000_000))
    }
}
