// SPDX-License-Identifier: Apache-2.0

import DialtonePlatform
import DialtoneTestSupport
import Testing

@testable import DialtoneAgent

/// Memory after a burst of events.
@Suite(.timeLimit(.minutes(1))) @AgentQueue
struct BurstTrimTests {
    @Test func `few events are no burst, however long ago they were`() {
        let trim = BurstTrim {}
        for _ in 1..<BurstTrim.burst { trim.noteEvent() }
        #expect(!trim.isDue)
        trim.noteEvent()
        #expect(trim.isDue)
    }

    @Test func `memory is given back once after each burst, and nothing is due then`() async throws {
        var told: (@AgentQueue () -> Void)?
        let trim = BurstTrim(after: .zero) { told?() }
        for _ in 1...2 {
            let isTold: Bool = try await answer("the trim") { done in
                told = { done(true) }
                for _ in 0..<BurstTrim.burst * 3 { trim.noteEvent() }
            }
            #expect(isTold && !trim.isDue)
            trim.noteEvent()
            #expect(!trim.isDue, "what was told before does not count again")
        }
    }
}
