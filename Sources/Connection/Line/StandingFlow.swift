// SPDX-License-Identifier: Apache-2.0

/// The ends of a flow.
struct FlowEnds: Hashable {
    let local: Endpoint
    let remote: Endpoint
    /// The interface that had the local address when the flow was made.
    let interface: String?
}

/// A flow that stands: small machines that each own their state, and what follows from them together.
struct StandingFlow {
    let epoch: UInt64
    let ends: FlowEnds
    let security: Boxed<TLSSummary>?
    /// When it was connected, or where the agent logs in for the client, when that had succeeded.
    var settledAt: Duration?
    /// The opening exchange, while it is played.
    var opening: OpeningProgress? {
        get { boxedOpening?.value }
        set { boxedOpening = newValue.map { .value($0) } }
    }
    private var boxedOpening: Boxed<OpeningProgress>?
    /// Which path it goes by.
    var way: Way
    /// Whether the other end is still there.
    var liveness: Liveness
    /// What it has lost, until it has proved itself again.
    var grace = Grace()
    /// The way to a flow over a better path, while one is tried.
    var move: Move?
    /// Who has it.
    var ownership = FlowOwnership.new
    /// How many stanzas its client has handled on it, which is what a request for an acknowledgement is answered by
    /// while the agent has it (XEP-0198); `nil` where that is not known.
    var handled: UInt32?
    /// Whether what is on it is inside TLS of its client's own, so that nobody else can say anything on it.
    var isSealed = false

    init(
        epoch: UInt64, ends: FlowEnds, isBound: Bool, security: TLSSummary?, settledAt: Duration, liveness: Liveness
    ) {
        (self.epoch, self.ends, self.settledAt, self.liveness) = (epoch, ends, settledAt, liveness)
        self.security = security.map { .value($0) }
        way = Way(isBound: isBound)
    }

    /// Whether what it needs is gone, and it waits for that.
    var isSilent: Bool { grace.isSilent }

    /// Whether it may not reach its server any more.
    var isInDoubt: Bool { isSilent || liveness.isVerifying }

    /// When it is given up, unless it has proved itself or what it lost is back.
    var proofDeadline: Duration? { grace.ending?.at ?? liveness.deadline }

    /// Whether it uses another uplink, and dials test the kernel's route.
    var awaitsTrial: Bool { way.isDetour && !isSilent }

    /// Whether the flow that is to take its place is connected already, and needs the name no more either.
    var isLoggingInElsewhere: Bool { move?.next != nil }

    /// Whether its server expects a login, and nobody has logged in.
    func lacksLogin(under policy: ConnectionPolicy) -> Bool {
        let expectsLogin = policy.remote.scheme.expectsLogin || policy.heartbeat?.kind.needsSession == true
        return expectsLogin && ownership.session == .none
    }
}
