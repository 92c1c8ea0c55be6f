// SPDX-License-Identifier: Apache-2.0

import Glibc
import Testing

@testable import DialtonePlatform

struct BootClockTests {
    @Test func `it never goes back`() {
        var last = BootClock.now()
        for _ in 0..<10_000 {
            let now = BootClock.now()
            #expect(now >= last)
            last = now
        }
    }

    /// It counts the time asleep, which the monotonic clock leaves out, and both start with the machine.
    @Test func `it is not behind the monotonic clock`() {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC, &time)
        #expect(BootClock.now() >= .seconds(time.tv_sec) + .nanoseconds(time.tv_nsec))
    }

    @Test(arguments: [
        (Duration.zero, 0, 0), (.nanoseconds(1), 0, 1), (.milliseconds(1500), 1, 500_000_000),
        (.seconds(1) - .nanoseconds(1), 0, 999_999_999), (.seconds(Int64.max), Int.max, 0),
    ])
    func `a duration as the kernel takes it`(duration: Duration, seconds: Int, nanoseconds: Int) {
        // Two words (clock_gettime(2)), without the C module that happens to own the type.
        let words = withUnsafeBytes(of: duration.kernelTime) { Array($0.bindMemory(to: Int.self)) }
        #expect(words == [seconds, nanoseconds])
    }

    @Test(arguments: [
        (Duration.zero, 0), (.microseconds(999), 0), (.microseconds(1999), 1), (.seconds(90), 90_000),
        (.microseconds(-1999), -1), (.milliseconds(-2), -2), (.seconds(Int64.max), Int.max),
        (.seconds(Int64.min), Int.min),
    ])
    func `whole milliseconds are rounded toward zero`(duration: Duration, milliseconds: Int) {
        #expect(duration.milliseconds == Int64(milliseconds))
    }
}
