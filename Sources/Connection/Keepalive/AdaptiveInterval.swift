// SPDX-License-Identifier: Apache-2.0

internal import DialtoneCoalescing

/// Learns how long each network holds an idle flow, and with that how rarely a keepalive need be sent there.
///
/// It begins with what the protocol recommends. After some keepalives in a row that were acknowledged, *one* flow tries
/// an interval that is longer by a quarter, and when it has survived that a few times, all of the network's flows take
/// it. When it dies in silence, the others have not noticed; the interval goes back to what was survived, less a
/// margin, and stays below what was not. So a network costs one flow for a step too many, and where the first interval
/// is too long already, one round of flows for each time that it must be halved.
///
/// It is fed with *silences*: how long a flow had carried nothing when the keepalive was sent. That is what a network
/// bears or does not, whatever interval was asked for and whatever a planner made of it.
///
/// The networks are told apart by ``NetworkIdentity``; the twenty that were used last are kept. What is learned belongs
/// to the network and not to the connection: each use is cut to the bounds of its protocol and its user.
///
/// Each user has one of these. A server that swallows keepalives shortens the interval of every network that it is
/// reached through, and a user may connect to any server: nobody learns from another user's.
package struct AdaptiveInterval: Hashable, Sendable {
    /// How many networks are remembered: home, work, the phone, the train, and those of a year of travelling.
    package static let mostNetworks = 20

    /// So many acknowledged keepalives in a row, each after about the interval, and the next one is tried; so many of
    /// those, and it is taken.
    static let stableBeats = 3
    /// By so much the interval grows, or less at its upper bound; a step below ``smallestGrowth`` is not worth a trial.
    static let growth = 1.25
    private static let smallestGrowth = 1.05
    static let trialThreshold = 1.025
    /// The part of a survived or fatal silence that is stayed below: timers of routers are coarse, and keepalives late
    /// by a radio's wake.
    static let margin = 0.9
    /// A keepalive after less than this part of the interval (early, for the sake of a shared wake) says little of it.
    static let telling = 0.75
    /// A death in a silence that was survived before is chance (a lost router, a crash) until it comes again, with no
    /// such silence survived in between.
    static let strikes = 2
    /// After twice so many acknowledged keepalives a fatal silence is tried again: routers are replaced. After each
    /// further death it takes twice as many as before.
    static let patience = 200

    /// Beyond a day nothing is believed, of a caller or of a file, and no keepalive is that rare.
    static let plausible = Duration.milliseconds(1)...(.seconds(86_400))

    /// What is known of one network.
    struct Network: Hashable, Sendable {
        var identity: NetworkIdentity
        /// What all flows take.
        var interval: Duration
        /// The longest silence that a flow survived.
        var survived = Duration.zero
        /// The shortest that one did not.
        var fatal: Duration?
        /// Acknowledged keepalives since the interval was last lowered, and since the last death.
        var beats = 0
        var beatsSinceDeath = 0
        /// The silences survived that were longer than the interval: how many, and the shortest of them.
        var trials = 0
        var shortestTrial: Duration?
        /// Deaths in a silence that had been survived before, and the shortest of these silences.
        var strikes = 0
        var shortestStrike: Duration?
        /// How often something was learned from a death.
        var deaths = 0
        /// When the last keepalive was sent that stayed without acknowledgement; not kept in files.
        var lastDeath: Duration?
    }

    /// The one used last comes first.
    private(set) var networks: [Network] = []

    /// Knows nothing yet.
    package init() {}

    /// Adds a network that was read from a file, behind the others, unless it is known or they are too many.
    mutating func append(_ network: Network) {
        guard networks.count < Self.mostNetworks, !networks.contains(where: { $0.identity == network.identity }) else {
            return
        }
        networks.append(network)
    }

    /// How long any flow on this network may stay silent.
    ///
    /// - Parameters:
    ///   - figures: the protocol's; its interval is where learning begins, its bounds are kept.
    ///   - bounds: the user's, which are kept as well; the protocol's win where they do not meet.
    package func interval(
        on identity: NetworkIdentity, _ figures: KeepaliveFigures, within bounds: ClosedRange<Duration>? = nil
    ) -> Duration {
        known(identity, figures).interval.clamped(to: bounds).clamped(to: figures.intervals)
    }

    /// How long *one* flow on this network may stay silent to find out whether the network bears it; `nil` where
    /// nothing is to be found out. To be kept to exactly: an earlier keepalive proves nothing.
    package func trial(
        on identity: NetworkIdentity, _ figures: KeepaliveFigures, within bounds: ClosedRange<Duration>? = nil
    ) -> Duration? {
        let network = known(identity, figures)
        guard network.beats >= Self.stableBeats else { return nil }
        let next = (network.interval * Self.growth).clamped(to: bounds).clamped(to: figures.intervals)
        guard next >= network.interval * Self.smallestGrowth, network.bears(next) else { return nil }
        return next
    }

    /// A keepalive was acknowledged that was sent after this silence.
    ///
    /// - Returns: whether something was learned that is worth keeping.
    @discardableResult
    package mutating func survived(
        _ silence: Duration, on identity: NetworkIdentity, _ figures: KeepaliveFigures
    ) -> Bool {
        update(identity, figures) { $0.survive(silence.clamped(to: Self.plausible)) }
    }

    /// No answer came to a keepalive that was sent at `sent`, after this silence, and to blame is the network
    /// (``SilentLoss``). A silence that is shorter than any interval of the protocol was not too long: no keepalive
    /// could have come sooner.
    ///
    /// - Returns: whether something was learned that is worth keeping.
    @discardableResult
    package mutating func died(
        after silence: Duration, sentAt sent: Duration, on identity: NetworkIdentity, _ figures: KeepaliveFigures
    ) -> Bool {
        guard silence >= figures.intervals.lowerBound else { return false }
        return update(identity, figures) {
            $0.die(after: silence.clamped(to: Self.plausible), sentAt: sent, figures.intervals.lowerBound)
        }
    }

    private func known(_ identity: NetworkIdentity, _ figures: KeepaliveFigures) -> Network {
        var network =
            networks.first { $0.identity == identity } ?? Network(identity: identity, interval: .zero)
        // What another protocol does of itself says nothing against this one's figure; what died does.
        if network.deaths == 0 { network.interval = max(network.interval, figures.cadence.interval) }
        return network
    }

    private mutating func update(
        _ identity: NetworkIdentity, _ figures: KeepaliveFigures, _ change: (inout Network) -> Void
    ) -> Bool {
        var network = known(identity, figures)
        let index = networks.firstIndex { $0.identity == identity }
        let before = index.map { networks.remove(at: $0) }
        change(&network)
        networks.insert(network, at: 0)
        if networks.count > Self.mostNetworks { networks.removeLast() }
        return before?.interval != network.interval || before?.fatal != network.fatal
    }
}

extension AdaptiveInterval.Network {
    /// Whether nothing is known against a silence.
    fileprivate func bears(_ silence: Duration) -> Bool {
        guard let fatal else { return true }
        return silence < fatal * AdaptiveInterval.margin
    }

    fileprivate mutating func survive(_ silence: Duration) {
        survived = max(survived, silence)
        // Not a shorter one: flows that share wakes live on by it where all others die.
        if let shortestStrike, silence >= shortestStrike * AdaptiveInterval.margin { forgetStrikes() }
        guard silence >= interval * AdaptiveInterval.telling else { return }
        beats += 1
        beatsSinceDeath += 1
        if let fatal, silence >= fatal { self.fatal = nil }
        if beatsSinceDeath >= AdaptiveInterval.patience << min(deaths, 6) { fatal = nil }
        // Longer than the interval by more than chance makes it: a flow that tries the next one.
        guard silence > interval * AdaptiveInterval.trialThreshold else { return }
        trials += 1
        shortestTrial = min(shortestTrial ?? silence, silence)
        guard trials >= AdaptiveInterval.stableBeats, let shortestTrial else { return }
        interval = min(interval * AdaptiveInterval.growth, shortestTrial)
        (trials, self.shortestTrial) = (0, nil)
    }

    fileprivate mutating func die(after silence: Duration, sentAt sent: Duration, _ shortest: Duration) {
        // All flows of a network die of one cause at about one time: only a silence that began after the last death is
        // another.
        if let lastDeath, sent - silence < lastDeath { return }
        lastDeath = sent
        (trials, shortestTrial) = (0, nil)
        if silence <= survived {
            strikes += 1
            shortestStrike = min(shortestStrike ?? silence, silence)
            guard strikes >= AdaptiveInterval.strikes else { return }
            // Again: the network is another than it was.
            survived = .zero
        }
        forgetStrikes()
        (beats, beatsSinceDeath) = (0, 0)
        deaths += 1
        fatal = min(fatal ?? silence, silence)
        let known = survived > .zero ? survived * AdaptiveInterval.margin : silence / 2
        interval = max(min(known, interval), shortest)
    }

    private mutating func forgetStrikes() { (strikes, shortestStrike) = (0, nil) }
}

extension Duration {
    fileprivate func clamped(to bounds: ClosedRange<Duration>?) -> Duration {
        guard let bounds else { return self }
        return min(max(self, bounds.lowerBound), bounds.upperBound)
    }
}
