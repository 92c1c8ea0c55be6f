// SPDX-License-Identifier: Apache-2.0

internal import DequeModule
internal import OrderedCollections

/// UnifiedPush's distributor, as a value without I/O, clock or queue: who is registered where, what waits for whom, and
/// what is to be done about it.
///
/// The driver calls ``take(_:at:)`` with what happens, at the latest when ``deadline`` is there, and does what the
/// answer says, in its order (``DistributorTurn``). It calls from one queue. A server is told of a message when it is
/// on disk, and again when its app took it, or it was given up, and that is on disk; an app gets the messages of a
/// registration one after the other, each until it took it or five failures set it aside.
package struct Distributor: Sendable {
    let limits: DistributorLimits
    var random: any RandomNumberGenerator & Sendable

    var ledger: Ledger
    var work: [Int64: Work] = [:]
    var sessions: [ServerName: Session] = [:]
    var attempts: [UInt64: Attempt] = [:]
    var nextAttempt: UInt64 = 1
    /// When endpoints are to be renewed that do not last, by the uptime clock.
    var renewals: [Int64: Duration] = [:]
    /// When an ending may be told again, and how often it was told.
    var endingRetries: [Ledger.Upstream: (due: Duration, failures: Int)] = [:]

    var conditions = PushConditions()
    /// Until when no delivery begins because the machine is about to sleep.
    var suspending: Duration?
    /// When the connection with the bus began.
    var busBegan: Duration?
    /// The wall clock's lead over the uptime clock, in milliseconds.
    var clockLead: Int64?
    var inhibitsSleep = false
    /// Of whom was told that there is no room, or that they cannot be started, or are not known.
    var toldFull: Set<AppIdentity> = []
    var toldNotStarted: Set<AppIdentity> = []
    var toldUnknown: Set<AppIdentity> = []

    /// The effects of this turn, and after it of the last one, but for acknowledgements of what it saves.
    var effects: [DistributorEffect] = []
    /// What is new in it.
    var newMessages: [Int64] = []
    var newRegistrations: [Int64] = []
    /// What apps are told of endings that are not saved.
    private var held: [DistributorEffect] = []
    var isSaving = false
    var storeFailure: StoreFailure?

    /// When it is to be told that time passed, by the uptime clock; `nil` for not at all.
    package private(set) var deadline: Duration? = .zero

    /// The distributor that was left with that state. The first input is `.timePassed`.
    ///
    /// - Parameter random: what the names of registrations at servers are drawn from, which must not be guessed.
    package init(
        state: StoredState, limits: DistributorLimits = .init(), random: any RandomNumberGenerator & Sendable
    ) {
        self.limits = limits
        self.random = random
        ledger = Ledger(state)
        for message in ledger.messages.values.sorted(by: { $0.number < $1.number }) {
            work[message.registration, default: Work()].queue.append(message.number)
        }
        for (number, registration) in ledger.registrations {
            if registration.endpoint == nil {
                work[number, default: Work()].register = .zero
            } else if !registration.isTold {
                work[number, default: Work()].isTelling = true
            }
        }
    }

    /// Takes one input and says what is to be done. It also means that the changes of the turn before were saved.
    package mutating func take(_ input: DistributorInput, at now: Moment) -> DistributorTurn {
        if isSaving {
            ledger.saved()
            storeFailure = nil
        }
        isSaving = false
        effects = []
        newMessages = []
        newRegistrations = []
        followClock(now)
        act(on: input, now)
        workOn(now)
        var turn = DistributorTurn()
        if canSave(now) {
            turn.changes = ledger.changes
            isSaving = !turn.changes.isEmpty
            effects += held
            held = []
        } else {
            holdBack()
        }
        turn.effects = effects
        if isSaving {
            turn.effects += newMessages.compactMap { ledger.messages[$0] }.map {
                .server($0.server, .settled($0.origin.id, .kept))
            }
            turn.effects += ledger.unsavedSettled.map { .server($0.server, .settled($0.origin.id, $0.outcome)) }
            if storeFailure != nil { turn.effects.append(.report(.storeWorks)) }
        }
        deadline = nextDeadline(now)
        return turn
    }

    private mutating func act(on input: DistributorInput, _ now: Moment) {
        switch input {
        case .register(let request, let call): register(request, call: call, now)
        case .unregister(let app, let token):
            if let registration = ledger.registration(of: app, token) { end(registration, .app, now) }
        case .arrived(let server, let messages, let memory, let loss):
            if let loss {
                sessions[server]?.isLoggedIn = false
                identityLost(server, loss, now)
            }
            receive(messages, memory: memory, from: server, now)
        case .reported(let server, let report): hear(report, from: server, now)
        case .answered(let number, let answer): answered(number, answer, now)
        case .appAppeared(let name): appAppeared(name)
        case .busConnected: busConnected(now)
        case .conditions(let conditions): self.conditions = conditions
        case .suspending: suspending = now.uptime + limits.suspending
        case .resumed: resumed(now)
        case .command(let command, let call): perform(command, call: call, now)
        case .timePassed: break
        }
    }

    /// Whether something new can be saved, as far as is known.
    func canSave(_ now: Moment) -> Bool { storeFailure.map { $0.retry <= now.uptime } ?? true }

    /// The changes of the last turn could not be saved, and nothing else of it was done; why, for a person.
    ///
    /// - Returns: what is to be done now, without changes. Messages and registrations that were new in that turn are
    ///   taken back and refused; all else is saved again later, and its acknowledgements wait for that.
    package mutating func saveFailed(_ why: String, at now: Moment) -> DistributorTurn {
        guard isSaving else { return DistributorTurn() }
        isSaving = false
        let failures = (storeFailure?.failures ?? 0) + 1
        if storeFailure == nil { effects.append(.report(.storeFailed(why))) }
        storeFailure = StoreFailure(
            failures: failures, why: why, retry: now.uptime + limits.saveRetry.wait(after: failures))
        holdBack()
        // The driver replaces the server's value by one of what was saved. The new one knows nothing of what the old
        // one was told since.
        for server in sessions.keys { sessions[server]?.hasSettledAgain = false }
        for number in newMessages { takeBack(message: number, why) }
        for number in newRegistrations { takeBack(registration: number, why) }
        updateInhibitor()
        var turn = DistributorTurn()
        turn.effects = effects
        effects = []
        deadline = nextDeadline(now)
        return turn
    }

    /// Takes out of the effects what others must not hear before it is saved: a process that ends meanwhile would go on
    /// with an endpoint that its server has ended, or with another one than its app has.
    private mutating func holdBack() {
        var kept: [DistributorEffect] = []
        for effect in effects {
            switch effect {
            case .tell(let call):
                guard case .endpoint(_, let number) = attempts[call.attempt]?.purpose else {
                    if case .unregistered = call.content { held.append(effect) } else { kept.append(effect) }
                    continue
                }
                guard let registration = ledger.registrations[number], !ledger.isSaved(registration) else {
                    kept.append(effect)
                    continue
                }
                attempts[call.attempt] = nil
                work[number]?.telling = nil
            case .server(let server, .register(let id, _)):
                guard let registration = ledger.registration(at: server, id), !ledger.isSaved(registration) else {
                    kept.append(effect)
                    continue
                }
                sessions[server]?.asked[id] = nil
            case .server(let server, .unregister(let id, _)):
                guard let ending = ledger.endings[.init(server: server, id: id)], !ledger.isSaved(ending) else {
                    kept.append(effect)
                    continue
                }
                sessions[server]?.asked[id] = nil
            case .server, .answer, .inhibitSleep, .done, .report: kept.append(effect)
            }
        }
        effects = kept
    }

    private mutating func takeBack(message number: Int64, _ why: String) {
        guard let message = ledger.messages[number] else { return }
        ledger.forgetMemory(of: message.server)
        if let attempt = work[message.registration]?.delivering, isDelivering(attempt, number) {
            attempts[attempt] = nil
            work[message.registration]?.delivering = nil
            withdrawCall(attempt)
        }
        work[message.registration]?.queue.removeAll { $0 == number }
        tidy(message.registration)
        ledger.takeBack(message)
        effects.append(.server(message.server, .settled(message.origin.id, .notNow("it cannot be saved: \(why)"))))
    }

    private func isDelivering(_ attempt: UInt64, _ number: Int64) -> Bool {
        if case .message(number, _, _) = attempts[attempt]?.purpose { true } else { false }
    }

    private mutating func withdrawCall(_ attempt: UInt64) {
        effects.removeAll { if case .tell(let call) = $0 { call.attempt == attempt } else { false } }
    }

    private mutating func takeBack(registration number: Int64, _ why: String) {
        guard let registration = ledger.registrations[number] else { return }
        effects.removeAll { $0 == .report(.registered(.init(registration))) }
        answerCalls(of: number, .failed(.internalError, "it cannot be saved: \(why)"))
        effects.append(.report(.registrationRefused(registration.request.app, .internalError, why)))
        work[number] = nil
        ledger.takeBack(registration)
    }

    /// Removes the work of a registration where nothing is left of it.
    mutating func tidy(_ number: Int64) {
        if work[number]?.isEmpty == true { work[number] = nil }
    }

    /// Whether any app has an endpoint at a server.
    package func hasEndpoints(at server: ServerName) -> Bool {
        ledger.registrations.values.contains { $0.server == server && $0.endpoint != nil }
    }

    /// The servers to which a connection is wanted. Look again after a turn with changes.
    package var servers: Set<ServerName> {
        var servers = Set(ledger.registrations.values.map(\.server)).union(ledger.endings.values.map(\.server))
        if let server = ledger.server { servers.insert(server) }
        return servers
    }
}
