// SPDX-License-Identifier: Apache-2.0

/// What can happen to a client's wakes. ``WakeMachine`` says when each may be told.
package enum WakeInput: Hashable, Sendable {
    /// The connection stands for the first time since its file was read.
    case started
    /// The client is to run; what is known of it at this moment comes along.
    case needed(WakeReason, ClientPresence)
    /// The client acknowledged a wake.
    case acknowledged(wake: UInt64)
    /// The client took the flow, parked it or was launched with it: whatever stands is acknowledged.
    case taken
    /// What came of an attempt.
    case attempted(wake: UInt64, attempt: Int, WakeOutcome)
    /// A program was launched for the connection; told before what came of its attempt.
    case programStarted
    /// That program ended.
    case programEnded(ProgramEnd)
    /// What is known of the client is this from now on.
    case clientChanged(ClientPresence)
    /// The deadline of the last ``WakeAction/scheduleTimer(_:)`` has passed.
    case timerFired
    /// The connection has another policy.
    case policyChanged(WakePolicy)
    /// A wake of the agent's last run still stands; told first, if at all, but for a program or a launch of that run.
    case restored(StandingWake)
    /// What came of this attempt of the agent's last run to launch a program is not known yet; told before that wake.
    case launchContinued(WakeAttempt.ID)
    /// The connection is closed.
    case closed
}

/// What came of an attempt to wake a client.
package enum WakeOutcome: Hashable, Sendable {
    /// It was done; whether the client runs is for the client to say.
    case done
    /// It could not be done; why, for the end of a sentence.
    case failed(String)
}

/// How a program ended that was launched.
package enum ProgramEnd: Hashable, Sendable {
    /// With this exit status; 0 says that it has nothing more to do.
    case exited(status: Int32)
    /// By this signal.
    case killed(signal: Int32)
    /// Nobody was there to see how.
    case unseen

    /// Whether it counts as a failure. What nobody saw does not, and is no success either.
    package var isFailure: Bool {
        switch self {
        case .exited(let status): status != 0
        case .killed: true
        case .unseen: false
        }
    }
}

/// What the driver of a connection's wakes is to do.
package enum WakeAction: Hashable, Sendable {
    /// Try to wake the client; answered by ``WakeInput/attempted(wake:attempt:_:)``, once.
    case attempt(WakeAttempt)
    /// Tell when a deadline has passed; replaces the earlier deadline.
    case scheduleTimer(Duration)
    /// Forget the deadline.
    case cancelTimer
    /// Tell the subscribers and write it down.
    case report(WakeReport)
}

/// One attempt to wake a client.
package struct WakeAttempt: Hashable, Sendable, Identifiable {
    /// What tells it from all other attempts of the connection.
    package struct ID: Hashable, Sendable {
        /// The wake's number.
        package let wake: UInt64
        /// The attempt's number within the wake.
        package let attempt: Int

        /// The attempt of these numbers.
        package init(wake: UInt64, attempt: Int) { (self.wake, self.attempt) = (wake, attempt) }
    }

    /// The wake's number.
    package var wake: UInt64
    /// The attempt's number within the wake, from 1.
    package var attempt: Int
    /// By what.
    package var means: WakeMeans
    /// Why, the first reason first.
    package var reasons: [WakeReason]

    /// Its numbers.
    package var id: ID { ID(wake: wake, attempt: attempt) }

    /// An attempt.
    package init(wake: UInt64, attempt: Int, means: WakeMeans, reasons: [WakeReason]) {
        self.wake = wake
        self.attempt = attempt
        self.means = means
        self.reasons = reasons
    }
}

/// A wake that was not acknowledged, as the status shows it and as it outlives the agent.
package struct StandingWake: Hashable, Sendable {
    /// Its number: higher than that of any earlier wake of the connection.
    package var number: UInt64
    /// Why, the first reason first.
    package var reasons: [WakeReason]
    /// When it began, on the machine's clock.
    package var since: Duration
    /// How many attempts were made.
    package var attempts: Int
    /// By what the last one was.
    package var means: WakeMeans?
    /// Whether it was given up.
    package var hasFailed: Bool

    /// A wake.
    package init(
        number: UInt64, reasons: [WakeReason], since: Duration, attempts: Int = 0, means: WakeMeans? = nil,
        hasFailed: Bool = false
    ) {
        self.number = number
        self.reasons = reasons
        self.since = since
        self.attempts = attempts
        self.means = means
        self.hasFailed = hasFailed
    }
}

/// Something that happened to a wake, told once and in order.
package struct WakeReport: Hashable, Sendable {
    /// What.
    package enum Kind: Hashable, Sendable {
        /// The wake began.
        case began
        /// One more reason came to a wake that stands.
        case joined(WakeReason)
        /// The client is being woken by this means.
        case attempted(WakeMeans)
        /// That could not be done, or took too long; why, for the end of a sentence.
        case attemptFailed(WakeMeans, String)
        /// The client acknowledged it, so long after it began.
        case acknowledged(after: Duration)
        /// Nothing helped; the wake is given up, so long after it began.
        case failed(after: Duration)
        /// The program that was launched ended.
        case programEnded(ProgramEnd)
        /// The client that was woken has had the flow for longer than it may, and still has it.
        case overran(limit: Duration)
    }

    /// What happened.
    package var kind: Kind
    /// The wake afterwards; of a program's end without a wake that stands, the last one.
    package var wake: StandingWake

    /// A report.
    package init(_ kind: Kind, _ wake: StandingWake) {
        self.kind = kind
        self.wake = wake
    }
}
