// SPDX-License-Identifier: Apache-2.0

internal import DequeModule
internal import OrderedCollections

/// What servers tell about registrations, and what they are asked.
extension Distributor {
    mutating func hear(_ report: PushServerReport, from server: ServerName, _ now: Moment) {
        switch report {
        case .loggedIn: loggedIn(server, now)
        case .loginRefused(let why):
            sessions[server, default: Session()].isLoggedIn = false
            if sessions[server]?.refusal != why.shortened { effects.append(.report(.server(server, refusal: why))) }
            sessions[server]?.refusal = why.shortened
            for number in registering(at: server) {
                answerCalls(of: number, .failed(.actionRequired, "the push server refuses the account: \(why)"))
            }
        case .registered(let id, let endpoint, let expires):
            sessions[server]?.asked[id] = nil
            registered(id, endpoint, expires, at: server, now)
        case .registrationFailed(let id, let reason, let why):
            sessions[server]?.asked[id] = nil
            registrationFailed(id, reason, why.shortened, at: server, now)
        case .registrationsFull(let id, let why): registrationsFull(id, why.shortened, at: server, now)
        case .unregistered(let id):
            sessions[server]?.asked[id] = nil
            unregistered(id, at: server, now)
        case .identityLost(let why): identityLost(server, why, now)
        case .trouble(let what): effects.append(.report(.trouble(server, what.shortened)))
        }
    }

    private mutating func loggedIn(_ server: ServerName, _ now: Moment) {
        var session = sessions[server] ?? Session()
        if !session.isLoggedIn { effects.append(.report(.server(server, refusal: nil))) }
        session.isLoggedIn = true
        session.refusal = nil
        // Of what was asked on an earlier session the answers are lost.
        session.asked = [:]
        if !session.hasSettledAgain {
            session.hasSettledAgain = true
            for message in ledger.settledOrder.suffix(limits.settledAgain)
            where message.server == server && ledger.isSaved(message) {
                effects.append(.server(server, .settled(message.origin.id, message.outcome)))
            }
        }
        sessions[server] = session
        for number in registering(at: server) { work[number]?.register = now.uptime }
        for key in endingRetries.keys where key.server == server { endingRetries[key] = nil }
    }

    /// The registrations that are to be registered at a server.
    private func registering(at server: ServerName) -> [Int64] {
        work.filter { $0.value.register != nil && ledger.registrations[$0.key]?.server == server }.keys.sorted()
    }

    private mutating func registered(
        _ id: RegistrationID, _ endpoint: String, _ expires: WallTime?, at server: ServerName, _ now: Moment
    ) {
        guard var registration = ledger.registration(at: server, id) else {
            // One that is to be ended will be.
            if ledger.endings[.init(server: server, id: id)] != nil { return }
            effects.append(.report(.trouble(server, "it registered \(id.text), which is not known here")))
            return effects.append(.server(server, .unregister(id, endpoint: endpoint)))
        }
        guard endpoint.isEndpoint else {
            let what = "it gave an endpoint of \(endpoint.utf8.count) bytes that is not a URL of 1 to 1000"
            effects.append(.report(.trouble(server, what)))
            if isAwaited(registration) { registrationFailed(id, .internalError, what, at: server, now) }
            return
        }
        let number = registration.number
        let isNew = registration.endpoint != endpoint
        registration.endpoint = endpoint
        registration.registered = now.wall
        registration.expires = expires
        if isNew {
            registration.isTold = false
            effects.append(.report(.endpoint(.init(registration))))
        }
        ledger.put(registration)
        renewals[number] = renewal(of: registration, now)
        work[number, default: Work()].register = nil
        work[number]?.registerFailures = 0
        if isNew {
            work[number]?.isTelling = true
            work[number]?.tellRetry = now.uptime
        }
        answerCalls(of: number, .succeeded)
    }

    /// Whether the server was or is to be asked for an endpoint, and no answer of use came yet.
    func isAwaited(_ registration: Registration) -> Bool { work[registration.number]?.register != nil }

    /// When an endpoint is renewed, by the uptime clock.
    func renewal(of registration: Registration, _ now: Moment) -> Duration? {
        guard let registered = registration.registered, let expires = registration.expires else { return nil }
        let share = expires.since(registered) / 100 * Int(limits.renewalPercent)
        // Where the clock was set back while no process saw it, the registration lies ahead: its share is the most.
        let wait = min(registered.advanced(by: share).since(now.wall), share)
        return now.uptime + min(max(wait, limits.renewalWait.lowerBound), limits.renewalWait.upperBound)
    }

    private mutating func registrationFailed(
        _ id: RegistrationID, _ reason: RegistrationFailure, _ why: String, at server: ServerName, _ now: Moment
    ) {
        guard let registration = ledger.registration(at: server, id) else { return retryEnding(server, id, now) }
        guard isAwaited(registration) else {
            // The endpoint stands. To ask for another one might make the server forget it, and an answer that this
            // process does not live to save would be lost: where an endpoint does not expire, for ever.
            let what = "it failed to register \(id.text), for which it was not asked: \(why)"
            return effects.append(.report(.trouble(server, what.shortened)))
        }
        let number = registration.number
        switch reason {
        case .vapidRequired, .unauthorized:
            let hadCalls = work[number]?.calls.isEmpty == false
            answerCalls(of: number, .failed(reason, why))
            // A call that was answered is all that such an app needs to know.
            end(registration, .refused(why), tellsApp: !hadCalls, now)
        case .internalError, .network, .actionRequired:
            effects.append(.report(.registrationRefused(registration.request.app, reason, why)))
            retryRegistering(registration, now)
            answerCalls(of: number, .failed(reason, why))
        }
    }

    mutating func retryRegistering(_ registration: Registration, _ now: Moment) {
        var waiting = work[registration.number] ?? Work()
        waiting.registerFailures = min(waiting.registerFailures + 1, 64)
        waiting.register = now.uptime + limits.serverRetry.wait(after: waiting.registerFailures)
        work[registration.number] = waiting
    }

    private mutating func unregistered(_ id: RegistrationID, at server: ServerName, _ now: Moment) {
        if let registration = ledger.registration(at: server, id) {
            // It forgot it, and is not asked at once for what it may forget at once again.
            if registration.endpoint != nil { registerAnew(registration, at: now.uptime) }
            retryRegistering(registration, now)
        } else if let ending = ledger.endings[.init(server: server, id: id)] {
            ledger.remove(ending)
            endingRetries[ending.key] = nil
        }
    }

    mutating func identityLost(_ server: ServerName, _ why: String, _ now: Moment) {
        let lost = ledger.registrations.values.filter { $0.server == server }.sorted { $0.number < $1.number }
        for registration in lost { registerAnew(registration, at: now.uptime) }
        for ending in ledger.endings.values where ending.server == server { ledger.remove(ending) }
        sessions[server]?.asked = [:]
        effects.append(.report(.identityLost(server, registrations: lost.count, why: why.shortened)))
    }

    private mutating func retryEnding(_ server: ServerName, _ id: RegistrationID, _ now: Moment) {
        let key = Ledger.Upstream(server: server, id: id)
        guard ledger.endings[key] != nil else { return }
        let failures = min((endingRetries[key]?.failures ?? 0) + 1, 64)
        endingRetries[key] = (now.uptime + limits.serverRetry.wait(after: failures), failures)
    }

    /// Asks servers for what is due, and again for what they did not answer.
    mutating func askServers(_ now: Moment) {
        for (number, time) in renewals where time <= now.uptime {
            renewals[number] = nil
            work[number, default: Work()].register = now.uptime
        }
        for (server, session) in sessions {
            for (id, until) in session.asked where until <= now.uptime {
                sessions[server]?.asked[id] = nil
                if let registration = ledger.registration(at: server, id) {
                    retryRegistering(registration, now)
                } else {
                    retryEnding(server, id, now)
                }
            }
        }
        for number in work.keys.sorted() { failCalls(of: number, now) }
        for server in sessions.keys.sorted() where sessions[server]?.isLoggedIn == true { ask(server, now) }
    }

    private mutating func failCalls(of number: Int64, _ now: Moment) {
        guard let calls = work[number]?.calls, calls.contains(where: { $0.until <= now.uptime }) else { return }
        effects += calls.filter { $0.until <= now.uptime }.map {
            .answer(call: $0.number, .failed(.network, "the push server has not answered yet; it is tried further"))
        }
        work[number]?.calls.removeAll { $0.until <= now.uptime }
    }

    private mutating func ask(_ server: ServerName, _ now: Moment) {
        var asked = sessions[server]?.asked ?? [:]
        let until = now.uptime + limits.serverAnswer
        for number in registering(at: server) where asked.count < limits.serverRequests {
            guard let registration = ledger.registrations[number], asked[registration.id] == nil,
                let time = work[number]?.register, time <= now.uptime, canSave(now) || ledger.isSaved(registration)
            else { continue }
            asked[registration.id] = until
            effects.append(.server(server, .register(registration.id, vapid: registration.request.vapid)))
        }
        for ending in ledger.endings.values where asked.count < limits.serverRequests {
            guard ending.server == server, ending.due <= now.wall, asked[ending.id] == nil,
                endingRetries[ending.key]?.due ?? .zero <= now.uptime, canSave(now) || ledger.isSaved(ending)
            else { continue }
            asked[ending.id] = until
            effects.append(.server(server, .unregister(ending.id, endpoint: ending.endpoint)))
        }
        sessions[server]?.asked = asked
    }

    /// When ``askServers(_:)`` has something to do.
    func serverDeadlines(_ now: Moment) -> [Duration] {
        var deadlines = Array(renewals.values)
        for (server, session) in sessions where session.isLoggedIn {
            deadlines += session.asked.values
            guard session.asked.count < limits.serverRequests else { continue }
            for (number, work) in work {
                guard let time = work.register, let registration = ledger.registrations[number],
                    registration.server == server, session.asked[registration.id] == nil,
                    canSave(now) || ledger.isSaved(registration)
                else { continue }
                deadlines.append(time)
            }
            for ending in ledger.endings.values {
                guard ending.server == server, session.asked[ending.id] == nil,
                    canSave(now) || ledger.isSaved(ending)
                else { continue }
                deadlines.append(
                    max(now.uptime + ending.due.since(now.wall), endingRetries[ending.key]?.due ?? .zero))
            }
        }
        return deadlines
    }
}

extension String {
    /// Enough of a text from outside for a person to understand, and not more than is worth keeping: up to 800 bytes.
    var shortened: String {
        unicodeScalars.count <= 200 ? self : String(String.UnicodeScalarView(unicodeScalars.prefix(200)))
    }

    /// Whether it may be handed to an app as its endpoint: a URL of the web, in printable ASCII.
    var isEndpoint: Bool {
        DistributorLimits.endpoint.contains(utf8.count) && (hasPrefix("https://") || hasPrefix("http://"))
            && utf8.allSatisfy { (0x21...0x7E).contains($0) }
    }
}
