// SPDX-License-Identifier: Apache-2.0

import DialtonePlatform
import DialtoneTestSupport
import Dispatch
import Testing

struct AgentQueueTests {
    @Test @AgentQueue func `isolated code runs on the queue`() async {
        dispatchPrecondition(condition: .onQueue(AgentQueue.queue))
        await Task.yield()
        dispatchPrecondition(condition: .onQueue(AgentQueue.queue))
        #expect(AgentQueue.assumeIsolated { 7 } == 7)
    }

    @Test func `a block on the queue is isolated`() async {
        let value = await withCheckedContinuation { done in
            AgentQueue.queue.async { done.resume(returning: AgentQueue.assumeIsolated { Self.secret }) }
        }
        #expect(value == 42)
    }

    /// The poller's thread enters the queue so.
    @Test func `a thread that waits for its turn is isolated`() {
        #expect(AgentQueue.queue.sync { AgentQueue.assumeIsolated { Self.secret } } == 42)
    }

    @Test func `an error passes through`() {
        struct Failure: Error {}
        #expect(throws: Failure.self) {
            try AgentQueue.queue.sync { try AgentQueue.assumeIsolated { throw Failure() } }
        }
    }

    @Test @AgentQueue func `turns run in the order they were queued`() async throws {
        let log = Log<Int>()
        try await answer("the last turn", of: Void.self) { done in
            for number in 0..<100 { AgentQueue.async { log.append(number) } }
            AgentQueue.async { done(()) }
            log.append(-1)
        }
        #expect(log.entries == [-1] + Array(0..<100))
    }

    @Test func `assuming isolation elsewhere traps`() async {
        await #expect(processExitsWith: .failure) {
            AgentQueue.assumeIsolated {}
        }
        await #expect(processExitsWith: .failure) {
            DispatchQueue(label: "another").sync { AgentQueue.assumeIsolated {} }
        }
        await #expect(processExitsWith: .success) {
            AgentQueue.queue.sync { AgentQueue.assumeIsolated {} }
        }
    }

    @AgentQueue private static var secret = 42
}
