// SPDX-License-Identifier: Apache-2.0

internal import DialtonePlatform

/// What was waited for did not come.
package struct NothingCame: Error, CustomStringConvertible {
    package let description: String

    package init(description: String) { self.description = description }
}

/// Runs `body` on the agent's queue.
@AgentQueue package func onQueue<T: Sendable>(_ body: @AgentQueue () throws -> T) async rethrows -> T { try body() }

/// Lets others have the agent's queue. Ends with the test's time.
@AgentQueue package func turn() async throws {
    try Task.checkCancellation()
    await withCheckedContinuation { done in AgentQueue.async { done.resume() } }
}

/// Waits for something that must happen; the limit, a minute and a half for each `patience`, only ends a test that has
/// failed. `what` is said then: it can tell what was seen in its place.
///
/// - Throws: ``NothingCame`` with the place of the call, in the place of an issue: this is no module of tests.
package func eventually(
    _ what: @autoclosure @AgentQueue () -> String, patience: Int = 1, file: String = #fileID, line: Int = #line,
    _ condition: @AgentQueue () async throws -> Bool
) async throws {
    for _ in 0..<9000 * patience {
        if try await condition() { return }
        try await Task.sleep(for: .milliseconds(10))
    }
    throw NothingCame(description: "waited in vain at \(file):\(line): \(await what())")
}
