// SPDX-License-Identifier: Apache-2.0

package import DialtoneNetworkPath

/// What the driver is to do. ``ConnectionStateMachine`` says in which order, and what each is answered with.
package enum ConnectionAction: Hashable, Sendable {
    /// Watch the path to this target, and no other any more.
    case observePath(Target)
    /// Watch no path any more.
    case stopObservingPath
    /// Watch the path to this target, the other end of a flow that stands, beside the connection's; of one flow at a
    /// time.
    case observeFlowPath(epoch: UInt64, Target)
    /// Watch that path no more.
    case stopObservingFlowPath(epoch: UInt64)
    /// Ask the name servers. Several questions may run at a time.
    case resolve(query: UInt64, NameQuestion)
    /// Send no more packets for a query; its answer is not wanted.
    case cancelResolution(query: UInt64)
    /// Look for a way to this end by another interface than the one of that index. Answered before anything else
    /// happens, by ``ConnectionInput/detourFound(_:_:)``.
    case findDetour(Endpoint, around: Int)
    /// Make a socket, connect it, and secure it where the request says so. Several may be on their way at a time.
    case openSocket(FlowRequest)
    /// Send this heartbeat on a flow that stands, from now on, as often as it says; `nil` for no more.
    case keepAlive(epoch: UInt64, Heartbeat?)
    /// Answer these messages of the server's on a flow from now on, and tell nobody; `nil` for none.
    case answerMessages(epoch: UInt64, AnsweredMessages?)
    /// Tell, once, when bytes wait that are neither the answer to a keepalive nor a message that is answered; or do not
    /// any more. Told within the same run where some wait already.
    case watchInput(epoch: UInt64, Bool)
    /// Log in on a flow for its client, and tell how far it is:
    /// ``ConnectionInput/openingAnswered(epoch:awaiting:begun:)`` for each answer, and in the end
    /// ``ConnectionInput/sessionOpened(epoch:)`` or ``ConnectionInput/openingFailed(epoch:_:)``. Nothing else is done
    /// on the flow meanwhile.
    case playOpening(epoch: UInt64, Opening)
    /// Find out at once whether the other end of a flow is there: send a keepalive, or where none may be sent have the
    /// kernel send a probe.
    case probe(epoch: UInt64)
    /// Change the keepalive and the user timeout of a socket that is open.
    case configureSocket(epoch: UInt64, SocketOptions)
    /// Await no answer any more to the keepalives that were sent on a flow: the server gives none.
    case giveUpAnswers(epoch: UInt64)
    /// Close a socket, now. The rest says what becomes of bytes on it that no client has read.
    case closeSocket(epoch: UInt64, CloseReason, UnreadRest)
    /// Tell when a deadline has passed; replaces an earlier deadline of the same timer.
    case scheduleTimer(ConnectionTimer, deadline: Duration)
    /// Forget a timer.
    case cancelTimer(ConnectionTimer)
    /// Tell the subscribers.
    case emit(ConnectionEvent)
}

/// The timers of a connection. Which of them run follows from the state.
package enum ConnectionTimer: Hashable, Sendable, CaseIterable {
    /// When the dial that runs has something to do: to begin another attempt, or to give one up, or the resolver.
    case dial
    /// When to dial again after a failure.
    case retry
    /// When the answer to a step of an opening exchange is given up.
    case opening
    /// When a flow that has proved nothing until then is given up. Before it is told, the driver tells by
    /// ``ConnectionInput/acknowledged(epoch:begun:)`` what the kernel has heard meanwhile.
    case proof
}

/// What a name server is asked.
package enum NameQuestion: Hashable, Sendable {
    /// The addresses of one family of a host.
    case addresses(String, IPAddress.Family)
    /// The hosts of a service (SRV, RFC 2782) by its full name, as `_sip._tcp.example.com`.
    case services(String)
    /// The rules of a domain that lead to its services (NAPTR, RFC 3403).
    case pointers(String)
}

/// What a name server answered.
package enum NameAnswer: Hashable, Sendable {
    /// The addresses, each with the source that a packet to it would have now.
    case addresses([DestinationOrder.Candidate])
    /// The hosts of a service, in any order.
    case services([ServiceRecord])
    /// The rules of a domain, in any order.
    case pointers([NamingAuthorityPointer])
}

/// What a new socket is to be.
package struct FlowRequest: Hashable, Sendable {
    /// The flow's number; every word about the socket carries it.
    package var epoch: UInt64
    /// Where to connect to.
    package var remote: Endpoint
    /// The address to bind to, when the path was found for this very remote; `nil` leaves the choice to the kernel.
    package var source: IPAddress?
    /// The index of the interface that it leaves by, which gives a link-local address its scope; `nil` when not known.
    package var interfaceIndex: Int?
    /// Whether its packets leave by that interface whatever the rules say.
    package var isBoundToInterface: Bool
    /// What to set on the socket.
    package var options: SocketOptions
    /// How to secure it; `nil` for a remote without TLS.
    package var tls: TLSRequest?

    /// A request.
    package init(
        epoch: UInt64, remote: Endpoint, source: IPAddress? = nil, interfaceIndex: Int? = nil,
        isBoundToInterface: Bool = false, options: SocketOptions, tls: TLSRequest? = nil
    ) {
        self.epoch = epoch
        self.remote = remote
        self.source = source
        self.interfaceIndex = interfaceIndex
        self.isBoundToInterface = isBoundToInterface
        self.options = options
        self.tls = tls
    }
}

/// Why a socket is closed.
package enum CloseReason: String, Hashable, Sendable, CaseIterable {
    /// No path leads to the remote any more.
    case pathLost
    /// The path leads another way, and the socket was not connected yet.
    case pathMoved
    /// Its local address is gone: nothing it sends can be answered, not even a FIN.
    case localAddressRemoved
    /// It could not connect.
    case dialFailed
    /// It did not connect, or was not secured, in time, or the server did not answer its opening.
    case timedOut
    /// Another attempt of the same dial was faster.
    case outrun
    /// The server owes an answer that did not come in time.
    case unanswered
    /// A flow over a better path has taken its place.
    case replaced
    /// The machine slept while it was being dialled.
    case overslept
    /// The remote ended the stream.
    case remoteClosed
    /// It broke.
    case failed
    /// The user wants a new flow, or a flow elsewhere.
    case superseded
    /// Its client is gone, and nobody knows where in the stream it was.
    case abandoned
    /// The user ended the connection.
    case closeRequested
}
