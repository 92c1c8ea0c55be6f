// SPDX-License-Identifier: Apache-2.0

internal import DialtonePlatform

/// Waits for the first call of a handler. The limit is only there so that a failure ends.
@AgentQueue
package func answer<T: Sendable>(
    _ awaited: String, of _: T.Type = T.self,
    _ begin: @AgentQueue (@escaping @AgentQueue (T) -> Void) throws -> Void
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
        do {
            try begin {
                limit.cancel()
                finish(.success($0))
            }
        } catch {
            limit.cancel()
            finish(.failure(error))
        }
    }
}
