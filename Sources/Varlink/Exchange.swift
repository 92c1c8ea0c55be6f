// SPDX-License-Identifier: Apache-2.0

public import Platform

/// One call from its arrival to its last reply, as the connection and the handler share it.
@AgentQueue
final class CallInProgress {
    let peer: VarlinkPeer
    private weak var connection: ServerConnection?
    private(set) var isFinished = false
    var onCancel: (@AgentQueue () -> Void)?

    init(_ connection: ServerConnection) {
        peer = connection.peer
        self.connection = connection
    }

    /// Ends the call with `message`.
    func finish(_ message: VarlinkMessage) {
        guard !isFinished else { return }
        isFinished = true
        onCancel = nil
        connection?.finish(with: message)
    }

    /// Answers with the messages of `subscription` from now on.
    func stream(from subscription: any VarlinkSubscription) {
        isFinished = true
        connection?.stream(from: subscription)
    }

    /// Sends what the stream has, if the connection can take it.
    func pump() {
        connection?.pump()
    }

    /// The connection is gone.
    func cancel() {
        guard !isFinished else { return }
        isFinished = true
        let cancelled = onCancel
        onCancel = nil
        cancelled?()
    }

    /// The handler lost the call without answering it.
    func abandon() {
        guard !isFinished else { return }
        isFinished = true
        connection?.close(nil)
    }
}

/// A call that is answered later. Its connection answers nothing else until then.
///
/// An exchange that is dropped without an answer closes its connection, so that the client does not wait for ever.
@AgentQueue
public final class VarlinkExchange<M: VarlinkMethod> {
    private let progress: CallInProgress

    init(_ progress: CallInProgress) {
        self.progress = progress
    }

    isolated deinit {
        // Not at once: a handler that throws drops the exchange first, and its error is the answer.
        guard !progress.isFinished else { return }
        let progress = progress
        AgentQueue.async { progress.abandon() }
    }

    /// Who called.
    public var peer: VarlinkPeer { progress.peer }

    /// Called when the client is gone before it was answered. What is answered afterwards goes nowhere.
    public var onCancel: (@AgentQueue () -> Void)? {
        get { progress.onCancel }
        set { progress.onCancel = newValue }
    }

    /// Answers. Only the first answer counts.
    public func reply(_ reply: M.Reply) {
        progress.finish(.reply(reply))
    }

    /// Answers with an error.
    public func fail(_ failure: VarlinkFailure) {
        progress.finish(failure.message)
    }
}

/// What the replies of a stream are drawn from.
///
/// The connection asks for one message at a time, and for the next only when the one before is wholly in the socket.
/// So the transport never queues a second message, and what happens between two questions is for the subscription to
/// keep, to conflate or to count as a gap: a subscriber that does not read costs what its subscription holds, no more.
@AgentQueue
public protocol VarlinkSubscription: AnyObject, Sendable {
    /// The next message to send; `nil` when there is none until ``VarlinkStream/wake()``. One that does not announce
    /// another (`continues`) ends the stream. Called from inside `wake()` among other places.
    func next() -> VarlinkMessage?

    /// The stream is over: its last message was taken, or its client is gone. Called once, never from inside `wake()`.
    func ended()
}

/// The connection's side of a stream, which the subscription keeps.
@AgentQueue
public final class VarlinkStream {
    private let progress: CallInProgress

    init(_ progress: CallInProgress) {
        self.progress = progress
    }

    /// Who subscribed.
    public var peer: VarlinkPeer { progress.peer }

    /// Says that the subscription has something new. If the socket has room it is written before this returns;
    /// otherwise it will be asked for when there is room. Without effect before the handler returned and after the end.
    public func wake() {
        progress.pump()
    }
}
