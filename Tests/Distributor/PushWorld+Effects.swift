// SPDX-License-Identifier: Apache-2.0

import DialtoneDistributor
import DialtoneTestSupport

extension PushWorld {
    mutating func perform(_ effect: DistributorEffect) {
        switch effect {
        case .server(let server, let input): serve(server.text, input)
        case .tell(let call): callApp(call)
        case .answer(let call, _):
            if openCalls.remove(call) == nil { fail("call \(call) was answered twice, or never made") }
        case .inhibitSleep(let inhibits):
            if inhibits == isInhibited { fail("sleep inhibited: \(inhibits), as it was") }
            isInhibited = inhibits
        case .done, .report: break
        }
    }

    // MARK: Apps

    private mutating func callApp(_ call: AppTelling) {
        let app = call.app.name
        guard let mood = moods[app] else { return fail("an app that is none was called: \(app)") }
        var id: String?
        if case .message(_, let message) = call.content {
            id = message
            noteDelivery(call, message)
        }
        let answer: AppAnswer =
            switch mood {
            case .good: random.chance(97) || isCalm ? .taken : random.chance(50) ? .refused("once in a while") : .noBus
            case .refusing: .refused("no")
            case .crashing: .refused("it ended")
            case .silent: .unanswered
            case .notStarting: .notStarted("no such program")
            case .uninstalled: .unknown
            }
        let delay = answer == .unanswered ? Int(call.timeout.components.seconds) : random.below(3)
        // The driver's word may be lost.
        if answer == .unanswered, random.chance(30) { return }
        later(delay, .answer(process: process, attempt: call.attempt, answer, id: id))
    }

    private mutating func noteDelivery(_ call: AppTelling, _ id: String) {
        // A test of the user's, which is neither saved nor settled.
        if id.hasPrefix("test-") { return }
        deliveries += 1
        let key = Self.key(call.app, call.token)
        if store.settled.contains(where: { $0.origin.id.text == id }) {
            fail("\(id) was delivered after it was settled")
        }
        if !store.messages.contains(where: { $0.origin.id.text == id }) {
            fail("\(id) was delivered before it was saved")
        }
        for earlier in kept[key] ?? [] {
            if earlier == id { break }
            if !taken.contains(earlier), !givenUp.contains(earlier) { fail("\(id) was delivered before \(earlier)") }
        }
    }

    // MARK: Servers

    private mutating func serve(_ name: String, _ input: PushServerInput) {
        switch input {
        case .settled(let id, let outcome): settle(name, id, outcome)
        case .register(let id, _):
            guard servers[name]?.isUp == true else { return }
            if !isCalm, random.chance(10) { return }
            later(1, .report(process: process, name, answer(to: id, name)))
        case .unregister(let id, _):
            guard servers[name]?.isUp == true else { return }
            if !isCalm, random.chance(10) { return }
            servers[name]?.endpoints[id] = nil
            later(1, .report(process: process, name, .unregistered(id)))
        case .connected, .opened, .parked, .unparked, .received, .disconnected, .timePassed:
            fail("the distributor does the driver's work: \(input)")
        }
    }

    private mutating func answer(to id: RegistrationID, _ name: String) -> PushServerReport {
        if !isCalm, random.chance(10) { return .registrationFailed(id, .network, "busy") }
        if !isCalm, random.chance(2) { return .registrationFailed(id, .vapidRequired, "no key") }
        let endpoint = "https://\(name).example/\(random.below(1_000_000))"
        servers[name]?.endpoints[id] = endpoint
        if !isCalm, random.chance(2) {
            return .registered(id, endpoint: String(repeating: "x", count: 1001), expires: nil)
        }
        let expires = name == "south" ? WallTime(milliseconds: wall - clockError + 86_400_000) : nil
        return .registered(id, endpoint: endpoint, expires: expires)
    }

    private mutating func settle(_ name: String, _ id: ServerMessageID, _ outcome: MessageOutcome) {
        switch outcome {
        case .kept:
            let isSaved =
                store.messages.contains { $0.origin.id == id } || store.settled.contains { $0.origin.id == id }
            if !isSaved { fail("\(id.text) was told to be kept unsaved") }
            guard let server = servers[name], server.isUp, !server.wantsReceipts else { return }
            entrusted.insert(id.text)
        case .taken:
            if !taken.contains(id.text) { fail("\(id.text) was acknowledged and no app has it") }
            if !store.settled.contains(where: { $0.origin.id == id }) { fail("\(id.text) was acknowledged unsaved") }
        case .givenUp:
            if !givenUp.contains(id.text) { fail("\(id.text) was given up in silence") }
        case .notNow, .full:
            return
        }
        // On a session that is over, nobody hears it.
        if servers[name]?.isUp == true { servers[name]?.unanswered.removeAll { $0.id == id } }
    }

    // MARK: The end

    mutating func calmDown() {
        isCalm = true
        storeFails = false
        events.removeAll { event in
            switch event.event {
            case .mischief, .appActs, .send: true
            default: false
            }
        }
        for app in Self.apps { moods[app] = .good }
        // By a clock that is wrong for ever nobody can renew in time what ends by another one.
        wall -= clockError
        clockError = 0
        take(.resumed)
        take(.conditions(PushConditions()))
        for server in Self.serverNames { later(1, .login(server)) }
        for hour in 1...90 { for server in Self.serverNames { later(hour * 3600, .redeliver(server)) } }
    }

    mutating func check() {
        for (name, server) in servers.sorted(by: { $0.key < $1.key }) where !server.unanswered.isEmpty {
            fail("\(name) still waits for word of \(server.unanswered.map(\.id.text))")
        }
        for look in distributor.overview {
            if look.waiting > 0 { fail("\(look.waiting) messages still wait: \(look)") }
            if look.registration.endpoint == nil || !look.registration.isTold {
                fail("without an endpoint that its app knows: \(look.registration)")
            }
            let endpoint = servers[look.registration.server.text]?.endpoints[look.registration.id]
            if endpoint != look.registration.endpoint {
                fail("the server has \(endpoint ?? "none"): \(look.registration)")
            }
            if let expires = look.registration.expires, expires <= now.wall {
                fail("an endpoint that its server ended at \(expires): \(look.registration)")
            }
        }
        let lost = entrusted.subtracting(taken).subtracting(givenUp)
        if !lost.isEmpty { fail("acknowledged and lost: \(lost.sorted())") }
        if !store.endings.isEmpty { fail("still to be ended: \(store.endings)") }
        if isInhibited { fail("sleep is inhibited for ever") }
        var reloaded = Distributor(state: store, limits: Self.limits, random: SplitMix64(seed: 1))
        let turn = reloaded.take(.timePassed, at: now)
        if !turn.changes.isEmpty { fail("what was saved needs changes: \(turn.changes)") }
        if reloaded.overview != distributor.overview { fail("what was saved is not what is known") }
    }
}

/// A push server, as the distributor's driver sees it.
struct FakePushServer {
    var isUp = false
    /// Whether it tells senders what became of a message, and keeps it until it hears that.
    var wantsReceipts = true
    /// What is registered, with its endpoint.
    var endpoints: [RegistrationID: String] = [:]
    /// What was handed over, or will be, and is not answered.
    var unanswered: [ArrivedMessage] = []
    var sent = 0
    /// Its name for the client; the client knows a loss by another one than it remembers.
    var identity: UInt8 = 0
}
