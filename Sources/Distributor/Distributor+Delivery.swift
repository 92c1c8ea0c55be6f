// SPDX-License-Identifier: Apache-2.0

internal import DequeModule

/// Calls of apps, and what comes of them.
extension Distributor {
    /// Does all that is due.
    mutating func workOn(_ now: Moment) {
        // Nobody said that the machine woke up, or a timer was there first.
        if let time = suspending, time <= now.uptime { resumed(now) }
        for (number, attempt) in attempts.sorted(by: { $0.key < $1.key }) where attempt.until <= now.uptime {
            answered(number, .unanswered, now)
        }
        expire(now)
        askServers(now)
        callApps(now)
        updateInhibitor()
    }

    mutating func updateInhibitor() {
        let isDelivering = attempts.values.contains {
            if case .message = $0.purpose { true } else { false }
        }
        guard isDelivering != inhibitsSleep else { return }
        inhibitsSleep = isDelivering
        effects.append(.inhibitSleep(isDelivering))
    }

    // MARK: Calling

    private mutating func callApps(_ now: Moment) {
        var load = CallLoad(attempts)
        // The oldest message first, whose ever it is.
        for number in work.keys.sorted(by: { (work[$0]?.queue.first ?? 0, $0) < (work[$1]?.queue.first ?? 0, $1) }) {
            guard let registration = ledger.registrations[number] else { continue }
            tellEndpoint(registration, &load, now)
            deliver(registration, &load, now)
            tidy(number)
        }
    }

    private mutating func tellEndpoint(_ registration: Registration, _ load: inout CallLoad, _ now: Moment) {
        let number = registration.number
        guard let waiting = work[number], waiting.isTelling, waiting.telling == nil, waiting.tellRetry <= now.uptime,
            let endpoint = registration.endpoint, canSave(now) || ledger.isSaved(registration),
            load.take(registration.request.app, limits)
        else { return }
        let attempt = call(
            registration, .newEndpoint(endpoint), .endpoint(endpoint, registration: number), timeout: limits.answer, now
        )
        work[number]?.telling = attempt
    }

    private mutating func deliver(_ registration: Registration, _ load: inout CallLoad, _ now: Moment) {
        let number = registration.number
        guard let waiting = work[number], waiting.delivering == nil, waiting.retry <= now.uptime,
            let first = waiting.queue.first, let message = ledger.messages[first]
        else { return }
        let isVoIP = registration.kind == .voip
        if !isVoIP {
            guard suspending == nil, mayPass(waiting), load.take(registration.request.app, limits) else { return }
        }
        let attempt = call(
            registration, .message(message.body, id: message.origin.id.text),
            .message(first, registration: number, isVoIP: isVoIP),
            timeout: isVoIP ? limits.voipAnswer : limits.answer, now)
        work[number]?.delivering = attempt
    }

    @discardableResult
    mutating func call(
        _ registration: Registration, _ content: AppTelling.Content, _ purpose: Attempt.Purpose, timeout: Duration,
        _ now: Moment
    ) -> UInt64 {
        let number = nextAttempt
        nextAttempt += 1
        let request = registration.request
        attempts[number] = Attempt(
            // The driver gives the start that time, and then the call.
            app: request.app, purpose: purpose, until: now.uptime + timeout * 2 + limits.answerSlack)
        effects.append(
            .tell(
                AppTelling(
                    attempt: number, app: request.app, version: request.version, token: request.token,
                    isDemoted: registration.isDemoted, content: content, timeout: timeout)))
        return number
    }

    /// The least urgency that passes, as RFC 8030 (section 5.3) advises: on a low battery `high`, with neither mains
    /// nor free data `normal`, with one of the two `low`, else all.
    var leastUrgency: Urgency {
        if conditions.isOnBattery, let level = conditions.batteryLevel, level <= limits.lowBattery { return .high }
        if conditions.isConstrained || conditions.isOnBattery && conditions.isExpensive { return .normal }
        return conditions.isOnBattery || conditions.isExpensive ? .low : .veryLow
    }

    /// Whether one of what waits is urgent enough. Then all before it go, too: the order holds.
    func mayPass(_ waiting: Work) -> Bool {
        let least = leastUrgency
        if least == .veryLow { return true }
        return waiting.queue.contains { number in ledger.messages[number].map { $0.urgency >= least } ?? false }
    }

    // MARK: Answers

    mutating func answered(_ number: UInt64, _ answer: AppAnswer, _ now: Moment) {
        guard let attempt = attempts.removeValue(forKey: number) else { return }
        switch attempt.purpose {
        case .test(let call): effects.append(.done(call: call, .tested(answer)))
        case .ended: break
        case .endpoint(let endpoint, let registration): told(endpoint, registration, answer, now)
        case .message(let message, let registration, let isVoIP):
            work[registration]?.delivering = nil
            guard let message = ledger.messages[message], let registration = ledger.registrations[registration] else {
                return
            }
            delivered(message, registration, isVoIP: isVoIP, answer, now)
        }
    }

    private mutating func told(_ endpoint: String, _ number: Int64, _ answer: AppAnswer, _ now: Moment) {
        guard var waiting = work[number], var registration = ledger.registrations[number] else { return }
        waiting.telling = nil
        switch answer {
        case .taken:
            waiting.tellFailures = 0
            if registration.endpoint == endpoint {
                waiting.isTelling = false
                registration.isTold = true
            }
        case .refused, .unanswered, .notStarted, .noBus, .unknown:
            waiting.tellFailures = min(waiting.tellFailures + 1, 64)
            waiting.tellWaitsForStart =
                switch answer {
                case .notStarted, .noBus, .unknown: true
                case .taken, .refused, .unanswered: false
                }
            waiting.tellRetry = now.uptime + limits.startRetry.wait(after: waiting.tellFailures)
        }
        work[number] = waiting
        tidy(number)
        if registration != ledger.registrations[number] { ledger.put(registration) }
        note(answer, of: registration, now)
    }

    private mutating func delivered(
        _ message: StoredMessage, _ registration: Registration, isVoIP: Bool, _ answer: AppAnswer, _ now: Moment
    ) {
        let number = registration.number
        switch answer {
        case .taken:
            let age = now.wall.since(message.arrived).milliseconds
            effects.append(
                .report(
                    .taken(
                        .init(registration), message: message.origin.id.text, after: age,
                        attempts: message.failures + 1)))
            settle(message, givenUp: nil, now)
            if isVoIP, registration.misses > 0 {
                var registration = registration
                registration.misses = 0
                ledger.put(registration)
            }
        case .refused(let why): failed(message, registration, isVoIP: isVoIP, why.shortened, now)
        case .unanswered: failed(message, registration, isVoIP: isVoIP, "it did not answer in time", now)
        case .notStarted, .noBus, .unknown:
            // Nobody saw the message.
            let failures = min((work[number]?.startFailures ?? 0) + 1, 64)
            work[number]?.startFailures = failures
            let retry = now.uptime + limits.startRetry.wait(after: failures)
            work[number]?.retry = retry
        }
        if let registration = ledger.registrations[number] { note(answer, of: registration, now) }
    }

    private mutating func failed(
        _ message: StoredMessage, _ registration: Registration, isVoIP: Bool, _ why: String, _ now: Moment
    ) {
        var message = message
        message.failures += 1
        if isVoIP, message.failures == 1 { miss(registration) }
        if message.failures >= limits.failures {
            giveUp(message, of: registration, .poisoned(failures: message.failures, why), now)
            work[registration.number]?.retry = now.uptime
            return
        }
        ledger.update(message)
        effects.append(
            .report(
                .retried(
                    .init(registration), message: message.origin.id.text, failures: message.failures, why: why)))
        let backoff = isVoIP ? limits.voipRetry : limits.retry
        let retry = now.uptime + backoff.wait(after: message.failures)
        work[registration.number]?.retry = retry
    }

    /// A VoIP message was not handled in time. Of its further tries none counts again.
    private mutating func miss(_ old: Registration) {
        var registration = old
        registration.misses += 1
        if registration.misses >= limits.misses {
            registration.isDemoted = true
            effects.append(.report(.demoted(.init(registration), misses: registration.misses)))
        }
        ledger.put(registration)
    }

    /// Whether an app can be started, and whether it is there at all.
    private mutating func note(_ answer: AppAnswer, of old: Registration, _ now: Moment) {
        var registration = old
        let app = registration.request.app
        switch answer {
        case .taken, .refused, .unanswered:
            work[old.number]?.startFailures = 0
            forgetWhatWasTold(app)
            for number in ledger.apps[app]?.registrations ?? [] { hasStarted(number) }
        case .noBus: break
        case .notStarted(let why):
            if toldNotStarted.insert(app).inserted {
                effects.append(.report(.notStarted(.init(registration), why: why.shortened)))
            }
            registration.unknownSince = nil
            registration.unknownAnswers = 0
        case .unknown:
            guard let busBegan, now.uptime - busBegan >= limits.busSettling else { return }
            if toldUnknown.insert(app).inserted { effects.append(.report(.unknownApp(.init(registration)))) }
            let since = registration.unknownSince ?? now.wall
            registration.unknownSince = since
            registration.unknownAnswers = min(registration.unknownAnswers + 1, limits.unknownAnswers)
            if registration.unknownAnswers >= limits.unknownAnswers, now.wall.since(since) >= limits.unknownGrace {
                return end(registration, .notInstalled, tellsApp: false, now)
            }
        }
        if registration != old { ledger.put(registration) }
    }

    mutating func forgetWhatWasTold(_ app: AppIdentity) {
        toldNotStarted.remove(app)
        toldUnknown.remove(app)
        if ledger.apps[app] == nil { toldFull.remove(app) }
    }

    // MARK: What happens around

    mutating func appAppeared(_ name: String) {
        for (app, usage) in ledger.apps where app.name == name {
            // It is this process that starts it. Whether that goes well, the call will tell: an app that takes its name
            // and ends would be started again and again without a pause.
            if attempts.values.contains(where: { $0.app == app }) { continue }
            forgetWhatWasTold(app)
            for number in usage.registrations.sorted() {
                work[number]?.tellRetry = .zero
                hasStarted(number)
            }
        }
    }

    /// The app of a registration runs.
    private mutating func hasStarted(_ number: Int64) {
        work[number]?.startSucceeded()
        guard var registration = ledger.registrations[number], registration.unknownSince != nil else { return }
        registration.unknownSince = nil
        registration.unknownAnswers = 0
        ledger.put(registration)
    }

    mutating func busConnected(_ now: Moment) {
        busBegan = now.uptime
        for case (_, .test(let call)) in attempts.sorted(by: { $0.key < $1.key }).map({ ($0.key, $0.value.purpose) }) {
            effects.append(.done(call: call, .tested(.unanswered)))
        }
        attempts = [:]
        for number in work.keys {
            work[number]?.delivering = nil
            work[number]?.telling = nil
            work[number]?.calls = []
            if work[number]?.startFailures ?? 0 > 0 { work[number]?.retry = now.uptime }
        }
    }

    mutating func resumed(_ now: Moment) {
        suspending = nil
        // Who was asked before had no time for an answer.
        for number in attempts.keys {
            guard let attempt = attempts[number] else { continue }
            let until = max(attempt.until, now.uptime + limits.answer + limits.answerSlack)
            attempts[number]?.until = until
        }
    }
}

/// How many counted calls (``Attempt/isCounted``) are under way. All names of one sandbox share a count.
struct CallLoad {
    private var all = 0
    private var ofAccounts: [String: Int] = [:]

    init(_ attempts: [UInt64: Attempt]) {
        for attempt in attempts.values where attempt.isCounted {
            all += 1
            ofAccounts[attempt.app.account, default: 0] += 1
        }
    }

    /// Counts one more where it may begin.
    mutating func take(_ app: AppIdentity, _ limits: DistributorLimits) -> Bool {
        guard hasRoom(for: app, limits) else { return false }
        all += 1
        ofAccounts[app.account, default: 0] += 1
        return true
    }

    /// Whether one more may begin.
    func hasRoom(for app: AppIdentity, _ limits: DistributorLimits) -> Bool {
        all < limits.calls && ofAccounts[app.account, default: 0] < limits.callsOfApp
    }
}
