// SPDX-License-Identifier: Apache-2.0

import DialtoneConnection
import DialtonePlatform
import DialtoneTestSupport
import Logging
import Testing

@testable import DialtoneAgent

/// What a user's storm leaves in the log.
@Suite(.timeLimit(.minutes(5))) @AgentQueue
struct LimitedLogTests {
    @Test func `a storm of one user's is a burst of lines, and then a count`() async throws {
        let notes = Notes()
        var lines = 0
        let limits = LimitedLog(notes.logger, pause: .milliseconds(50))
        for _ in 0..<20_000 where limits.admits(.warning, .advice, of: 1000) {
            lines += 1
        }
        #expect((500...600).contains(lines))
        try await eventually("it is told how many were left out") { !notes.all.isEmpty }
        #expect(notes.all == ["left out \(20_000 - lines) lines of user 1000 in the last 50 ms"])
    }

    @Test func `what is below the level is not counted`() async throws {
        let notes = Notes()
        let limits = LimitedLog(notes.logger, pause: .milliseconds(1))
        for _ in 0..<10_000 { #expect(!limits.admits(.debug, .network, of: 1000)) }
        #expect(limits.admits(.info, .network, of: 1000))
    }
}
