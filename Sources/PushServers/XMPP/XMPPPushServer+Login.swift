// SPDX-License-Identifier: Apache-2.0

internal import DialtoneDistributor
internal import DialtonePlatform

extension XMPPPushServer {
    /// How the stream begins, both times.
    var streamHeader: [UInt8] {
        Array(
            ("<?xml version='1.0'?><stream:stream to='\(account.domain.asXML)' version='1.0' xmlns='\(XMPP.client)' "
                + "xmlns:stream='\(XMPP.streams)'>").utf8)
    }

    /// PLAIN (RFC 4616), with the answer in the question (RFC 6120, section 6.4.2).
    var plainLogin: [UInt8] {
        let message = [0] + account.localPart.utf8 + [0] + account.password.utf8
        return Array("<auth xmlns='\(XMPP.sasl)' mechanism='PLAIN'>\(Base64.text(of: message))</auth>".utf8)
    }

    /// XEP-0198, section 5; `nil` where the session cannot be resumed.
    var resumption: [UInt8]? {
        guard let management = memory.management, let name = management.resumption else { return nil }
        return Array(
            "<resume xmlns='\(XMPP.management)' previd='\(name.asXML)' h='\(management.handled)'/>".utf8)
    }

    // MARK: - A new socket

    mutating func connected(at now: Duration, _ turn: inout PushServerTurn) {
        // A socket that the agent dialled again meanwhile is held until the account may be tried.
        if phase == .refused { return }
        disconnected()
        (left, troubles) = (nil, 0)
        phase = .opening
        patience = now + Self.answerTime
        turn.output += streamHeader
    }

    /// The agent logged in and resumed the session, and read what the server said of how much it handled. It says so
    /// again when it is asked, before anything else is sent.
    mutating func resumedByAgent(at now: Duration, _ turn: inout PushServerTurn) {
        guard let management = memory.management, management.resumption != nil else {
            return giveUp("nothing is known of the session of a socket that was parked", &turn)
        }
        disconnected()
        troubles = 0
        phase = .synchronizing
        reader = XMLStreamReader(withinStream: ())
        loggedIn(&turn)
        askForAcknowledgement(of: management, at: now, &turn)
    }

    // MARK: - Answers

    mutating func logIn(_ element: XMLElement, at now: Duration, _ turn: inout PushServerTurn) {
        switch phase {
        case .opening where element.is("features", XMPP.streams): authenticate(element, at: now, &turn)
        case .authenticating where element.is("success", XMPP.sasl):
            ends.success = element.end
            phase = .reopening
            reader = XMLStreamReader()
            turn.output += streamHeader
        case .authenticating where element.is("failure", XMPP.sasl): saslFailure(element, at: now, &turn)
        case .reopening where element.is("features", XMPP.streams): begin(element, &turn)
        case .resuming where element.is("resumed", XMPP.management): resumed(element, at: now, &turn)
        case .resuming where element.is("failed", XMPP.management):
            forgetSession()
            bind(counting: true, &turn)
        case .binding(let counts) where element.is("iq", XMPP.client): bound(element, counts, at: now, &turn)
        default: breach("<\(element.name)> has no place in a login at this point", &turn)
        }
    }

    private mutating func authenticate(_ features: XMLElement, at now: Duration, _ turn: inout PushServerTurn) {
        let mechanisms = features.child("mechanisms", XMPP.sasl)?.children.map(\.text) ?? []
        guard !mechanisms.contains("PLAIN") else {
            phase = .authenticating
            turn.output += plainLogin
            return
        }
        if mechanisms.isEmpty, features.child("starttls", XMPP.startTLS) != nil {
            return refuse(
                "the server wants STARTTLS here; give the port that has TLS from the first byte", at: now, &turn)
        }
        let offered = mechanisms.isEmpty ? "no mechanism" : mechanisms.joined(separator: ", ")
        refuse("the server offers \(offered), and a login that can be left with the agent takes PLAIN", at: now, &turn)
    }

    /// RFC 6120, section 6.5. Some are of the server's state and pass.
    private mutating func saslFailure(_ failure: XMLElement, at now: Duration, _ turn: inout PushServerTurn) {
        let condition = failure.children.first { $0.name != "text" }?.name ?? "without a condition"
        let words = failure.children.first { $0.name == "text" }.map { ": \($0.text)" } ?? ""
        let text = "SASL failure, \(condition)\(words)"
        guard ["aborted", "temporary-auth-failure"].contains(condition) else { return refuse(text, at: now, &turn) }
        trouble(text, &turn)
        giveUp(text, &turn)
    }

    /// The account is tried again after half an hour, and then after twice as long each time up to eight hours: five or
    /// ten wrong passwords in a row lock an account with many servers.
    private mutating func refuse(_ reason: String, at now: Duration, _ turn: inout PushServerTurn) {
        phase = .refused
        patience = now + .seconds(1800) * (1 << min(refusals, 4))
        refusals += 1
        turn.output += "</stream:stream>".utf8
        turn.reports.append(.loginRefused(Self.clipped(reason)))
    }

    private mutating func begin(_ features: XMLElement, _ turn: inout PushServerTurn) {
        let canCount = features.child("sm", XMPP.management) != nil
        guard canCount, let resumption else {
            forgetSession()
            return bind(counting: canCount, &turn)
        }
        phase = .resuming
        turn.output += resumption
    }

    private mutating func resumed(_ element: XMLElement, at now: Duration, _ turn: inout PushServerTurn) {
        guard element.attributes["previd"] == memory.management?.resumption,
            let count = element.attributes["h"].flatMap(UInt32.init), memory.management?.acknowledge(count) == true
        else { return breach("it resumed another session, or counts otherwise", &turn) }
        ends.resumed = element.end
        loggedIn(&turn)
        sendAgain(at: now, &turn)
    }

    /// The session goes on with what the server did not handle of ours.
    mutating func sendAgain(at now: Duration, _ turn: inout PushServerTurn) {
        phase = .established
        (patience, acknowledgementAwaited) = (nil, nil)
        turn.output += memory.management?.unacknowledged.joined() ?? [].joined()
        for id in questions.keys { questions[id]?.deadline = now + XMPPQuestion.time }
    }

    // MARK: - A new session

    private mutating func bind(counting counts: Bool, _ turn: inout PushServerTurn) {
        phase = .binding(counts: counts)
        turn.output +=
            XMPPStanza.iq(
                "set", id: "bind", to: nil,
                "<bind xmlns='\(XMPP.bind)'><resource>\(memory.resource.asXML)</resource></bind>"
            ).utf8
    }

    private mutating func bound(
        _ iq: XMLElement, _ counts: Bool, at now: Duration, _ turn: inout PushServerTurn
    ) {
        guard iq.attributes["id"] == "bind", let type = iq.attributes["type"] else {
            return breach("it did not answer the bind", &turn)
        }
        guard type == "result" else {
            let text = "the server bound no resource: \(XMPPStanza.condition(of: iq))"
            trouble(text, &turn)
            return giveUp(text, &turn)
        }
        guard let name = iq.child("bind", XMPP.bind)?.child("jid", XMPP.bind)?.text,
            (1...2 * XMPPAccount.longestJID).contains(name.utf8.count), name.printable == name
        else { return breach("it bound no JID, or a very long one", &turn) }
        if let before = memory.fullJID, before != name {
            loss = "the server bound \(name) in place of \(before), where the endpoints push to"
        }
        memory.fullJID = name
        phase = .enabling
        guard counts else { return enabled(nil, at: now, &turn) }
        // The server counts what it gets from here on (XEP-0198, section 3).
        memory.management = XMPPStreamManagement()
        turn.output += "<enable xmlns='\(XMPP.management)' resume='true'/>".utf8
    }

    /// The session stands: with counts, if the server has them.
    mutating func enabled(_ answer: XMLElement?, at now: Duration, _ turn: inout PushServerTurn) {
        if let answer, ["true", "1"].contains(answer.attributes["resume"]), let name = answer.attributes["id"],
            (1...XMPPMemory.longestResumption).contains(name.utf8.count), name.printable == name
        {
            memory.management?.resumption = name
        }
        phase = .established
        patience = nil
        loggedIn(&turn)
        if let loss { turn.reports.append(.identityLost(Self.clipped(loss))) }
        loss = nil
    }

    private mutating func loggedIn(_ turn: inout PushServerTurn) {
        refusals = 0
        turn.reports.append(.loggedIn)
    }
}
