// SPDX-License-Identifier: Apache-2.0

package import DialtoneDistributor
internal import DialtonePlatform

/// A push service that speaks XMPP (``XMPP/push``), at an account of the person's own server.
///
/// **Login.** SASL PLAIN and nothing else: an opening that the agent plays says the same each time, and SCRAM does not.
/// A server that offers no PLAIN over TLS refuses the account.
///
/// **Session.** With stream management (XEP-0198) the session outlives its sockets, the process, and the machine's
/// sleep as far as the server has patience (prosody: 600 s). What was not acknowledged is sent again, by both sides.
/// Without it a push that comes while there is no socket is lost, and prosody's module tells its sender that it was
/// delivered. What cannot be gone on with (a server that breaks the protocol, a stanza beyond its bounds) ends the
/// session, too: a server would send the same stanza again after each resumption.
///
/// **Endpoints** belong to the full JID that registered. The resource is kept, so that a new session has the same one;
/// where the server binds another, all is registered anew. The protocol has no end of a registration: a push for
/// one that was ended, or that is not known, is refused as `item-not-found`, by which the service tells the sender
/// that the endpoint is gone.
///
/// **Receipts.** A push is an iq, and its answer is sent once the message is settled. The answer waits in memory for
/// the next socket where there is none. With a session that is lost goes what waits for an answer in it: the server
/// itself told the senders.
///
/// **A message's name** is the iq's id and a hash of what it holds. So the same iq is known again however it comes, and
/// a new message under an id of before is none of the old: bodies are encrypted with a salt of their own (RFC 8291).
/// Where one comes while the old one has no answer, the old one gets none, which would be taken for the new one's.
///
/// Where a turn could not be saved, a value made of what was saved last goes on as if the turn had not been.
package struct XMPPPushServer: PushServer {
    /// How far the socket is.
    enum Phase: Hashable, Sendable {
        /// There is none, or nothing more is read of it.
        case offline
        /// The stream begins: its features come, with the mechanisms.
        case opening
        /// PLAIN was said.
        case authenticating
        /// The stream begins anew: its features come.
        case reopening
        /// The session is to go on.
        case resuming
        /// A new one: its resource is asked for; `counts`: the server has stream management.
        case binding(counts: Bool)
        /// A new one: its counting is.
        case enabling
        /// The session stands.
        case established
        /// As before, but the agent read how much of ours the server handled. Nothing is sent until it said so again.
        case synchronizing
        /// The account was refused.
        case refused
    }

    let account: XMPPAccount
    /// What outlives the process.
    var memory: XMPPMemory
    /// What of it was handed out last.
    var saved: XMPPMemory?
    /// Why what was in the memory given is lost, until that was told.
    var loss: String?

    var phase = Phase.offline
    var reader = XMLStreamReader()
    /// What happens with the socket, and by when if nothing comes: the login, an acknowledgement, another try.
    var patience: Duration?
    /// How many stanzas of ours the server is to acknowledge by then.
    var acknowledgementAwaited: UInt32?
    /// How many stanzas of the server count as handled in the opening that the agent has; `nil` where it has none. A
    /// socket that breaks is resumed by that count.
    var left: UInt32?
    /// How many of the session's were handled when the agent resumed it by a lower count; `nil` where it never did.
    var seen: UInt32?
    /// How often in a row the account was refused.
    var refusals = 0
    /// How the server's `success` and `resumed` end, for the opening.
    var ends: (success: [UInt8], resumed: [UInt8]) = ([UInt8(ascii: ">")], [UInt8(ascii: ">")])

    /// What is asked, by the iq's id.
    var questions: [String: XMPPQuestion] = [:]
    /// What is to be registered as soon as it can be asked.
    var wanted: [RegistrationID] = []
    /// What is asked for the push service; `nil` where it is not looked for.
    var discovery: XMPPDiscovery?
    /// Whether the service that the server named said that it is none. It may be out for a while, and pushes come from
    /// it until another is found.
    var isServiceDoubted = false
    /// What the ids of this value's questions begin with, so that none is one of a value before it.
    private let mark: String
    private var lastQuestion = 0
    /// What was told of the present socket.
    var troubles = 0
    /// Stanzas that were passed over; for a person who looks.
    package internal(set) var ignored = 0

    /// A value for this account.
    ///
    /// - Parameters:
    ///   - memory: ``PushServerTurn/memory`` of the last turn that had one; `nil` for an account that is new.
    ///   - seed: the resource of an account that is new, and the ids of questions. Others cannot write to who has a
    ///     resource that they cannot guess (RFC 6120, section 13.10).
    package init(
        account: XMPPAccount, memory: [UInt8]?, seed: UInt64 = .random(in: 0 ... .max)
    ) {
        self.account = account
        let digits = String(seed, radix: 16)
        mark = String(digits.suffix(8))
        self.memory = XMPPMemory(account: account.bareJID, resource: "dialtone-\(digits)")
        if let memory {
            do throws(DamagedState) {
                self.memory = try XMPPMemory(memory, account: account.bareJID)
                saved = self.memory
                if let before = self.memory.service, let service = account.service, before != service {
                    loss = "the account has another push service than \(before)"
                    // With a session that goes on nothing is told.
                    (self.memory.management, self.memory.pending) = (nil, [])
                }
            } catch {
                loss = "what was kept of \(account.bareJID) is damaged, or another account's"
            }
        }
        if let service = account.service { self.memory.service = service }
    }

    package var remote: String { account.remote }

    /// The JID that pushes come from; `nil` while it is not known.
    var service: String? { account.service ?? memory.service }

    package var deadline: Duration? {
        ([patience] + questions.values.map(\.deadline)).compactMap(\.self).min()
    }

    package mutating func take(_ input: PushServerInput, at now: Moment) -> PushServerTurn {
        var turn = PushServerTurn()
        switch input {
        case .connected: connected(at: now.uptime, &turn)
        case .opened:
            // It said this count, and the server sends again what is beyond it.
            if let left, let handled = memory.management?.handled {
                if seen.map({ handled.isBeyond($0) }) ?? true { seen = handled }
                memory.management?.handled = left
            }
            resumedByAgent(at: now.uptime, &turn)
        case .parked: left = memory.management?.handled
        // A value that knows of no socket was made of what the one that parked it left.
        case .unparked: if phase == .offline { resumedByAgent(at: now.uptime, &turn) }
        case .received(let bytes): received(bytes, at: now.uptime, &turn)
        case .disconnected: disconnected()
        case .register(let registration, _): register(registration, &turn)
        case .unregister(let registration, _):
            memory.registrations.remove(registration)
            wanted.removeAll { $0 == registration }
            turn.reports.append(.unregistered(registration))
        case .settled(let message, let outcome): settled(message, outcome, &turn)
        case .timePassed: timePassed(at: now.uptime, &turn)
        }
        askWhatIsWanted(at: now.uptime, &turn)
        askForAcknowledgement(at: now.uptime, &turn)
        if memory != saved {
            saved = memory
            turn.memory = memory.bytes
        }
        return turn
    }

    // MARK: - The socket

    private mutating func received(_ bytes: [UInt8], at now: Duration, _ turn: inout PushServerTurn) {
        guard phase != .offline, phase != .refused else { return }
        let (events, violation) = reader.take(bytes)
        for event in events {
            // Each may be the last one of its socket.
            guard phase != .offline, phase != .refused else { return }
            switch event {
            case .opened: break
            case .closed: giveUp("the server closed the stream", &turn)
            case .element(let element): read(element, at: now, &turn)
            }
            if let management = memory.management, management.size > XMPPMemory.mostUnacknowledged {
                breach("it acknowledges nothing of what it is sent", &turn)
            }
        }
        if let violation, phase != .offline, phase != .refused { breach("it sent \(violation)", &turn) }
    }

    private mutating func read(_ element: XMLElement, at now: Duration, _ turn: inout PushServerTurn) {
        if element.is("error", XMPP.streams) { return streamError(element, &turn) }
        switch phase {
        case .offline, .refused: break
        case .opening, .authenticating, .reopening, .resuming, .binding: logIn(element, at: now, &turn)
        case .enabling, .established, .synchronizing: handle(element, at: now, &turn)
        }
    }

    /// RFC 6120, section 4.9: the server closes the stream. Another host that it names is not followed.
    private mutating func streamError(_ element: XMLElement, _ turn: inout PushServerTurn) {
        let condition = element.children.first { $0.name != "text" }
        let name = condition?.name ?? "without a condition"
        var text = "stream error, \(name)"
        if name == "see-other-host" { text += ": \(condition?.text ?? ""), which is not followed" }
        if let words = element.children.first(where: { $0.name == "text" })?.text { text += ": \(words)" }
        trouble(text, &turn)
        giveUp(text, &turn)
    }

    /// The socket is of no use any more; the session may go on.
    mutating func giveUp(_ reason: String, _ turn: inout PushServerTurn) {
        disconnected()
        turn.redial = Self.clipped(reason)
    }

    /// The server broke the protocol. With the session what it would send again is given up.
    mutating func breach(_ problem: String, _ turn: inout PushServerTurn) {
        let text = "the server broke the protocol: \(problem)"
        trouble(text, &turn)
        (memory.management, left, seen) = (nil, nil, nil)
        giveUp(text, &turn)
    }

    /// What was under way on the socket is over.
    mutating func disconnected() {
        if phase != .refused {
            phase = .offline
            patience = nil
        }
        acknowledgementAwaited = nil
        reader = XMLStreamReader()
        if memory.management?.resumption == nil {
            forgetSession()
        } else {
            // They are among what is sent again; their time runs on once they are.
            for id in questions.keys { questions[id]?.deadline = nil }
        }
    }

    /// What was under way in the session is over: its answers are nobody's, and what was asked is asked again.
    mutating func forgetSession() {
        (memory.management, left, seen) = (nil, nil, nil)
        memory.pending = []
        let asked = questions.sorted { $0.key < $1.key }
        (questions, discovery) = ([:], nil)
        for question in asked { if let registration = question.value.registration { want(registration) } }
    }

    private mutating func timePassed(at now: Duration, _ turn: inout PushServerTurn) {
        if let patience, patience <= now {
            switch phase {
            case .refused:
                phase = .offline
                self.patience = nil
                turn.redial = "the account is tried again"
            case .established, .synchronizing:
                giveUp("the server did not acknowledge what it was sent in \(Self.answerTime)", &turn)
            default: giveUp("the login took longer than \(Self.answerTime)", &turn)
            }
        }
        for (id, question) in questions.sorted(by: { $0.key < $1.key }) {
            guard let deadline = question.deadline, deadline <= now else { continue }
            questions[id] = nil
            unanswered(question, at: now, &turn)
        }
    }

    /// How long the server may take for a login, or to acknowledge: what an opening may take (30 s).
    static let answerTime = Duration.seconds(30)

    // MARK: - What is sent

    /// Sends a stanza; where the session has no socket now, as soon as it has.
    mutating func send(_ stanza: String, _ turn: inout PushServerTurn) {
        let bytes = Array(stanza.utf8)
        memory.management?.send(bytes)
        if phase == .established || phase == .enabling { turn.output += bytes }
    }

    /// An id that no iq had.
    mutating func questionID() -> String {
        lastQuestion += 1
        return "\(mark)-\(lastQuestion)"
    }

    /// After stanzas of ours the server is asked whether it handled them, and once more only after others.
    private mutating func askForAcknowledgement(at now: Duration, _ turn: inout PushServerTurn) {
        guard phase == .established, acknowledgementAwaited == nil, let management = memory.management,
            !management.unacknowledged.isEmpty
        else { return }
        askForAcknowledgement(of: management, at: now, &turn)
    }

    mutating func askForAcknowledgement(
        of management: XMPPStreamManagement, at now: Duration, _ turn: inout PushServerTurn
    ) {
        acknowledgementAwaited = management.sent
        patience = now + Self.answerTime
        turn.output += "<r xmlns='\(XMPP.management)'/>".utf8
    }

    // MARK: - What is told

    /// Tells of something, unless enough was told of this socket: a server that lies on and on fills no log.
    mutating func trouble(_ text: String, _ turn: inout PushServerTurn) {
        troubles += 1
        guard troubles <= WebSocketSession.mostTroubles else { return }
        turn.reports.append(.trouble(Self.clipped(text)))
    }

    /// What a server wrote may be long, and may be anything.
    static func clipped(_ text: String) -> String { String(text.prefix(300)).printable }
}
