// SPDX-License-Identifier: Apache-2.0

import DialtoneDistributor
import DialtoneModels
import DialtoneTestSupport

/// A distributor with its store, a clock and a server that stands, for tests that say each step.
struct Harness {
    var distributor: Distributor
    var store: StoredState
    var uptime = Duration.seconds(10_000)
    var wall: Int64 = 1_800_000_000_000
    var storeFails = false
    /// The effects of the last input.
    var effects: [DistributorEffect] = []

    static let north = known(ServerName("north"))
    static let south = known(ServerName("south"))
    static let app = AppIdentity(name: "org.example.Chat", sandbox: nil)

    init(_ state: StoredState = StoredState(), limits: DistributorLimits = .init(), server: ServerName? = Self.north) {
        store = state
        if store.server == nil { store.server = server }
        distributor = Distributor(state: store, limits: limits, random: SplitMix64(seed: 1))
        take(.busConnected)
        if let server { take(.reported(server, .loggedIn)) }
    }

    var now: Moment { Moment(uptime: uptime, wall: WallTime(milliseconds: wall)) }

    @discardableResult
    mutating func take(_ input: DistributorInput) -> [DistributorEffect] {
        var turn = distributor.take(input, at: now)
        if storeFails, !turn.changes.isEmpty {
            turn = distributor.saveFailed("the disk is full", at: now)
        } else {
            store.apply(turn.changes)
        }
        effects = turn.effects
        return effects
    }

    /// Time passes, and each deadline on the way is met.
    ///
    /// - Returns: the effects of all that.
    @discardableResult
    mutating func pass(_ duration: Duration) -> [DistributorEffect] {
        let end = uptime + duration
        var all: [DistributorEffect] = []
        for _ in 0..<10_000 {
            guard let deadline = distributor.deadline, deadline <= end else { break }
            set(max(uptime, deadline))
            all += take(.timePassed)
        }
        set(end)
        effects = all
        return all
    }

    private mutating func set(_ time: Duration) {
        let step = time - uptime
        wall += step.components.seconds * 1000 + step.components.attoseconds / 1_000_000_000_000_000
        uptime = time
    }

    /// Time passes until an app is called; not further than there are deadlines, and not beyond two days.
    mutating func passToCall() {
        let end = uptime + .seconds(2 * 86_400)
        while let deadline = distributor.deadline, deadline <= end {
            set(max(uptime, deadline))
            take(.timePassed)
            if !calls.isEmpty { return }
        }
        effects = []
    }

    /// The same process's successor, with what is on the disk.
    mutating func restart() {
        distributor = Distributor(state: store, random: SplitMix64(seed: 2))
        let before = take(.busConnected)
        effects = before + take(.reported(Self.north, .loggedIn))
    }

    // MARK: Short ways

    static func request(
        _ token: String = "token", app: AppIdentity = Self.app, kind: PushKind = .standard, vapid: String? = nil,
        version: ConnectorVersion = .v2
    ) -> RegistrationRequest {
        RegistrationRequest(app: app, token: token, version: version, kind: kind, summary: "", vapid: vapid)
    }

    /// Registers, has the server say yes and the app take its endpoint.
    mutating func registered(_ request: RegistrationRequest = Self.request()) -> Registration {
        take(.register(request, call: 1))
        let id = known(distributor.overview.last).registration.id
        take(.reported(Self.north, .registered(id, endpoint: "https://push.example/\(id.text)", expires: nil)))
        answerAll(.taken)
        return known(distributor.overview.last).registration
    }

    /// A message comes.
    mutating func arrive(
        _ id: String, _ registration: Registration, size: Int = 3, urgency: Urgency = .normal,
        expires: Duration? = nil, from server: ServerName = Self.north
    ) {
        let message = ArrivedMessage(
            id: known(ServerMessageID(id)), registration: registration.id, body: Array(repeating: 1, count: size),
            urgency: urgency, expires: expires.map { WallTime(milliseconds: wall + $0.components.seconds * 1000) })
        take(.arrived(server, [message], memory: nil))
    }

    /// The app answers each call of the last effects.
    @discardableResult
    mutating func answerAll(_ answer: AppAnswer) -> [DistributorEffect] {
        var all: [DistributorEffect] = []
        for call in calls { all += take(.answered(attempt: call.attempt, answer)) }
        effects = all
        return all
    }

    /// The calls of the last effects.
    var calls: [AppTelling] { effects.compactMap { if case .tell(let call) = $0 { call } else { nil } } }
    /// The messages that they deliver.
    var delivered: [String] {
        calls.compactMap { if case .message(_, let id) = $0.content { id } else { nil } }
    }
    /// The answers to calls of Register.
    var answers: [RegistrationAnswer] {
        effects.compactMap { if case .answer(_, let answer) = $0 { answer } else { nil } }
    }
    var reports: [DistributorReport] {
        effects.compactMap { if case .report(let report) = $0 { report } else { nil } }
    }
    /// What servers are told of messages, but for those that are kept.
    var settled: [String: MessageOutcome] {
        var settled: [String: MessageOutcome] = [:]
        for case .server(_, .settled(let id, let outcome)) in effects where outcome != .kept {
            settled[id.text] = outcome
        }
        return settled
    }
    /// Of which messages servers are told that they are kept.
    var kept: [String] {
        effects.compactMap { if case .server(_, .settled(let id, .kept)) = $0 { id.text } else { nil } }
    }
    /// What servers are asked but for that.
    var asked: [PushServerInput] {
        effects.compactMap { effect in
            guard case .server(_, let input) = effect else { return nil }
            if case .settled = input { return nil }
            return input
        }
    }
    var only: Registration { distributor.overview[0].registration }
}
