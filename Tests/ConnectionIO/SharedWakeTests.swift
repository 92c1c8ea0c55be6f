// SPDX-License-Identifier: Apache-2.0

import DialtoneCoalescing
import DialtoneConnection
import DialtoneExpectations
import DialtonePlatform
import Testing

@testable import DialtoneConnectionIO

@AgentQueue
@Suite(.timeLimit(.minutes(1))) struct SharedWakeTests {
    private let wakes = CoalescedTimers()
    private let calls = Inbox<String>()

    /// Adds an entry that tells its name, and then, in the next turn, that its turn is over.
    private func add(_ name: String, _ interval: Duration, tolerance: Duration) -> TimerCoalescer.Token {
        let calls = calls
        return wakes.add(Cadence(interval: interval, tolerance: tolerance)) {
            calls.put(name)
            AgentQueue.async { calls.put("over") }
        }
    }

    @Test func `windows that overlap share a wake`() async {
        let tokens = [
            add("early", .milliseconds(100), tolerance: .milliseconds(50)),
            add("late", .milliseconds(140), tolerance: .milliseconds(100)),
        ]
        // One turn for both, or it would be over in between.
        let first = [await calls.next(), await calls.next()]
        #expect(Set(first) == ["early", "late"])
        expect(await calls.next(), is: "over")
        for token in tokens { wakes.remove(token) }
    }

    @Test func `windows that do not overlap have their own`() async {
        let tokens = [
            add("first", .milliseconds(50), tolerance: .zero), add("second", .seconds(600), tolerance: .seconds(500)),
        ]
        expect(await calls.next(), is: "first")
        expect(await calls.next(), is: "over")
        for token in tokens { wakes.remove(token) }
    }

    @Test func `an entry that is removed is not called`() async {
        let gone = add("gone", .milliseconds(100), tolerance: .zero)
        let stays = add("stays", .milliseconds(100), tolerance: .milliseconds(50))
        wakes.remove(gone)
        expect(await calls.next(), is: "stays")
        expect(await calls.next(), is: "over")
        wakes.remove(stays)
    }
}
