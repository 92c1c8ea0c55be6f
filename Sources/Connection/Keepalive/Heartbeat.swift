// SPDX-License-Identifier: Apache-2.0

package import DialtoneCoalescing

/// The keepalive that the agent sends by itself on a flow: what, and how often.
package struct Heartbeat: Hashable, Sendable {
    /// What is sent, and what answers it.
    package internal(set) var kind: KeepaliveProtocol
    /// How often; where ``bounds`` are given, as long as nothing is known of the network.
    package internal(set) var cadence: Cadence
    /// The intervals from which the agent chooses by what it has learned of the network (``AdaptiveInterval``); `nil`
    /// for the same one everywhere.
    package internal(set) var bounds: ClosedRange<Duration>?
    /// Whether a machine that sleeps is to be woken for it.
    package internal(set) var wakesMachine: Bool
    /// How long its answer may take; at first, as the protocol has it.
    package internal(set) var answerDeadline: Duration

    /// A heartbeat that a user asks for; what is left out is as the protocol has it (``KeepaliveProtocol/figures``).
    ///
    /// - Parameters:
    ///   - kind: anything but ``KeepaliveProtocol/kernel``, which takes no sending.
    ///   - interval: the longest time between two. That of an adaptive heartbeat begins at the protocol's own, if that
    ///     is shorter.
    ///   - tolerance: how much earlier one may be sent, so that it shares a wake with others.
    ///   - wakesMachine: whether a machine that sleeps is to be woken for it.
    ///   - isAdaptive: whether the interval follows what is learned of the network; left out, it does where `interval`
    ///     is left out.
    ///   - opening: what the client promises its server, which may allow a longer interval.
    /// - Throws: the first figure that the protocol does not allow.
    package init(
        _ kind: KeepaliveProtocol, interval: Duration?, tolerance: Duration?, wakesMachine: Bool, isAdaptive: Bool?,
        under opening: Opening?
    ) throws(PolicyError) {
        // Before anything is computed: a share of nothing, or of all eternity, is no number.
        if let interval { try PolicyError.check("keepalive.interval", interval, in: kind.intervals(under: opening)) }
        if let tolerance {
            let longest = interval ?? kind.figures.cadence.interval
            try PolicyError.check("keepalive.tolerance", tolerance, in: .zero...longest)
        }
        self.init(
            kind, interval: interval, tolerance: tolerance, wakesMachine: wakesMachine, isAdaptive: isAdaptive)
        try check(under: opening)
    }

    /// Throws where a figure is not one that the protocol allows a client with such an opening.
    func check(under opening: Opening?) throws(PolicyError) {
        try PolicyError.check(
            "keepalive.interval", bounds?.upperBound ?? cadence.interval, in: kind.intervals(under: opening))
        // Below a second one repeated segment would pass for silence; nobody waits two minutes for a call.
        try PolicyError.check("keepalive.answerDeadline", answerDeadline, in: .seconds(1)...(.seconds(120)))
        if case .custom(let send, let expect) = kind {
            let longest = KeepaliveProtocol.longestCustom
            guard (1...longest).contains(send.count) else {
                throw PolicyError(field: "keepalive.send", reason: "\(send.count) bytes are not from 1 to \(longest)")
            }
            guard expect.count <= longest else {
                throw PolicyError(field: "keepalive.expect", reason: "\(expect.count) bytes are more than \(longest)")
            }
        }
    }

    /// A heartbeat of figures that were checked, or are the protocol's.
    init(
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
    package func cadence(each interval: Duration) -> Cadence {
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
        let longest = KeepaliveProtocol.kernel.figures.intervals.upperBound
        keepalive.idle = min(.seconds(seconds + (rest > 0 ? 2 : 1)), longest)
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
    package var adapts: Bool { bounds != nil }

    /// What its answers are judged by: the protocol's figures, but for what was chosen.
    var figures: KeepaliveFigures {
        var figures = kind.figures
        figures.answerDeadline = answerDeadline
        return figures
    }
}
