// SPDX-License-Identifier: Apache-2.0

import DialtonePlatform

/// Does what makes something call, and returns the first value that it then hands over.
///
/// The wait ends early only when the test's time limit cancels it, so that a failure is not a hang.
@AgentQueue
func firstValue<Value: Sendable>(
    of _: Value.Type = Value.self, _ begin: @AgentQueue (AsyncStream<Value>.Continuation) throws -> Void
) async throws -> Value {
    let (stream, continuation) = AsyncStream.makeStream(of: Value.self)
    try begin(continuation)
    for await value in stream { return value }
    throw CancellationError()
}
