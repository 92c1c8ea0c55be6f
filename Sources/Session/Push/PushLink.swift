// SPDX-License-Identifier: Apache-2.0

internal import DialtoneAPI
internal import DialtoneClient
internal import DialtoneDistributor
internal import DialtonePlatform
internal import DialtoneVarlink
internal import Glibc
internal import Logging

/// The connection to one push server: opened at the machine's agent, taken while there is something to say or to hear,
/// and parked the rest of the time. What is said is the ``PushServer``'s business.
@AgentQueue
final class PushLink {
    /// The connection's name at the agent.
    static let connectionName = "dialtone-push"

    /// How long nothing must have been said for the socket to be parked: a burst of messages and their receipts is not
    /// worth a call of the agent each.
    private static let quietTime = Duration.seconds(1)
    /// How soon the agent is asked again where it refused something or is away.
    private static let firstPause = Duration.seconds(1)
    /// And how late at most.
    private static let longestPause = Duration.seconds(300)
    /// A session that has stood for so long was no failure, and what ends it is dialled anew at once.
    private static let stableTime = Duration.seconds(60)

    /// Where the socket is.
    private enum Place {
        /// At the agent, or nowhere.
        case away
        /// A call for it is under way.
        case asked
        /// Here.
        case held(HeldSocket)
        /// A call that gives it back is under way.
        case parking(HeldSocket)
    }

    /// Saves what a turn brought, before anything of it is sent; false where that failed.
    var onTurn: (@AgentQueue (PushServerTurn) -> Bool)?
    /// Makes the server's value anew from what was saved of it: after a turn that could not be saved.
    var onLoss: (@AgentQueue () -> (any PushServer)?)?
    /// Told what the server's value reports, after what belongs to it was sent.
    var onReport: (@AgentQueue (PushServerReport) -> Void)?

    /// The connection as the agent last told it; `nil` while the agent does not have it.
    private(set) var connection: ConnectionsAPI.Connection?
    /// Why the agent does not have it, for a person.
    private(set) var trouble: String?
    /// When the session with the server began, by the wall clock; `nil` while there is none.
    private(set) var loggedInAt: WallTime?

    private var server: any PushServer
    private let tls: ConnectionsAPI.TLS?
    private let client: DialtoneClient
    private let logger: Logger
    private var place = Place.away
    private var parkedEpoch: Int?
    private var lastEpoch: Int?
    private var unsent: [UInt8] = []
    private var hangUp: DialtoneClient.HangUp?
    private var quiet: Timers.Timer?
    private var deadline: Timers.Timer?
    private var retry: Timers.Timer?
    private var pause = PushLink.firstPause
    private var loginUptime: Duration?
    private var isClosed = false

    /// - Parameter tls: how the connection is secured; `nil` for as usual.
    init(to server: any PushServer, tls: ConnectionsAPI.TLS?, through client: DialtoneClient, _ logger: Logger) {
        (self.server, self.tls, self.client, self.logger) = (server, tls, client, logger)
    }

    /// Opens the connection at the agent and keeps it.
    func start() { open(replacing: true) }

    /// Closes the connection. Nothing is called any more.
    func close() {
        isClosed = true
        onTurn = nil
        onReport = nil
        onLoss = nil
        for timer in [quiet, deadline, retry] { timer?.cancel() }
        hangUp?()
        if case .held(let socket) = place { socket.release() }
        place = .away
        client.begin(ConnectionsAPI.Close.self, .init(name: Self.connectionName)) { _ in }
    }

    /// Tells the server's value something, and does what it says.
    func tell(_ input: PushServerInput) {
        guard !isClosed else { return }
        carryOut(server.take(input, at: .now()))
        if !unsent.isEmpty { consider() }
    }

    /// Dials anew: at once, or after a pause.
    func redial(after pause: Duration? = nil) {
        giveUpSocket()
        client.begin(ConnectionsAPI.Redial.self, .init(name: Self.connectionName, after: pause)) { _ in }
    }

    // MARK: - The connection at the agent

    private func open(replacing: Bool) {
        guard !isClosed else { return }
        let parameters = ConnectionsAPI.Open.Parameters(
            remote: server.remote, name: Self.connectionName, settings: tls.map { .init(tls: $0) })
        client.begin(ConnectionsAPI.Open.self, parameters) { [weak self] result in
            guard let self, !isClosed else { return }
            switch result {
            case .success: follow()
            // A process before this one opened it: on its socket nobody knows any more what was said.
            case .failure(let error) where error.code == .nameTaken && replacing: replace()
            case .failure(let error): again("\(error)") { [weak self] in self?.open(replacing: true) }
            }
        }
    }

    private func replace() {
        client.begin(ConnectionsAPI.Close.self, .init(name: Self.connectionName)) { [weak self] _ in
            self?.open(replacing: false)
        }
    }

    private func follow() {
        trouble = nil
        hangUp = client.follow(ConnectionsAPI.Monitor.self, .init(names: [Self.connectionName])) {
            [weak self] result in
            guard let self, !isClosed else { return }
            switch result {
            case .success(let reply?): heard(reply)
            case .success(nil): lostAgent("the agent ended the stream of events")
            case .failure(let error): lostAgent("\(error)")
            }
        }
    }

    /// The agent is away, or was restarted. It has the connection still, or it does not.
    private func lostAgent(_ why: String) {
        connection = nil
        again(why) { [weak self] in self?.resume() }
    }

    private func resume() {
        client.begin(ConnectionsAPI.List.self, .init()) { [weak self] result in
            guard let self, !isClosed else { return }
            switch result {
            case .success(let answer):
                let isThere = answer.reply.connections.contains { $0.name == Self.connectionName }
                if isThere { follow() } else { open(replacing: true) }
            case .failure(let error): again("\(error)") { [weak self] in self?.resume() }
            }
        }
    }

    private func again(_ why: String, _ what: @escaping @AgentQueue () -> Void) {
        trouble = why
        logger.notice("the push connection waits for the agent", metadata: ["error": "\(why)"])
        retry?.cancel()
        retry = Timers.shared.schedule(after: pause, what)
        pause = min(pause * 2, Self.longestPause)
    }

    private func heard(_ reply: ConnectionsAPI.Monitor.Reply) {
        connection = reply.connections.first
        if reply.event?.kind == .closed || connection == nil {
            connection = nil
            hangUp?()
            giveUpSocket()
            return again("the connection was closed at the agent") { [weak self] in self?.open(replacing: true) }
        }
        if reply.event?.kind == .openingFailed {
            // What it resumed is gone. On a socket without an opening the value logs in anew.
            logger.notice(
                "the push server did not accept the opening", metadata: ["reason": "\(reply.event?.reason ?? "")"])
            hangUp?()
            giveUpSocket()
            return replace()
        }
        pause = Self.firstPause
        consider()
    }

    /// Takes the socket where there is a reason to.
    private func consider() {
        guard let connection else { return }
        if case .held(let socket) = place, socket.epoch < connection.epoch { giveUpSocket() }
        guard case .away = place else { return }
        let hasSocket = [.ready, .verifying].contains(connection.state)
        if !hasSocket {
            // There is nothing to take yet, and nothing to be woken for.
            if let wake = connection.wake {
                client.begin(ConnectionsAPI.Acknowledge.self, .init(name: Self.connectionName, wake: wake)) { _ in }
            }
            return
        }
        let isNew = connection.epoch != parkedEpoch && connection.session != .open
        if isNew || connection.wake != nil || (connection.unreadBytes ?? 0) > 0 || !unsent.isEmpty { take() }
    }

    private func take() {
        place = .asked
        client.begin(ConnectionsAPI.Take.self, .init(name: Self.connectionName)) { [weak self] result in
            guard let self, !isClosed else { return }
            place = .away
            switch result {
            case .success(let answer):
                guard let descriptor = answer.descriptors.take(answer.reply.fileDescriptor) else { return }
                hold(descriptor, answer.reply)
            case .failure(let error):
                // An event says when there is one.
                if error.code != .notReady {
                    logger.warning("the push socket cannot be taken", metadata: ["error": "\(error)"])
                }
            }
        }
    }

    private func hold(_ descriptor: consuming OwnedDescriptor, _ reply: ConnectionsAPI.Take.Reply) {
        let epoch = reply.epoch
        do throws(SystemError) {
            place = .held(
                try HeldSocket(descriptor, epoch: epoch) { [weak self] event in self?.heard(event, on: epoch) })
        } catch {
            logger.warning("the push socket cannot be watched", metadata: ["error": "\(error)"])
            return
        }
        if epoch != parkedEpoch {
            unsent = []
            let wasOpened = !reply.isOver && reply.connection.session == .open
            // What was under way on the socket before is over, whether anybody saw its end or not.
            if lastEpoch != nil, epoch != lastEpoch { carryOut(server.take(.disconnected, at: .now())) }
            lastEpoch = epoch
            carryOut(server.take(wasOpened ? .opened : .connected, at: .now()))
        } else {
            carryOut(server.take(.unparked, at: .now()))
        }
        parkedEpoch = nil
        flush()
    }

    // MARK: - The socket

    private func heard(_ event: HeldSocket.Event, on epoch: Int) {
        guard case .held(let socket) = place, socket.epoch == epoch else { return }
        switch event {
        case .received(let bytes): carryOut(server.take(.received(bytes), at: .now()))
        case .drained: startQuiet()
        case .ended: giveUpSocket()
        }
    }

    /// Closes the socket that is held here, if there is one. The agent sees its end, and dials.
    private func giveUpSocket() {
        quiet?.cancel()
        unsent = []
        switch place {
        case .held(let socket), .parking(let socket):
            socket.release()
            place = .away
        case .away, .asked: break
        }
        guard lastEpoch != nil else { return }
        lastEpoch = nil
        parkedEpoch = nil
        loggedInAt = nil
        carryOut(server.take(.disconnected, at: .now()))
    }

    private func carryOut(_ turn: PushServerTurn) {
        guard onTurn?(turn) ?? true else {
            // Whoever saved nothing acknowledges nothing, and the value must not take for had what is not kept.
            redial(after: Self.longestPause)
            if let fresh = onLoss?() { server = fresh }
            return
        }
        unsent += turn.output
        flush()
        for report in turn.reports {
            if report == .loggedIn { (loggedInAt, loginUptime, trouble) = (Moment.now().wall, BootClock.now(), nil) }
            onReport?(report)
        }
        if let why = turn.redial { failed(why) }
        setDeadline()
    }

    /// What the server does wrong, the agent cannot know: how late the next attempt is, is said here.
    private func failed(_ why: String) {
        let now = BootClock.now()
        if let loginUptime, now - loginUptime >= Self.stableTime { pause = Self.firstPause }
        logger.notice("the push server is dialled anew", metadata: ["reason": "\(why)", "after": "\(pause)"])
        trouble = why
        let wait = pause
        redial(after: wait)
        pause = min(wait * 2, Self.longestPause)
    }

    private func flush() {
        guard case .held(let socket) = place else { return }
        let bytes = unsent
        unsent = []
        socket.send(bytes)
        startQuiet()
    }

    private func startQuiet() {
        quiet?.cancel()
        quiet = Timers.shared.schedule(after: Self.quietTime) { [weak self] in self?.park() }
    }

    private func park() {
        guard case .held(let socket) = place, socket.isDrained, let parking = server.parking else { return }
        place = .parking(socket)
        socket.release()
        let parameters = ConnectionsAPI.Park.Parameters(parking, of: Self.connectionName, epoch: socket.epoch)
        client.begin(ConnectionsAPI.Park.self, parameters) { [weak self] result in
            guard let self, !isClosed, case .parking = place else { return }
            place = .away
            switch result {
            case .success: parkedEpoch = socket.epoch
            case .failure(let error):
                if error.code != .staleEpoch {
                    logger.warning("the push socket cannot be parked", metadata: ["error": "\(error)"])
                }
                giveUpSocket()
            }
            consider()
        }
    }

    private func setDeadline() {
        guard deadline?.deadline != server.deadline else { return }
        deadline?.cancel()
        deadline = server.deadline.map { time in
            Timers.shared.schedule(at: time) { [weak self] in
                self?.deadline = nil
                self?.tell(.timePassed)
            }
        }
    }
}

extension Moment {
    /// Now, by both clocks.
    static func now() -> Moment {
        var time = timespec()
        clock_gettime(CLOCK_REALTIME, &time)
        return Moment(
            uptime: BootClock.now(),
            wall: WallTime(milliseconds: Int64(time.tv_sec) * 1000 + Int64(time.tv_nsec) / 1_000_000))
    }
}
