// SPDX-License-Identifier: Apache-2.0

internal import DialtonePlatform

/// What a ``PushRegistry`` tells, as an element of ``PushRegistry/events``.
public enum PushEvent: Sendable {
    /// The app has a token, or another one than before: hand it to the app's server.
    case credentials(PushCredentials)
    /// A push arrived.
    case push(ReceivedPush)
    /// The token for this type is no longer valid: take it away from the app's server.
    case invalidated(PushType)
    /// Something keeps pushes from coming.
    case failed(PushError)
}

/// A push that waits for the app to handle it. The distributor keeps it until ``complete()``; where the last reference
/// is let go of before that, the distributor learns that it was not handled.
public final class ReceivedPush: Sendable {
    /// What arrived.
    public let payload: PushPayload
    private let answer: Lock<(@Sendable () -> Void)?>

    init(_ payload: PushPayload, answer: @escaping @Sendable () -> Void) {
        self.payload = payload
        self.answer = Lock(answer)
    }

    /// Says that the app has done what the push asks for. Any thread may call it; from the second time on it does
    /// nothing.
    public func complete() {
        let answer = answer.withLock { answer in
            defer { answer = nil }
            return answer
        }
        answer?()
    }
}
