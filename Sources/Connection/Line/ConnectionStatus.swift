// SPDX-License-Identifier: Apache-2.0

package import DialtoneNetworkPath

/// What can be said of a connection at one moment. Instants are of the clock that the machine's `now` came from.
package struct ConnectionStatus: Hashable, Sendable {
    /// What a connection is doing. The raw values are published on the socket.
    package enum State: String, Hashable, Sendable, CaseIterable {
        /// There is no path; its return is what is waited for.
        case waiting
        /// The remote's name is being asked for.
        case resolving
        /// A socket is connecting.
        case connecting
        /// A socket is connected, and TLS is being agreed on.
        case securing
        /// A flow stands.
        case ready
        /// A flow stands, and after a change of the path or a suspend is still to show that the remote is there.
        case verifying
        /// The next dial waits for its time.
        case backingOff
        /// Something that time does not mend; dialled again rarely.
        case failed
        /// Over, for good.
        case closed

        /// Whether a flow stands.
        package var hasFlow: Bool {
            switch self {
            case .ready, .verifying: true
            case .waiting, .resolving, .connecting, .securing, .backingOff, .failed, .closed: false
            }
        }
    }

    /// What it is doing.
    package var state: State
    /// Why.
    package var reason: StatusReason
    /// The number of the flow that stands, or of the attempt that is spoken of; 0 before the first. Each socket has its
    /// own, and a flow that takes the place of another a higher one.
    package var epoch: UInt64
    /// The number of the dial that runs, is waited for or made the flow. 1 after a stable flow, a change of the path or
    /// a user's request; one more after each failure.
    package var attempt: Int
    /// When the next dial comes, while ``State/backingOff`` or ``State/failed``.
    package var nextAttempt: Duration?
    /// When the state was entered.
    package var since: Duration
    /// How the flow is secured, while there is one; `nil` for one without TLS.
    package var security: TLSSummary? {
        get { boxedSecurity?.value }
        set { boxedSecurity = newValue.map { .value($0) } }
    }
    /// The flow's local end, from ``State/securing`` on.
    package var localAddress: Endpoint?
    /// The flow's remote end, from ``State/connecting`` on.
    package var remoteAddress: Endpoint?
    /// The name of the interface that had the flow's local address when it was made.
    package var interface: String?
    /// The name of the interface by which the kernel would send the flow's packets, and over which nothing got through;
    /// `nil` for a flow that goes where the kernel would have it.
    package var avoidedInterface: String?
    /// The newest path to the remote, and to its own other end where a flow stands; `nil` before one was heard of.
    package var path: Path? {
        get { boxedPath?.value }
        set { boxedPath = newValue.map { .value($0) } }
    }
    /// When a round trip that the remote answered was last seen to end, of the flow that stands. The machine knows of
    /// the connect, of keepalives and of verifications; the driver makes it when anything was last heard.
    package var lastProof: Duration?

    /// What the last dial or flow failed of; `nil` once a flow stands on which its server took the login, if there is
    /// one.
    package var lastFailure: StatusReason?

    /// Who has the flow that stands; `nil` without one.
    package var ownership: FlowOwnership?
    /// Whether a flow stands whose server expects a login, and nobody has logged in on it.
    package var lacksLogin = false
    /// Since when there has been a flow, whichever, or none.
    package var turnedAt: Duration

    // Out of line: a path is most of a status's size, and events are kept by the thousand without theirs.
    var boxedPath: Boxed<Path>?
    // Likewise: most flows have none, and the events of one flow share it.
    var boxedSecurity: Boxed<TLSSummary>?

    /// A status; what is left out does not apply.
    package init(
        state: State, reason: StatusReason, epoch: UInt64 = 0, attempt: Int = 1, nextAttempt: Duration? = nil,
        since: Duration, localAddress: Endpoint? = nil, remoteAddress: Endpoint? = nil, interface: String? = nil,
        security: TLSSummary? = nil, path: Path? = nil, lastProof: Duration? = nil, ownership: FlowOwnership? = nil
    ) {
        self.state = state
        self.reason = reason
        self.epoch = epoch
        self.attempt = attempt
        self.nextAttempt = nextAttempt
        self.since = since
        turnedAt = since
        self.localAddress = localAddress
        self.remoteAddress = remoteAddress
        self.interface = interface
        self.security = security
        self.path = path
        self.lastProof = lastProof
        self.ownership = ownership
    }
}

/// Something that happened to a connection, told once and in order.
package struct ConnectionEvent: Hashable, Sendable {
    /// What kind of thing. The raw values are published on the socket.
    package enum Kind: String, Hashable, Sendable, CaseIterable {
        /// Supervision began. The first event of every connection.
        case opened
        /// The agent was started anew, and goes on with the connection.
        case continued
        /// Another state was entered, or the same one anew (a dial given up for the next).
        case stateChanged
        /// One address of the remote failed and the next one is being tried.
        case addressFailed
        /// Another address is being tried beside those that have not answered yet.
        case attemptBegan
        /// A flow over the better path did not come about, for now; the one that stands is kept.
        case moveFailed
        /// The path changed and the state did not: the reason of the wait, or the way under a flow that stands.
        case pathChanged
        /// The policy changed and the flow, if any, was kept.
        case policyChanged
        /// A client has taken the flow.
        case taken
        /// The client gave the flow back.
        case parked
        /// The client that had the flow is gone, and the flow was kept.
        case abandoned
        /// Bytes for the client wait on the flow.
        case arrived
        /// The certificate by which the flow's ends know each other ends soon.
        case certificateEnds
        /// The agent logged in on the flow that stands, by the opening exchange.
        case sessionOpened
        /// The opening exchange was refused, or did not come about time and again: the client is wanted.
        case openingFailed
        /// Something happened to a wake of the client; no machine of a connection tells of it.
        case wake
    }

    /// What kind of thing.
    package var kind: Kind
    /// The connection afterwards.
    package var status: ConnectionStatus
    /// The state before; the same as after where the state did not change.
    package var previousState: ConnectionStatus.State
    /// How long the state before had lasted.
    package var previousDuration: Duration
    /// Why it happened; the status keeps the reason of its state.
    package var reason: StatusReason

    /// An event.
    package init(
        kind: Kind, status: ConnectionStatus, previousState: ConnectionStatus.State, previousDuration: Duration,
        reason: StatusReason
    ) {
        self.kind = kind
        self.status = status
        self.previousState = previousState
        self.previousDuration = previousDuration
        self.reason = reason
    }
}
