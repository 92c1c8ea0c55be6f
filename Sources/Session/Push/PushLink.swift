// SPDX-License-Identifier: Apache-2.0

internal import DialtoneAPI
internal import DialtoneClient
internal import DialtoneDistributor
internal import DialtonePlatform
internal import DialtoneVarlink
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
    /// How long the socket is held at most while more and more comes. What the agent says on the next socket is as old
    /// as the last parking, and the server resumes from there: no server keeps everything for that.
    private static let longestHold = Duration.seconds(5)
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
    /// Why there is no session, for a person; `nil` where nothing is known to be wrong.
    var trouble: String? { agentTrouble ?? serverTrouble }
    private var agentTrouble: String?
    private var serverTrouble: String?
    /// When the session with the server began, by the wall clock; `nil` while there is none.
    private(set) var loggedInAt: WallTime?

    private var server: any PushServer
    private let tls: ConnectionsAPI.TLS?
    private let client: DialtoneClient
    private let logger: Logger
    private var place = Place.away
    private var heldSince = Duration.zero
    private var parkedEpoch: Int?
    /// The socket that the value knows of; `nil` where it knows of none.
    private var lastEpoch: Int?
    /// The newest socket that was given up: it is not taken once more while the agent does not know of its end yet.
    private var overEpoch = 0
    /// How the agent has it: what it says on new sockets until the next socket is parked.
    private var left: PushParking?
    private var unsent: [UInt8] = []
    /// What the value is still to be told. What comes of one input is done before the next one: bytes go out in the
    /// order in which the value said them.
    private var inputs: [PushServerInput] = []
    private var isTelling = false
    private var hangUp: DialtoneClient.HangUp?
    private var quiet: Timers.Timer?
    private lazy var deadline = DeadlineTimer { [weak self] in self?.tell(.timePassed) }
    private var retry: Timers.Timer?
    /// Before the agent is asked again that refused something or is away.
    private var agentPause = GrowingPause()
    /// Before a server is dialled again that did something wrong.
    private var serverPause = GrowingPause()
    private var loginUptime: Duration?
    /// Whether it was given up because nothing could be saved.
    private var waitsForStore = false
    /// Before it is opened again for that. What is small may find room where a push does not.
    private var storePause = GrowingPause()
    /// Counts the connections that were asked for, to tell what comes of an earlier one.
    private var round = 0
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
        for timer in [quiet, retry] { timer?.cancel() }
        deadline.follow(nil)
        hangUp?()
        if case .held(let socket) = place { socket.release() }
        place = .away
        client.begin(ConnectionsAPI.Close.self, .init(name: Self.connectionName)) { _ in }
    }

    /// Tells the server's value something, and does what it says: now, or after what is being done of an earlier input.
    func tell(_ input: PushServerInput) {
        guard !isClosed else { return }
        inputs.append(input)
        guard !isTelling else { return }
        isTelling = true
        while !isClosed, !inputs.isEmpty { carryOut(server.take(inputs.removeFirst(), at: .now())) }
        isTelling = false
        consider()
    }

    // MARK: - The connection at the agent

    private func open(replacing: Bool) {
        guard !isClosed else { return }
        let round = nextRound()
        waitsForStore = false
        let parameters = ConnectionsAPI.Open.Parameters(
            remote: server.remote, name: Self.connectionName, settings: tls.map { .init(tls: $0) })
        client.begin(ConnectionsAPI.Open.self, parameters) { [weak self] result in
            guard let self, !isClosed, round == self.round else { return }
            switch result {
            case .success:
                // Its sockets are numbered anew, and it has no opening.
                giveUpSocket()
                (left, overEpoch) = (nil, 0)
                follow()
            // A process before this one opened it: on its socket nobody knows any more what was said.
            case .failure(let error) where error.code == .nameTaken && replacing: replace()
            case .failure(let error): again("\(error)") { [weak self] in self?.open(replacing: true) }
            }
        }
    }

    private func nextRound() -> Int {
        round += 1
        return round
    }

    private func replace() {
        let round = nextRound()
        client.begin(ConnectionsAPI.Close.self, .init(name: Self.connectionName)) { [weak self] _ in
            if self?.round == round { self?.open(replacing: false) }
        }
    }

    /// Gives the connection up and opens it anew after a pause. The opening that was left is gone with it: on the next
    /// socket the value says itself what is to be said now.
    private func reopen(after pause: Duration) {
        let round = nextRound()
        hangUp?()
        retry?.cancel()
        connection = nil
        giveUpSocket()
        client.begin(ConnectionsAPI.Close.self, .init(name: Self.connectionName)) { [weak self] _ in
            guard let self, !isClosed, round == self.round else { return }
            retry = Timers.shared.schedule(after: pause) { [weak self] in self?.open(replacing: true) }
        }
    }

    private func follow() {
        agentTrouble = nil
        hangUp?()
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
        let round = nextRound()
        client.begin(ConnectionsAPI.List.self, .init()) { [weak self] result in
            guard let self, !isClosed, round == self.round else { return }
            switch result {
            case .success(let answer):
                let isThere = answer.reply.connections.contains { $0.name == Self.connectionName }
                if isThere { follow() } else { open(replacing: true) }
            case .failure(let error): again("\(error)") { [weak self] in self?.resume() }
            }
        }
    }

    private func again(_ why: String, _ what: @escaping @AgentQueue () -> Void) {
        agentTrouble = why
        logger.notice("the push connection waits for the agent", metadata: ["error": "\(why)"])
        retry?.cancel()
        retry = Timers.shared.schedule(after: agentPause.next(), what)
    }

    private func heard(_ reply: ConnectionsAPI.Monitor.Reply) {
        connection = reply.connections.first
        if reply.event?.kind == .closed || connection == nil {
            connection = nil
            hangUp?()
            giveUpSocket()
            return again("the connection was closed at the agent") { [weak self] in self?.open(replacing: true) }
        }
        // What it resumed is gone. On a socket without an opening the value logs in anew.
        if reply.event?.kind == .openingFailed {
            return failed("it did not accept the opening: \(reply.event?.reason ?? "no reason")")
        }
        agentPause.reset()
        consider()
    }

    /// Takes the socket where there is a reason to.
    private func consider() {
        guard let connection, !isTelling else { return }
        if case .held(let socket) = place, socket.epoch < connection.epoch { giveUpSocket() }
        guard case .away = place, connection.epoch > overEpoch else { return }
        let hasSocket = [.ready, .verifying].contains(connection.state)
        if !hasSocket {
            // There is nothing to take yet, and nothing to be woken for.
            if let wake = connection.wake { acknowledge(wake) }
            return
        }
        // Where the agent logged in, that is enough as long as the value believes in the session. One that knows of
        // none says and asks nothing.
        let isNew = connection.epoch != parkedEpoch && (connection.session != .open || lastEpoch == nil)
        if isNew || connection.wake != nil || (connection.unreadBytes ?? 0) > 0 || !unsent.isEmpty || isOutdated {
            take()
        }
    }

    private func acknowledge(_ wake: Int) {
        client.begin(ConnectionsAPI.Acknowledge.self, .init(name: Self.connectionName, wake: wake)) { _ in }
    }

    /// Whether the socket is parked by another word than the value's present one.
    private var isOutdated: Bool {
        guard parkedEpoch != nil, let parking = server.parking else { return false }
        return parking != left
    }

    private func take() {
        place = .asked
        let round = round
        client.begin(ConnectionsAPI.Take.self, .init(name: Self.connectionName)) { [weak self] result in
            guard let self, !isClosed else { return }
            place = .away
            // That of a connection that was given up meanwhile.
            guard round == self.round else { return consider() }
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
        if reply.isOver, epoch != parkedEpoch, left?.opening.isEmpty == false {
            // The value has no part in it: the agent logged in, or it was given up here. The server says again what
            // came on it. With the wake the agent lets go of it, too.
            overEpoch = max(overEpoch, epoch)
            if let wake = reply.connection.wake { acknowledge(wake) }
            return consider()
        }
        do throws(SystemError) {
            place = .held(
                try HeldSocket(descriptor, epoch: epoch) { [weak self] event in self?.heard(event, on: epoch) })
            heldSince = BootClock.now()
        } catch {
            logger.warning("the push socket cannot be watched", metadata: ["error": "\(error)"])
            return
        }
        if epoch != parkedEpoch {
            unsent = []
            // What was under way on the socket before is over, whether anybody saw its end or not.
            if lastEpoch != nil, epoch != lastEpoch { inputs.append(.disconnected) }
            (parkedEpoch, lastEpoch) = (nil, epoch)
            tell(!reply.isOver && reply.connection.session == .open ? .opened : .connected)
        } else {
            parkedEpoch = nil
            tell(.unparked)
        }
        flush()
    }

    // MARK: - The socket

    private func heard(_ event: HeldSocket.Event, on epoch: Int) {
        guard case .held(let socket) = place, socket.epoch == epoch else { return }
        switch event {
        case .received(let bytes): tell(.received(bytes))
        case .drained: startQuiet()
        case .ended: giveUpSocket()
        case .stuck: failed("it reads nothing of what it is sent")
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
            overEpoch = max(overEpoch, socket.epoch)
        case .away, .asked: break
        }
        guard lastEpoch != nil else { return }
        lastEpoch = nil
        parkedEpoch = nil
        loggedInAt = nil
        tell(.disconnected)
    }

    private func carryOut(_ turn: PushServerTurn) {
        guard onTurn?(turn) ?? true else { return lose() }
        if !turn.arrived.isEmpty { storePause.reset() }
        unsent += turn.output
        flush()
        for report in turn.reports {
            if report == .loggedIn {
                (loggedInAt, loginUptime, serverTrouble) = (Moment.now().wall, BootClock.now(), nil)
            }
            onReport?(report)
        }
        if let why = turn.redial { turn.isRedialWanted ? redial(why) : failed(why) }
        deadline.follow(server.deadline)
    }

    /// A turn could not be saved. The value must not take for had what is not kept: one that was made of what is kept
    /// takes its place. Nothing more is said on the socket, not even that the turn's messages are to come again: the
    /// server would count words that the new value has not said. What is not acknowledged comes again by itself.
    private func lose() {
        reopen(after: GrowingPause.longest)
        waitsForStore = true
        inputs = []
        if let fresh = onLoss?() { server = fresh }
        deadline.follow(server.deadline)
    }

    /// It can be saved again: what was given up for that is opened soon.
    func storeWorks() {
        guard waitsForStore else { return }
        waitsForStore = false
        reopen(after: storePause.next())
    }

    /// The value wants another socket, for a reason of its own.
    private func redial(_ why: String) {
        logger.debug("the push server is dialled anew", metadata: ["reason": "\(why)"])
        reopen(after: GrowingPause.first)
    }

    /// What the server does wrong, the agent cannot know: how late the next attempt is, is said here.
    private func failed(_ why: String) {
        if let loginUptime, BootClock.now() - loginUptime >= Self.stableTime { serverPause.reset() }
        loginUptime = nil
        let wait = serverPause.next()
        logger.notice("the push server is dialled anew", metadata: ["reason": "\(why)", "after": "\(wait)"])
        serverTrouble = why
        reopen(after: wait)
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
        let left = heldSince + Self.longestHold - BootClock.now()
        quiet = Timers.shared.schedule(after: max(.zero, min(Self.quietTime, left))) { [weak self] in self?.park() }
    }

    private func park() {
        guard case .held(let socket) = place, socket.isDrained, let parking = server.parking else { return }
        place = .parking(socket)
        socket.release()
        let parameters = ConnectionsAPI.Park.Parameters(parking, of: Self.connectionName, epoch: socket.epoch)
        client.begin(ConnectionsAPI.Park.self, parameters) { [weak self] result in
            guard let self, !isClosed, case .parking(let parked) = place, parked === socket else { return }
            place = .away
            switch result {
            case .success:
                (parkedEpoch, left) = (socket.epoch, parking)
                tell(.parked)
            case .failure(let error) where error.code == .staleEpoch:
                overEpoch = max(overEpoch, socket.epoch)
                giveUpSocket()
            case .failure(let error): failed("it cannot be parked: \(error)")
            }
            consider()
        }
    }
}

extension Moment {
    /// Now, by both clocks.
    static func now() -> Moment {
        Moment(uptime: BootClock.now(), wall: WallTime(milliseconds: Timestamp.now().milliseconds))
    }
}
