// SPDX-License-Identifier: Apache-2.0

package import Connection
package import DialtoneAPI

/// Makes a policy of the settings of a connection. It alone says which settings make sense, for files, clients and the
/// command line.
package struct SettingsCheck {
    /// All that is wrong, and what has no effect.
    package var problems: [SettingsProblem] { found.all }
    var found = SettingsProblems()
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
        policy = makePolicy(owner: owner, redials: redials, wake)
    }

    private mutating func makePolicy(owner: UInt32, redials: Bool, _ wake: WakeSettings?) -> ConnectionPolicy? {
        let mark = number(settings.mark, "mark", 1...Int(UInt32.max)).map { UInt32($0) }
        var policy = ConnectionPolicy(remote: remote, mark: mark, user: PacketOwner.user(for: owner))
        policy.redials = redials
        if let steps = settings.opening {
            let check = OpeningCheck(steps)
            policy.opening = check.opening
            found.add(check.found)
        }
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
        guard found.areHarmless else { return nil }
        do throws(PolicyError) {
            try policy.validate()
            return policy
        } catch {
            found.wrong(Self.field(of: error), error.reason)
            return nil
        }
    }

    private mutating func set(
        _ value: inout Duration, _ milliseconds: Int?, _ field: String, _ range: ClosedRange<Duration>
    ) {
        if let duration = duration(milliseconds, field, range) { value = duration }
    }

    /// The field of the settings for one of a policy.
    static func field(of error: PolicyError) -> String {
        switch error.field {
        case "keepalive.idle", "keepalive.interval": "keepalive.intervalMilliseconds"
        case "keepalive.tolerance": "keepalive.toleranceMilliseconds"
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
        found.wrong("backoff.\(field)Milliseconds", text)
    }

    private mutating func trafficClass() -> TrafficClass? {
        guard let text = settings.trafficClass else { return nil }
        if let value = TrafficClass(text) { return value }
        found.wrong("trafficClass", "\"\(text)\" is none; there are \(TrafficClass.wording)")
        return nil
    }

    // MARK: - Values

    mutating func duration(_ milliseconds: Int?, _ field: String, _ range: ClosedRange<Duration>) -> Duration? {
        guard let value = milliseconds.map({ Duration.milliseconds($0) }) else { return nil }
        guard let problem = outOfRange(value, range) else { return value }
        found.wrong(field, problem)
        return nil
    }

    mutating func number<Number: Comparable>(_ value: Number?, _ field: String, _ range: ClosedRange<Number>) -> Number?
    {
        guard let value, let problem = outOfRange(value, range) else { return value }
        found.wrong(field, problem)
        return nil
    }

    mutating func choice<Choice: RawRepresentable<String> & CaseIterable>(_ text: String?, _ field: String) -> Choice? {
        guard let text else { return nil }
        if let choice = Choice(rawValue: text) { return choice }
        found.wrong(field, unknownValue(text, among: Choice.allCases.map(\.rawValue)))
        return nil
    }
}
