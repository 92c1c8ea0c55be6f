// SPDX-License-Identifier: Apache-2.0

internal import DialtoneDistributor
internal import DialtonePlatform

extension XMPPPushServer {
    /// What comes in a session.
    mutating func handle(_ element: XMLElement, at now: Duration, _ turn: inout PushServerTurn) {
        switch (element.name, element.namespace) {
        case ("iq", XMPP.client):
            // Counted before it is handled: its answer is part of this turn, and so is the memory that has the count.
            if countsAsNew() { readIQ(element, at: now, &turn) }
        case ("message", XMPP.client), ("presence", XMPP.client):
            if countsAsNew() { ignored += 1 }
        case (_, XMPP.management): manage(element, at: now, &turn)
        default:
            ignored += 1
            trouble("the server sent <\(element.name)>, which is no stanza", &turn)
        }
    }

    /// The server counts what it sends behind `enabled`.
    ///
    /// - Returns: `false` for a stanza that was handled before the agent's opening resumed by a lower count. It is
    ///   answered once; a second copy would only take the place of a new push.
    private mutating func countsAsNew() -> Bool {
        guard phase != .enabling, let before = memory.management?.handled else { return true }
        memory.management?.handled = before &+ 1
        guard let seen, seen.isBeyond(before) else { return true }
        return false
    }

    // MARK: - XEP-0198

    private mutating func manage(_ element: XMLElement, at now: Duration, _ turn: inout PushServerTurn) {
        switch element.name {
        case "enabled" where phase == .enabling: enabled(element, at: now, &turn)
        case "failed" where phase == .enabling:
            memory.management = nil
            enabled(nil, at: now, &turn)
        case "r" where phase != .enabling:
            guard let count = memory.management.map(countToTell) else { return }
            turn.output += "<a xmlns='\(XMPP.management)' h='\(count)'/>".utf8
        case "a" where phase != .enabling: acknowledged(element, at: now, &turn)
        default: breach("<\(element.name)> of stream management has no place here", &turn)
        }
    }

    /// How many stanzas the server is told that were handled: those of the opening that the agent has. A socket that
    /// breaks now is resumed by that, and prosody ends a session that is resumed by a lower count than it was told. The
    /// rest is told once the socket is parked. But no server is to keep more than so many for that: prosody keeps 500,
    /// and a stream of messages without the second of silence in which the socket is parked has some hundreds.
    private func countToTell(_ management: XMPPStreamManagement) -> UInt32 {
        guard let left, management.handled &- left < Self.mostUntold else { return management.handled }
        return left
    }

    private static var mostUntold: UInt32 { 384 }

    private mutating func acknowledged(_ element: XMLElement, at now: Duration, _ turn: inout PushServerTurn) {
        guard memory.management != nil else { return }
        let isSaved = memory == saved
        guard let count = element.attributes["h"].flatMap(UInt32.init),
            memory.management?.acknowledge(count) == true
        else { return breach("it acknowledges what it was not sent, or less than before", &turn) }
        // That alone is not worth a transaction: what is kept for longer is acknowledged again by a resumption.
        if isSaved { saved = memory }
        // Nothing was said on this socket but the question.
        if phase == .synchronizing { return sendAgain(at: now, &turn) }
        guard let awaited = acknowledgementAwaited, !awaited.isBeyond(count) else { return }
        (acknowledgementAwaited, patience) = (nil, nil)
    }

    // MARK: - iq

    private mutating func readIQ(_ iq: XMLElement, at now: Duration, _ turn: inout PushServerTurn) {
        let (id, from) = (iq.attributes["id"] ?? "", iq.attributes["from"])
        // The answer holds both, and may wait in memory.
        guard (1...128).contains(id.asXML.utf8.count), (from ?? "").asXML.utf8.count <= XMPPAccount.longestJID else {
            ignored += 1
            return trouble("an iq without an id, or with a very long one, cannot be answered", &turn)
        }
        switch iq.attributes["type"] {
        case "get", "set":
            guard iq.children.count == 1, let content = iq.children.first else {
                return send(XMPPStanza.error(.badRequest, id: id, to: from), &turn)
            }
            requested(content, iq.attributes["type"] == "set", id: id, from: from, &turn)
        case "result", "error": answered(iq, id: id, at: now, &turn)
        default: send(XMPPStanza.error(.badRequest, id: id, to: from), &turn)
        }
    }

    private mutating func requested(
        _ content: XMLElement, _ isSet: Bool, id: String, from: String?, _ turn: inout PushServerTurn
    ) {
        switch (content.name, content.namespace) {
        case ("push", XMPP.push) where isSet: pushed(content, id: id, from: from, &turn)
        case ("ping", XMPP.ping) where !isSet: send(XMPPStanza.iq("result", id: id, to: from), &turn)
        case ("query", XMPP.discoInfo) where !isSet && content.attributes["node"] == nil:
            let features = [XMPP.discoInfo, XMPP.ping, XMPP.push].map { "<feature var='\($0)'/>" }.joined()
            let identity = "<identity category='client' type='bot' name='Dialtone'/>"
            send(
                XMPPStanza.iq(
                    "result", id: id, to: from, "<query xmlns='\(XMPP.discoInfo)'>\(identity)\(features)</query>"),
                &turn)
        default:
            ignored += 1
            send(XMPPStanza.error(.serviceUnavailable, id: id, to: from), &turn)
        }
    }

    // MARK: - Pushes

    private mutating func pushed(
        _ push: XMLElement, id: String, from: String?, _ turn: inout PushServerTurn
    ) {
        func refuse(_ refusal: XMPPStanza.Refusal) { send(XMPPStanza.error(refusal, id: id, to: from), &turn) }
        guard let from, from == service else {
            trouble("a push of \(from ?? "nobody") was refused: the push service is \(service ?? "not known")", &turn)
            return refuse(.forbidden)
        }
        guard push.attributes["application"] == Self.application,
            let registration = push.attributes["instance"].flatMap(Self.registration(of:)),
            memory.registrations.contains(registration)
        else { return refuse(.itemNotFound) }
        let text = String(decoding: push.text.utf8.filter { ![0x20, 0x09, 0x0A, 0x0D].contains($0) }, as: UTF8.self)
        guard let body = Base64.bytes(of: text), (1...4096).contains(body.count),
            let message = Self.message(id, registration, body)
        else { return refuse(.badRequest) }
        // It came before, and one answer is enough.
        if memory.pending.contains(where: { $0.message == message }) { return }
        memory.pending.removeAll { Self.id(of: $0.message) == id }
        guard makeRoom(for: registration, &turn) else { return refuse(.resourceConstraint) }
        memory.pending.append(XMPPMemory.Pending(message: message, registration: registration))
        turn.arrived.append(
            ArrivedMessage(id: message, registration: registration, body: body, urgency: .normal, expires: nil))
    }

    /// Sees to it that one more push may wait for its answer. Where as many wait as may, of the other registrations the
    /// one that has the most gives up the answer to its oldest: the distributor has that push, but its sender is told
    /// now that it failed. So an app that takes nothing keeps no push from another one.
    ///
    /// - Returns: `false` where the registration has its share.
    private mutating func makeRoom(for registration: RegistrationID, _ turn: inout PushServerTurn) -> Bool {
        guard memory.pending.count >= XMPPMemory.mostPending else { return true }
        var counts: [RegistrationID: Int] = [:]
        for push in memory.pending { counts[push.registration, default: 0] += 1 }
        guard counts.removeValue(forKey: registration) ?? 0 < XMPPMemory.pendingShare, let most = counts.values.max(),
            let oldest = memory.pending.firstIndex(where: { counts[$0.registration] == most })
        else { return false }
        let id = Self.id(of: memory.pending.remove(at: oldest).message)
        send(XMPPStanza.error(.resourceConstraint, id: id, to: service), &turn)
        return true
    }

    mutating func settled(_ message: ServerMessageID, _ outcome: MessageOutcome, _ turn: inout PushServerTurn) {
        // Its sender is told when the app has it.
        if outcome == .kept { return }
        guard let place = memory.pending.firstIndex(where: { $0.message == message }) else { return }
        let pending = memory.pending.remove(at: place)
        let id = Self.id(of: message)
        let refusal: XMPPStanza.Refusal? =
            switch outcome {
            case .kept, .taken: nil
            // By that the service tells the sender that the endpoint is gone; a message alone is not.
            case .givenUp: memory.registrations.contains(pending.registration) ? .notAcceptable : .itemNotFound
            case .notNow, .full: .recipientUnavailable
            }
        send(
            refusal.map { XMPPStanza.error($0, id: id, to: service) } ?? XMPPStanza.iq("result", id: id, to: service),
            &turn)
    }

    /// The iq's id, a space, and 16 digits.
    static func message(_ id: String, _ registration: RegistrationID, _ body: [UInt8]) -> ServerMessageID? {
        // FNV-1a (draft-eastlake-fnv). It tells apart what a server numbers alike, and is no protection: the server
        // could send any message.
        let hash = (Array(registration.text.utf8) + body).reduce(0xCBF2_9CE4_8422_2325 as UInt64) { hash, byte in
            (hash ^ UInt64(byte)) &* 0x100_0000_01B3
        }
        let digits = String(hash, radix: 16)
        return ServerMessageID("\(id) \(String(repeating: "0", count: 16 - digits.count))\(digits)")
    }

    private static func id(of message: ServerMessageID) -> String { String(message.text.dropLast(17)) }
}
