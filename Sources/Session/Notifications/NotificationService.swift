// SPDX-License-Identifier: Apache-2.0

internal import DialtoneAPI
internal import DialtoneBus
internal import DialtoneClient
internal import DialtoneDistributor
internal import DialtoneNotifications
internal import DialtonePlatform
internal import DialtoneVarlink
internal import Glibc
internal import Logging

/// Notifications: the board with what it is told, and the desk that shows what it says.
@AgentQueue
final class NotificationService {
    private(set) var board: NoticeBoard
    /// Where they are shown; `nil` while there are no rules, and without a session bus.
    private(set) var desk: (any NotificationDesk)?
    private(set) var rules: [NoticeRule] = []

    private let logger: Logger
    private let client: DialtoneClient
    private let makeDesk: @AgentQueue (@escaping @AgentQueue (DeskNews) -> Void) -> (any NotificationDesk)?
    private var hangUp: DialtoneClient.HangUp?
    private var retry: Timers.Timer?
    /// Before the machine's agent is asked again that is away.
    private var pause = GrowingPause()
    private lazy var deadline = DeadlineTimer { [weak self] in self?.take(.timePassed) }

    /// Does nothing before ``apply(_:pushServer:)``.
    ///
    /// - Parameter makeDesk: makes the desk that tells its news to what it is given; `nil` where there is no bus.
    init(
        _ logger: Logger, client: DialtoneClient = DialtoneClient(),
        makeDesk: @escaping @AgentQueue (@escaping @AgentQueue (DeskNews) -> Void) -> (any NotificationDesk)? = {
            handler in BusConnection.sessionAddress.map { DaemonDesk.orPortal(at: $0, handler) }
        }
    ) {
        (self.logger, self.client, self.makeDesk) = (logger, client, makeDesk)
        board = NoticeBoard(pushConnection: PushLink.connectionName) { instant in
            let now = Timestamp.now()
            return ClockText.time(
                Timestamp(milliseconds: now.milliseconds - (BootClock.now() - instant).milliseconds), now: now)
        }
    }

    /// Makes the configuration's word hold: at the start, and at each reload.
    ///
    /// - Parameter pushServer: the server that pushes come through.
    func apply(_ rules: [NoticeRule], pushServer: ServerName?) {
        self.rules = rules
        let isOn = rules.contains { $0.isShown }
        if isOn, desk == nil {
            desk = makeDesk { [weak self] news in self?.hear(news) }
            if desk == nil { logger.warning("nothing can be shown: there is no session bus") }
        }
        take(.rules(rules, pushServer: pushServer?.text))
        if isOn, hangUp == nil, retry == nil { follow() }
        guard !isOn else { return }
        hangUp?()
        retry?.cancel()
        (hangUp, retry) = (nil, nil)
        take(.snapshot([]))
        desk = nil
    }

    /// Hears what the distributor reports.
    func hear(_ report: DistributorReport) {
        switch report {
        case .notStarted(let subject, let why):
            take(.appNotStarted(app: subject.app.name.printable, why: why.printable))
        case .taken(let subject, _, _, _), .retried(let subject, _, _, _), .ended(let subject, _):
            take(.appAnswered(app: subject.app.name.printable))
        case .nothingWaits(let app): take(.appAnswered(app: app.name.printable))
        case .server(let server, let refusal):
            take(.pushLogin(server: server.text, refusal: refusal?.printable))
        case .registered, .endpoint, .registrationRefused, .identityLost, .trouble, .givenUp, .refused, .full,
            .unknownApp, .demoted, .clockSet, .storeFailed, .storeWorks:
            break
        }
    }

    // MARK: - The board

    private func take(_ input: NoticeInput) {
        let effects = board.take(input, at: BootClock.now())
        for effect in effects {
            switch effect {
            case .show(let notice, let attempt): show(notice, attempt)
            case .withdraw(let id): desk?.withdraw(id)
            case .redial(let name): redial(name)
            case .run(let command, let subject): ButtonProgram.run(command, subject, logger)
            case .full: logger.warning("too much is wrong for a notification of each")
            }
        }
        deadline.follow(board.deadline)
    }

    private func show(_ notice: Notice, _ attempt: UInt64) {
        guard let desk else { return }
        desk.show(notice) { [weak self] result in
            guard let self else { return }
            let subject: Logger.Metadata =
                notice.subject.map { ["event": "\($0.event.rawValue)", "name": "\($0.name)"] } ?? [:]
            switch result {
            case .success(let id):
                if notice.replaces == nil { logger.info("a notification is shown", metadata: subject) }
                take(.shown(attempt: attempt, id: id))
            case .failure(let failure):
                logger.info(
                    "a notification waits for a notification daemon",
                    metadata: subject.merging(["error": "\(failure)"]) { $1 })
                take(.notShown(attempt: attempt))
            }
        }
    }

    private func redial(_ name: String) {
        logger.notice("dialled anew by a notification's button", metadata: ["name": "\(name)"])
        client.begin(ConnectionsAPI.Redial.self, .init(name: name)) { [logger] result in
            guard case .failure(let error) = result else { return }
            logger.warning("it could not be dialled anew", metadata: ["name": "\(name)", "error": "\(error)"])
        }
    }

    private func hear(_ news: DeskNews) {
        switch news {
        case .came: take(.daemonCame)
        case .went: take(.daemonWent)
        case .closed(let id): take(.closedByDaemon(id: id))
        case .pressed(let id): take(.pressed(id: id))
        }
    }

    // MARK: - The machine's agent

    private func follow() {
        retry = nil
        hangUp = client.follow(ConnectionsAPI.Monitor.self, .init(owner: Int(geteuid()))) { [weak self] result in
            guard let self else { return }
            if case .success(let reply?) = result { return heard(reply) }
            take(.agentLost)
            hangUp = nil
            retry = Timers.shared.schedule(after: pause.next()) { [weak self] in self?.follow() }
        }
    }

    private func heard(_ reply: ConnectionsAPI.Monitor.Reply) {
        pause.reset()
        let (now, uptime) = (Timestamp.now(), BootClock.now())
        let connections = reply.connections.map { WatchedConnection($0, reply.event, at: now, uptime) }
        guard reply.kind == .change else { return take(.snapshot(connections)) }
        for connection in connections {
            take(reply.event?.kind == .closed ? .closed(connection.name) : .changed(connection))
        }
    }
}
