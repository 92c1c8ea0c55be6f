// SPDX-License-Identifier: Apache-2.0

package import DialtoneNetworkPath

/// What can happen to a connection. ``ConnectionStateMachine`` says when each may be told.
package enum ConnectionInput: Hashable, Sendable {
    /// Supervision began. Told once, first.
    case opened
    /// Supervision began with a flow that stands. Told once, first, in place of ``opened``.
    case adopted(Adoption)
    /// Supervision goes on where an earlier run of the agent stopped, without a flow. Told once, first, in place of
    /// ``opened``; the number is the highest that a flow had.
    case reopened(epoch: UInt64, Restart)
    /// The path to the target of the last ``ConnectionAction/observePath(_:)`` is this one now.
    case pathChanged(Path)
    /// The path to the other end of a flow is this one now (``ConnectionAction/observeFlowPath(epoch:_:)``).
    case flowPathChanged(epoch: UInt64, Path)
    /// The query was answered.
    case resolved(query: UInt64, NameAnswer)
    /// The query was answered in the negative, or could not be asked.
    case resolutionFailed(query: UInt64, ResolutionFailure)
    /// The way to an end by another interface that was looked for; `nil` where there is none.
    case detourFound(Endpoint, Detour?)
    /// The socket of a remote with TLS is connected, and the handshake has begun.
    case handshakeBegan(epoch: UInt64, local: Endpoint)
    /// The socket is connected and, where the remote has TLS, secured.
    case dialSucceeded(epoch: UInt64, local: Endpoint, remote: Endpoint, security: TLSSummary? = nil)
    /// The certificate by which a flow's ends know each other ends soon.
    case certificateEnds(epoch: UInt64)
    /// The socket could not be made, bound, connected or secured.
    case dialFailed(epoch: UInt64, FlowFailure)
    /// The remote ended the stream of a connected socket in order.
    case remoteClosed(epoch: UInt64)
    /// A connected socket broke.
    case flowFailed(epoch: UInt64, FlowFailure)
    /// A keepalive was sent on a flow, and an answer in the stream is awaited.
    case probeSent(epoch: UInt64)
    /// The server answered so many of the keepalives that were sent, the first ones.
    case answered(epoch: UInt64, count: Int)
    /// The answers to the keepalives under way cannot be seen: bytes of the client's stand before them.
    case answerHidden(epoch: UInt64)
    /// A keepalive was due and not sent, since the remote has not acknowledged what was sent before it: it is to have
    /// done so by when that keepalive would have been answered (``acknowledged(epoch:begun:)``).
    case undelivered(epoch: UInt64)
    /// The server's kernel acknowledged something that was sent at `begun`.
    case acknowledged(epoch: UInt64, begun: Duration)
    /// Bytes for the client wait on a flow that the agent watches (``ConnectionAction/watchInput(epoch:_:)``).
    case arrived(epoch: UInt64)
    /// A client has taken the flow.
    case taken(epoch: UInt64, by: Reader)
    /// The client gave the flow back, with a session on it; `handled` is how many stanzas it has handled, where it said
    /// so (``AnsweredMessage/xmpp(handled:)``).
    case parked(epoch: UInt64, handled: UInt32? = nil)
    /// The flow comes back from a client that has neither read nor written: a program that did not start.
    case returned(epoch: UInt64)
    /// The client that had the flow is gone without having parked it; `isUntouched` where it has neither read nor
    /// written, `isAlone` where nobody else can have a descriptor from it.
    case abandoned(epoch: UInt64, isUntouched: Bool, isAlone: Bool)
    /// A client left another opening exchange for the flows to come, in place of the policy's; an empty one for none,
    /// `nil` for the policy's. It is forgotten when the policy leads to another remote.
    case openingLeft(Opening?)
    /// A client left other messages to be answered while flows are parked, in place of the policy's; empty for none.
    /// They are forgotten when the policy leads to another remote, or has others. The only word that may come before
    /// the first.
    case answersLeft(AnsweredMessages)
    /// A step of the opening exchange was answered as expected, and the answer to the step `awaiting` comes next;
    /// `begun` is when it was sent, `nil` for a step that sends nothing.
    case openingAnswered(epoch: UInt64, awaiting: Int, begun: Duration?)
    /// Every step of the opening exchange was answered.
    case sessionOpened(epoch: UInt64)
    /// The server answered the opening exchange otherwise than expected.
    case openingFailed(epoch: UInt64, OpeningFailure)
    /// The machine woke from suspend.
    case resumed
    /// The server asks to be left alone for so long (`Retry-After`), when the flow that stands ends.
    case serverAsked(Duration)
    /// An address is no longer on this machine, or no longer usable.
    case localAddressRemoved(IPAddress)
    /// A timer's deadline has passed.
    case timerFired(ConnectionTimer)
    /// The user wants a new flow: now, or not before this time has passed, since the server said so to the client
    /// (`Retry-After`).
    case redialRequested(after: Duration? = nil)
    /// The user gave the connection another policy.
    case policyChanged(ConnectionPolicy)
    /// The user ends the connection.
    case closeRequested
}
