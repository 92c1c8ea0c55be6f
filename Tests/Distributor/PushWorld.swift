// SPDX-License-Identifier: Apache-2.0

import DialtoneDistributor
import DialtoneModels
import DialtoneTestSupport

/// Servers that repeat, reorder, forget and lie, apps that answer, refuse, crash and vanish, a store that fails and a
/// process that is killed, in virtual time and by one seed; and what must hold all the while.
struct PushWorld {
    enum Event {
        case login(String)
        case send(String)
        case redeliver(String)
        case answer(process: Int, attempt: UInt64, AppAnswer, id: String?)
        case report(process: Int, String, PushServerReport)
        case appActs
        case mischief
    }

    static let apps = ["org.example.Chat", "org.example.Mail", "org.example.Phone"]
    static let serverNames = ["north", "south"]

    var random: SplitMix64
    var uptime = Duration.seconds(1000)
    var wall: Int64 = 1_800_000_000_000
    var store = StoredState()
    var storeFails = false
    var isCalm = false
    var process = 0
    var distributor: Distributor
    var servers: [String: FakePushServer] = [:]
    var moods: [String: AppMood] = [:]
    var events: [(time: Duration, order: Int, event: Event)] = []
    var order = 0
    var nextCall: UInt64 = 1
    var openCalls: Set<UInt64> = []
    var isInhibited = false

    /// What is wrong, in words.
    var faults: [String] = []
    /// Messages that an app took; those that were told to be given up.
    var taken: Set<String> = []
    var givenUp: Set<String> = []
    /// Messages that a server forgot because they are kept.
    var entrusted: Set<String> = []
    /// The messages of each app's token in the order in which they were kept, and which of them are over.
    var kept: [String: [String]] = [:]
    /// Calls of an app that deliver now, by its token.
    var delivering: [String: UInt64] = [:]
    var deliveries = 0

    /// By how much the wall clock is wrong, in milliseconds. A server's clock is right.
    var clockError: Int64 = 0

    /// How an app answers.
    enum AppMood: CaseIterable { case good, refusing, crashing, silent, notStarting, uninstalled }

    static var limits: DistributorLimits {
        var limits = DistributorLimits()
        limits.registrationsOfApp = 4
        limits.registrations = 9
        limits.messagesOfApp = 12
        limits.messages = 24
        limits.voipReserve = 3
        limits.callsOfApp = 2
        limits.calls = 3
        limits.serverRequests = 3
        limits.settled = 2000
        return limits
    }

    init(seed: UInt64) {
        random = SplitMix64(seed: seed)
        distributor = Distributor(state: store, limits: Self.limits, random: SplitMix64(seed: seed ^ 1))
        for name in Self.serverNames { servers[name] = FakePushServer() }
        servers[Self.serverNames[seed.isMultiple(of: 2) ? 0 : 1]]?.wantsReceipts = false
        for app in Self.apps { moods[app] = .good }
    }

    var now: Moment { Moment(uptime: uptime, wall: WallTime(milliseconds: wall)) }

    mutating func later(_ seconds: Int, _ event: Event) {
        order += 1
        events.append((uptime + .seconds(seconds), order, event))
    }

    mutating func fail(_ text: String) {
        if faults.count < 5 { faults.append("\(uptime): \(text)") }
    }

    // MARK: Running

    mutating func run() {
        begin()
        take(.command(.use(name("north")), call: 0))
        for _ in 0..<6 { later(random.below(60), .appActs) }
        for server in Self.serverNames { later(5, .send(server)) }
        later(30, .mischief)
        advance(until: uptime + .seconds(3 * 86_400))
        calmDown()
        guard faults.isEmpty else { return }
        // Beyond the longest back-off, and the life of each message.
        advance(until: uptime + .seconds(4 * 86_400))
        // A renewal may be under way right then, and an app be told of it.
        for _ in 0..<20 where isUnderWay { advance(until: uptime + .seconds(5)) }
        if isUnderWay { fail("what was asked is not answered: \(events.map(\.event))") }
        if faults.isEmpty { check() }
    }

    /// Whether an answer to the distributor is on its way.
    private var isUnderWay: Bool {
        events.contains { event in
            switch event.event {
            case .answer(let process, _, _, _), .report(let process, _, _): process == self.process
            case .login, .send, .redeliver, .appActs, .mischief: false
            }
        }
    }

    private mutating func advance(until end: Duration) {
        var standing = 0
        while faults.isEmpty {
            let event = events.indices.min {
                (events[$0].time, events[$0].order) < (events[$1].time, events[$1].order)
            }
            let eventTime = event.map { events[$0].time } ?? end
            let time = min(eventTime, distributor.deadline ?? end)
            if time >= end { return pass(end - uptime) }
            standing = time <= uptime ? standing + 1 : 0
            if standing > 400 {
                fail("a deadline in the past for ever: \(String(describing: distributor.deadline))")
            }
            pass(max(time - uptime, .zero))
            if let event, eventTime <= uptime {
                happen(events.remove(at: event).event)
            } else {
                take(.timePassed)
            }
        }
    }

    private mutating func pass(_ duration: Duration) {
        uptime += duration
        // Rounded up: a timer is not early.
        wall +=
            duration.components.seconds * 1000 + (duration.components.attoseconds + 999_999_999_999_999)
            / 1_000_000_000_000_000
    }

    /// A new process, with what is on the disk.
    mutating func begin() {
        process += 1
        distributor = Distributor(
            state: store, limits: Self.limits, random: SplitMix64(seed: random.next()))
        openCalls = []
        delivering = [:]
        isInhibited = false
        take(.busConnected)
        for server in Self.serverNames {
            servers[server]?.isUp = false
            later(1 + random.below(20), .login(server))
        }
    }

    mutating func take(_ input: DistributorInput) {
        let process = process
        let turn = distributor.take(input, at: now)
        hearReports(turn.effects)
        if !isCalm, random.below(1500) == 0 { return begin() }
        if storeFails, !turn.changes.isEmpty {
            let turn = distributor.saveFailed("the disk is full", at: now)
            if !turn.changes.isEmpty { fail("changes where nothing can be saved: \(turn.changes)") }
            hearReports(turn.effects)
            return perform(turn.effects, of: process)
        }
        noteKept(turn.changes)
        store.apply(turn.changes)
        if !isCalm, random.below(1500) == 0 { return begin() }
        perform(turn.effects, of: process)
        let waiting = distributor.overview.reduce(0) { $0 + $1.waiting }
        if waiting > Self.limits.messages + Self.limits.voipReserve { fail("\(waiting) messages wait") }
        if distributor.overview.count > Self.limits.registrations {
            fail("\(distributor.overview.count) registrations")
        }
    }

    private mutating func perform(_ effects: [DistributorEffect], of process: Int) {
        for effect in effects {
            // Killed in the middle.
            if self.process != process { return }
            if !isCalm, random.below(4000) == 0 { return begin() }
            perform(effect)
        }
    }

    private mutating func hearReports(_ effects: [DistributorEffect]) {
        for case .report(.givenUp(_, let message, _)) in effects { givenUp.insert(message) }
        for case .report(.refused(_, let message, _)) in effects { givenUp.insert(message) }
    }

    private mutating func noteKept(_ changes: [StoreChange]) {
        for case .message(let message) in changes {
            guard
                let registration = distributor.overview.first(where: {
                    $0.registration.number == message.registration
                })?.registration
            else { continue }
            let key = Self.key(registration.request.app, registration.request.token)
            if kept[key]?.contains(message.origin.id.text) != true {
                kept[key, default: []].append(message.origin.id.text)
            }
        }
    }

    static func key(_ app: AppIdentity, _ token: String) -> String { "\(app.name) \(token)" }

    func name(_ text: String) -> ServerName {
        guard let name = ServerName(text) else { preconditionFailure("a name of 1 to 256 bytes: \(text)") }
        return name
    }
}
