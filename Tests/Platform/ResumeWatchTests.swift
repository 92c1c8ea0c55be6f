// SPDX-License-Identifier: Apache-2.0

import DialtoneTestSupport
import Glibc
import Testing

@testable import DialtonePlatform

@AgentQueue
/// A resume from suspend.
@Suite(.timeLimit(.minutes(1)))
struct ResumeWatchTests {
    /// Clocks that a test sets.
    @AgentQueue
    private final class Clocks {
        var boot = Duration.seconds(100)
        var asleep = Duration.zero

        func read() -> ResumeWatch.Reading {
            .init(before: boot - asleep, boot: boot, after: boot - asleep)
        }
    }

    @Test func `kernel.md 21: a resume is told to all, once, with the time asleep`() {
        let clocks = Clocks()
        let watch = ResumeWatch { clocks.read() }
        var heard: [(Int, Duration)] = []
        watch.onResume { heard.append((1, $0)) }
        watch.onResume { heard.append((2, $0)) }
        clocks.boot += .seconds(1)
        watch.check()
        #expect(heard.isEmpty)
        clocks.boot += .seconds(3600)
        clocks.asleep += .seconds(3500)
        watch.check()
        watch.check()
        #expect(heard.map(\.0) == [1, 2])
        #expect(heard.allSatisfy { $0.1 == .seconds(3500) })
    }

    @Test func `a sleep that was announced ends with one resume, by the clocks or by the announcer's word`() {
        let clocks = Clocks()
        let watch = ResumeWatch { clocks.read() }
        var heard: [Duration] = []
        watch.onResume { heard.append($0) }
        // The clocks told of it first, as they do with the event that brings the word.
        watch.sleepWasAnnounced()
        clocks.boot += .seconds(3600)
        clocks.asleep += .seconds(3600)
        watch.check()
        watch.wakeWasAnnounced()
        #expect(heard == [.seconds(3600)])
        // The word was the first to have them looked at.
        watch.sleepWasAnnounced()
        clocks.boot += .seconds(60)
        clocks.asleep += .seconds(60)
        watch.wakeWasAnnounced()
        #expect(heard == [.seconds(3600), .seconds(60)])
        // They know of no sleep.
        watch.sleepWasAnnounced()
        watch.wakeWasAnnounced()
        watch.wakeWasAnnounced()
        #expect(heard == [.seconds(3600), .seconds(60), .zero])
        // A sleep before the announced one is told at once, and the announced one is still to come.
        clocks.boot += .seconds(5)
        clocks.asleep += .seconds(5)
        watch.sleepWasAnnounced()
        watch.wakeWasAnnounced()
        #expect(heard.dropFirst(3) == [.seconds(5), .zero])
    }

    @Test(.mayStepTheClock) func `kernel.md 21: a step of the wall clock is heard each time, and is no resume`()
        async throws
    {
        let watch = ResumeWatch(reading: SuspendDetector.Reading.now)
        watch.followTheWallClock()
        watch.onResume { Issue.record("the machine slept \($0)") }
        for count in 1...3 {
            try #require(stepTheWallClock())
            // Steps of others' tests count as well.
            while watch.wallClockSteps < count { try await turn() }
        }
    }

    @Test func `the watch of the process looks at each wake up`() {
        _ = ResumeWatch.shared
        #expect(Poller.shared.beforeEvents != nil)
    }
}

/// Sets the wall clock to its own present value and a microsecond.
private nonisolated func stepTheWallClock() -> Bool {
    var time = timespec()
    clock_gettime(CLOCK_REALTIME, &time)
    time.tv_nsec += 1000
    if time.tv_nsec >= 1_000_000_000 {
        time.tv_nsec -= 1_000_000_000
        time.tv_sec += 1
    }
    return clock_settime(CLOCK_REALTIME, &time) == 0
}

extension Trait where Self == ConditionTrait {
    /// Skips a test where this process may not set the wall clock (`CAP_SYS_TIME`, which no user namespace gives).
    fileprivate static var mayStepTheClock: Self {
        .enabled(if: stepTheWallClock(), "setting the wall clock takes CAP_SYS_TIME")
    }
}
