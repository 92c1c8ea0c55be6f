// SPDX-License-Identifier: Apache-2.0

/// A push server, as a value without I/O: what it is told comes in by ``take(_:at:)``, and what is to be done comes
/// out.
///
/// The driver opens the connection at the machine's agent, hands over what it reads, and does what a turn says in this
/// order: it saves ``PushServerTurn/memory`` and ``PushServerTurn/arrived`` in one transaction, then sends
/// ``PushServerTurn/output``, then passes on the reports. Where the transaction fails nothing more is sent, and the
/// driver redials with a value that it made of what was saved last. While the distributor knows that it can save
/// nothing, it saves nothing of a turn and settles the messages with `.notNow`.
package protocol PushServer: Sendable {
    /// The URL that the machine's agent dials.
    var remote: String { get }

    /// What is to happen next without input, by the uptime clock; `nil` for nothing. Then the driver says
    /// `.timePassed`.
    var deadline: Duration? { get }

    /// How the socket can be parked now; `nil` while it cannot: a login or an answer is under way, a message was read
    /// by half. Where a message waits for its app's answer the socket may be parked if the answer can be sent later, on
    /// this socket.
    var parking: PushParking? { get }

    /// Takes one input and says what is to be done.
    mutating func take(_ input: PushServerInput, at now: Moment) -> PushServerTurn
}

/// What a ``PushServer`` is told.
package enum PushServerInput: Hashable, Sendable {
    /// A socket on which nothing was said yet. What was under way on the one before is over.
    case connected
    /// A socket on which the agent played the opening that was parked with the last one.
    case opened
    /// The socket was parked, by the word that ``PushServer/parking`` gave after the last byte was read. From now on
    /// the agent has that opening, until the next time, and says it on each new socket.
    case parked
    /// The socket that was parked, with something to read or because there is something to send.
    case unparked
    /// Bytes, in the order of the stream.
    case received([UInt8])
    /// The socket is over.
    case disconnected
    /// The server is to register this, or to renew it. Ignored while no session stands: it is said again after each
    /// `.loggedIn`, and after a minute without an answer. One that is under way is not sent twice.
    case register(RegistrationID, vapid: String?)
    /// The server is to end this registration, whose endpoint is told for servers that know no other name for it.
    /// Ignored and said again like a registration. A server without a word for it confirms at once.
    case unregister(RegistrationID, endpoint: String?)
    /// A message that arrived is on disk (`.kept`), and later: what became of it, which is on disk by then. It may be a
    /// message of the process before, and be told twice; what cannot be told on this session is ignored, and the same
    /// is said when the message comes again.
    case settled(ServerMessageID, MessageOutcome)
    /// The deadline is there.
    case timePassed
}

/// What is to be done after an input.
package struct PushServerTurn: Hashable, Sendable {
    /// What outlives the process, where it changed: up to 64 KiB, and given to the next value's initializer.
    package var memory: [UInt8]?
    /// Messages that came, in their order.
    package var arrived: [ArrivedMessage] = []
    /// What is sent.
    package var output: [UInt8] = []
    /// What else happened, in its order.
    package var reports: [PushServerReport] = []
    /// Why the driver must give this socket up and redial; for a person. The next socket is one without an opening.
    package var redial: String?
    /// Whether that is the value's own wish, and no fault of the server's: then it is done soon, however often.
    package var isRedialWanted = false

    /// Nothing is to be done.
    package init() {}
}

/// What a server's value tells.
package enum PushServerReport: Hashable, Sendable {
    /// The session stands: after each `.connected` and `.opened` that led to one.
    case loggedIn
    /// The server refuses the account; why, for a person. It is tried again by hand or after the time that
    /// ``PushServer/deadline`` says.
    case loginRefused(String)
    /// The registration has this endpoint, until then where the server says.
    case registered(RegistrationID, endpoint: String, expires: WallTime?)
    /// It could not be registered; why, in UnifiedPush's words and for a person.
    case registrationFailed(RegistrationID, RegistrationFailure, String)
    /// There are as many registrations as there can be, and this one is none of them; why, for a person.
    case registrationsFull(RegistrationID, String)
    /// The server does not know the registration (any more), or confirms that it ended.
    case unregistered(RegistrationID)
    /// The server knows nothing of what was registered: all is to be registered anew. Why, for a person. In one turn
    /// with the ``PushServerTurn/memory`` that knows of it, and with `.loggedIn`.
    case identityLost(String)
    /// The server broke the protocol, or something else that a person who looks for a fault wants to know.
    case trouble(String)
}

/// One registration at a server, made by the distributor: 32 lower-case hexadecimal digits, drawn at random.
package struct RegistrationID: Hashable, Sendable {
    /// The digits.
    package let text: String

    /// The registration of that text; `nil` where it is not 32 lower-case hexadecimal digits.
    package init?(_ text: String) {
        guard text.utf8.count == 32, text.utf8.allSatisfy({ (48...57).contains($0) || (97...102).contains($0) }) else {
            return nil
        }
        self.text = text
    }
}

/// A message by the server's own name for it: what the receipt names, and by which a second copy is known. Up to 256
/// bytes of UTF-8.
package struct ServerMessageID: Hashable, Sendable {
    /// The name.
    package let text: String

    /// The message of that name; `nil` for none, and for one of over 256 bytes.
    package init?(_ text: String) {
        guard (1...256).contains(text.utf8.count) else { return nil }
        self.text = text
    }
}

/// A message that a server handed over.
package struct ArrivedMessage: Hashable, Sendable {
    /// Its name at the server.
    package let id: ServerMessageID
    /// For which registration.
    package let registration: RegistrationID
    /// The encrypted body, 1 to 4096 bytes; the value checked that.
    package let body: [UInt8]
    /// RFC 8030, section 5.3; `normal` where the server does not say.
    package let urgency: Urgency
    /// When it is worth nothing any more; `nil` where the server does not say.
    package let expires: WallTime?

    /// A message with all its fields.
    package init(
        id: ServerMessageID, registration: RegistrationID, body: [UInt8], urgency: Urgency, expires: WallTime?
    ) {
        self.id = id
        self.registration = registration
        self.body = body
        self.urgency = urgency
        self.expires = expires
    }
}

/// How urgent a message is (RFC 8030, section 5.3).
package enum Urgency: String, Hashable, Sendable, CaseIterable, Comparable {
    case veryLow = "very-low"
    case low
    case normal
    case high

    private var rank: Int { Self.allCases.firstIndex(of: self) ?? 0 }

    package static func < (left: Self, right: Self) -> Bool { left.rank < right.rank }
}

/// What became of a message.
package enum MessageOutcome: Hashable, Sendable {
    /// It is on disk and waits for its app. A server whose acknowledgement tells no sender anything gets it now: one
    /// that waits for it may hand over nothing else meanwhile, and an app that cannot be started would hold up others.
    case kept
    /// The app has it.
    case taken
    /// It is given up (expired, set aside after several tries, no such registration): the server is to keep it no
    /// longer and, where it can tell, to tell the sender. Why, for a person.
    case givenUp(String)
    /// It could not be saved, or there is no room for anybody's: the server keeps it, or tells the sender to try again.
    case notNow(String)
    /// So much waits for its app that this one is not kept: as for `notNow`, unless the server would hand over nothing
    /// else meanwhile. Then it is given up.
    case full(String)
}

/// How a server's socket is parked at the machine's agent.
package struct PushParking: Hashable, Sendable {
    /// What the agent says on each new socket; empty for nothing, and then the session agent is woken to log in.
    package var opening: [OpeningStep]
    /// What the agent answers without waking.
    package var answers: Answers

    /// With an opening and answers.
    package init(opening: [OpeningStep], answers: Answers) {
        self.opening = opening
        self.answers = answers
    }

    /// One step of an opening, with raw bytes: escaping is the driver's.
    package struct OpeningStep: Hashable, Sendable {
        /// What is sent.
        package var send: [UInt8]
        /// How the answer begins.
        package var begins: [UInt8]
        /// How it ends; `nil`: it is exactly `begins`, or a frame where the protocol has frames.
        package var until: [UInt8]?
        /// What it holds somewhere.
        package var contains: [UInt8]?
        /// Whether the answer is one WebSocket frame.
        package var isFrame: Bool

        /// A step with all its fields.
        package init(
            send: [UInt8], begins: [UInt8], until: [UInt8]? = nil, contains: [UInt8]? = nil, isFrame: Bool = false
        ) {
            self.send = send
            self.begins = begins
            self.until = until
            self.contains = contains
            self.isFrame = isFrame
        }
    }

    /// Which questions of the server are answered while the session agent sleeps.
    package enum Answers: Hashable, Sendable {
        /// WebSocket's pings (RFC 6455, section 5.5.2).
        case webSocket
        /// XEP-0198's `<r/>` with this count, and blanks between stanzas.
        case xmpp(handled: UInt32)
    }
}

extension PushParking.OpeningStep: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// How much is sent. What it is may be a password.
    package var description: String { "\(send.count) bytes" }
    /// The same.
    package var debugDescription: String { description }
    /// The same.
    package var customMirror: Mirror { Mirror(self, children: ["send": description]) }
}
