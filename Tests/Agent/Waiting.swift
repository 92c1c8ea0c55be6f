// SPDX-License-Identifier: Apache-2.0

import DialtonePlatform
import DialtoneTestSupport

/// Waits for the one call of a handler. The limit is only there so that a failure ends.
@AgentQueue
func answer<T: Sendable>(
    _ awaited: String, _ begin: @AgentQueue (@escaping @AgentQueue (T) -> Void) -> Void
) async throws -> T {
    try await withCheckedThrowingContinuation { continuation in
        var waiting: CheckedContinuation<T, any Error>? = continuation
        func finish(_ result: Result<T, any Error>) {
            waiting?.resume(with: result)
            waiting = nil
        }
        let limit = Timers.shared.schedule(after: .seconds(60)) {
            finish(.failure(NothingCame(description: "waited in vain for \(awaited)")))
        }
        begin {
            limit.cancel()
            finish(.success($0))
        }
    }
}
