// SPDX-License-Identifier: Apache-2.0

/// The keepalive that the agent sends by itself on a flow: what, and how often.
public struct Heartbeat: Hashable, Sendable {
    /// What is sent, and what answers it.
    public var kind: KeepaliveProtocol
    /// How often; where ``bounds`` are given, as long as nothing is known of the network.
    public var cadence: Cadence
    /// The intervals from which the agent chooses by what it has learned of the network (``AdaptiveInterval``); `nil`
    /// for the same one everywhere.
    public var bounds: ClosedRange<Duration>?
    /// Whether a machine that sleeps is to be woken for it.
    public var wakesMachine: Bool
    /// How long its answer may take; at first, as the protocol has it.
    public var answerDeadline: Duration

    /// A heartbeat; what is left out is as the protocol has it (``KeepaliveProtocol/figures``).
    ///
    /// - Parameters:
    ///   - kind: anything but ``KeepaliveProtocol/kernel``, which takes no sending.
    ///   - interval: the longest time between two. That of an adaptive heartbeat begins at the protocol's own, if that
    ///     is shorter.
    ///   - tolerance: how much earlier one may be sent, so that it shares a wake with others.
    ///   - wakesMachine: whether a machine that sleeps is to be woken for it.
    ///   - isAdaptive: whether the interval follows what is learned of the network; left out, it does where `interval`
    ///     is left out.
    public init(
        _ kind: KeepaliveProtocol, interval: Duration? = nil, tolerance: Duration? = nil, wakesMachine: Bool = false,
        isAdaptive: Bool? = nil
    ) {
        let figures = kind.figures
        let usual = figures.cadence
        let adapts = isAdaptive ?? (interval == nil)
        let longest = interval ?? figures.intervals.upperBound
        let first = adapts ? min(usual.interval, longest) : interval ?? usual.interval
        self.kind = kind
        self.wakesMachine = wakesMachine
        answerDeadline = figures.answerDeadline
        // A shorter interval keeps the protocol's share of it.
        let share = usual.tolerance * (first / usual.interval)
        cadence = Cadence(
            interval: first, tolerance: tolerance.map { $0 * (first / (interval ?? first)) } ?? min(share, first))
        bounds = adapts ? min(figures.intervals.lowerBound, longest)...longest : nil
    }

    /// The same heartbeat at another interval, of which the tolerance has the same share.
    public func cadence(each interval: Duration) -> Cadence {
        Cadence(interval: interval, tolerance: cadence.tolerance * (interval / cadence.interval))
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

    /// The same heartbeat, as often as the client promised its server in the opening: an MQTT server ends the flow of a
    /// client that is silent for longer than its CONNECT says.
    func keeping(_ opening: Opening?) -> Heartbeat {
        guard kind == .mqtt, let promise = opening?.promisedKeepAlive else { return self }
        let longest = KeepaliveFigures.mqtt(keepAlive: promise).cadence.interval
        var heartbeat = self
        if cadence.interval > longest { heartbeat.cadence = cadence(each: longest) }
        heartbeat.bounds = bounds.flatMap { bounds in
            // What is shorter than the protocol's shortest leaves nothing to be learned.
            longest < bounds.lowerBound ? nil : bounds.lowerBound...min(bounds.upperBound, longest)
        }
        return heartbeat
    }

    /// Whether its interval is learned.
    public var adapts: Bool { bounds != nil }

    /// What its answers are judged by: the protocol's figures, but for what was chosen.
    var figures: KeepaliveFigures {
        var figures = kind.figures
        figures.answerDeadline = answerDeadline
        return figures
    }
}
