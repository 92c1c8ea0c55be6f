// SPDX-License-Identifier: Apache-2.0

public import NetworkPath

/// Everything a user decides about a connection.
public struct ConnectionPolicy: Hashable, Sendable {
    /// The other end.
    public var remote: Remote
    /// How to dial again; by default what the remote's scheme asks for.
    public var backoff: BackoffPolicy
    /// The kernel's keepalive; `nil` for none. Beside a heartbeat it waits a second longer than that
    /// (``socketOptions``).
    public var keepalive: KeepalivePolicy?
    /// What the agent itself sends to keep the flow alive, in the protocol's own words; `nil` to leave it to the
    /// kernel.
    public var heartbeat: Heartbeat? {
        get { boxedHeartbeat?.value }
        set { boxedHeartbeat = newValue.map { .value($0) } }
    }
    /// How often the client is called to keep a parked flow alive itself; `nil` for never.
    public var handler: ClientHandler?
    /// Whether a flow that stands is kept until one over a better path has taken its place. Otherwise it stays where it
    /// is, as long as it works.
    public var movesToBetterPath: Bool
    /// How long one address has to answer a SYN. 10 s by default: the kernel repeats a SYN after 1, 3 and 7 s, so a
    /// radio link that is just waking up gets four chances, and a dead address holds up the next one no longer.
    public var connectTimeout: Duration
    /// `TCP_USER_TIMEOUT`; `nil` derives it from the keepalives (``KeepalivePolicy/giveUpAfter``).
    public var userTimeout: Duration?
    /// How long a flow must have stayed up for the back-off to start over when it ends.
    ///
    /// 60 s by default, twice what autossh calls a success (`AUTOSSH_GATETIME`). Not on connect: a server that accepts
    /// and kicks would be dialled each second for ever. After a minute the reset is harmless: whatever kicks later than
    /// that costs its server one connection a minute.
    public var stableAfter: Duration
    /// Whether another flow is dialled when one ends. Otherwise the connection ends with the flow that a client
    /// brought.
    public var redials = true
    /// Whether a flow is kept whose client is gone without having parked it, instead of being made anew. Nobody knows
    /// where in the stream such a client was; a server that does not care, with messages of one line, loses nothing.
    public var keepsAbandonedFlow = false
    /// What the agent says on each new flow to log in; `nil` to leave that to the client. A client may leave another
    /// one (``ConnectionInput/openingLeft(_:)``).
    public var opening: Opening?
    /// How it is secured, where the remote's scheme needs TLS.
    public var tls: TLSPolicy {
        get { boxedTLS?.value ?? TLSPolicy() }
        set { boxedTLS = Self.boxed(newValue) }
    }
    /// How its packets are marked for the network.
    public var trafficClass = TrafficClass.signaling
    /// In which order they leave this machine (`SO_PRIORITY`), 0 to 6.
    public var priority = SocketOptions.interactivePriority
    /// The firewall mark of its packets (`SO_MARK`), which routing rules may select on.
    public var mark: UInt32?
    /// The user whose packets they are, which routing rules may select on; `nil` for the agent's own.
    public var user: UInt32?

    private var boxedHeartbeat: Boxed<Heartbeat>?
    /// `nil` for the defaults.
    private var boxedTLS: Boxed<TLSPolicy>?

    private static func boxed(_ tls: TLSPolicy) -> Boxed<TLSPolicy>? { tls == TLSPolicy() ? nil : .value(tls) }

    /// A policy for `remote` with the defaults of its scheme.
    public init(
        remote: Remote, backoff: BackoffPolicy? = nil, keepalive: KeepalivePolicy? = KeepalivePolicy(),
        heartbeat: Heartbeat? = nil, movesToBetterPath: Bool = true, connectTimeout: Duration = .seconds(10),
        userTimeout: Duration? = nil, stableAfter: Duration = .seconds(60),
        tls: TLSPolicy = TLSPolicy(), mark: UInt32? = nil, user: UInt32? = nil
    ) {
        self.remote = remote
        self.backoff = backoff ?? remote.scheme.backoff
        self.keepalive = keepalive
        self.movesToBetterPath = movesToBetterPath
        self.connectTimeout = connectTimeout
        self.userTimeout = userTimeout
        self.stableAfter = stableAfter
        boxedTLS = Self.boxed(tls)
        self.mark = mark
        self.user = user
        self.heartbeat = heartbeat ?? remote.scheme.heartbeat
    }

    /// What the path is asked for.
    public var target: Target {
        Target(remote.host, port: remote.port, transport: .tcp, mark: mark, user: user)
    }

    /// What the driver sets on the socket.
    public var socketOptions: SocketOptions {
        SocketOptions(
            keepalive: kernelKeepalive, userTimeout: userTimeout ?? derivedUserTimeout,
            trafficClass: trafficClass, priority: priority, mark: mark, user: user)
    }

    private var kernelKeepalive: KeepalivePolicy? {
        guard let heartbeat else { return keepalive }
        return keepalive.map { heartbeat.kernelKeepalive($0) }
    }

    /// Long enough for all of the kernel's probes: once one is under way, the kernel goes by this timeout and not by
    /// their number (`tcp_keepalive_timer` in net/ipv4/tcp_timer.c), and a single lost one would end the flow.
    private var derivedUserTimeout: Duration {
        let kernels = (kernelKeepalive ?? KeepalivePolicy()).giveUpAfter
        // One that waits for a session is not sent.
        guard let heartbeat, !heartbeat.kind.needsSession else { return kernels }
        let heartbeats = heartbeat.kind.userTimeout(interval: heartbeat.cadence.interval)
        return kernelKeepalive == nil ? heartbeats : max(kernels, heartbeats)
    }

    /// How a flow is secured; `nil` for a remote without TLS.
    public var tlsRequest: TLSRequest? {
        guard remote.needsTLS else { return nil }
        return TLSRequest(to: remote.host, offering: remote.scheme.applicationProtocols, under: tls)
    }

    /// Whether a flow made for `other` is of no use to this policy: it leads elsewhere, its packets go another way, or
    /// it is secured otherwise.
    func needsAnotherFlow(than other: ConnectionPolicy) -> Bool {
        remote != other.remote || mark != other.mark || user != other.user || tlsRequest != other.tlsRequest
    }
}

/// What is wrong with a policy, and in which field.
public struct PolicyError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The field's name as configuration and API spell it, as in `keepalive.idle`.
    public let field: String
    /// What is wrong with its value and what would be right.
    public let reason: String

    /// The field and what is wrong.
    public var description: String { "\(field): \(reason)" }
}

extension ConnectionPolicy {
    /// Checks every figure. A policy that does not pass must not reach the state machine.
    ///
    /// - Throws: the first field that is wrong.
    public func validate() throws(PolicyError) {
        if remote.isOfThisMachine {
            guard !redials else {
                throw PolicyError(field: "remote", reason: "a socket of this machine is adopted, and cannot be dialled")
            }
            guard heartbeat == nil else {
                throw PolicyError(field: "keepalive", reason: "a socket of this machine needs none")
            }
        }
        try validateBackoff()
        try validateTLS()
        try validateKeepalive()
        try validateHeartbeat()
        if let handler, let problem = ClientHandler.problem(with: handler.timeout, for: remote) {
            throw PolicyError(field: "keepalive.interval", reason: problem)
        }
        if let problem = opening?.problem { throw PolicyError(field: "opening", reason: problem) }
        // Below a second not even one repeated SYN fits; above two minutes the kernel has given up by itself.
        try check("connectTimeout", connectTimeout, in: .seconds(1)...(.seconds(120)))
        if let userTimeout { try check("userTimeout", userTimeout, in: .seconds(1)...(.seconds(86_400))) }
        // What is above takes a capability (socket(7)), and is meant for the machinery of the network itself.
        guard (0...SocketOptions.interactivePriority).contains(priority) else {
            throw PolicyError(field: "priority", reason: "\(priority) is not from 0 to 6")
        }
        // Below ten seconds a server that accepts and kicks would count as stable, and be dialled without growing
        // waits.
        try check("stableAfter", stableAfter, in: .seconds(10)...(.seconds(86_400)))
    }

    private func validateBackoff() throws(PolicyError) {
        // A base below 100 ms is a loop, not a back-off; a ceiling above a day is a connection nobody waits for.
        try check("backoff.base", backoff.base, in: .milliseconds(100)...(.seconds(86_400)))
        try check("backoff.ceiling", backoff.ceiling, in: backoff.base...(.seconds(86_400)))
        try check("backoff.spread", backoff.spread, in: .zero...(.seconds(86_400)))
        guard (1...10).contains(backoff.multiplier) else {
            throw PolicyError(field: "backoff.multiplier", reason: "\(backoff.multiplier) is not from 1 to 10")
        }
    }

    private func validateKeepalive() throws(PolicyError) {
        guard let keepalive else { return }
        // The limits of the kernel: MAX_TCP_KEEPIDLE, MAX_TCP_KEEPINTVL and MAX_TCP_KEEPCNT in include/net/tcp.h.
        for (field, value) in [("keepalive.idle", keepalive.idle), ("keepalive.interval", keepalive.interval)] {
            try check(field, value, in: .seconds(1)...(.seconds(32_767)))
            if value.components.attoseconds != 0 {
                throw PolicyError(field: field, reason: "\(value) is not in whole seconds")
            }
        }
        guard (1...127).contains(keepalive.count) else {
            throw PolicyError(field: "keepalive.count", reason: "\(keepalive.count) is not from 1 to 127")
        }
    }

    private func validateHeartbeat() throws(PolicyError) {
        guard let heartbeat else { return }
        let longest = heartbeat.bounds?.upperBound ?? heartbeat.cadence.interval
        try check("keepalive.interval", longest, in: heartbeat.kind.intervals(under: opening))
        try check("keepalive.tolerance", heartbeat.cadence.tolerance, in: .zero...heartbeat.cadence.interval)
        // Below a second one repeated segment would pass for silence; nobody waits two minutes for a call.
        try check("keepalive.answerDeadline", heartbeat.answerDeadline, in: .seconds(1)...(.seconds(120)))
        if case .custom(let send, let expect) = heartbeat.kind {
            let longest = KeepaliveProtocol.longestCustom
            guard (1...longest).contains(send.count) else {
                throw PolicyError(field: "keepalive.send", reason: "\(send.count) bytes are not from 1 to \(longest)")
            }
            guard expect.count <= longest else {
                throw PolicyError(field: "keepalive.expect", reason: "\(expect.count) bytes are more than \(longest)")
            }
        }
    }

    private func validateTLS() throws(PolicyError) {
        if tls != TLSPolicy(), !remote.needsTLS {
            let secured = Remote.Scheme.allCases.filter(\.needsTLS).map(\.rawValue).joined(separator: ", ")
            throw PolicyError(field: "tls", reason: "\(remote.scheme.rawValue) has no TLS; \(secured) have")
        }
        for file in tls.files where !file.hasPrefix("/") {
            throw PolicyError(field: "tls", reason: "“\(file)” is not an absolute path")
        }
        if let name = tls.serverName, let problem = Remote.hostProblem(name) {
            throw PolicyError(field: "tls.serverName", reason: "“\(name)” is not a host: \(problem)")
        }
        let protocols = tls.applicationProtocols ?? []
        // RFC 7301, section 3.1: one to 255 bytes each. Nobody offers more than a few.
        guard protocols.count <= 16, protocols.allSatisfy({ (1...255).contains($0.utf8.count) }) else {
            throw PolicyError(field: "tls.applicationProtocols", reason: "not up to 16 names of 1 to 255 bytes")
        }
    }

    private func check(_ field: String, _ value: Duration, in range: ClosedRange<Duration>) throws(PolicyError) {
        guard range.contains(value) else {
            throw PolicyError(field: field, reason: "\(value) is not from \(range.lowerBound) to \(range.upperBound)")
        }
    }
}
