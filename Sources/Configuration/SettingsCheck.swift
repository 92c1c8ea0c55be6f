// SPDX-License-Identifier: Apache-2.0

package import DialtoneAPI
package import DialtoneConnection
internal import DialtonePlatform

/// Makes a policy of the settings of a connection. It alone says which settings make sense, for files, clients and the
/// command line.
///
/// It tells all mistakes at once, each of them once. What is wrong only because of another mistake is not told.
package struct SettingsCheck {
    /// All that is wrong, and what has no effect.
    package var problems: [SettingsProblem] { found.all }
    var found = SettingsProblems()
    /// What the settings say, with the defaults of the remote for what they do not; `nil` where something is wrong.
    package private(set) var policy: ConnectionPolicy?

    let settings: ConnectionsAPI.Settings
    let remote: Remote?
    let unread: UnreadFields
    /// What the client says first, which may bind how often it is kept alive; `nil` where that is not known.
    private(set) var saidFirst: Opening? = Opening([])

    /// Checks the settings of a connection to `remote`.
    ///
    /// - Parameters:
    ///   - remote: where it leads; `nil` where that is wrong, which was told.
    ///   - owner: whose connection it is, and its packets.
    ///   - redials: whether there is somewhere to dial; not for a socket that was adopted alone.
    ///   - wake: how its client is woken.
    ///   - unread: the settings that stand in the file and could not be read, which was told.
    package init(
        _ settings: ConnectionsAPI.Settings, to remote: Remote?, owner: UInt32, redials: Bool = true,
        wake: WakeSettings? = nil, unread: UnreadFields = UnreadFields()
    ) {
        (self.settings, self.remote, self.unread) = (settings, remote, unread)
        policy = makePolicy(owner: owner, redials: redials, wake)
    }

    // An assignment to a part of a policy that is `nil` does not evaluate the value: every check stands apart from it.
    private mutating func makePolicy(owner: UInt32, redials: Bool, _ wake: WakeSettings?) -> ConnectionPolicy? {
        let mark = number(settings.mark, "mark", 1...Int(UInt32.max)).map { UInt32($0) }
        var policy = remote.map { ConnectionPolicy(remote: $0, mark: mark, user: PacketOwner.user(for: owner)) }
        policy?.redials = redials
        if let steps = settings.opening {
            let check = OpeningCheck(steps, unread: unread)
            policy?.opening = check.opening
            saidFirst = check.saidFirst
            found.add(check.found)
        } else if unread.mayContain("opening") {
            saidFirst = nil
        }
        if let messages = settings.answers {
            let check = AnswersCheck(messages, unread: unread)
            if let answers = check.answers { policy?.answers = answers }
            found.add(check.found)
        }
        keepAlive(&policy)
        backOff(&policy)
        if let tls = tls(settings.tls) { policy?.tls = tls }
        let connectTimeout = duration(
            settings.connectTimeout, "connectTimeoutMilliseconds", ConnectionPolicy.connectTimeouts)
        if let connectTimeout { policy?.connectTimeout = connectTimeout }
        let userTimeout = duration(settings.userTimeout, "userTimeoutMilliseconds", ConnectionPolicy.userTimeouts)
        policy?.userTimeout = userTimeout
        let grace = duration(settings.grace, "graceMilliseconds", ConnectionPolicy.graces)
        if let grace { policy?.grace = grace }
        if let moves = settings.makeBeforeBreak { policy?.movesToBetterPath = moves }
        if let tries = settings.otherUplinks { policy?.triesOtherUplinks = tries }
        // A program that reads its standard input knows nothing of flows: it goes on where the one before stopped, as a
        // server of inetd's does with the next message.
        if let keeps = settings.keepAbandoned ?? wake?.usesStandardStreams { policy?.keepsAbandonedFlow = keeps }
        if let trafficClass = trafficClass() { policy?.trafficClass = trafficClass }
        if let priority = number(settings.priority, "priority", ConnectionPolicy.priorities) {
            policy?.priority = priority
        }
        let numbers = socketNumbers()
        policy?.socketNumbers = numbers
        guard found.areHarmless, unread.isEmpty, let made = policy else { return nil }
        do throws(PolicyError) {
            try made.validate()
            return made
        } catch {
            found.wrong(Self.field(of: error), error.reason)
            return nil
        }
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

    private mutating func backOff(_ policy: inout ConnectionPolicy?) {
        guard let backoff = settings.backoff else { return }
        let usual = policy?.backoff
        let (first, last) = ("backoff.initialMilliseconds", "backoff.maximumMilliseconds")
        let initial = duration(backoff.initial, first, BackoffPolicy.waits)
        if let initial { policy?.backoff.base = initial }
        let maximum = duration(backoff.maximum, last, BackoffPolicy.waits)
        if let maximum { policy?.backoff.ceiling = maximum }
        let factor = number(backoff.factor, "backoff.factor", BackoffPolicy.multipliers)
        if let factor { policy?.backoff.multiplier = factor }
        let stableAfter = duration(
            backoff.stableAfter, "backoff.stableAfterMilliseconds", ConnectionPolicy.stableTimes)
        if let stableAfter { policy?.stableAfter = stableAfter }
        guard let base = initial ?? standard(usual?.base, for: backoff.initial, first),
            let ceiling = maximum ?? standard(usual?.ceiling, for: backoff.maximum, last), ceiling < base
        else { return }
        let text = "\"\(ceiling.configurationText)\" is shorter than initial, \"\(base.configurationText)\""
        found.wrong(backoff.maximum == nil ? first : last, text)
    }

    /// The default of a field in which nothing is said; `nil` for one that was refused or could not be read.
    func standard(_ usual: Duration?, for said: Duration?, _ field: String) -> Duration? {
        said == nil && !unread.mayContain(field) ? usual : nil
    }

    private mutating func trafficClass() -> TrafficClass? {
        guard let text = settings.trafficClass else { return nil }
        if let value = TrafficClass(text) { return value }
        found.wrong("trafficClass", "\"\(text)\" is none; there are \(TrafficClass.wording)")
        return nil
    }

    // MARK: - Values

    mutating func duration(_ value: Duration?, _ field: String, _ range: ClosedRange<Duration>) -> Duration? {
        guard let value, let problem = outOfRange(value, range) else { return value }
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
