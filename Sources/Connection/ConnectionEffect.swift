// SPDX-License-Identifier: Apache-2.0

/// What is to be done for a ``Connection``, in the order of the answer.
package enum ConnectionEffect: Hashable, Sendable {
    /// What the line needs: paths, names, sockets, keepalives. Of it neither `closeSocket`, `emit` nor a timer comes in
    /// this way.
    case network(ConnectionAction)
    /// Close a socket now. With `aborting` nothing is sent that would have to be answered.
    case close(epoch: UInt64, aborting: Bool)
    /// Close a socket, as soon as the client that has it was given what it has received.
    case letGo(epoch: UInt64, aborting: Bool)
    /// End a flow, but for what it has received, which is there to be taken; also after a restart of the agent, if it
    /// survives that. One that is held has been given out, and what it has received is delivered.
    case retire(epoch: UInt64, survivesAgent: Bool, isHeld: Bool)
    /// A flow that ended waits again to be taken: nothing of it is delivered meanwhile.
    case rest(epoch: UInt64)
    /// Let a flow stand that another one took the place of, for the client that has it.
    case linger(epoch: UInt64)
    /// Tell the subscribers, with the wake that stands at that moment, and what happened to a wake.
    case tell(ConnectionEvent, wake: StandingWake?, report: WakeReport?)
    /// Try to wake the client, which is this process where it is known; answered by ``ClientInput/attempted(_:_:)``.
    case attempt(WakeAttempt, KnownProcess?)
    /// Launch a program, with this flow where there is one for it: answered by ``ClientInput/launched(_:_:)``, or by
    /// ``ClientInput/launchFailed(_:_:)`` and then ``ClientInput/attempted(_:_:)``.
    case launch(WakeAttempt, Connection.Offer?)
    /// Find the program that an earlier run of the agent was launching: it may run, and have the flow that it was
    /// launched with. Answered as ``launch(_:_:)`` is, and none is launched.
    case find(WakeAttempt.ID)
    /// Tell by ``ClientInput/bytesCame`` when more than so many bytes wait on a flow that stands, unless somebody takes
    /// it before.
    case awaitBytes(epoch: UInt64, beyond: Int)
    /// What was told cannot be, and why; it was ignored. A fault of the agent's own.
    case objection(String)
}

/// What clients and programs do. ``Connection`` says when each may be told.
package enum ClientInput: Hashable, Sendable {
    /// A client brought the flow that the connection begins with; told before that flow.
    case brought(by: KnownProcess?)
    /// A client was given the flow that it was offered (``Connection/offer(to:facts:_:)``).
    case took(epoch: UInt64, by: Reader)
    /// A client gives a flow back, with a session on it, and maybe with another opening exchange for those to come and
    /// other messages to be answered.
    case parked(epoch: UInt64, leaving: Opening?, answering: AnsweredMessages? = nil)
    /// A process ended; how, where it is a program that was launched.
    case processEnded(KnownProcess, ProgramEnd)
    /// A client sees to a wake: this process, where it is one that the connection knows.
    case acknowledged(wake: UInt64, by: KnownProcess? = nil)
    /// What came of an attempt to wake the client.
    case attempted(WakeAttempt.ID, WakeOutcome)
    /// There is a process that is to become the program.
    case launchBegan(WakeAttempt.ID, KnownProcess)
    /// The program runs.
    case launched(WakeAttempt.ID, KnownProcess)
    /// It does not run, and nobody has what it was to be given. That its attempt failed is told afterwards, when what
    /// waits on that has been heard of again: it is nothing new.
    case launchFailed(WakeAttempt.ID, KnownProcess?)
    /// Somebody watches the connection who did not, or no longer does.
    case watchersChanged
    /// The client's own keepalive is due; whether it is called for that, whatever else it watches.
    case keepaliveDue(isCalled: Bool)
    /// The bytes came that were awaited.
    case bytesCame
    /// The client is woken by other rules.
    case wakesChanged(Wakes.Settings)
}
