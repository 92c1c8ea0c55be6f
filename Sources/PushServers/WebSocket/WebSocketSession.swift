// SPDX-License-Identifier: Apache-2.0

internal import DialtoneDistributor
internal import DialtonePlatform

/// What servers over WebSocket have in common: one socket after another, each with an upgrade and a login, and pauses
/// between logins that the server refuses.
struct WebSocketSession: Sendable {
    /// How long the upgrade and the login may take together: what the machine's agent gives an opening.
    static let longestLogin = Duration.seconds(30)
    /// The pause after a first refusal. Each later one is twice as long.
    static let refusalPause = Duration.seconds(60)
    /// The pause after the first socket that ended within its login. Each later one is twice as long.
    static let endingPause = Duration.seconds(5)
    /// The longest pause.
    static let longestPause = Duration.seconds(3600)
    /// So many troubles are told of one socket. A server that lies on and on fills no log.
    static let mostTroubles = 16

    /// From a socket to its end.
    private enum Phase: Hashable {
        /// There is no socket, or nothing more is to be said on it.
        case offline
        /// A socket on which nothing is said until then, because the server refused a login on one before.
        case held(until: Duration)
        /// The upgrade or the login is under way, and given up then.
        case loggingIn(until: Duration)
        /// The session stands.
        case standing
    }

    private(set) var client: WebSocketClient
    private var phase = Phase.offline
    /// Before this nothing is said on a new socket.
    private var heldUntil = Duration.zero
    /// Logins that failed since one succeeded.
    private var failures = 0
    private var troubles = 0

    init(_ client: WebSocketClient) { self.client = client }

    /// Whether the session stands.
    var stands: Bool { phase == .standing }

    /// Whether the request of an upgrade was sent on the present socket, and it was not given up.
    var isOnline: Bool {
        switch phase {
        case .loggingIn, .standing: true
        case .offline, .held: false
        }
    }

    /// Whether it stands and the socket can be parked, for all that this layer knows.
    var isParkable: Bool { stands && client.isBetweenMessages }

    /// What is due next.
    var deadline: Duration? {
        switch phase {
        case .offline, .standing: nil
        case .held(let until), .loggingIn(let until): until
        }
    }

    /// Changes the request of later sockets.
    mutating func upgrade(by change: (inout WebSocketUpgrade) -> Void) { change(&client.upgrade) }

    /// A number from the value's generator.
    mutating func draw<Number: FixedWidthInteger>(_ range: ClosedRange<Number>) -> Number {
        Number.random(in: range, using: &client.random)
    }

    // MARK: - The socket

    /// A new socket.
    mutating func connect(at now: Moment, _ turn: inout PushServerTurn) {
        troubles = 0
        guard now.uptime >= heldUntil else {
            client.end()
            phase = .held(until: heldUntil)
            return
        }
        logIn(at: now, &turn)
    }

    private mutating func logIn(at now: Moment, _ turn: inout PushServerTurn) {
        phase = .loggingIn(until: now.uptime + Self.longestLogin)
        turn.output += client.begin()
    }

    /// A socket whose session stands: somebody else logged in, or it was parked.
    mutating func adopt() {
        if phase != .standing { troubles = 0 }
        client.adopt()
        succeeded()
    }

    /// The login succeeded.
    mutating func succeeded() {
        (phase, failures, heldUntil) = (.standing, 0, .zero)
    }

    /// The socket is over.
    mutating func disconnect(at now: Moment) {
        if case .loggingIn = phase { hold(Self.endingPause, at: now) }
        client.end()
        phase = .offline
    }

    /// The deadline is there.
    mutating func passTime(at now: Moment, _ turn: inout PushServerTurn) {
        switch phase {
        case .held(let until) where until <= now.uptime: logIn(at: now, &turn)
        case .loggingIn(let until) where until <= now.uptime:
            giveUp(
                "the server did not answer the login within \(Self.longestLogin.components.seconds) s", at: now, &turn)
        case .offline, .held, .loggingIn, .standing: break
        }
    }

    // MARK: - What comes and goes

    /// What a server's value does something about.
    enum Message: Hashable, Sendable {
        /// The upgrade succeeded: the login can begin.
        case opened
        /// Text, in UTF-8.
        case text([UInt8])
    }

    /// Reads on, and deals with all that is no message.
    ///
    /// - Parameter bytes: loses what was read.
    /// - Returns: the next message; `nil` where the bytes are used up, or the socket is over.
    mutating func next(
        _ bytes: inout ArraySlice<UInt8>, at now: Moment, _ turn: inout PushServerTurn
    ) -> Message? {
        while let event = client.next(&bytes, &turn.output) {
            switch event {
            case .opened: return .opened
            case .text(let text): return .text(text)
            case .binary(let bytes): tell("the server sent a message of \(bytes.count) bytes that is no text", &turn)
            case .refused(let refusal): refused(by: refusal, at: now, &turn)
            case .broken(let reason):
                tell("the server broke the WebSocket protocol: \(reason)", &turn)
                giveUp("the server broke the WebSocket protocol: \(reason)", at: now, &turn)
            case .closed(let code, let reason):
                let words = reason.isEmpty ? "" : ", \"\(reason.printable)\""
                giveUp("the server closed the WebSocket with code \(code)\(words)", at: now, &turn)
            }
        }
        return nil
    }

    /// Sends a text.
    mutating func send(_ text: [UInt8], _ turn: inout PushServerTurn) { turn.output += client.message(text) }

    /// Gives the socket up. Within a login that is a failure of it, and a pause follows.
    mutating func giveUp(_ reason: String, at now: Moment, _ turn: inout PushServerTurn) {
        if case .loggingIn = phase { hold(Self.endingPause, at: now) }
        turn.output += client.close(1000)
        turn.redial = turn.redial ?? reason
        phase = .offline
    }

    /// Gives the socket up for another request. That is no failure of a login.
    ///
    /// - Parameter isWanted: whether the server did nothing wrong.
    mutating func leave(
        _ reason: String, isWanted: Bool = false, at now: Moment, _ turn: inout PushServerTurn
    ) {
        phase = .offline
        if isWanted, turn.redial == nil { turn.isRedialWanted = true }
        giveUp(reason, at: now, &turn)
    }

    /// Gives the socket up, since the server refuses the login, and pauses.
    mutating func refuse(_ reason: String, for pause: Duration? = nil, at now: Moment, _ turn: inout PushServerTurn) {
        hold(Self.refusalPause, least: pause ?? .zero, at: now)
        leave(reason, at: now, &turn)
    }

    private mutating func refused(by refusal: WebSocketRefusal, at now: Moment, _ turn: inout PushServerTurn) {
        let reason = "the server answered the upgrade to a WebSocket with \(refusal.text)"
        if refusal.isOfAccount { turn.reports.append(.loginRefused(reason)) } else { tell(reason, &turn) }
        // A captive portal may be gone with the next network.
        if refusal.mayBeOfAnother { return leave(reason, at: now, &turn) }
        refuse(reason, for: refusal.pause, at: now, &turn)
    }

    private mutating func hold(_ first: Duration, least: Duration = .zero, at now: Moment) {
        let pause = min(first * (1 << min(failures, 12)), Self.longestPause)
        failures += 1
        heldUntil = now.uptime + max(pause, least)
    }

    /// Tells a trouble, unless enough were told of this socket.
    mutating func tell(_ trouble: String, _ turn: inout PushServerTurn) {
        troubles += 1
        if troubles <= Self.mostTroubles { turn.reports.append(.trouble(trouble)) }
        if troubles == Self.mostTroubles {
            turn.reports.append(.trouble("further troubles of this socket are not told"))
        }
    }
}
