// SPDX-License-Identifier: Apache-2.0

internal import DequeModule
internal import OrderedCollections

/// Who is registered: what apps and the user ask for.
extension Distributor {
    mutating func register(_ request: RegistrationRequest, call: UInt64, _ now: Moment) {
        if let why = request.fault {
            return refuse(request.app, call, .internalError, why)
        }
        let old = ledger.registration(of: request.app, request.token)
        if let old, old.endpoint != nil || ledger.server != nil { return renew(old, request, call: call, now) }
        guard let server = ledger.server else {
            return refuse(request.app, call, .actionRequired, "no push server is set up: dialtone push use SERVER")
        }
        if ledger.usage(of: request.app).registrations.count >= limits.registrationsOfApp {
            return refuse(
                request.app, call, .internalError, "the app has \(limits.registrationsOfApp) registrations already")
        }
        if ledger.registrations.count >= limits.registrations {
            return refuse(
                request.app, call, .internalError, "there are \(limits.registrations) registrations already")
        }
        if let storeFailure, !canSave(now) {
            return refuse(request.app, call, .internalError, "it cannot be saved: \(storeFailure.why)")
        }
        let registration = Registration(
            number: ledger.newRegistrationNumber(), request: request, server: server, id: newID())
        ledger.put(registration)
        newRegistrations.append(registration.number)
        effects.append(.report(.registered(.init(registration))))
        work[registration.number, default: Work()].register = now.uptime
        hold(call, for: registration, now)
    }

    private mutating func refuse(
        _ app: AppIdentity, _ call: UInt64, _ reason: RegistrationFailure, _ why: String
    ) {
        effects.append(.answer(call: call, .failed(reason, why)))
        effects.append(.report(.registrationRefused(app, reason, why)))
    }

    /// An app registers what it has registered already, as it does at each start.
    private mutating func renew(
        _ old: Registration, _ request: RegistrationRequest, call: UInt64, _ now: Moment
    ) {
        var registration = old
        registration.request = request
        registration.unknownSince = nil
        registration.unknownAnswers = 0
        if request.kind != old.request.kind {
            registration.isDemoted = false
            registration.misses = 0
        }
        if registration != old {
            if let storeFailure, !canSave(now) {
                return refuse(request.app, call, .internalError, "it cannot be saved: \(storeFailure.why)")
            }
            ledger.put(registration)
        }
        if request.vapid != old.request.vapid {
            // An endpoint is bound to its key.
            move(registration, to: ledger.server ?? registration.server, grace: .zero, now)
            hold(call, for: registration, now)
        } else if registration.endpoint != nil {
            effects.append(.answer(call: call, .succeeded))
            work[registration.number, default: Work()].isTelling = true
            work[registration.number]?.tellRetry = now.uptime
        } else {
            hold(call, for: registration, now)
        }
    }

    private mutating func hold(_ call: UInt64, for registration: Registration, _ now: Moment) {
        if let why = sessions[registration.server]?.refusal {
            effects.append(.answer(call: call, .failed(.actionRequired, "the push server refuses the account: \(why)")))
            return
        }
        if work[registration.number]?.calls.count ?? 0 >= limits.registerCalls {
            effects.append(.answer(call: call, .failed(.internalError, "too many calls wait for this registration")))
            return
        }
        work[registration.number, default: Work()].calls.append(
            Work.Call(number: call, until: now.uptime + limits.registerCall))
    }

    mutating func answerCalls(of number: Int64, _ answer: RegistrationAnswer) {
        effects += work[number]?.calls.map { .answer(call: $0.number, answer) } ?? []
        work[number]?.calls = []
        tidy(number)
    }

    /// Ends a registration at once here, and at its server as soon as that can be told.
    mutating func end(
        _ registration: Registration, _ reason: DistributorReport.EndReason, tellsApp: Bool = true, _ now: Moment
    ) {
        let number = registration.number
        answerCalls(of: number, .failed(.internalError, "the registration ended"))
        for message in work[number]?.queue ?? [] {
            guard let message = ledger.messages[message] else { continue }
            giveUp(message, of: registration, .ended, now)
        }
        for (attempt, what) in attempts where what.registration == number { attempts[attempt] = nil }
        work[number] = nil
        renewals[number] = nil
        for ending in ledger.endings.values where ending.registration == number {
            var ending = ending
            ending.registration = nil
            ending.due = now.wall
            ledger.put(ending)
        }
        ledger.remove(registration)
        addEnding(of: registration, for: nil, due: now.wall)
        effects.append(.report(.ended(.init(registration), reason)))
        forgetWhatWasTold(registration.request.app)
        if tellsApp {
            call(
                registration, .unregistered(isAsked: reason == .app), .ended, timeout: limits.answer, now)
        }
    }

    /// Has a registration made at a server under a new name; by the old one it is still found for the grace.
    mutating func move(_ old: Registration, to server: ServerName, grace: Duration, _ now: Moment) {
        sessions[old.server]?.asked[old.id] = nil
        addEnding(of: old, for: grace > .zero ? old.number : nil, due: now.wall.advanced(by: grace))
        var registration = old
        registration.server = server
        // Another name: a server that is left does not learn how the registration is called at the next.
        registration.id = newID()
        ledger.put(registration)
        registerAnew(registration, at: now.uptime)
    }

    /// The endpoint is worth nothing: another one is to be had.
    mutating func registerAnew(_ old: Registration, at time: Duration) {
        var registration = old
        registration.endpoint = nil
        registration.registered = nil
        registration.expires = nil
        registration.isTold = false
        if registration != old || ledger.registrations[old.number] != old { ledger.put(registration) }
        renewals[old.number] = nil
        work[old.number, default: Work()].isTelling = false
        work[old.number]?.register = time
    }

    private mutating func addEnding(of registration: Registration, for number: Int64?, due: WallTime) {
        ledger.put(
            Ending(
                server: registration.server, id: registration.id, endpoint: registration.endpoint,
                registration: number, due: due))
        if ledger.endings.count > limits.endings, let oldest = ledger.endings.values.first { ledger.remove(oldest) }
    }

    private mutating func newID() -> RegistrationID {
        let digits = [random.next(), random.next()].map { number in
            let text = String(number, radix: 16)
            return String(repeating: "0", count: 16 - text.utf8.count) + text
        }
        // No input leads here: the digits are made above.
        guard let id = RegistrationID(digits.joined()) else { preconditionFailure("32 hexadecimal digits: \(digits)") }
        return id
    }

    mutating func perform(_ command: DistributorCommand, call number: UInt64, _ now: Moment) {
        switch command {
        case .test(let registration, let body):
            guard let registration = ledger.registrations[registration] else {
                return effects.append(.done(call: number, .noSuchRegistration))
            }
            guard DistributorLimits.body.contains(body.count) else {
                return effects.append(.done(call: number, .badBody))
            }
            call(
                registration, .message(body, id: "test-\(nextAttempt)"), .test(call: number), timeout: limits.answer,
                now)
            return
        case .remove(let registration):
            guard let registration = ledger.registrations[registration] else {
                return effects.append(.done(call: number, .noSuchRegistration))
            }
            end(registration, .user, now)
        case .use(let server):
            ledger.use(server)
            guard let server else {
                // Without a server no link is open.
                for server in sessions.keys { sessions[server]?.isLoggedIn = false }
                break
            }
            // The account may have another password: what its server says of that is news.
            sessions[server]?.refusal = nil
            for number in ledger.registrations.keys.sorted() {
                guard let registration = ledger.registrations[number], registration.server != server else { continue }
                move(registration, to: server, grace: limits.moveGrace, now)
            }
        case .forget(let server):
            for ending in ledger.endings.values where ending.server == server { ledger.remove(ending) }
            ledger.remember([], of: server)
            sessions[server] = nil
        }
        effects.append(.done(call: number, .done))
    }
}

extension RegistrationRequest {
    /// Why it cannot be kept; `nil` where it can.
    var fault: String? {
        let texts: [(String, String, ClosedRange<Int>)] = [
            ("the bus name", app.name, DistributorLimits.name), ("the token", token, DistributorLimits.token),
            ("the description", summary, DistributorLimits.summary),
            ("the sandbox", app.sandbox ?? "none", DistributorLimits.name),
            ("the VAPID key", vapid ?? "none", DistributorLimits.vapid),
        ]
        for (name, text, bounds) in texts where !bounds.contains(text.utf8.count) {
            return
                "\(name) has \(text.utf8.count) bytes, where \(bounds.lowerBound) to \(bounds.upperBound) are allowed"
        }
        return nil
    }
}

extension Attempt {
    /// The registration that it is for; `nil` where the answer changes nothing of one.
    var registration: Int64? {
        switch purpose {
        case .message(_, let registration, _), .endpoint(_, let registration): registration
        case .ended, .test: nil
        }
    }
}
