// SPDX-License-Identifier: Apache-2.0

/// The keepalive that the agent sends by itself on a flow: what, and how often.
public struct Heartbeat: Hashable, Sendable {
    /// What is sent, and what answers it.
    public var kind: KeepaliveProtocol
    /// How often.
    public var cadence: Cadence
    /// Whether a machine that sleeps is to be woken for it.
    public var wakesMachine: Bool
    /// How long its answer may take; at first, as the protocol has it.
    public var answerDeadline: Duration

    /// A heartbeat; what is left out is as the protocol has it (``KeepaliveProtocol/figures``).
    ///
    /// - Parameters:
    ///   - kind: anything but ``KeepaliveProtocol/kernel``, which takes no sending.
    ///   - interval: the longest time between two.
    ///   - tolerance: how much earlier one may be sent, so that it shares a wake with others.
    ///   - wakesMachine: whether a machine that sleeps is to be woken for it.
    public init(
        _ kind: KeepaliveProtocol, interval: Duration? = nil, tolerance: Duration? = nil, wakesMachine: Bool = false
    ) {
        let usual = kind.figures.cadence
        self.kind = kind
        self.wakesMachine = wakesMachine
        answerDeadline = kind.figures.answerDeadline
        let interval = interval ?? usual.interval
        // A shorter interval keeps the protocol's share of it.
        let share = usual.tolerance * (interval / usual.interval)
        cadence = Cadence(interval: interval, tolerance: tolerance ?? min(share, interval))
    }

    /// The kernel's keepalive beside it: `usual`, but a second later than the heartbeat.
    ///
    /// The kernel counts from the last segment that arrived (`keepalive_time_elapsed` in include/net/tcp.h), so while
    /// heartbeats go out and are acknowledged it sends nothing, and wakes no radio a second time. It sends where the
    /// agent may not: while no session is on the flow, or with bytes in front that nobody has read. The mapping of a
    /// NAT then lives on, and a peer that is gone is found.
    func kernelKeepalive(_ usual: KeepalivePolicy) -> KeepalivePolicy {
        var keepalive = usual
        let (seconds, rest) = cadence.interval.components
        keepalive.idle = .seconds(seconds + (rest > 0 ? 2 : 1))
        return keepalive
    }

    /// What its answers are judged by: the protocol's figures, but for what was chosen.
    var figures: KeepaliveFigures {
        var figures = kind.figures
        figures.answerDeadline = answerDeadline
        return figures
    }
}
