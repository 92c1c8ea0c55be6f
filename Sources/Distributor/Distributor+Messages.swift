// SPDX-License-Identifier: Apache-2.0

internal import DequeModule
internal import OrderedCollections

/// Messages, from their arrival to the server's being told.
extension Distributor {
    mutating func receive(_ messages: [ArrivedMessage], memory: [UInt8]?, from server: ServerName, _ now: Moment) {
        let isKept = messages.reduce(true) { receive($1, from: server, now) && $0 }
        // It counts all of them as had.
        guard let memory, isKept else { return }
        guard memory.count <= DistributorLimits.memory else {
            let what = "it wants to remember \(memory.count) bytes, of which \(DistributorLimits.memory) are kept"
            return effects.append(.report(.trouble(server, what)))
        }
        ledger.remember(memory, of: server)
    }

    /// - Returns: whether the server need not send it again.
    private mutating func receive(_ message: ArrivedMessage, from server: ServerName, _ now: Moment) -> Bool {
        func settle(_ outcome: MessageOutcome) { effects.append(.server(server, .settled(message.id, outcome))) }
        let origin = MessageOrigin(registration: message.registration, id: message.id)
        let key = Ledger.Origin(server: server, origin: origin)
        if let known = ledger.message(key) {
            // What came in this turn is told with it.
            if !newMessages.contains(known.number) { settle(.kept) }
            return true
        }
        if let settled = ledger.settled[key] {
            // What is not saved is told when it is.
            if ledger.isSaved(settled) { settle(settled.outcome) }
            return true
        }
        guard let registration = addressee(of: message, at: server) else {
            let why = "no such registration"
            effects.append(.report(.refused(server, message: message.id.text, why: why)))
            settle(.givenUp(why))
            if ledger.endings[.init(server: server, id: message.registration)] == nil {
                effects.append(.server(server, .unregister(message.registration, endpoint: nil)))
            }
            return true
        }
        guard DistributorLimits.body.contains(message.body.count) else {
            let why = "a body of \(message.body.count) bytes, where 1 to 4096 are allowed"
            effects.append(.report(.refused(server, message: message.id.text, why: why)))
            settle(.givenUp(why))
            return true
        }
        if let storeFailure, !canSave(now) {
            settle(.notNow("it cannot be saved: \(storeFailure.why)"))
            return false
        }
        if let lack = lackOfRoom(for: message, of: registration) {
            if toldFull.insert(registration.request.app).inserted {
                effects.append(.report(.full(.init(registration))))
            }
            settle(lack)
            return false
        }
        keep(message, origin, for: registration, from: server, now)
        return true
    }

    private mutating func keep(
        _ message: ArrivedMessage, _ origin: MessageOrigin, for old: Registration, from server: ServerName,
        _ now: Moment
    ) {
        var registration = old
        registration.lastMessage = now.wall
        ledger.put(registration)
        let lives = message.expires.map { $0.since(now.wall) } ?? limits.timeToLive
        let stored = StoredMessage(
            number: ledger.newMessageNumber(), registration: registration.number, server: server, origin: origin,
            body: message.body, urgency: message.urgency, arrived: now.wall,
            expires: now.wall.advanced(by: min(max(lives, limits.shortestLife), limits.longestLife)))
        ledger.add(stored)
        newMessages.append(stored.number)
        work[registration.number, default: Work()].queue.append(stored.number)
    }

    /// Whose message it is: of who is registered by that name, or was before the server was changed.
    private func addressee(of message: ArrivedMessage, at server: ServerName) -> Registration? {
        if let registration = ledger.registration(at: server, message.registration) { return registration }
        let ending = ledger.endings[.init(server: server, id: message.registration)]
        return ending?.registration.flatMap { ledger.registrations[$0] }
    }

    /// What its server is told where there is no room for a message.
    private func lackOfRoom(for message: ArrivedMessage, of registration: Registration) -> MessageOutcome? {
        let reserve = registration.kind == .voip ? limits.voipReserve : 0
        let bytes = reserve * DistributorLimits.body.upperBound + -message.body.count
        let app = ledger.usage(of: registration.request.app)
        guard app.messages < limits.messagesOfApp + reserve, app.bytes <= limits.bytesOfApp + bytes else {
            return .full("too much waits for the app")
        }
        let hasRoom =
            ledger.usage.messages < limits.messages + reserve && ledger.usage.bytes <= limits.bytes + bytes
        return hasRoom ? nil : .notNow("too much waits for all apps together")
    }

    mutating func giveUp(
        _ message: StoredMessage, of registration: Registration, _ reason: DistributorReport.GiveUpReason,
        _ now: Moment
    ) {
        settle(message, givenUp: reason.text.shortened, now)
        effects.append(.report(.givenUp(.init(registration), message: message.origin.id.text, reason)))
    }

    /// A message waits no longer. Its server is told with the turn that saves that.
    mutating func settle(_ message: StoredMessage, givenUp: String?, _ now: Moment) {
        ledger.settle(message, givenUp: givenUp, at: now.wall, limits)
        newMessages.removeAll { $0 == message.number }
        work[message.registration]?.queue.removeAll { $0 == message.number }
        tidy(message.registration)
        if let app = ledger.registrations[message.registration]?.request.app {
            let usage = ledger.usage(of: app)
            if usage.messages <= limits.messagesOfApp / 2, usage.bytes <= limits.bytesOfApp / 2 { toldFull.remove(app) }
            let registrations = ledger.apps[app]?.registrations ?? []
            if givenUp != nil, registrations.allSatisfy({ work[$0]?.queue.isEmpty ?? true }),
                toldNotStarted.remove(app) != nil
            {
                effects.append(.report(.nothingWaits(app)))
            }
        }
    }

    /// Gives up what is worth nothing any more. What is being delivered is not: the app may take it yet.
    mutating func expire(_ now: Moment) {
        let over = ledger.messages.values.filter { $0.expires <= now.wall }
        for message in over.sorted(by: { $0.number < $1.number }) {
            if isBeingDelivered(message) { continue }
            guard let registration = ledger.registrations[message.registration] else { continue }
            giveUp(message, of: registration, .expired, now)
        }
    }

    func isBeingDelivered(_ message: StoredMessage) -> Bool {
        guard let work = work[message.registration] else { return false }
        return work.delivering != nil && work.queue.first == message.number
    }

    /// Somebody set the wall clock: what waits goes on waiting for as long as it had to. Also an end of life that lies
    /// beyond what this process grants, after a clock that was set while no process saw it, is brought back.
    mutating func followClock(_ now: Moment) {
        let lead = now.wall.since(WallTime(milliseconds: now.uptime.milliseconds)).milliseconds
        guard let before = clockLead else {
            clockLead = lead
            return begin(now)
        }
        let step = WallTime(milliseconds: lead).since(WallTime(milliseconds: before))
        guard step >= limits.clockStep || step <= .zero - limits.clockStep else { return }
        clockLead = lead
        effects.append(.report(.clockSet(by: step.milliseconds)))
        for message in ledger.messages.values {
            var message = message
            message.arrived = message.arrived.advanced(by: step)
            message.expires = message.expires.advanced(by: step)
            ledger.update(message)
        }
        for registration in ledger.registrations.values {
            followClock(registration, by: step, now)
        }
        for ending in ledger.endings.values {
            var ending = ending
            ending.due = ending.due.advanced(by: step)
            ledger.put(ending)
        }
    }

    private mutating func followClock(_ old: Registration, by step: Duration, _ now: Moment) {
        var registration = old
        registration.unknownSince = registration.unknownSince?.advanced(by: step)
        // The server said the expiry, by a clock of its own. How long that is away is known anew.
        if registration.expires != nil { registration.registered = registration.registered?.advanced(by: step) }
        if registration != old { ledger.put(registration) }
        if let time = renewals[registration.number], let renewal = renewal(of: registration, now) {
            renewals[registration.number] = min(time, renewal)
        }
    }

    /// The first input: what was computed by the clock of an earlier process is put right.
    private mutating func begin(_ now: Moment) {
        let latest = now.wall.advanced(by: limits.longestLife)
        for message in ledger.messages.values where message.expires > latest {
            var message = message
            message.expires = latest
            ledger.update(message)
        }
        let due = now.wall.advanced(by: limits.moveGrace)
        for ending in ledger.endings.values where ending.due > due {
            var ending = ending
            ending.due = due
            ledger.put(ending)
        }
        for registration in ledger.registrations.values where registration.endpoint != nil {
            renewals[registration.number] = renewal(of: registration, now)
        }
    }
}

extension DistributorReport.GiveUpReason {
    /// The reason in words.
    var text: String {
        switch self {
        case .expired: "its time was over before the app took it"
        case .poisoned(let failures, let why): "the app failed \(failures) times to take it: \(why)"
        case .ended: "its registration ended"
        }
    }
}
