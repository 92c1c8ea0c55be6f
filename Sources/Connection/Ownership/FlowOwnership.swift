// SPDX-License-Identifier: Apache-2.0

/// Who owns a flow that stands, and what the server at its other end takes it for.
///
/// A new socket is not yet a session: the server waits for a login. A client that parks a flow says by that that there
/// is a session on it.
package struct FlowOwnership: Hashable, Sendable {
    /// Who reads and writes a flow: one at a time. The raw values are published on the socket.
    package enum Holder: String, Hashable, Sendable, CaseIterable {
        /// The agent watches it, and reads nothing but answers to what it sent and messages that it answers.
        case daemon
        /// A client has taken it.
        case client
    }

    /// Whether somebody is logged in on a flow. The raw values are published on the socket.
    package enum Session: String, Hashable, Sendable, CaseIterable {
        /// Nobody: the flow is new.
        case none
        /// The agent plays the opening exchange that the client left.
        case opening
        /// A client parked the flow, or the opening exchange succeeded.
        case open
        /// A client has taken the flow, or was gone without a word, and nobody else knows.
        case unknown
    }

    /// The client that has taken it; `nil` where the agent has it.
    package private(set) var reader: Reader?
    /// Whether somebody is logged in on it.
    package private(set) var session: Session
    /// Whether bytes for the client are known to wait: nothing more is looked for then.
    private(set) var hasArrivals = false

    /// The ownership of a flow.
    package init(reader: Reader?, session: Session) {
        self.reader = reader
        self.session = session
    }

    /// Of a new flow.
    package static let new = FlowOwnership(reader: nil, session: .none)
    /// Of a new flow on which the agent logs in for the client.
    static let opening = FlowOwnership(reader: nil, session: .opening)
    /// Of one that a client left to the agent with a session on it.
    package static let parked = FlowOwnership(reader: nil, session: .open)

    /// Whether its client sleeps: it left the flow to the agent, with a session on it.
    package var isParked: Bool { reader == nil && session == .open }

    /// Who reads and writes it.
    package var holder: Holder { reader == nil ? .daemon : .client }

    // MARK: - What happens

    /// A client takes it.
    ///
    /// - Returns: whether it may: not while another client has it, or while the agent logs in.
    mutating func take(by reader: Reader) -> Bool {
        guard holder == .daemon, session != .opening else { return false }
        self = FlowOwnership(reader: reader, session: session == .open ? .open : .unknown)
        return true
    }

    /// Who has it is known better, or turned into another one.
    mutating func replace(_ reader: Reader, by next: Reader) {
        if self.reader == reader { self.reader = next }
    }

    /// Its client gives it to the agent with a session on it.
    ///
    /// - Returns: whether a client had it. The same of the next two.
    mutating func park() -> Bool { leave(with: .open) }

    /// It comes back as it was given.
    mutating func giveBack() -> Bool { leave(with: session) }

    /// Its client is gone, and nobody knows whether there is a session on it.
    mutating func abandon() -> Bool { leave(with: .unknown) }

    private mutating func leave(with session: Session) -> Bool {
        guard holder == .client else { return false }
        self = FlowOwnership(reader: nil, session: session)
        return true
    }

    /// Bytes came on it.
    ///
    /// - Returns: whether a client is to be told: only of the first bytes.
    mutating func arrived() -> Bool {
        guard holder == .daemon, session != .opening, !hasArrivals else { return false }
        hasArrivals = true
        return true
    }

    // MARK: - What follows

    /// What becomes of the bytes on the flow that nobody has read, when it is closed.
    ///
    /// TCP has acknowledged them to the server, which will not send them again. Where nobody was logged in they are a
    /// greeting, which comes again on the next flow, or a refusal: that is of use where the server had the flow end.
    func rest(after reason: CloseReason) -> UnreadRest {
        switch (holder, session) {
        case (_, _) where reason == .closeRequested: .dropped
        case (.client, _): reason == .replaced ? .lingering : .delivered
        case (.daemon, .open), (.daemon, .unknown): .kept
        case (.daemon, .none), (.daemon, .opening): reason.isOfServer ? .keptAsRefusal : .dropped
        }
    }

    /// Whether a keepalive may be sent now: only its holder writes to a flow, and a server that waits for a login would
    /// take some for an error.
    func permits(_ keepalive: KeepaliveProtocol) -> Bool {
        switch (holder, session) {
        case (.client, _), (_, .opening): false
        case (.daemon, .open): true
        case (.daemon, .none), (.daemon, .unknown): !keepalive.needsSession
        }
    }
}

/// What becomes of bytes on a closed flow that no client has read.
package enum UnreadRest: Hashable, Sendable {
    /// They are thrown away.
    case dropped
    /// They wait for a client that takes the flow.
    case kept
    /// Likewise, until another flow stands: a server that nobody had logged in to turned the agent away.
    case keptAsRefusal
    /// A client has the flow, and reads them.
    case delivered
    /// Likewise; it has not heard yet of the flow that took this one's place, and may write to this one.
    case lingering
}

extension CloseReason {
    /// Whether the server has the flow end: it hung up, or said something else than the answer that it owed. Not
    /// whether the line died.
    fileprivate var isOfServer: Bool {
        switch self {
        case .remoteClosed, .timedOut: true
        case .pathLost, .pathMoved, .localAddressRemoved, .dialFailed, .outrun, .unanswered, .replaced, .overslept,
            .failed, .superseded, .abandoned, .closeRequested:
            false
        }
    }
}

/// A flow that was made elsewhere, by a client or by an earlier run of the agent, and is supervised from now on.
package struct Adoption: Hashable, Sendable {
    /// Its number.
    package var epoch: UInt64
    /// Its own end.
    package var local: Endpoint
    /// The end that it is connected to.
    package var remote: Endpoint
    /// Who owns it.
    package var ownership: FlowOwnership
    /// When its other end was last heard of, where that is known.
    package var lastProof: Duration?
    /// The name of the interface that had its local address when it was made, where that is known.
    package var interface: String?
    /// Whether its socket is bound to that interface.
    package var isBound: Bool
    /// How it is secured by the agent; `nil` for a flow without TLS, and for one that a client brought.
    package var security: TLSSummary?
    /// How many stanzas its client has handled on it, where that is known (``AnsweredMessage/xmpp(handled:)``).
    package var handled: UInt32?
    /// What an earlier run of the agent knew of its age; `nil` for a flow that a client brought.
    package var past: Past?

    /// How long a flow has stood under an earlier run of the agent.
    package struct Past: Hashable, Sendable {
        /// When it was connected.
        package var connectedAt: Duration
        /// When the connection entered the state that it was in.
        package var since: Duration
        /// When the connection came up, over one flow or several.
        package var upSince: Duration
        /// Whether it still had to prove itself.
        package var isInDoubt: Bool
        /// The highest number that an attempt had since; 0 until whoever restores the connection sets it.
        package var newestEpoch: UInt64 = 0

        /// A past; instants of the boot clock.
        ///
        /// - Parameter upSince: `nil` for when this flow was connected.
        package init(connectedAt: Duration, since: Duration, upSince: Duration? = nil, isInDoubt: Bool = false) {
            self.connectedAt = connectedAt
            self.upSince = upSince ?? connectedAt
            self.since = since
            self.isInDoubt = isInDoubt
        }
    }

    /// A flow that the agent owns, unless `ownership` says otherwise.
    package init(
        epoch: UInt64 = 1, local: Endpoint, remote: Endpoint, ownership: FlowOwnership = .parked,
        lastProof: Duration? = nil,
        interface: String? = nil, isBound: Bool = false, security: TLSSummary? = nil,
        handled: UInt32? = nil, past: Past? = nil
    ) {
        self.epoch = epoch
        self.local = local
        self.remote = remote
        self.ownership = ownership
        self.lastProof = lastProof
        self.interface = interface
        self.isBound = isBound
        self.security = security
        self.handled = handled
        self.past = past
    }
}

/// What became of a connection's flow when the agent was started anew.
package enum Restart: Hashable, Sendable {
    /// It goes on.
    case kept
    /// The opening exchange was being played, and nobody knows how far it came.
    case openingCut
    /// It was not kept, for want of a place or by mistake.
    case flowLost
    /// There was none.
    case withoutFlow
}
