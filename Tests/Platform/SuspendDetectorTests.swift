// SPDX-License-Identifier: Apache-2.0

import DialtonePlatform
import Testing

struct SuspendDetectorTests {
    /// A reading at `boot` of a machine that has slept `asleep`, taken in `width`.
    private func reading(_ boot: Duration, asleep: Duration = .zero, width: Duration = .nanoseconds(40))
        -> SuspendDetector.Reading
    {
        let monotonic = boot - asleep
        return .init(before: monotonic - width / 2, boot: boot, after: monotonic + width / 2)
    }

    @Test func `time that passes is no sleep`() {
        var detector = SuspendDetector(from: reading(.seconds(100)))
        for second in 101..<200 { #expect(detector.slept(until: reading(.seconds(second))) == nil) }
    }

    @Test func `sleep is told once and by as much as is certain`() {
        var detector = SuspendDetector(from: reading(.seconds(100), width: .milliseconds(2)))
        let woken = reading(.seconds(700), asleep: .seconds(590), width: .milliseconds(4))
        #expect(detector.slept(until: woken) == .seconds(590) - .milliseconds(3))
        #expect(detector.slept(until: woken) == nil)
        #expect(detector.slept(until: reading(.seconds(701), asleep: .seconds(590))) == nil)
    }

    @Test func `each sleep is told`() {
        var detector = SuspendDetector(from: reading(.seconds(100)))
        #expect(detector.slept(until: reading(.seconds(200), asleep: .seconds(50))) != nil)
        #expect(detector.slept(until: reading(.seconds(300), asleep: .seconds(90))) != nil)
        #expect(detector.slept(until: reading(.seconds(400), asleep: .seconds(90))) == nil)
    }

    @Test func `a reader that was interrupted between the clocks is not taken for sleep`() {
        var detector = SuspendDetector(from: reading(.seconds(100)))
        // Ten seconds between the first and the second clock, then between the second and the third.
        let late = SuspendDetector.Reading(before: .seconds(101), boot: .seconds(111), after: .seconds(111))
        #expect(detector.slept(until: late) == nil)
        let early = SuspendDetector.Reading(before: .seconds(120), boot: .seconds(120), after: .seconds(130))
        #expect(detector.slept(until: early) == nil)
        // And what was known before still is: the shortest sleep shows.
        #expect(detector.slept(until: reading(.seconds(140), asleep: .microseconds(1))) != nil)
    }

    @Test func `a broad first reading is narrowed down by later ones`() {
        var detector = SuspendDetector(from: reading(.seconds(100), width: .seconds(8)))
        #expect(detector.slept(until: reading(.seconds(110))) == nil)
        #expect(detector.slept(until: reading(.seconds(120), asleep: .milliseconds(1))) != nil)
    }
}
