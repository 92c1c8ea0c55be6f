// SPDX-License-Identifier: Apache-2.0

internal import DialtoneCoalescing
internal import DialtoneConnection
internal import DialtonePlatform

/// What the keepalives of one user's connections have taught of the networks: an ``AdaptiveInterval`` that they share,
/// and who of them tries a longer interval.
@AgentQueue
final class IntervalLearner {
    /// A flow of some keepaliveSender.
    struct FlowID: Hashable {
        let keepaliveSender: ObjectIdentifier
        let epoch: UInt64
    }

    private(set) var learned: AdaptiveInterval
    /// The one flow of a network that tries a longer interval than the others.
    private var scouts: [NetworkIdentity: FlowID] = [:]
    private var users: [FlowID: KeepaliveSender] = [:]

    /// Called when something was learned that is worth keeping. It says nothing of how often.
    var onLesson: (@AgentQueue () -> Void)?

    /// A learner that knows what an earlier one had learned.
    nonisolated init(_ learned: AdaptiveInterval = AdaptiveInterval()) { self.learned = learned }

    // MARK: - For keepalive senders

    /// Has `keepaliveSender` told of what is learned at the cost of other flows, until ``leave(_:)``.
    func join(_ flow: FlowID, _ keepaliveSender: KeepaliveSender) { users[flow] = keepaliveSender }

    /// The flow is gone, or has no adaptive heartbeat any more.
    func leave(_ flow: FlowID) {
        guard users.removeValue(forKey: flow) != nil else { return }
        for (network, scout) in scouts where scout == flow { scouts[network] = nil }
    }

    /// How often a flow is to send its heartbeat.
    ///
    /// - Parameters:
    ///   - network: the one that it goes through; `nil` where it is not known.
    ///   - limit: what its server bears.
    func cadence(
        of heartbeat: Heartbeat, on network: NetworkIdentity?, atMost limit: Duration?, for flow: FlowID
    ) -> Cadence {
        guard let bounds = heartbeat.bounds else { return heartbeat.cadence }
        let longest = min(bounds.upperBound, limit ?? bounds.upperBound)
        guard let network else { return heartbeat.cadence(each: min(heartbeat.cadence.interval, longest)) }
        let figures = heartbeat.kind.figures
        let allowed = min(bounds.lowerBound, longest)...longest
        if (scouts[network] ?? flow) == flow {
            if let trial = learned.trial(on: network, figures, within: allowed) {
                scouts[network] = flow
                return Cadence(interval: trial, tolerance: .zero)
            }
            scouts[network] = nil
        }
        return heartbeat.cadence(each: learned.interval(on: network, figures, within: allowed))
    }

    /// A heartbeat was acknowledged that was sent after this silence.
    func survived(_ silence: Duration, on network: NetworkIdentity, _ figures: KeepaliveFigures) {
        // The others take a longer interval at their next heartbeat.
        if learned.survived(silence, on: network, figures) { onLesson?() }
    }

    /// A network forgot a flow.
    func died(_ beat: SilentLoss.Beat, _ figures: KeepaliveFigures) {
        scouts[beat.network] = nil
        guard learned.died(after: beat.silence, sentAt: beat.sentAt, on: beat.network, figures) else { return }
        onLesson?()
        // They may be in the middle of a silence that is too long, too.
        for (flow, keepaliveSender) in users { keepaliveSender.adapt(flow.epoch) }
    }
}
