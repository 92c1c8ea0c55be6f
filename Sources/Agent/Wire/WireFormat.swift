// SPDX-License-Identifier: Apache-2.0

internal import DialtoneAPI
internal import DialtoneConnection
internal import DialtoneNetworkPath
internal import DialtonePersistence
internal import DialtonePlatform
internal import DialtoneVarlink

// What the socket carries, made of what the daemon knows, and the targets that it brings.

extension Target {
    /// The target that a client asks about, for packets of that client's user.
    init(_ wire: NetworkAPI.Target, user: UInt32) throws(TargetError) {
        guard !wire.host.isEmpty else { throw TargetError("the host is empty: give a name or an address") }
        let host = Host(wire.host)
        guard host.isWellFormed else { throw TargetError("\"\(wire.host)\" is neither a name nor an address") }
        if wire.interface == "" { throw TargetError("the interface's name is empty: leave it out, or name one") }
        var port: UInt16?
        if let number = wire.port {
            guard let valid = UInt16(exactly: number), valid > 0 else {
                throw TargetError("port \(number) is out of range: ports are 1 to 65535")
            }
            port = valid
        }
        var mark: UInt32?
        if let number = wire.mark {
            guard let valid = UInt32(exactly: number) else {
                throw TargetError("mark \(number) is out of range: marks are 0 to 4294967295")
            }
            mark = valid
        }
        var source: IPAddress?
        if let text = wire.source {
            guard let valid = IPAddress(text) else { throw TargetError("source \(text) is not an IP address") }
            source = valid
        }
        self.init(
            host, port: port, transport: wire.protocol.map { $0 == .tcp ? .tcp : .udp }, mark: mark,
            user: user, interface: wire.interface, source: source)
    }
}

/// Why a client's target makes no sense.
struct TargetError: Error {
    let reason: String

    init(_ reason: String) { self.reason = reason }
}

extension ConnectionsAPI.Connection {
    init(
        _ name: String, owner: UInt32, remote: String, _ status: ConnectionStatus, unreadBytes: Int?,
        keepaliveInterval: Duration?, wake: StandingWake?, endsWithAgent: Bool, at clocks: ClockReading
    ) {
        self.init(
            name: name, owner: Int(owner), remote: remote, epoch: Int(clamping: status.epoch),
            state: .init(status.state), reason: status.reason.description, cause: .init(status.reason),
            holder: status.ownership.map { .init($0.holder) } ?? .daemon,
            session: status.ownership.map { .init($0.session) } ?? .none, since: clocks.wall(at: status.since),
            localAddress: status.localAddress?.description, remoteAddress: status.remoteAddress?.description,
            interface: status.interface, avoidedInterface: status.avoidedInterface,
            security: status.security.map { .init($0) }, attempt: status.attempt,
            nextAttemptAt: status.nextAttempt.map(clocks.wall),
            lastProof: status.lastProof.map(clocks.wall), lastFailure: status.lastFailure?.description,
            lastFailureCause: status.lastFailure.map { .init($0) },
            unreadBytes: unreadBytes, keepaliveInterval: keepaliveInterval,
            wake: wake.map { Int(clamping: $0.number) }, wakeFailed: wake?.hasFailed == true ? true : nil,
            endsWithAgent: endsWithAgent ? true : nil, lacksLogin: status.lacksLogin ? true : nil,
            upSince: status.state.hasFlow ? clocks.wall(at: status.turnedAt) : nil,
            downSince: status.state.hasFlow || status.state == .closed ? nil : clocks.wall(at: status.turnedAt))
    }
}

extension ConnectionsAPI.Event {
    /// An event as the journal keeps it.
    init(_ recorded: RecordedEvent, sequence: UInt64) {
        let event = recorded.event
        self.init(
            sequence: Int(clamping: sequence), time: recorded.clocks.wall, kind: event.wireKind,
            connection: .init(
                recorded.name, owner: recorded.owner, remote: recorded.remote, event.status, unreadBytes: nil,
                keepaliveInterval: nil, wake: recorded.wake?.standing,
                endsWithAgent: recorded.endsWithAgent, at: recorded.clocks),
            reason: event.reason.description, cause: .init(event.reason), previousState: .init(event.previousState),
            previousDuration: event.previousDuration,
            wake: recorded.wake?.report.map { .init($0) })
    }
}

extension ConnectionsAPI.Cause {
    fileprivate init(_ reason: StatusReason) { self.init(rawValue: reason.cause.rawValue) }
}

extension ConnectionsAPI.Security {
    init(_ summary: TLSSummary) {
        let assurance: Assurance =
            switch summary.assurance {
            case .verified: .verified
            case .pinned: .pinned
            case .unverified: .unverified
            }
        self.init(
            version: summary.version.rawValue, cipher: summary.cipher, assurance: assurance,
            isResumed: summary.isResumed, applicationProtocol: summary.applicationProtocol,
            certificateEndsAt: summary.certificateEnd.map { Timestamp(milliseconds: $0.seconds * 1000) },
            isOwnCertificate: summary.certificateEnd?.isOwn == true ? true : nil)
    }
}

extension ConnectionsAPI.Connection.Holder {
    init(_ holder: FlowOwnership.Holder) {
        self =
            switch holder {
            case .daemon: .daemon
            case .client: .client
            }
    }
}

extension ConnectionsAPI.Connection.Session {
    init(_ session: FlowOwnership.Session) {
        self =
            switch session {
            case .none: .none
            case .opening: .opening
            case .open: .open
            case .unknown: .unknown
            }
    }
}

extension ConnectionsAPI.State {
    init(_ state: ConnectionStatus.State) {
        self =
            switch state {
            case .waiting: .waiting
            case .resolving: .resolving
            case .connecting: .connecting
            case .securing: .securing
            case .ready: .ready
            case .verifying: .verifying
            case .backingOff: .backingOff
            case .failed: .failed
            case .closed: .closed
            }
    }
}

extension ConnectionEvent {
    /// The event's kind in the vocabulary of `org.dialtone.Connections`.
    var wireKind: ConnectionsAPI.EventKind {
        switch kind {
        case .stateChanged: status.state == .closed ? .closed : .state
        case .policyChanged: .reconfigured
        case .opened, .continued, .addressFailed, .attemptBegan, .moveFailed, .pathChanged, .taken, .parked, .abandoned,
            .arrived, .certificateEnds, .sessionOpened, .openingFailed, .wake:
            ConnectionsAPI.EventKind(rawValue: kind.rawValue)
        }
    }
}
