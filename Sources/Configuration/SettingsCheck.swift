// SPDX-License-Identifier: Apache-2.0

package import Connection
package import DialtoneAPI

/// What is wrong with a field of a connection's settings, or without effect.
package struct SettingsProblem: Error, Hashable {
    /// The field as `org.dialtone.Connections` names it, as in `keepalive.intervalMilliseconds` or `opening[0].send`.
    package let field: String
    /// For the end of a sentence.
    package let reason: String
    /// Whether the settings do nevertheless.
    package let isHarmless: Bool
}

/// Makes a policy of the settings of a connection. The one place where it is said which settings make sense, whoever
/// gave them: a file, a client, the command line.
package struct SettingsCheck {
    /// All that is wrong, and what has no effect.
    package private(set) var problems: [SettingsProblem] = []
    /// What the settings say, with the defaults of the remote for what they do not; `nil` where something is wrong.
    package private(set) var policy: ConnectionPolicy?

    let settings: ConnectionsAPI.Settings
    let remote: Remote

    /// Checks the settings of a connection to `remote`.
    ///
    /// - Parameters:
    ///   - owner: whose connection it is, and its packets.
    ///   - redials: whether there is somewhere to dial; not for a socket that was adopted alone.
    ///   - wake: how its client is woken.
    package init(
        _ settings: ConnectionsAPI.Settings, to remote: Remote, owner: UInt32, redials: Bool = true,
        wake: WakeSettings? = nil
    ) {
        (self.settings, self.remote) = (settings, remote)
        let policy = makePolicy(owner: owner, redials: redials, wake)
        if !problems.contains(where: { !$0.isHarmless }) { self.policy = policy }
    }

    private mutating func makePolicy(owner: UInt32, redials: Bool, _ wake: WakeSettings?) -> ConnectionPolicy? {
        let mark = number(settings.mark, "mark", 1...Int(UInt32.max)).map { UInt32($0) }
        var policy = ConnectionPolicy(remote: remote, mark: mark, user: PacketOwner.user(for: owner))
        policy.redials = redials
        policy.opening = opening(settings.opening)
        keepAlive(&policy)
        backOff(&policy)
        if let tls = tls(settings.tls) { policy.tls = tls }
        set(
            &policy.connectTimeout, settings.connectTimeoutMilliseconds, "connectTimeoutMilliseconds",
            ConnectionPolicy.connectTimeouts)
        policy.userTimeout = duration(
            settings.userTimeoutMilliseconds, "userTimeoutMilliseconds", ConnectionPolicy.userTimeouts)
        set(&policy.grace, settings.graceMilliseconds, "graceMilliseconds", ConnectionPolicy.graces)
        if let moves = settings.makeBeforeBreak { policy.movesToBetterPath = moves }
        if let tries = settings.otherUplinks { policy.triesOtherUplinks = tries }
        // A program that reads its standard input knows nothing of flows: it goes on where the one before stopped, as a
        // server of inetd's does with the next message.
        if let keeps = settings.keepAbandoned ?? wake?.usesStandardStreams { policy.keepsAbandonedFlow = keeps }
        if let trafficClass = trafficClass() { policy.trafficClass = trafficClass }
        if let priority = number(settings.priority, "priority", ConnectionPolicy.priorities) {
            policy.priority = priority
        }
        guard problems.allSatisfy(\.isHarmless) else { return nil }
        do throws(PolicyError) {
            try policy.validate()
            return policy
        } catch {
            wrong(Self.field(of: error), error.reason)
            return nil
        }
    }

    private mutating func set(
        _ value: inout Duration, _ milliseconds: Int?, _ field: String, _ range: ClosedRange<Duration>
    ) {
        if let duration = duration(milliseconds, field, range) { value = duration }
    }

    /// The field of the settings for one of a policy.
    private static func field(of error: PolicyError) -> String {
        switch error.field {
        case "keepalive.idle", "keepalive.interval": "keepalive.intervalMilliseconds"
        case "tls.applicationProtocols": "tls.alpn"
        default: error.field
        }
    }

    private mutating func backOff(_ policy: inout ConnectionPolicy) {
        guard let backoff = settings.backoff else { return }
        set(&policy.backoff.base, backoff.initialMilliseconds, "backoff.initialMilliseconds", BackoffPolicy.waits)
        set(&policy.backoff.ceiling, backoff.maximumMilliseconds, "backoff.maximumMilliseconds", BackoffPolicy.waits)
        if let factor = number(backoff.factor, "backoff.factor", BackoffPolicy.multipliers) {
            policy.backoff.multiplier = factor
        }
        set(
            &policy.stableAfter, backoff.stableAfterMilliseconds, "backoff.stableAfterMilliseconds",
            ConnectionPolicy.stableTimes)
        let (base, ceiling) = (policy.backoff.base, policy.backoff.ceiling)
        guard ceiling < base else { return }
        let field = backoff.maximumMilliseconds == nil ? "initial" : "maximum"
        let text = "\"\(ceiling.configurationText)\" is shorter than initial, \"\(base.configurationText)\""
        wrong("backoff.\(field)Milliseconds", text)
    }

    private mutating func trafficClass() -> TrafficClass? {
        guard let text = settings.trafficClass else { return nil }
        if let value = TrafficClass(text) { return value }
        wrong("trafficClass", "\"\(text)\" is none; there are \(TrafficClass.wording)")
        return nil
    }

    // MARK: - What is found

    /// More is read by nobody, and a client may send a hundred thousand pins.
    static let mostProblems = 100

    mutating func wrong(_ field: String, _ reason: @autoclosure () -> String) {
        guard problems.count < Self.mostProblems else { return }
        let reason = reason()
        problems.append(SettingsProblem(field: field, reason: reason, isHarmless: false))
    }

    mutating func withoutEffect(_ field: String, _ reason: String) {
        problems.append(SettingsProblem(field: field, reason: reason, isHarmless: true))
    }

    mutating func duration(_ milliseconds: Int?, _ field: String, _ range: ClosedRange<Duration>) -> Duration? {
        guard let milliseconds else { return nil }
        let value = Duration.milliseconds(milliseconds)
        guard range.contains(value) else {
            let bounds = "from \(range.lowerBound.configurationText) to \(range.upperBound.configurationText)"
            wrong(field, "\"\(value.configurationText)\" is out of range; \(bounds)")
            return nil
        }
        return value
    }

    mutating func number<Number: Comparable>(_ value: Number?, _ field: String, _ range: ClosedRange<Number>) -> Number?
    {
        guard let value else { return nil }
        // A number that is none is in no range.
        guard range.contains(value) else {
            wrong(field, "\(value) is out of range; from \(range.lowerBound) to \(range.upperBound)")
            return nil
        }
        return value
    }

    mutating func choice<Choice: RawRepresentable<String> & CaseIterable>(_ text: String?, _ field: String) -> Choice? {
        guard let text else { return nil }
        if let choice = Choice(rawValue: text) { return choice }
        wrong(field, unknownValue(text, among: Choice.allCases.map(\.rawValue)))
        return nil
    }
}
