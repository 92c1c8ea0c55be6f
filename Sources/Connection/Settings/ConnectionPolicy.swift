// SPDX-License-Identifier: Apache-2.0

internal import DialtoneCoalescing
package import DialtoneNetworkPath

/// Everything a user decides about a connection, checked: whatever a client, a file or an earlier process asked for, no
/// figure of it is out of its range, and the state machine and the driver compute with it as it is.
package struct ConnectionPolicy: Hashable, Sendable {
    /// The other end.
    package var remote: Remote
    /// How to dial again; by default what the remote's scheme asks for.
    package var backoff: BackoffPolicy
    /// The kernel's keepalive; `nil` for none. Beside a heartbeat it waits a second longer than that
    /// (``socketOptions``).
    package var keepalive: KeepalivePolicy? = KeepalivePolicy()
    /// What the agent itself sends to keep the flow alive, in the protocol's own words; `nil` to leave it to the
    /// kernel.
    package var heartbeat: Heartbeat? {
        get { boxedHeartbeat?.value }
        set { boxedHeartbeat = newValue.map { .value($0) } }
    }
    /// How often the client is called to keep a parked flow alive itself; `nil` for never.
    package var handler: ClientHandler?
    /// Whether a flow that stands is kept until one over a better path has taken its place. Otherwise it stays where it
    /// is, as long as it works.
    package var movesToBetterPath = true
    /// Whether another uplink is tried where nothing gets through over the one that the kernel chooses.
    package var triesOtherUplinks = true
    /// How long a flow is kept whose local address or whose way is gone; zero to dial again at once.
    ///
    /// 5 s by default: a lease that is renewed puts its address back within one, and a port into which the cable is put
    /// back needs two to four to agree on its speed.
    package var grace = Duration.seconds(5)
    /// How long one address has to answer a SYN. 10 s by default: the kernel repeats a SYN after 1, 3 and 7 s, so a
    /// radio link that is just waking up gets four chances, and a dead address holds up the next one no longer.
    package var connectTimeout = Duration.seconds(10)
    /// `TCP_USER_TIMEOUT`; `nil` derives it from the keepalives (``KeepalivePolicy/giveUpAfter``).
    package var userTimeout: Duration?
    /// How long a flow must have stayed up for the back-off to start over when it ends.
    ///
    /// 60 s by default, twice what autossh calls a success (`AUTOSSH_GATETIME`). Not on connect: a server that accepts
    /// and kicks would be dialled each second for ever. After a minute the reset is harmless: whatever kicks later than
    /// that costs its server one connection a minute.
    package var stableAfter = Duration.seconds(60)
    /// Whether another flow is dialled when one ends. Otherwise the connection ends with the flow that a client
    /// brought.
    package var redials = true
    /// Whether a flow is kept whose client is gone without having parked it, instead of being made anew. Nobody knows
    /// where in the stream such a client was; a server that does not care, with messages of one line, loses nothing.
    package var keepsAbandonedFlow = false
    /// What the agent says on each new socket to log in; `nil` to leave that to the client. A client may leave another
    /// one (``ConnectionInput/openingLeft(_:)``).
    package var opening: Opening?
    /// The messages of the server's that the agent answers itself while a flow is parked. A client may leave others
    /// (``ConnectionInput/answersLeft(_:)``).
    package var answers = AnsweredMessages()
    /// How it is secured, where the remote's scheme needs TLS.
    package var tls: TLSPolicy {
        get { boxedTLS?.value ?? TLSPolicy() }
        set { boxedTLS = Self.boxed(newValue) }
    }
    /// How its packets are marked for the network.
    package var trafficClass = TrafficClass.signaling
    /// In which order they leave this machine (`SO_PRIORITY`), 0 to 6.
    package var priority = SocketOptions.interactivePriority
    /// The firewall mark of its packets (`SO_MARK`), which routing rules may select on.
    package var mark: UInt32?
    /// The user whose packets they are, which routing rules may select on; `nil` for the agent's own.
    package var user: UInt32?
    /// Further options of its sockets.
    package var socketNumbers: [SocketNumber] = []

    private var boxedHeartbeat: Boxed<Heartbeat>?
    /// `nil` for the defaults.
    private var boxedTLS: Boxed<TLSPolicy>?

    private static func boxed(_ tls: TLSPolicy) -> Boxed<TLSPolicy>? { tls == TLSPolicy() ? nil : .value(tls) }

    /// A policy for `remote` with the defaults of its scheme.
    package init(remote: Remote, mark: UInt32? = nil, user: UInt32? = nil) {
        self.remote = remote
        self.mark = mark
        self.user = user
        backoff = remote.scheme.backoff
        redials = true
        heartbeat = remote.scheme.heartbeat
    }

    /// What the path is asked for.
    package var target: Target {
        Target(remote.host, port: remote.port, transport: .tcp, mark: mark, user: user)
    }

    /// What the driver sets on the socket, where the flow begins with the policy's own opening.
    package var socketOptions: SocketOptions { socketOptions(keeping: opening) }

    /// The same where it begins with another: what the client promises its server there holds for the kernel's
    /// keepalive as well.
    func socketOptions(keeping opening: Opening?) -> SocketOptions {
        let heartbeat = heartbeat?.keeping(opening)
        let kernel = keepalive.map { heartbeat?.kernelKeepalive($0) ?? $0 }
        return SocketOptions(
            keepalive: kernel, userTimeout: userTimeout ?? Self.userTimeout(kernel, heartbeat),
            trafficClass: trafficClass, priority: priority, mark: mark, user: user,
            numbers: socketNumbers)
    }

    /// Long enough for all of the kernel's probes: once one is under way, the kernel goes by this timeout and not by
    /// their number (`tcp_keepalive_timer` in net/ipv4/tcp_timer.c), and a single lost one would end the flow.
    private static func userTimeout(_ kernel: KeepalivePolicy?, _ heartbeat: Heartbeat?) -> Duration {
        let kernels = (kernel ?? KeepalivePolicy()).giveUpAfter
        // One that waits for a session is not sent.
        guard let heartbeat, !heartbeat.kind.needsSession else { return kernels }
        let heartbeats = heartbeat.kind.userTimeout(interval: heartbeat.cadence.interval)
        return kernel == nil ? heartbeats : max(kernels, heartbeats)
    }

    /// How a flow is secured; `nil` for a remote without TLS.
    package var tlsRequest: TLSRequest? {
        guard remote.needsTLS else { return nil }
        return TLSRequest(to: remote.host, offering: remote.scheme.applicationProtocols, under: tls)
    }

    /// Whether a flow made for `other` is of no use to this policy: it leads elsewhere, its packets go another way, or
    /// it is secured otherwise.
    func needsAnotherFlow(than other: ConnectionPolicy) -> Bool {
        remote != other.remote || mark != other.mark || user != other.user || tlsRequest != other.tlsRequest
    }
}
