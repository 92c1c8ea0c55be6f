// SPDX-License-Identifier: Apache-2.0

/// By what means a client is woken, how often, how far apart, and whether it is launched again when it died.
package struct WakePolicy: Hashable, Sendable {
    /// When a client is launched.
    package enum Launch: String, Hashable, Sendable, CaseIterable {
        /// When there is something for it.
        case onDemand = "on-demand"
        /// Besides, as soon as the connection stands for the first time.
        case always
    }

    /// What may be done beyond the event, which is always sent.
    package var means: Set<WakeMeans>
    /// How long a client that runs has to acknowledge after a nudge, before the next means is tried. A process that was
    /// stopped or frozen is back within milliseconds; three seconds let it be swapped in on a small machine.
    package var answerTime: Duration
    /// How long a unit or program may take to start, and again how long it then has to acknowledge.
    package var startTime: Duration
    /// How often each means is tried until the wake has failed.
    package var rounds: Int
    /// How long to wait between two rounds.
    package var pauses: BackoffPolicy
    /// When the client is launched.
    package var launch: Launch
    /// Whether a program that ended with a failure is launched again.
    package var relaunches: Bool
    /// How long to wait until then.
    package var relaunchPauses: BackoffPolicy
    /// How long a program must have run for its next failure to count as the first.
    package var stableAfter: Duration

    /// A policy; the defaults are those of the configuration.
    package init(
        means: Set<WakeMeans> = [], answerTime: Duration = .seconds(3), startTime: Duration = .seconds(30),
        rounds: Int = 6, pauses: BackoffPolicy = .wakes, launch: Launch = .onDemand, relaunches: Bool = true,
        relaunchPauses: BackoffPolicy = .relaunches, stableAfter: Duration = .seconds(60)
    ) {
        self.means = means
        self.answerTime = answerTime
        self.startTime = startTime
        self.rounds = rounds
        self.pauses = pauses
        self.launch = launch
        self.relaunches = relaunches
        self.relaunchPauses = relaunchPauses
        self.stableAfter = stableAfter
    }

    /// The means in the order in which they are tried.
    package var steps: [WakeMeans] { WakeMeans.allCases.filter { $0 == .event || means.contains($0) }.sorted() }

    /// No wake makes more attempts than this.
    package var mostAttempts: Int { rounds * steps.count }

    /// How long a client has to answer an event of which it is not known whether it can: one that runs does so in
    /// milliseconds, and one that is stopped is not to lie there for seconds before it gets its signal.
    static let hiddenAnswerTime = Duration.milliseconds(250)

    /// How long to wait for what comes of an attempt.
    func patience(after attempt: WakeMeans, with client: ClientPresence) -> Duration {
        guard attempt == .event, client.contains(.hidden), !means.isDisjoint(with: [.signal, .thaw]) else {
            return time(for: attempt)
        }
        return min(answerTime, Self.hiddenAnswerTime)
    }

    /// How long an attempt, or the wait for what came of it, may take.
    func time(for means: WakeMeans) -> Duration { means.startsProgram ? startTime : answerTime }
}

extension BackoffPolicy {
    /// Between the rounds of a wake: six of them are over within some eight minutes, beyond which nobody waits at the
    /// other end of a call, and a client that is being upgraded is back.
    package static let wakes = BackoffPolicy(base: .seconds(10), multiplier: 2, ceiling: .seconds(300), jitter: .half)

    /// Until a client that failed is launched again: soon, for it may be one bad message, and five minutes in the end.
    package static let relaunches = BackoffPolicy(
        base: .seconds(2), multiplier: 2, ceiling: .seconds(300), jitter: .half)
}
