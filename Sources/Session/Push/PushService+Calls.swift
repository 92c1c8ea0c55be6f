// SPDX-License-Identifier: Apache-2.0

internal import DialtoneAPI
internal import DialtoneBus
internal import DialtoneConfiguration
internal import DialtoneDistributor
internal import DialtonePlatform
internal import DialtonePushAPI
internal import DialtoneVarlink

/// What `dialtone push` asks.
extension PushService {
    /// The body of a test. An app that expects encryption finds none, and has nothing to show.
    private nonisolated static let testBody = Array("A test of push by dialtone".utf8)

    /// Adds the interface and its methods to `service`.
    func register(in service: VarlinkService) {
        service.add(interface: PushAPI.name, description: PushAPI.description)
        service.handle(PushAPI.Status.self) { [unowned self] _, _ in status }
        service.handle(PushAPI.List.self) { [unowned self] _, _ in
            .init(registrations: distributor.overview.map { PushAPI.Registration($0) })
        }
        service.handle(PushAPI.History.self) { [unowned self] parameters, _ throws(VarlinkFailure) in
            let number: Int64? = if let text = parameters.registration { try find(text) } else { nil }
            let count = parameters.count ?? PushAPI.History.usualCount
            guard PushAPI.History.counts.contains(count) else {
                throw VarlinkFailure(ServiceAPI.InvalidParameter(parameter: "count"))
            }
            return .init(messages: distributor.settled(of: number, atMost: count).map { .init($0, $1) })
        }
        service.handleLater(PushAPI.Test.self) { [unowned self] parameters, exchange throws(VarlinkFailure) in
            let number = try find(parameters.registration)
            command(.test(registration: number, body: Self.testBody)) { result in
                switch result {
                case .tested(let answer): exchange.reply(.init(answer))
                case .done, .noSuchRegistration, .badBody:
                    exchange.fail(VarlinkFailure(PushAPI.NoSuchRegistration(parameters.registration)))
                }
            }
        }
        service.handleLater(PushAPI.Remove.self) { [unowned self] parameters, exchange throws(VarlinkFailure) in
            let number = try find(parameters.registration)
            command(.remove(registration: number)) { result in
                switch result {
                case .done, .tested: exchange.reply(VarlinkEmpty())
                case .noSuchRegistration, .badBody:
                    exchange.fail(VarlinkFailure(PushAPI.NoSuchRegistration(parameters.registration)))
                }
            }
        }
    }

    private var status: PushAPI.Status.Reply {
        let overview = distributor.overview
        let server = settings.map { settings in
            PushAPI.Server(
                server: settings.server.description, isUp: link?.loggedInAt != nil,
                since: link?.loggedInAt.map { Timestamp($0) },
                reason: refusal ?? (link?.loggedInAt == nil ? link?.trouble ?? link?.connection?.reason : nil),
                connection: PushLink.connectionName)
        }
        return PushAPI.Status.Reply(
            server: server, registrations: overview.count, waiting: overview.reduce(0) { $0 + $1.waiting },
            lastMessageAt: overview.compactMap(\.registration.lastMessage).max().map { Timestamp($0) },
            isOnBus: nameState == .owned, busTrouble: busTrouble, storageTrouble: storageTrouble, counters: counters)
    }

    private var busTrouble: String? {
        switch nameState {
        case .owned: nil
        case .waiting: "another program has the name \(AppBus.name) on the session bus"
        case .refused(let failure): "the session bus refuses the name \(AppBus.name): \(failure)"
        case nil: "there is no session bus"
        }
    }

    /// The registration that somebody means by a number or the name of an app.
    private func find(_ text: String) throws(VarlinkFailure) -> Int64 {
        let all = distributor.overview.map(\.registration)
        if let number = Int64(text), all.contains(where: { $0.number == number }) { return number }
        let ofApp = all.filter { $0.request.app.name == text }
        if ofApp.count == 1 { return ofApp[0].number }
        throw VarlinkFailure(
            PushAPI.NoSuchRegistration(registration: text, candidates: ofApp.map { Int(clamping: $0.number) }))
    }
}

extension PushAPI.NoSuchRegistration {
    fileprivate init(_ text: String) { self.init(registration: text, candidates: []) }
}

extension PushAPI.Registration {
    fileprivate init(_ overview: RegistrationOverview) {
        let registration = overview.registration
        self.init(
            number: Int(clamping: registration.number), app: registration.request.app.name,
            sandbox: registration.request.app.sandbox, summary: registration.request.summary,
            kind: registration.request.kind == .voip ? .voip : .standard, isDemoted: registration.isDemoted,
            state: registration.endpoint == nil ? .registering : .registered,
            lastMessageAt: registration.lastMessage.map { Timestamp($0) }, waiting: overview.waiting,
            reason: overview.reason?.text(at: BootClock.now()))
    }
}

extension PushAPI.SettledMessage {
    fileprivate init(_ message: SettledMessage, _ registration: Registration?) {
        self.init(
            at: Timestamp(message.time), registration: registration.map { Int(clamping: $0.number) },
            app: registration?.request.app.name, message: message.origin.id.text, givenUp: message.givenUp)
    }
}

extension RegistrationOverview.WaitReason {
    fileprivate func text(at now: Duration) -> String {
        switch self {
        case .delivering: "the app was called and has not answered yet"
        case .retry(let time) where time > now:
            "the app did not take it, and is called again in \((time - now).components.seconds) s"
        case .retry: "the app is about to be called"
        case .gated(let urgency):
            "the battery or the network is spared: only messages of urgency \(urgency.rawValue) or more are delivered"
        case .suspending: "the machine is about to sleep"
        case .busy: "calls of other apps are under way"
        }
    }
}

extension PushAPI.Test.Reply {
    fileprivate init(_ answer: AppAnswer) {
        switch answer {
        case .taken: self.init(outcome: .taken, reason: nil)
        case .refused(let why): self.init(outcome: .refused, reason: why)
        case .unanswered: self.init(outcome: .unanswered, reason: nil)
        case .notStarted(let why): self.init(outcome: .notStarted, reason: why)
        case .noBus: self.init(outcome: .notStarted, reason: "there is no session bus")
        case .unknown: self.init(outcome: .unknown, reason: nil)
        }
    }
}

extension Timestamp {
    fileprivate init(_ time: WallTime) { self.init(milliseconds: time.milliseconds) }
}
