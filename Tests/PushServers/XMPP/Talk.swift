// SPDX-License-Identifier: Apache-2.0

import DialtoneDistributor
import DialtonePlatform
import Testing

@testable import DialtonePushServers

/// A push server's value, and all that it said so far.
struct Talk {
    var server: XMPPPushServer
    var now = Moment(uptime: .seconds(1000), wall: WallTime(milliseconds: 0))
    var output = ""
    var arrived: [ArrivedMessage] = []
    var reports: [PushServerReport] = []
    var memory: [UInt8]?
    var redials: [String] = []

    static let account = account()
    static let push = "http://gultsch.de/xmpp/drafts/unified-push"
    static let registration = registration("0123456789abcdef0123456789abcdef")
    /// What it says after stanzas of its own.
    static let question = "<r xmlns='urn:xmpp:sm:3'/>"

    init(memory: [UInt8]? = nil, account: XMPPAccount = Self.account, seed: UInt64 = 0x1234_5678_9ABC_DEF0) {
        server = XMPPPushServer(account: account, memory: memory, seed: seed)
        self.memory = memory
    }

    static func account(service: String? = "lab.example") -> XMPPAccount {
        do throws(XMPPAccountError) {
            return try XMPPAccount(jid: "juliet@lab.example", password: "secret", service: service)
        } catch {
            preconditionFailure("\(error)")
        }
    }

    static func registration(_ text: String) -> RegistrationID {
        guard let registration = RegistrationID(text) else { preconditionFailure(text) }
        return registration
    }

    static func message(_ id: String, _ registration: RegistrationID, _ body: [UInt8]) -> ServerMessageID {
        guard let message = XMPPPushServer.message(id, registration, body) else { preconditionFailure(id) }
        return message
    }

    @discardableResult mutating func take(_ input: PushServerInput) -> PushServerTurn {
        let turn = server.take(input, at: now)
        output += String(decoding: turn.output, as: UTF8.self)
        arrived += turn.arrived
        reports += turn.reports
        memory = turn.memory ?? memory
        if let redial = turn.redial { redials.append(redial) }
        return turn
    }

    /// The server says something; in one piece, cut in two, or byte by byte.
    @discardableResult mutating func hear(_ text: String, cut: Int? = nil) -> PushServerTurn {
        let bytes = Array(text.utf8)
        if let cut {
            take(.received(Array(bytes.prefix(cut))))
            return take(.received(Array(bytes.dropFirst(cut))))
        }
        return take(.received(bytes))
    }

    /// What it said since the last call.
    mutating func said() -> String {
        defer { output = "" }
        return output
    }

    mutating func wait(_ time: Duration) {
        now = Moment(uptime: now.uptime + time, wall: now.wall)
        take(.timePassed)
    }

    /// A session that is new, with nothing under way.
    mutating func logIn() {
        take(.connected)
        for answer in Recorded.login { hear(answer) }
    }

    /// A new session in place of one that the server does not know any more.
    mutating func logInAnew() {
        take(.connected)
        for answer in Recorded.login.prefix(3) + [Recorded.notResumed] + Recorded.login.dropFirst(3) { hear(answer) }
    }

    /// The server's word that it handled all that was sent.
    var acknowledgement: String { "<a xmlns='urn:xmpp:sm:3' h='\(server.memory.management?.sent ?? 0)'/>" }

    /// A session in which one registration has its endpoint, and all is acknowledged.
    static func registered(others: [RegistrationID] = []) throws -> Talk {
        var talk = Talk()
        talk.logIn()
        for other in others {
            talk.take(.register(other, vapid: nil))
            talk.hear(Recorded.registered(try talk.lastID()) + talk.acknowledgement)
        }
        talk.take(.register(registration, vapid: nil))
        let id = try talk.lastID()
        talk.hear(Recorded.registered(id) + talk.acknowledgement)
        #expect(talk.reports.last == .registered(registration, endpoint: Recorded.endpoint, expires: Recorded.expiry))
        #expect(talk.server.parking != nil)
        _ = talk.said()
        return talk
    }

    /// The id of what it asked last.
    func lastID() throws -> String {
        let parts = output.components(after: " id='")
        return try #require(parts.last, "asked nothing: \(output)")
    }
}

extension String {
    /// What follows each occurrence of `start` up to an apostrophe.
    func components(after start: String) -> [String] {
        var (found, rest): ([String], Substring) = ([], self[...])
        while let range = rest.firstRange(of: start) {
            rest = rest[range.upperBound...]
            found.append(String(rest.prefix { $0 != "'" }))
        }
        return found
    }
}

/// What prosody 0.12.3 of Debian 12, with its mod_unified_push, wrote on 2026-11-28.
enum Recorded {
    static let jid = "juliet@lab.example/dialtone-123456789abcdef0"
    static let endpoint = "http://127.0.0.1:15280/push/_sfWpTx9dY4x1yGG_lxtO5kpbZeqZUcxPkcu"
    /// 2026-11-29T01:00:32Z.
    static let expiry = WallTime(milliseconds: 1_795_914_032_000)

    private static func stream(_ id: String) -> String {
        "<?xml version='1.0'?><stream:stream xmlns:stream='http://etherx.jabber.org/streams' from='lab.example' "
            + "xml:lang='en' id='\(id)' xmlns='jabber:client' version='1.0'>"
    }

    static let mechanisms =
        stream("8f0bc3ec-efd7-4bf4-b82f-2d5c5eb07282")
        + "<stream:features><mechanisms xmlns='urn:ietf:params:xml:ns:xmpp-sasl'><mechanism>PLAIN</mechanism>"
        + "<mechanism>SCRAM-SHA-256</mechanism><mechanism>SCRAM-SHA-1</mechanism></mechanisms></stream:features>"
    static let success = "<success xmlns='urn:ietf:params:xml:ns:xmpp-sasl'/>"
    static let failure =
        "<failure xmlns='urn:ietf:params:xml:ns:xmpp-sasl'><not-authorized/><text>Unable to authorize you with the "
        + "authentication credentials you&apos;ve sent.</text></failure>"
    static let features =
        stream("3f5929c6-eb0d-43a0-b2f8-f6c0f2c892e4")
        + "<stream:features><bind xmlns='urn:ietf:params:xml:ns:xmpp-bind'><required/></bind>"
        + "<session xmlns='urn:ietf:params:xml:ns:xmpp-session'><optional/></session>"
        + "<c node='http://prosody.im' ver='xH9eASUw6dHFtdQBkAaLpGYU8Dk=' xmlns='http://jabber.org/protocol/caps' "
        + "hash='sha-1'/><sub xmlns='urn:xmpp:features:pre-approval'/><sm xmlns='urn:xmpp:sm:2'><optional/></sm>"
        + "<sm xmlns='urn:xmpp:sm:3'><optional/></sm></stream:features>"
    static func bound(_ jid: String = jid) -> String {
        "<iq type='result' id='bind'><bind xmlns='urn:ietf:params:xml:ns:xmpp-bind'><jid>\(jid)</jid></bind></iq>"
    }
    static let enabled = "<enabled max='600' resume='true' xmlns='urn:xmpp:sm:3' id='YAR33azMA0Zb'/>"
    static let login = [mechanisms, success, features, bound(), enabled]

    static func registered(_ id: String) -> String {
        "<iq type='result' id='\(id)' to='\(jid)' from='lab.example'><registered "
            + "xmlns='http://gultsch.de/xmpp/drafts/unified-push' endpoint='\(endpoint)' "
            + "expiration='2026-11-29T01:00:32Z'/></iq>"
    }

    static func push(
        _ id: String, _ body: String, from: String = "lab.example",
        instance: String = "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="
    ) -> String {
        "<iq id='\(id)' from='\(from)' to='\(jid)' type='set'><push instance='\(instance)' "
            + "xmlns='http://gultsch.de/xmpp/drafts/unified-push' "
            + "application='41ae675Vnw7nzzG+vV2BMW0wgdKwCzMBmiDbkZ0rxCE='>\(body)</push></iq>"
    }

    static func resumed(_ handled: Int) -> String {
        "<resumed h='\(handled)' xmlns='urn:xmpp:sm:3' previd='YAR33azMA0Zb'/>"
    }
    static let notResumed =
        "<failed xmlns='urn:xmpp:sm:3'><item-not-found xmlns='urn:ietf:params:xml:ns:xmpp-stanzas'/></failed>"
    static let replaced =
        "<a xmlns='urn:xmpp:sm:3' h='0'/><stream:error><conflict xmlns='urn:ietf:params:xml:ns:xmpp-streams'/>"
        + "<text xmlns='urn:ietf:params:xml:ns:xmpp-streams'>Replaced by new connection</text></stream:error>"
        + "</stream:stream>"
    static let discovered =
        "<query xmlns='http://jabber.org/protocol/disco#info'><identity name='Prosody' type='im' category='server'/>"
        + "<feature var='http://jabber.org/protocol/disco#info'/>"
        + "<feature var='http://jabber.org/protocol/disco#items'/>"
        + "<feature var='urn:xmpp:ping'/><feature var='http://gultsch.de/xmpp/drafts/unified-push'/>"
        + "<feature var='msgoffline'/></query>"
}
