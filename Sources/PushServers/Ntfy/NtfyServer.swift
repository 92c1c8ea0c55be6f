// SPDX-License-Identifier: Apache-2.0

package import DialtoneDistributor
internal import DialtonePlatform
internal import DialtoneVarlink

/// An ntfy server, as a value: one WebSocket that subscribes to a topic for each registration.
///
/// The topics stand in the request, so a new one needs another socket. The server stores messages for 12 h
/// (`cache-duration`) and wants no acknowledgement; see ``NtfyMark``.
package struct NtfyServer: PushServer {
    /// Who asks, for servers that serve not everybody.
    package enum Credentials: Hashable, Sendable, CustomStringConvertible, CustomReflectable {
        /// An access token.
        case token(String)
        /// An account.
        case user(String, password: String)

        /// Of what kind they are.
        package var description: String {
            switch self {
            case .token: "token"
            case .user(let name, _): "user \(name)"
            }
        }
        /// The same.
        package var customMirror: Mirror { Mirror(self, children: ["credentials": description]) }

        fileprivate var authorization: String {
            switch self {
            case .token(let token): "Bearer \(token)"
            case .user(let name, let password): "Basic \(Base64.text(of: Array("\(name):\(password)".utf8)))"
            }
        }
    }

    /// The longest body (ntfy's `message-size-limit`).
    static let largestBody = 4096
    /// The longest name of a message. ntfy's have 12 characters.
    static let longestName = 64
    /// The most messages that wait to be saved: more than are read at a time. Others are asked for again.
    static let mostPending = 1000
    /// When messages that were put off are asked for again, on another socket.
    static let retryPause = Duration.seconds(600)

    private let url: ServerURL
    private var session: WebSocketSession
    private var memory = NtfyMemory()
    /// The topics of the last request.
    private var subscribed: Set<String> = []
    /// Registrations whose endpoint is to be told once the server serves their topic.
    private var wanted: Set<RegistrationID> = []
    /// The time of each message that waits to be saved. Of one that is, the server is told nothing.
    private var pending: [ServerMessageID: Int] = [:]
    /// The topic that is asked for while no app has one, and that nobody is told: a session stands at this server as at
    /// any other, so that the first app can register, and the socket can be parked.
    private var spare = ""
    /// When the socket is given up for messages that were put off.
    private var retryDue: Duration?
    /// When it is given up for new topics.
    private var subscribeDue: Duration?
    private var redials = TopicRedials()

    /// A server.
    ///
    /// - Parameters:
    ///   - url: `https://HOST`, or `http://HOST` for one of the same machine or of a test.
    ///   - credentials: `nil` for a server that serves everybody.
    ///   - memory: what a turn had saved last; `nil` for nothing, and what is none counts as nothing.
    ///   - random: for topics, nonces and masks. A topic is all that keeps others from pushing.
    /// - Returns: `nil` for a URL that is none or has a path, and for credentials with control characters.
    package init?(
        url: String, credentials: Credentials? = nil, memory: [UInt8]? = nil,
        random: any RandomNumberGenerator & Sendable = SystemRandomNumberGenerator()
    ) {
        let authorization = credentials?.authorization ?? ""
        guard let url = ServerURL(url, secure: "https", plain: "http"), url.path == "/",
            authorization.utf8.count <= 4096, authorization.utf8.allSatisfy({ (0x20...0x7E).contains($0) })
        else { return nil }
        self.url = url
        var upgrade = WebSocketUpgrade(host: url.host, path: "/")
        if credentials != nil { upgrade.fields = [.init(name: "Authorization", value: authorization)] }
        session = WebSocketSession(WebSocketClient(upgrade, random: random))
        if let saved: NtfyMemory = memory.flatMap(JSONText.object) { self.memory = saved }
        spare = drawTopic()
        updatePath()
    }

    package var remote: String { url.remote }

    package var deadline: Duration? {
        [session.deadline, retryDue, subscribeDue, session.stands ? memory.mark.deadline : nil].compactMap(\.self).min()
    }

    package var parking: PushParking? {
        guard session.isParkable, wanted.isEmpty, isServed else { return nil }
        // The first event says that the subscription stands; the server speaks first.
        let open = session.client.parkedMessage([], contains: Array("\"event\":\"open\"".utf8))
        return PushParking(opening: [session.client.parkedUpgrade, open], answers: .webSocket)
    }

    package mutating func take(_ input: PushServerInput, at now: Moment) -> PushServerTurn {
        var turn = PushServerTurn()
        let before = memory
        switch input {
        case .connected: connect(at: now, &turn)
        case .opened:
            adopt(at: now, &turn)
            memory.mark.begin(at: now.uptime)
            turn.reports.append(.loggedIn)
        case .parked: break
        case .unparked: adopt(at: now, &turn)
        case .received(let bytes): receive(bytes, at: now, &turn)
        case .disconnected:
            (retryDue, subscribeDue) = (nil, nil)
            session.disconnect(at: now)
        case .register(let registration, _): register(registration, at: now, &turn)
        case .unregister(let registration, _): unregister(registration, &turn)
        case .settled(let id, let outcome): settle(id, outcome, at: now)
        case .timePassed: passTime(at: now, &turn)
        }
        updatePath()
        // Not all of the mark outlives the process.
        if memory != before, memory.json != before.json { turn.memory = memory.json }
        return turn
    }

    // MARK: - Sockets

    private mutating func connect(at now: Moment, _ turn: inout PushServerTurn) {
        (retryDue, subscribeDue) = (nil, nil)
        updatePath()
        session.connect(at: now, &turn)
        noteRequest(at: now)
    }

    /// Another request may have gone out.
    private mutating func noteRequest(at now: Moment) {
        guard session.isOnline, !session.stands else { return }
        subscribed = topics
        memory.mark.begin(at: now.uptime)
    }

    private mutating func adopt(at now: Moment, _ turn: inout PushServerTurn) {
        session.adopt()
        if subscribed.isEmpty {
            // A new process on the socket of the one before.
            subscribed = topics
            memory.mark.begin(at: now.uptime)
        }
        subscribe(at: now, &turn)
    }

    /// What is asked for.
    private var topics: Set<String> { memory.topics.isEmpty ? [spare] : Set(memory.topics.values) }

    private mutating func updatePath() {
        let path = "/\(topics.sorted().joined(separator: ","))/ws?since=\(memory.mark.parameter)"
        session.upgrade { $0.path = path }
    }

    private mutating func passTime(at now: Moment, _ turn: inout PushServerTurn) {
        let wasOnline = session.isOnline
        session.passTime(at: now, &turn)
        if !wasOnline { noteRequest(at: now) }
        if session.stands { memory.mark.passTime(at: now.uptime) }
        if let due = retryDue, due <= now.uptime {
            retryDue = nil
            session.leave("messages that were put off are asked for again", isWanted: true, at: now, &turn)
        }
        if let due = subscribeDue, due <= now.uptime { subscribe(at: now, &turn) }
    }

    // MARK: - Registrations

    private mutating func register(
        _ registration: RegistrationID, at now: Moment, _ turn: inout PushServerTurn
    ) {
        if memory.topics[registration] == nil {
            guard memory.topics.count < NtfyMemory.mostTopics else {
                let reason = "there are \(memory.topics.count) registrations at this server already, the most that fit"
                turn.reports.append(.registrationsFull(registration, reason))
                return
            }
            memory.topics[registration] = drawTopic()
        }
        wanted.insert(registration)
        subscribe(at: now, &turn)
        if session.stands { tellEndpoints(&turn) }
    }

    private mutating func unregister(_ registration: RegistrationID, _ turn: inout PushServerTurn) {
        memory.topics[registration] = nil
        wanted.remove(registration)
        turn.reports.append(.unregistered(registration))
        if isServed { subscribeDue = nil }
    }

    /// UnifiedPush's topics at ntfy: `up` and 12 characters, 71 bits.
    private mutating func drawTopic() -> String {
        let characters = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789")
        return "up" + String((0..<12).map { _ in characters[session.draw(0...characters.count - 1)] })
    }

    /// Whether the server serves the present topics. One that went stays until the next socket: what comes for it is
    /// passed over.
    private var isServed: Bool { subscribed.isSuperset(of: memory.topics.values) }

    /// Sees to it that the server serves the present topics: now, or where that was so a moment ago, later. No login is
    /// given up for that: once the session stands is soon enough, for all that came meanwhile.
    private mutating func subscribe(at now: Moment, _ turn: inout PushServerTurn) {
        subscribeDue = nil
        guard session.stands, !isServed else { return }
        let earliest = redials.earliest
        guard earliest <= now.uptime else { return subscribeDue = earliest }
        redials.note(at: now.uptime)
        session.leave("the topics changed, and they stand in the request", isWanted: true, at: now, &turn)
    }

    private mutating func tellEndpoints(_ turn: inout PushServerTurn) {
        for registration in wanted.sorted(by: { $0.text < $1.text }) {
            guard let topic = memory.topics[registration], subscribed.contains(topic) else { continue }
            wanted.remove(registration)
            let endpoint = "\(url.isSecure ? "https" : "http")://\(url.host)/\(topic)?up=1"
            turn.reports.append(.registered(registration, endpoint: endpoint, expires: nil))
        }
    }

    // MARK: - Messages

    private mutating func receive(_ bytes: [UInt8], at now: Moment, _ turn: inout PushServerTurn) {
        var rest = bytes[...]
        while let message = session.next(&rest, at: now, &turn) {
            guard case .text(let text) = message else { continue }
            guard let message: NtfyMessage = JSONText.object(text) else {
                session.tell("the server sent a message of \(text.count) bytes that cannot be read", &turn)
                continue
            }
            switch message.event {
            case "open" where !session.stands:
                session.succeeded()
                turn.reports.append(.loggedIn)
                tellEndpoints(&turn)
                subscribe(at: now, &turn)
            case "message": notify(message, at: now, &turn)
            // Another `open`, `keepalive`, `poll_request`, and what later versions have.
            default: break
            }
        }
    }

    private mutating func notify(_ message: NtfyMessage, at now: Moment, _ turn: inout PushServerTurn) {
        guard let name = message.id, name.utf8.count <= Self.longestName, let id = ServerMessageID(name),
            let time = message.time, (1...NtfyMark.latest).contains(time)
        else { return session.tell("the server sent a message without a name of up to 64 bytes or a time", &turn) }
        guard Int64(time) * 1000 <= now.wall.milliseconds.addingReportingOverflow(86_400_000).partialValue else {
            // Where the mark followed it, the server would not be asked for what comes before. But it may be our clock
            // that is wrong.
            askAgainLater(at: now)
            return session.tell("the server sent a message of tomorrow, by this machine's clock", &turn)
        }
        guard let registration = memory.topics.first(where: { $0.value == message.topic })?.key else {
            // That of a registration that ended, or our spare one, is nobody's fault.
            if let topic = message.topic, subscribed.contains(topic) { return }
            return session.tell("the server sent a message for a topic that is not registered", &turn)
        }
        guard pending.count < Self.mostPending || pending[id] != nil else {
            putOff(name, time: time, at: now)
            return session.tell("a push was put off: \(Self.mostPending) others wait", &turn)
        }
        guard memory.mark.came(name, time: time, at: now.uptime) else { return }
        guard message.attachment == nil, let body = message.body, (1...Self.largestBody).contains(body.count) else {
            let problem = message.attachment == nil ? "no body of 1 to \(Self.largestBody) bytes" : "an attachment"
            return session.tell("a push was given up: it has \(problem)", &turn)
        }
        pending[id] = time
        let expires = message.expires.flatMap { (time...NtfyMark.latest).contains($0) ? Int64($0) * 1000 : nil }
        turn.arrived.append(
            ArrivedMessage(
                id: id, registration: registration, body: body, urgency: message.urgency,
                expires: expires.map { WallTime(milliseconds: $0) }))
    }

    private mutating func settle(_ id: ServerMessageID, _ outcome: MessageOutcome, at now: Moment) {
        guard let time = pending.removeValue(forKey: id) else { return }
        switch outcome {
        case .kept, .taken, .givenUp: break
        case .notNow, .full: putOff(id.text, time: time, at: now)
        }
    }

    private mutating func putOff(_ name: String, time: Int, at now: Moment) {
        memory.mark.putOff(name, time: time)
        askAgainLater(at: now)
    }

    private mutating func askAgainLater(at now: Moment) {
        if session.stands { retryDue = retryDue ?? now.uptime + Self.retryPause }
    }
}
