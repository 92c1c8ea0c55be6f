// SPDX-License-Identifier: Apache-2.0

/// The keepalive that the agent sends by itself on a flow: what, and how often.
public struct Heartbeat: Hashable, Sendable {
    /// What is sent, and what answers it.
    public var kind: KeepaliveProtocol
    /// How often.
    public var cadence: Cadence

    /// A heartbeat; what is left out is as the protocol has it (``KeepaliveProtocol/figures``).
    ///
    /// - Parameters:
    ///   - kind: anything but ``KeepaliveProtocol/kernel``, which takes no sending.
    ///   - interval: the longest time between two.
    ///   - tolerance: how much earlier one may be sent, so that it shares a wake with others.
    public init(_ kind: KeepaliveProtocol, interval: Duration? = nil, tolerance: Duration? = nil) {
        let usual = kind.figures.cadence
        self.kind = kind
        let interval = interval ?? usual.interval
        // A shorter interval keeps the protocol's share of it.
        let share = usual.tolerance * (interval / usual.interval)
        cadence = Cadence(interval: interval, tolerance: tolerance ?? min(share, interval))
    }
}
