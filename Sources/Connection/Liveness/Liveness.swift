// SPDX-License-Identifier: Apache-2.0

/// Whether the other end of a flow is still there: what was asked, what came back, and by when it must.
///
/// A *proof* is a round trip that the remote demonstrably answered. Bytes that arrive are none: they may have been on
/// their way, or in a queue of this machine, for as long as it slept.
///
/// ## Run loop
///
/// 1. A flow begins with a proof: the handshake. Each later one is begun by ``probeSent(at:)`` (a keepalive that the
/// protocol answers) and ended by ``answered(_:at:)``, or told whole by ``acknowledged(_:at:)`` (bytes, or a probe of
///    the kernel's, that the remote's TCP acknowledged).
/// 2. After a change of the path and after a resume, ``verify(at:)``; the driver sends a probe in the same turn, and
///    where it may send none, has the kernel send one.
/// 3. At ``deadline``, first whatever `TCP_INFO` has to say, then ``check(at:)``.
package struct Liveness: Hashable, Sendable {
    /// How long a round trip may take after a change of the path or a resume. Tailscale's figure: long enough for a
    /// radio to wake and two lost segments to be repeated, short enough to dial before anybody notices.
    package static let verificationDeadline = Duration.seconds(3)

    /// How long it may take where one change follows another before the round trip is made: three times as long. A
    /// path that flaps must not keep a dead flow.
    package static let longestVerification = Duration.seconds(9)

    /// What is known at a deadline.
    package enum Verdict: Hashable, Sendable {
        /// Nothing is due.
        case alive
        /// A keepalive went unanswered that this server, or every server, would have answered.
        case unanswered
        /// No round trip was made after the event.
        case unverified
        /// A keepalive went unanswered by a server that has never answered one: it proves nothing, for or against.
        /// Nothing is awaited any more.
        case indifferent
    }

    /// How many probes may be under way: a keepalive, and one more after an event in the middle of its wait.
    static let mostProbes = 2

    /// When the last round trip ended; the age that a user is shown.
    package private(set) var lastProof: Duration
    /// Whether this server has ever answered a keepalive. Kept from flow to flow by whoever makes a new value.
    package private(set) var hasAnsweredKeepalives: Bool
    /// Of the keepalive's figures, what answers are judged by.
    private var answerDeadline: Duration
    private var isAnswerMandatory: Bool
    /// When each of the probes under way was sent, in order.
    private var probes: [Duration] = []
    /// When the event was that made all earlier round trips worthless, and the first since the last proof.
    private var event: Duration?
    private var firstEvent: Duration?
    /// The keepalives sent up to then owe no answer in time.
    private var excused: Duration?
    /// When a keepalive was not sent behind bytes that the remote had not acknowledged.
    private var undelivered: Duration?

    /// A flow whose handshake ended at `now`.
    package init(_ figures: KeepaliveFigures, connectedAt now: Duration, hasAnsweredKeepalives: Bool = false) {
        (answerDeadline, isAnswerMandatory) = (figures.answerDeadline, figures.isAnswerMandatory)
        self.hasAnsweredKeepalives = hasAnsweredKeepalives
        lastProof = now
    }

    /// Whether a round trip is owed since a change of the path or a resume.
    package var isVerifying: Bool { event != nil }

    /// When to call ``check(at:)``; `nil` while nothing is awaited.
    package var deadline: Duration? {
        let answers = [owing, undelivered].compactMap { $0.map { $0 + answerDeadline } }
        return (answers + [verification].compactMap(\.self)).min()
    }

    /// When the first keepalive was sent that owes an answer in time.
    private var owing: Duration? {
        guard let excused else { return probes.first }
        return probes.first { $0 > excused }
    }

    /// When the round trip that is owed must have ended.
    private var verification: Duration? {
        event.map { min($0 + Self.verificationDeadline, (firstEvent ?? $0) + Self.longestVerification) }
    }

    // MARK: What happens

    /// A keepalive was sent that an answer in the stream is awaited for.
    package mutating func probeSent(at now: Duration) {
        if probes.count == Self.mostProbes { probes.removeFirst() }
        probes.append(now)
    }

    /// The answer to the first `count` probes under way has come: one, or more where the protocol lets an answer stand
    /// for the earlier ones too.
    package mutating func answered(_ count: Int = 1, at now: Duration) {
        guard count > 0, let begun = probes.prefix(count).last else { return }
        probes.removeFirst(min(count, probes.count))
        hasAnsweredKeepalives = true
        proved(by: begun, at: now)
    }

    /// A keepalive cannot be sent behind bytes that the remote has not acknowledged. They take its place: every kernel
    /// acknowledges, so that is owed by when an answer would be.
    package mutating func undelivered(at now: Duration) { undelivered = undelivered ?? now }

    /// The server has answered a keepalive on the flow that this one takes the place of.
    package mutating func answeredBefore() { hasAnsweredKeepalives = true }

    /// Another keepalive is sent from now on: nothing of the one before is awaited, or known of this one.
    package mutating func adopt(_ figures: KeepaliveFigures) {
        (answerDeadline, isAnswerMandatory) = (figures.answerDeadline, figures.isAnswerMandatory)
        (probes, undelivered) = ([], nil)
        hasAnsweredKeepalives = false
    }

    /// No answer to the probes under way can be told from other bytes: they prove nothing, for or against.
    package mutating func withdrawProbes() {
        probes = []
    }

    /// The remote's kernel acknowledged what left this one at `begun`: bytes of the stream or a probe.
    ///
    /// It proves the path and the machine, which is what a change of the path or a sleep puts in doubt. It answers no
    /// keepalive: a program that hangs has a kernel that acknowledges.
    package mutating func acknowledged(_ begun: Duration, at now: Duration) {
        let wasVerifying = isVerifying
        if let waiting = undelivered, begun >= waiting { undelivered = nil }
        proved(by: begun, at: now)
        // The answer may stand behind what the server could not deliver before, and repeats after as much as two
        // minutes (`TCP_RTO_MAX`). Whether its program hangs, the next keepalive will tell.
        if wasVerifying, !isVerifying { excused = now }
    }

    /// The path changed, or the machine slept: only a round trip begun from now on counts.
    package mutating func verify(at now: Duration) {
        // A deadline that has passed unnoticed was slept through.
        if verification.map({ now >= $0 }) ?? true { firstEvent = now }
        event = now
        // The answers to earlier ones may be lost, or have slept as long as this machine.
        (excused, undelivered) = (now, nil)
    }

    /// Nothing can be heard of the other end until ``verify(at:)``: no round trip is owed until then.
    package mutating func suspend() { (event, firstEvent, undelivered) = (nil, nil, nil) }

    private mutating func proved(by begun: Duration, at now: Duration) {
        guard now >= begun else { return }
        if let event {
            guard begun >= event else { return }
            (self.event, firstEvent) = (nil, nil)
        }
        lastProof = max(lastProof, now)
    }

    /// What is to be made of what has not come by `now`.
    package mutating func check(at now: Duration) -> Verdict {
        if let verification, now >= verification { return .unverified }
        if let undelivered, now >= undelivered + answerDeadline { return .unanswered }
        guard let owing, now >= owing + answerDeadline else { return .alive }
        if hasAnsweredKeepalives || isAnswerMandatory { return .unanswered }
        probes = []
        return .indifferent
    }
}

extension KeepaliveProtocol {
    /// `TCP_USER_TIMEOUT` of a flow that is kept alive this way each `interval`: how long sent bytes may stay without
    /// acknowledgement. As with the kernel's keepalive (``KeepalivePolicy/giveUpAfter``), the silence before a probe
    /// and the wait for its answer; longer than the wait for an answer, which is to be the one that decides.
    package func userTimeout(interval: Duration) -> Duration { interval + figures.answerDeadline }
}
