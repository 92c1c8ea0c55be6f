// SPDX-License-Identifier: Apache-2.0

package import DialtoneDistributor
internal import DialtonePlatform
internal import DialtoneVarlink

/// Mozilla's push service (autopush-rs), as a value: the protocol that Firefox speaks, one object of JSON in each
/// message of a WebSocket.
///
/// The server names a client by a `uaid` and keeps its channels under it. A client that it does not know gets another
/// one: then nothing of what was registered is left. A notification that is not acknowledged comes again on the next
/// socket, and those in store come about ten at a time, the next ones once all are acknowledged, whose ever they are.
/// So each is acknowledged as soon as it is on disk; its sender learns nothing of that.
package struct AutopushServer: PushServer {
    /// Mozilla's own server.
    package static let mozilla = "wss://push.services.mozilla.com/"

    /// So long a server may take to answer `register` and `unregister`; Firefox waits 10 s.
    static let longestAnswer = Duration.seconds(30)
    /// The most messages that wait to be saved or acknowledged: more than are read at a time. Others are left with the
    /// server, and come with the next socket.
    static let mostPending = 1000
    /// When messages that were put off are asked for again. The server hands them over on a new socket only.
    static let retryPause = Duration.seconds(600)
    /// The longest time that a push is kept (autoendpoint's `MAX_NOTIFICATION_TTL`).
    static let longestLife = 30 * 86400
    /// The longest body (RFC 8030, section 7.2; the `MAX_DATA_BYTES` of autoendpoint).
    static let largestBody = 4096

    let url: ServerURL
    var session: WebSocketSession
    var memory = AutopushMemory()
    /// What is to be registered, and by which key.
    var wanted: [RegistrationID: Wanted] = [:]
    /// What is to end; whether that was said on this socket.
    var ending: [RegistrationID: Bool] = [:]
    /// Messages by their version.
    var pending: [ServerMessageID: Pending] = [:]
    /// Whether the session stood on the socket that messages are said to be here by.
    var hasStood = false
    /// By when the server must have answered.
    var answerDue: Duration?
    /// When the socket is given up for messages that were put off.
    var retryDue: Duration?

    /// A registration that has no endpoint yet, or is to be renewed.
    struct Wanted: Hashable {
        var key: String?
        /// Whether that was said on this socket.
        var isSent = false
    }

    /// A message that waits to be saved, or for the server to hand it over once more.
    struct Pending: Hashable {
        let registration: RegistrationID
        /// Whether it came on this socket: the server takes no other acknowledgement.
        var isHere = true
        /// What became of it, where that could not be said.
        var code: AutopushCode?
    }

    /// A server.
    ///
    /// - Parameters:
    ///   - url: `wss://…`, or `ws://…` for one of a test.
    ///   - memory: what a turn had saved last; `nil` for nothing, and what is none counts as nothing.
    ///   - random: for nonces and masks.
    /// - Returns: `nil` for a URL that is none.
    package init?(
        url: String = AutopushServer.mozilla, memory: [UInt8]? = nil,
        random: any RandomNumberGenerator & Sendable = SystemRandomNumberGenerator()
    ) {
        guard let url = ServerURL(url, secure: "wss", plain: "ws") else { return nil }
        self.url = url
        session = WebSocketSession(
            WebSocketClient(WebSocketUpgrade(host: url.host, path: url.path), random: random))
        if let saved: AutopushMemory = memory.flatMap(JSONText.object),
            saved.uaid.map(Self.isIdentity) ?? false
        {
            self.memory = saved
        }
    }

    package var remote: String { url.remote }

    package var deadline: Duration? { [session.deadline, answerDue, retryDue].compactMap(\.self).min() }

    package var parking: PushParking? {
        guard session.isParkable, answerDue == nil, wanted.isEmpty, ending.isEmpty else { return nil }
        guard let uaid = memory.uaid else { return nil }
        let hello = session.client.parkedMessage(
            AutopushRequest.hello(uaid: uaid).json, contains: Array("\"uaid\":\"\(uaid)\"".utf8))
        return PushParking(opening: [session.client.parkedUpgrade, hello], answers: .webSocket)
    }

    package mutating func take(_ input: PushServerInput, at now: Moment) -> PushServerTurn {
        var turn = PushServerTurn()
        let before = memory
        switch input {
        case .connected:
            forgetSocket()
            session.connect(at: now, &turn)
        case .opened:
            forgetSocket()
            adopt()
            turn.reports.append(.loggedIn)
            sendWanted(at: now, &turn)
        case .parked: break
        case .unparked:
            adopt()
            sendWanted(at: now, &turn)
        case .received(let bytes): receive(bytes, at: now, &turn)
        case .disconnected:
            forgetSocket()
            session.disconnect(at: now)
        case .register(let registration, let vapid): register(registration, vapid, at: now, &turn)
        case .unregister(let registration, _): unregister(registration, at: now, &turn)
        case .settled(let id, let outcome): settle(id, outcome, at: now, &turn)
        case .timePassed: passTime(at: now, &turn)
        }
        if memory != before { turn.memory = memory.json }
        return turn
    }

    private mutating func adopt() {
        session.adopt()
        hasStood = true
    }

    /// What was said on the socket before is over, and will be said again. A message that did not come again while a
    /// session stood is not at the server any more.
    private mutating func forgetSocket() {
        (answerDue, retryDue) = (nil, nil)
        for registration in wanted.keys { wanted[registration]?.isSent = false }
        for registration in ending.keys { ending[registration] = false }
        if hasStood { pending = pending.filter(\.value.isHere) }
        hasStood = false
        pending = pending.mapValues { pending in
            var pending = pending
            pending.isHere = false
            return pending
        }
    }

    private mutating func passTime(at now: Moment, _ turn: inout PushServerTurn) {
        session.passTime(at: now, &turn)
        if let due = answerDue, due <= now.uptime {
            answerDue = nil
            session.giveUp(
                "the server did not answer within \(Self.longestAnswer.components.seconds) s", at: now, &turn)
        }
        if let due = retryDue, due <= now.uptime {
            retryDue = nil
            session.leave("messages that were put off are asked for again", isWanted: true, at: now, &turn)
        }
    }

    // MARK: - What the distributor wants

    private mutating func register(
        _ registration: RegistrationID, _ vapid: String?, at now: Moment, _ turn: inout PushServerTurn
    ) {
        let count = memory.channels.union(wanted.keys).union([registration]).count
        guard count <= AutopushMemory.mostChannels else {
            let reason = "there are \(count - 1) registrations at this server already, the most that fit"
            turn.reports.append(.registrationsFull(registration, reason))
            return
        }
        ending[registration] = nil
        if let known = wanted[registration], known.isSent, known.key == vapid { return }
        wanted[registration] = Wanted(key: vapid)
        sendWanted(at: now, &turn)
    }

    private mutating func unregister(
        _ registration: RegistrationID, at now: Moment, _ turn: inout PushServerTurn
    ) {
        wanted[registration] = nil
        if ending[registration] == nil { ending[registration] = false }
        sendWanted(at: now, &turn)
    }

    /// Says what is to be said of registrations, in an order that the next run has, too.
    mutating func sendWanted(at now: Moment, _ turn: inout PushServerTurn) {
        guard session.stands else { return }
        for (registration, state) in wanted.sorted(by: { $0.key.text < $1.key.text }) where !state.isSent {
            wanted[registration]?.isSent = true
            say(.register(registration, key: state.key), &turn)
            answerDue = now.uptime + Self.longestAnswer
        }
        for (registration, isSent) in ending.sorted(by: { $0.key.text < $1.key.text }) where !isSent {
            ending[registration] = true
            say(.unregister(registration), &turn)
            answerDue = now.uptime + Self.longestAnswer
        }
    }

    mutating func say(_ request: AutopushRequest, _ turn: inout PushServerTurn) {
        session.send(request.json, &turn)
    }

    private mutating func settle(
        _ id: ServerMessageID, _ outcome: MessageOutcome, at now: Moment, _ turn: inout PushServerTurn
    ) {
        guard let message = pending[id] else { return }
        let code: AutopushCode
        switch outcome {
        case .kept, .taken: code = .delivered
        case .givenUp: code = .notDelivered
        case .full(let why):
            // Left with the server it would hold up all that is stored behind it.
            session.tell("a push was given up: \(why)", &turn)
            code = .notDelivered
        case .notNow:
            pending[id] = nil
            return askAgainLater(at: now)
        }
        guard session.stands, message.isHere else {
            pending[id]?.code = code
            return
        }
        pending[id] = nil
        say(.ack(message.registration, version: id.text, code), &turn)
    }

    /// Has the server hand over once more what is not acknowledged.
    mutating func askAgainLater(at now: Moment) {
        if session.stands { retryDue = retryDue ?? now.uptime + Self.retryPause }
    }
}
