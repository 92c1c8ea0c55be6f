// SPDX-License-Identifier: Apache-2.0

/// The kernel's own keepalive of a TCP connection: empty segments that the peer's kernel acknowledges, with no wake of
/// any process.
package struct KeepalivePolicy: Hashable, Sendable {
    /// How long the connection is silent before the first probe (`TCP_KEEPIDLE`); whole seconds, 1 to 32767.
    package var idle: Duration
    /// How long each probe waits for its answer (`TCP_KEEPINTVL`); whole seconds, 1 to 32767.
    package var interval: Duration
    /// How many probes go unanswered before the connection is dead (`TCP_KEEPCNT`); 1 to 127.
    package var count: Int

    /// A keepalive; by default a probe after 120 s of silence, then each 10 s, dead after three.
    ///
    /// 120 s is the longest that RFC 5626, section 4.4.1, lets a SIP client stay silent on TCP, and 10 s is what it
    /// waits for an answer.
    package init(idle: Duration = .seconds(120), interval: Duration = .seconds(10), count: Int = 3) {
        self.idle = idle
        self.interval = interval
        self.count = count
    }

    /// How long after the last sign of life the peer is given up: `idle` + `interval` × `count`.
    ///
    /// Set as `TCP_USER_TIMEOUT` too. Without it, data that is sent into a dead line postpones the probes and is
    /// retransmitted for some 15 minutes (`tcp_retries2`); with a longer one, the kernel lets it overrule the count.
    package var giveUpAfter: Duration { idle + interval * count }

    /// Throws where a figure is beyond the kernel's limits: MAX_TCP_KEEPIDLE, MAX_TCP_KEEPINTVL and MAX_TCP_KEEPCNT in
    /// include/net/tcp.h.
    func check() throws(PolicyError) {
        for (field, value) in [("keepalive.idle", idle), ("keepalive.interval", interval)] {
            try PolicyError.check(field, value, in: KeepaliveProtocol.kernel.figures.intervals)
            if value.components.attoseconds != 0 {
                throw PolicyError(field: field, reason: "\(value) is not in whole seconds")
            }
        }
        try PolicyError.check("keepalive.count", count, in: 1...127)
    }
}

/// An option of a socket that is a number (setsockopt(2)). No decision here depends on it.
package struct SocketNumber: Hashable, Sendable {
    /// As the settings name it, for errors.
    package let name: String
    /// As the kernel numbers it: `IPPROTO_TCP`, `SOL_SOCKET`.
    package let level: Int32
    /// As the kernel numbers it within the level.
    package let option: Int32
    /// What it is set to.
    package let value: Int32

    /// An option, set to `value`.
    package init(name: String, level: Int32, option: Int32, value: Int32) {
        (self.name, self.level, self.option, self.value) = (name, level, option, value)
    }
}

/// What the driver sets on a flow's socket.
package struct SocketOptions: Hashable, Sendable {
    /// Kernel keepalive (`SO_KEEPALIVE` and its figures); `nil` for none.
    package var keepalive: KeepalivePolicy?
    /// How long sent data may stay unacknowledged (`TCP_USER_TIMEOUT`); whole milliseconds.
    package var userTimeout: Duration
    /// How its packets are marked (`IP_TOS`, `IPV6_TCLASS`).
    package var trafficClass: TrafficClass
    /// In which order they leave this machine (`SO_PRIORITY`).
    package var priority: Int
    /// The firewall mark (`SO_MARK`). Fixed for the life of a flow.
    package var mark: UInt32?
    /// The user whose packets they are, for policy rules by uid. Fixed for the life of a flow.
    package var user: UInt32?
    /// What else was asked for. An option that is not asked for any more stays on a flow that stands.
    package var numbers: [SocketNumber]

    /// Linux's `TC_PRIO_INTERACTIVE` (linux/pkt_sched.h): the highest that takes no capability (socket(7)). Queueing
    /// disciplines with bands, as the default one of most network cards, send it first.
    package static let interactivePriority = 6

    /// Options; what is left out is as signaling has it, or not set.
    package init(
        keepalive: KeepalivePolicy?, userTimeout: Duration, trafficClass: TrafficClass = .signaling,
        priority: Int = SocketOptions.interactivePriority, mark: UInt32? = nil, user: UInt32? = nil,
        numbers: [SocketNumber] = []
    ) {
        self.numbers = numbers
        self.keepalive = keepalive
        self.userTimeout = userTimeout
        self.trafficClass = trafficClass
        self.priority = priority
        self.mark = mark
        self.user = user
    }
}
