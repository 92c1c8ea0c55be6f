// SPDX-License-Identifier: Apache-2.0

/// When a connection is dialled again: what is counted of its failures, and how long the next dial waits for them.
///
/// - Every failure counts once and waits, the first one included. The count starts over when a flow was stable, when
///   the path moves, and when a user asks.
/// - A server that ends each flow at the same short age fails, however long they last, if nobody is logged in on them.
/// - Failures of a network that has just changed do not count, and wait for seconds alone.
/// - What time does not mend waits for a quarter of an hour and longer; so does a server that refuses for an hour.
/// - A server that wants to be left alone is, and the wait that would have been comes on top.
struct Retry: Hashable, Sendable {
    /// How long after a change of the path its failures count as the network settling: addresses still tentative, a
    /// name server that is not routed to yet. Duplicate address detection, router discovery and DHCP are over by then.
    private static let settlingTime = Duration.seconds(30)
    /// For how long every dial must have been refused until that counts as permanent: longer than a server's upgrade.
    private static let persistentRefusal = Duration.seconds(3600)
    /// How many openings in a row may have no answer, or end with the flow, before the client is wanted. One may be a
    /// restart of the server or a cut of the line, two the same one's end. A server that refuses logins by hanging up
    /// does it each time.
    private static let mostSilentOpenings = 3

    /// What the next dial waits for.
    enum Wait: Hashable {
        /// That the network settles: a second or two.
        case settling
        /// The wait of the connection's own policy.
        case backOff
        /// That somebody mends the cause; it is dialled rarely.
        case mending
    }

    /// How many dials failed, or flows ended before they were stable, in a row.
    private(set) var failures = 0
    /// How many openings had no answer, in a row.
    private var silentOpenings = 0
    /// Since when every dial was refused.
    private var refusedSince: Duration?
    /// When the path came or last moved; `nil` while it has not.
    private var pathMovedAt: Duration?
    /// When the network last became another than it was: not the path's first coming, but its moving, or a sleep.
    private(set) var networkChangedAt: Duration?
    /// When `dialtone-tls` last ended under a flow.
    private var securingEndedAt: Duration?
    /// Until when the server wants to be left alone.
    private(set) var leftAloneUntil: Duration?
    /// Whether the server ends each flow at the same age.
    private var endings = RepeatedEnding()

    // MARK: - What happens

    /// Forgets the failures so far: the next ones have other causes.
    mutating func startOver() {
        flowWasStable()
        endings = RepeatedEnding()
    }

    /// A flow lasted: what failed before it is over.
    mutating func flowWasStable() { (failures, silentOpenings, refusedSince) = (0, 0, nil) }

    /// The path leads another way.
    ///
    /// - Parameter isAnotherNetwork: whether another network may be behind it than before.
    mutating func pathMoved(at now: Duration, isAnotherNetwork: Bool) {
        pathMovedAt = now
        if isAnotherNetwork { networkChangedAt = now }
    }

    /// The server wants to be left alone for so long; `nil` for no longer.
    mutating func serverAsked(_ pause: Duration?, at now: Duration) {
        // A figure beyond a day is a mistake, or meant to harm.
        leftAloneUntil = pause.map { now + min(max($0, .zero), BackoffPolicy.longestRequest) }
    }

    /// A server answered a dial.
    mutating func dialSucceeded() { refusedSince = nil }

    /// A dial has failed as a whole.
    mutating func dialFailed(because cause: StatusReason, at now: Duration) -> Wait {
        if isSettling(cause, at: now) { return .settling }
        failures += 1
        refusedSince = cause.failureKind == .refused ? refusedSince ?? now : nil
        if let refusedSince, now - refusedSince >= Self.persistentRefusal { return .mending }
        switch cause.failureKind {
        case .permanent, .absent: return .mending
        case .local, .securing, .refused, .transient: return .backOff
        }
    }

    /// A flow ended that somebody could have used for so long.
    ///
    /// - Returns: the cause to tell: with how often the server has done it, where it repeats itself.
    mutating func flowEnded(at age: Duration, lacksLogin: Bool, because cause: StatusReason) -> StatusReason {
        guard cause.isServersEnding else {
            endings = RepeatedEnding()
            return cause
        }
        endings.ended(at: age)
        guard endings.times > 1 else { return cause }
        return .endedAgain(
            .init(times: endings.times, age: age, isReset: cause != .remoteClosed, lacksLogin: lacksLogin))
    }

    /// A flow has ended that was not stable.
    mutating func flowFailed(because cause: StatusReason, at now: Duration) {
        if !isSettling(cause, at: now) { failures += 1 }
    }

    /// The server answered an opening, in whatever way.
    mutating func openingAnswered() { silentOpenings = 0 }

    /// An opening came to nothing, and nobody refused it.
    ///
    /// - Returns: whether the client is wanted for that.
    mutating func openingHadNoAnswer() -> Bool {
        silentOpenings += 1
        return silentOpenings == Self.mostSilentOpenings
    }

    // MARK: - What follows

    /// Whether a flow of this age, on which nobody is logged in, is one that the server is about to end.
    func isShortLived(at age: Duration) -> Bool { endings.isOne(at: age) }

    /// Whether a failure passes in a second or two.
    func isSettling(_ cause: StatusReason, at now: Duration) -> Bool {
        let since: Duration? =
            switch cause.failureKind {
            case .local: pathMovedAt
            case .absent: networkChangedAt
            case .securing: now
            case .refused, .permanent, .transient: nil
            }
        return since.map { now - $0 < Self.settlingTime } ?? false
    }

    /// What is waited for after a flow that ended; `nil` for nothing.
    mutating func wait(afterFlowEndedBy cause: StatusReason, at now: Duration) -> Wait? {
        if case .flowFailed(.securingEnded) = cause {
            // The server has no part in it, and serves. But what it sends may be what ends `dialtone-tls`.
            defer { securingEndedAt = now }
            if securingEndedAt.map({ now - $0 >= Self.settlingTime }) ?? true { return nil }
        }
        if isSettling(cause, at: now) { return .settling }
        // With TLS 1.3 a server judges the client's certificate when the client has long been done.
        return cause.failureKind == .permanent ? .mending : .backOff
    }

    /// When to dial again, by chance.
    func deadline(by backoff: BackoffPolicy, from now: Duration, using random: inout some RandomNumberGenerator)
        -> Duration
    {
        var backoff = backoff
        // What a server does to this flow it may do to a whole herd: their dials are spread as after its restart.
        if endings.times > 1 { backoff.base = min(max(backoff.base, backoff.spread), backoff.ceiling) }
        // What the server asked for it asked of everybody: the wait that would have been comes on top.
        return max(leftAloneUntil ?? now, now) + backoff.delay(afterFailures: failures, using: &random)
    }
}

/// Failures by what the next dial makes of them.
private enum FailureKind {
    /// This machine's network failed; in the first while after a change that passes in seconds.
    case local
    /// `dialtone-tls` ended. It is started again at once.
    case securing
    /// A name is not there, by the word of the name server that is asked now. In the first while after a change that
    /// may be a portal's, or one that does not know of the VPN that is coming up; then time does not mend it.
    case absent
    /// The server's host said no. It means it when it keeps saying so.
    case refused
    /// Time does not mend it.
    case permanent
    /// It may pass.
    case transient
}

extension StatusReason {
    fileprivate var failureKind: FailureKind {
        switch self {
        case .resolutionFailed(.temporary), .resolutionFailed(.heldBack): .local
        case .resolutionFailed(.noSuchName), .resolutionFailed(.noAddress): .absent
        case .resolutionFailed(.notOffered): .permanent
        case .dialFailed(.refused, _): .refused
        case .dialFailed(.tls(let failure), _), .flowFailed(.tls(let failure)):
            failure.isPermanent ? .permanent : .transient
        case .dialFailed(.securingEnded, _), .flowFailed(.securingEnded): .securing
        case .dialFailed(let failure, _), .flowFailed(let failure): failure.isLocal ? .local : .transient
        case .opened, .noPath, .pathAvailable, .pathMoved, .retryDue, .dialledTooOften, .awaitsTurn, .serverAsked,
            .connected, .replaced, .detoured, .resumed, .unanswered, .unverified, .verified, .remoteClosed, .endedAgain,
            .localAddressRemoved, .adopted, .restarted, .taken, .parked, .arrived, .certificateEnds, .clientGone,
            .sessionOpened, .openingFailed, .redialRequested, .policyChanged, .closeRequested, .nameConfigured,
            .agentEnded:
            .transient
        }
    }
}
