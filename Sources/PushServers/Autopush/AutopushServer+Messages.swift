// SPDX-License-Identifier: Apache-2.0

internal import DialtoneDistributor
internal import DialtonePlatform

// What the server says.
extension AutopushServer {
    mutating func receive(_ bytes: [UInt8], at now: Moment, _ turn: inout PushServerTurn) {
        var rest = bytes[...]
        while let message = session.next(&rest, at: now, &turn) {
            switch message {
            case .opened: say(.hello(uaid: memory.uaid), &turn)
            case .text(let text):
                guard let message: AutopushMessage = JSONText.object(text) else {
                    session.tell("the server sent a message of \(text.count) bytes that cannot be read", &turn)
                    continue
                }
                take(message, at: now, &turn)
            }
        }
    }

    private mutating func take(_ message: AutopushMessage, at now: Moment, _ turn: inout PushServerTurn) {
        switch message.type {
        case "hello": greet(message, at: now, &turn)
        case "register" where session.stands: registered(message, at: now, &turn)
        case "unregister" where session.stands: unregistered(message, at: now, &turn)
        case "notification" where session.stands: notify(message, at: now, &turn)
        // `{}` answers a ping of the client's; broadcasts are Firefox's own settings, to which nobody subscribed.
        case nil, "ping", "broadcast": break
        case let type?:
            session.tell("the server sent a message that is out of place: \(Self.quoted(type))", &turn)
        }
    }

    private mutating func greet(_ hello: AutopushMessage, at now: Moment, _ turn: inout PushServerTurn) {
        guard !session.stands else { return session.tell("the server answered hello twice", &turn) }
        guard hello.status == 200, let uaid = hello.uaid, Self.isIdentity(uaid) else {
            let reason = "the server answered hello with status \(hello.status.map(String.init) ?? "none")"
            // An overloaded server says nothing about the client: it is asked again after a pause.
            if Self.failure(of: hello.status) == .network {
                session.tell(reason, &turn)
            } else {
                turn.reports.append(.loginRefused(reason))
            }
            return session.refuse(reason, at: now, &turn)
        }
        session.succeeded()
        hasStood = true
        turn.reports.append(.loggedIn)
        if uaid != memory.uaid {
            let hadChannels = !memory.channels.isEmpty
            (memory.uaid, memory.channels) = (uaid, [])
            (pending, ending) = ([:], [:])
            // The server keeps a uaid from its first channel on, and not before: without one nothing is lost.
            if hadChannels {
                turn.reports.append(
                    .identityLost("the server does not know this client any more, and gave it a new uaid"))
            }
        }
        sendWanted(at: now, &turn)
    }

    private mutating func registered(_ answer: AutopushMessage, at now: Moment, _ turn: inout PushServerTurn) {
        guard let registration = answer.channel.flatMap(RegistrationID.init(channel:)),
            wanted[registration]?.isSent == true
        else { return session.tell("the server registered a channel that nobody asked for", &turn) }
        wanted[registration] = nil
        updateAnswerDue()
        switch answer.status {
        case 200:
            guard let endpoint = answer.endpoint, isEndpoint(endpoint) else {
                let reason = "the server registered the channel with an endpoint that is no URL of up to 1,000 bytes"
                turn.reports.append(.registrationFailed(registration, .internalError, reason))
                return
            }
            memory.channels.insert(registration)
            turn.reports.append(.registered(registration, endpoint: endpoint, expires: nil))
        case let status:
            let reason = "the server answered register with status \(status.map(String.init) ?? "none")"
            turn.reports.append(.registrationFailed(registration, Self.failure(of: status), reason))
        }
    }

    /// What a status of `hello` or `register` means: the server's own trouble passes (429, 5xx), a channel of somebody
    /// else (409) and a key that is none (400) do not.
    private static func failure(of status: Int?) -> RegistrationFailure {
        switch status {
        case 401, 403: .unauthorized
        case .some(500...599), 429: .network
        default: .internalError
        }
    }

    private mutating func unregistered(_ answer: AutopushMessage, at now: Moment, _ turn: inout PushServerTurn) {
        guard let registration = answer.channel.flatMap(RegistrationID.init(channel:)),
            ending[registration] == true
        else { return session.tell("the server ended a channel that nobody asked it to", &turn) }
        if answer.status != 200 {
            // The channel may live on there. What comes for it is refused, and it is ended anew then.
            session.tell(
                "the server answered unregister with status \(answer.status.map(String.init) ?? "none")", &turn)
        }
        ending[registration] = nil
        updateAnswerDue()
        memory.channels.remove(registration)
        pending = pending.filter { $0.value.registration != registration }
        turn.reports.append(.unregistered(registration))
    }

    private mutating func updateAnswerDue() {
        if !wanted.values.contains(where: \.isSent), !ending.values.contains(true) { answerDue = nil }
    }

    // MARK: - Notifications

    private mutating func notify(_ message: AutopushMessage, at now: Moment, _ turn: inout PushServerTurn) {
        guard let version = message.version, let id = ServerMessageID(version),
            let registration = message.channel.flatMap(RegistrationID.init(channel:))
        else { return session.tell("the server sent a notification without a version or a channel", &turn) }
        guard memory.channels.contains(registration) else {
            session.tell("the server sent a notification for a channel that is not registered; it is ended", &turn)
            say(.ack(registration, version: version, .notDelivered), &turn)
            // Once on a socket is enough.
            if ending[registration] == nil, ending.count < AutopushMemory.mostChannels {
                ending[registration] = false
                sendWanted(at: now, &turn)
            }
            return
        }
        if let code = pending[id]?.code {
            pending[id] = nil
            return say(.ack(registration, version: version, code), &turn)
        }
        // RFC 8291 puts all that an app needs into the body. The older encoding (draft-ietf-webpush-encryption-03) has
        // its salt and its key in fields that UnifiedPush has no place for.
        guard message.headers?.encoding == "aes128gcm" else {
            let encoding = message.headers?.encoding.map(Self.quoted) ?? "none"
            session.tell("a push was given up: its encoding is \(encoding), and apps read aes128gcm only", &turn)
            return say(.ack(registration, version: version, .undecipherable), &turn)
        }
        guard let body = message.data.flatMap(Base64.bytes(ofURLSafe:)), (1...Self.largestBody).contains(body.count)
        else {
            session.tell("a push was given up: it has no body of 1 to \(Self.largestBody) bytes in base64", &turn)
            return say(.ack(registration, version: version, .notDelivered), &turn)
        }
        guard pending.count < Self.mostPending || pending[id] != nil else {
            askAgainLater(at: now)
            return session.tell("a push was left with the server: \(Self.mostPending) others wait", &turn)
        }
        pending[id] = Pending(registration: registration)
        turn.arrived.append(
            ArrivedMessage(
                id: id, registration: registration, body: body,
                urgency: message.headers?.urgency.flatMap(Urgency.init) ?? .normal,
                expires: expiry(ttl: message.ttl, at: now)))
    }

    /// When a push ends that has so many seconds. Today's servers do not say.
    private func expiry(ttl: Int?, at now: Moment) -> WallTime? {
        guard let ttl, ttl >= 0 else { return nil }
        let life = Int64(min(ttl, Self.longestLife)) * 1000
        return WallTime(milliseconds: now.wall.milliseconds.addingReportingOverflow(life).partialValue)
    }

    // MARK: - Texts of the server

    /// Whether a text can be this client's name: autopush's is a UUID without dashes. It stands in the opening as it
    /// is.
    static func isIdentity(_ text: String) -> Bool {
        (1...64).contains(text.utf8.count)
            && text.utf8.allSatisfy {
                (48...57).contains($0) || (65...90).contains($0) || (97...122).contains($0) || $0 == 45
            }
    }

    /// Whether a text can be an endpoint: UnifiedPush has 1,000 bytes for it, and nobody pushes without TLS but a test.
    private func isEndpoint(_ text: String) -> Bool {
        text.utf8.count <= 1000
            && ServerURL(text, secure: "https", plain: "http").map { $0.isSecure || !url.isSecure } == true
    }

    /// A short text of the server, for a person.
    private static func quoted(_ text: String) -> String { "\"\(String(text.prefix(40)).printable)\"" }
}
