// SPDX-License-Identifier: Apache-2.0

internal import DialtoneDistributor
internal import DialtonePlatform
internal import Glibc

extension XMPPPushServer {
    /// What the service knows each app as: the SHA-256 of `org.dialtone`. Which apps there are is none of its business.
    static let application = "41ae675Vnw7nzzG+vV2BMW0wgdKwCzMBmiDbkZ0rxCE="

    /// A registration as the service knows it. The protocol wants 32 bytes in base64, a hash where they would tell
    /// something; a registration's digits are that many, and random.
    static func instance(of registration: RegistrationID) -> String { Base64.text(of: Array(registration.text.utf8)) }

    /// The other way round.
    static func registration(of instance: String) -> RegistrationID? {
        Base64.bytes(of: instance).flatMap { RegistrationID(String(decoding: $0, as: UTF8.self)) }
    }

    // MARK: - Asking

    mutating func register(_ registration: RegistrationID, _ turn: inout PushServerTurn) {
        if !memory.registrations.contains(registration) {
            guard memory.registrations.count < XMPPMemory.mostRegistrations else {
                let text = "an XMPP account has up to \(XMPPMemory.mostRegistrations) registrations"
                return turn.reports.append(.registrationsFull(registration, text))
            }
            memory.registrations.insert(registration)
        }
        want(registration)
    }

    mutating func want(_ registration: RegistrationID) {
        guard !wanted.contains(registration), !questions.values.contains(where: { $0.registration == registration })
        else { return }
        wanted.append(registration)
    }

    /// Asks what can be asked, and no more than the server acknowledges.
    mutating func askWhatIsWanted(at now: Duration, _ turn: inout PushServerTurn) {
        guard phase == .established, !wanted.isEmpty else { return }
        guard let service, account.service != nil || !isServiceDoubted else {
            if discovery == nil {
                discovery = XMPPDiscovery(candidates: [])
                ask(.features, account.domain, at: now, &turn)
            }
            return
        }
        while let registration = wanted.first, memory.management?.size ?? 0 < XMPPMemory.mostUnacknowledged / 3 {
            wanted.removeFirst()
            ask(.endpoint(registration), service, at: now, &turn)
        }
    }

    private mutating func ask(
        _ subject: XMPPQuestion.Subject, _ to: String, at now: Duration, _ turn: inout PushServerTurn
    ) {
        let id = questionID()
        questions[id] = XMPPQuestion(subject: subject, to: to, deadline: now + XMPPQuestion.time)
        let stanza =
            switch subject {
            case .endpoint(let registration):
                XMPPStanza.iq(
                    "set", id: id, to: to,
                    "<register xmlns='\(XMPP.push)' application='\(Self.application)' "
                        + "instance='\(Self.instance(of: registration))'/>")
            case .features: XMPPStanza.iq("get", id: id, to: to, "<query xmlns='\(XMPP.discoInfo)'/>")
            case .services: XMPPStanza.iq("get", id: id, to: to, "<query xmlns='\(XMPP.discoItems)'/>")
            }
        send(stanza, &turn)
    }

    // MARK: - Answers

    mutating func answered(_ iq: XMLElement, id: String, at now: Duration, _ turn: inout PushServerTurn) {
        guard let question = questions[id], iq.attributes["from"] == question.to else {
            ignored += 1
            return trouble("\(iq.attributes["from"] ?? "the account") answers what it was not asked", &turn)
        }
        questions[id] = nil
        let isResult = iq.attributes["type"] == "result"
        switch question.subject {
        case .endpoint(let registration):
            guard memory.registrations.contains(registration) else { return }
            turn.reports.append(isResult ? endpoint(iq, registration) : refusal(iq, registration))
        case .features:
            let features = isResult ? iq.child("query", XMPP.discoInfo)?.children ?? [] : []
            if features.contains(where: { $0.name == "feature" && $0.attributes["var"] == XMPP.push }) {
                memory.service = question.to
                (discovery, isServiceDoubted) = (nil, false)
            } else {
                searchOn(after: question, at: now, &turn)
            }
        case .services:
            let items = isResult ? iq.child("query", XMPP.discoItems)?.children ?? [] : []
            let names = items.compactMap { $0.attributes["jid"] }.filter {
                $0 != account.domain && (1...XMPPAccount.longestJID).contains($0.utf8.count) && $0.printable == $0
            }
            discovery?.candidates = Array(names.prefix(XMPPDiscovery.mostServices))
            searchOn(after: question, at: now, &turn)
        }
    }

    /// An answer did not come.
    mutating func unanswered(_ question: XMPPQuestion, at now: Duration, _ turn: inout PushServerTurn) {
        guard let registration = question.registration else { return searchOn(after: question, at: now, &turn) }
        turn.reports.append(
            .registrationFailed(
                registration, .network, "\(question.to) did not answer in \(XMPPQuestion.time)"))
    }

    private func endpoint(_ iq: XMLElement, _ registration: RegistrationID) -> PushServerReport {
        let answer = iq.child("registered", XMPP.push)
        let endpoint = answer?.attributes["endpoint"] ?? ""
        // UnifiedPush's bound, and what RFC 3986 has in a URL.
        guard (1...1000).contains(endpoint.utf8.count), endpoint.utf8.allSatisfy({ (0x21...0x7E).contains($0) }),
            endpoint.hasPrefix("https://") || endpoint.hasPrefix("http://")
        else {
            let text = "\(iq.attributes["from"] ?? "") answered with no endpoint: \(endpoint)"
            return .registrationFailed(registration, .internalError, Self.clipped(text))
        }
        return .registered(
            registration, endpoint: endpoint, expires: answer?.attributes["expiration"].flatMap(WallTime.init(xmpp:)))
    }

    private mutating func refusal(_ iq: XMLElement, _ registration: RegistrationID) -> PushServerReport {
        let condition = XMPPStanza.condition(of: iq)
        let failure: RegistrationFailure
        switch condition {
        case "forbidden", "not-allowed", "not-authorized", "registration-required": failure = .unauthorized
        case "feature-not-implemented", "item-not-found", "service-unavailable":
            failure = .actionRequired
            // The next registration looks for another.
            isServiceDoubted = true
        case "remote-server-not-found", "remote-server-timeout": failure = .network
        default: failure = .internalError
        }
        let text = "the push service \(iq.attributes["from"] ?? "") refused the registration: \(condition)"
        return .registrationFailed(registration, failure, Self.clipped(text))
    }

    // MARK: - Where the service is

    /// One of those who were asked is no push service.
    private mutating func searchOn(after question: XMPPQuestion, at now: Duration, _ turn: inout PushServerTurn) {
        if question.subject == .features, question.to == account.domain {
            return ask(.services, account.domain, at: now, &turn)
        }
        if discovery?.candidates.isEmpty == false, let next = discovery?.candidates.removeFirst() {
            return ask(.features, next, at: now, &turn)
        }
        discovery = nil
        let text = "\(account.domain) has no push service; give the JID of one"
        for registration in wanted {
            turn.reports.append(.registrationFailed(registration, .actionRequired, text))
        }
        wanted = []
    }
}

extension WallTime {
    /// A time as XEP-0082 writes it: `2026-11-29T01:00:32.5Z`, or with an offset; `nil` for anything else.
    init?(xmpp text: String) {
        guard text.utf8.count <= 40 else { return nil }
        var rest = text.utf8[...]
        func number(_ count: Int) -> CInt? {
            let digits = rest.prefix(count)
            guard digits.count == count, digits.allSatisfy({ (48...57).contains($0) }) else { return nil }
            rest = rest.dropFirst(count)
            return digits.reduce(0) { $0 * 10 + CInt($1) - 48 }
        }
        func skip(_ character: Unicode.Scalar) -> Bool {
            guard rest.first == UInt8(ascii: character) else { return false }
            rest = rest.dropFirst()
            return true
        }
        guard let year = number(4), skip("-"), let month = number(2), skip("-"), let day = number(2), skip("T"),
            let hour = number(2), skip(":"), let minute = number(2), skip(":"), let second = number(2)
        else { return nil }
        var milliseconds: Int64 = 0
        if skip(".") {
            for weight in [100, 10, 1] as [Int64] { milliseconds += weight * Int64(number(1) ?? 0) }
            while number(1) != nil {}
        }
        var offset: CInt = 0
        if !skip("Z") {
            let isEast = skip("+")
            guard isEast || skip("-"), let hours = number(2), skip(":"), let minutes = number(2) else { return nil }
            offset = (isEast ? 60 : -60) * (hours * 60 + minutes)
        }
        guard rest.isEmpty else { return nil }
        var parts = tm()
        (parts.tm_year, parts.tm_mon, parts.tm_mday) = (year - 1900, month - 1, day)
        (parts.tm_hour, parts.tm_min, parts.tm_sec) = (hour, minute, second)
        self.init(milliseconds: (Int64(timegm(&parts)) - Int64(offset)) * 1000 + milliseconds)
    }
}
