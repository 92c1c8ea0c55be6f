// SPDX-License-Identifier: Apache-2.0

/// The wakes of one connection's client: who that is, for what it is woken, and when what waits is looked at again. How
/// one wake goes is the ``WakeMachine``'s.
package struct Wakes: Sendable {
    /// How the client is woken.
    package struct Settings: Hashable, Sendable {
        /// By what means, and how often.
        package var policy: WakePolicy {
            get { boxedPolicy.value }
            set { boxedPolicy = .value(newValue) }
        }
        /// For what.
        package var reasons: Set<WakeReason>
        /// Whether they name a client, which may not have come yet.
        package var isTended: Bool
        /// How long a client that was woken may have the flow, before that is told.
        package var budget: Duration

        /// Settings.
        package init(policy: WakePolicy, reasons: Set<WakeReason>, isTended: Bool, budget: Duration) {
            boxedPolicy = .value(policy)
            (self.reasons, self.isTended, self.budget) = (reasons, isTended, budget)
        }

        // Out of line: most connections share one.
        private var boxedPolicy: Boxed<WakePolicy>
    }

    /// Why what waits is looked at again.
    enum Review: Hashable, Sendable {
        /// The client acknowledged, and left the bytes where they were.
        case untouched(at: Duration)
        /// A wake was given up, and more bytes than so many begin another one, but not before this instant.
        case furtherBytes(at: Duration, epoch: UInt64?, beyond: Int)
        /// Those are awaited.
        case awaitingBytes(epoch: UInt64, beyond: Int)
        /// Such bytes are kept of a flow that has ended.
        case keptBytes(at: Duration)

        /// How many bytes a flow had when the wake was given up. What another one had says nothing of it.
        func given(on epoch: UInt64) -> Int {
            switch self {
            case .furtherBytes(_, epoch, let count), .awaitingBytes(epoch, let count): count
            case .untouched, .furtherBytes, .awaitingBytes, .keptBytes: 0
            }
        }

        var deadline: Duration? {
            switch self {
            case .untouched(let at), .furtherBytes(let at, _, _), .keptBytes(let at): at
            case .awaitingBytes: nil
            }
        }
    }

    /// A wake, and an instant.
    struct Instance: Sendable {
        let wake: Boxed<StandingWake>
        let at: Duration
    }

    /// What its user decided.
    package internal(set) var settings: Settings
    /// Made when there is first something to do: most connections of a gateway never wake anybody.
    private var boxed: Boxed<WakeMachine>?
    /// The highest number that a wake had in an earlier run of the agent.
    private let lastNumber: UInt64
    /// The process that took a flow last, or was launched.
    package internal(set) var client: KnownProcess?
    /// The program that was launched, until its end.
    package internal(set) var program: KnownProcess?
    /// The program, while it does not run yet.
    var beginning: KnownProcess?
    /// Whether a client has ever had the flow: who has none is not told of a new one.
    package internal(set) var hasHadClient = false
    /// Whether the client hears of the keepalive that is due, though it may watch nothing.
    var isListening = false
    /// The flow that was last heard of.
    var lastEpoch: UInt64?
    /// Whether a flow has ever stood.
    var hasStarted = false
    /// Whether a session was on the flow when it was last heard of.
    var hadSession = false
    /// A wake of an earlier run of the agent, until this one goes on with it.
    var inherited: Boxed<StandingWake>?
    /// When the machine is to be told that its timer fired.
    var machineDeadline: Duration?
    /// The wake that was acknowledged last, and when.
    var acknowledged: Instance?
    /// When a client that was woken will have had the flow for as long as it may, and for which wake.
    var overrun: Instance?
    /// When what waits is looked at again.
    var review: Review?
    /// When bytes that came after a wake was given up may begin another one.
    var reviewableAt = Duration.zero
    /// How often in a row a client acknowledged, and left the bytes where they were.
    var idleAcknowledgements = 0

    /// No wake yet.
    ///
    /// - Parameter lastNumber: as of ``WakeMachine/init(policy:lastNumber:now:)``.
    init(_ settings: Settings, lastNumber: UInt64) {
        self.settings = settings
        self.lastNumber = lastNumber
    }

    /// The wake that has not been acknowledged.
    package var standing: StandingWake? { boxed?.value.standing }

    /// As ``WakeMachine/process(_:now:using:)``.
    mutating func process(
        _ input: WakeInput, now: Duration, using random: inout some RandomNumberGenerator
    ) -> [WakeAction] {
        guard boxed != nil || input.needsMachine(settings.policy) else { return [] }
        var machine = boxed?.value ?? WakeMachine(policy: settings.policy, lastNumber: lastNumber, now: now)
        defer { boxed = .value(machine) }
        return machine.process(input, now: now, using: &random)
    }

    /// Nobody is to be woken any more.
    mutating func close() { (machineDeadline, overrun, review) = (nil, nil, nil) }

    /// The next instant at which something is to be done.
    var deadline: Duration? { [machineDeadline, overrun?.at, review?.deadline].compactMap(\.self).min() }
}

extension WakeInput {
    /// Whether it means anything to a machine that has never heard of anything.
    fileprivate func needsMachine(_ policy: WakePolicy) -> Bool {
        switch self {
        case .started: policy.launch == .always
        case .needed, .programStarted, .restored, .launchContinued, .clientChanged, .closed: true
        case .acknowledged, .taken, .attempted, .programEnded, .timerFired, .policyChanged: false
        }
    }
}
