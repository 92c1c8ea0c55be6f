// SPDX-License-Identifier: Apache-2.0

import DialtoneDistributor
import DialtonePlatform
import Testing

@testable import DialtonePushServers

/// XMPP: registrations and pushes.
@Suite struct XMPPPushTests {
    private func error(_ condition: String, _ type: String, id: String = "a", to: String? = "lab.example") -> String {
        let address = to.map { " to='\($0)'" } ?? ""
        return "<iq type='error' id='\(id)'\(address)><error type='\(type)'><\(condition) "
            + "xmlns='urn:ietf:params:xml:ns:xmpp-stanzas'/></error></iq>"
    }

    // MARK: - Registrations

    @Test func `a registration is asked as the service wants it`() {
        var talk = Talk()
        talk.logIn()
        _ = talk.said()
        talk.take(.register(Talk.registration, vapid: "a key that this protocol has no place for"))
        #expect(
            talk.said()
                == "<iq type='set' id='9abcdef0-1' to='lab.example'><register "
                + "xmlns='http://gultsch.de/xmpp/drafts/unified-push' "
                + "application='41ae675Vnw7nzzG+vV2BMW0wgdKwCzMBmiDbkZ0rxCE=' "
                + "instance='MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY='/></iq>" + Talk.question)
    }

    @Test(arguments: [
        ("service-unavailable", RegistrationFailure.actionRequired), ("forbidden", .unauthorized),
        ("remote-server-not-found", .network), ("internal-server-error", .internalError), ("text", .internalError),
    ]) func `a registration that is refused says why`(condition: String, failure: RegistrationFailure) throws {
        var talk = Talk()
        talk.logIn()
        talk.take(.register(Talk.registration, vapid: nil))
        talk.hear(
            "<iq type='error' id='\(try talk.lastID())' from='lab.example'><error type='cancel'><\(condition) "
                + "xmlns='urn:ietf:params:xml:ns:xmpp-stanzas'/></error></iq>")
        let name = condition == "text" ? "undefined-condition" : condition
        let text = "the push service lab.example refused the registration: \(name)"
        #expect(talk.reports.last == .registrationFailed(Talk.registration, failure, text))
    }

    @Test(arguments: [
        "", "ftp://a/", "https://a b/", "https://\(String(repeating: "a", count: 1000))/", "https://é/",
    ]) func `what is no endpoint is none`(endpoint: String) throws {
        var talk = Talk()
        talk.logIn()
        talk.take(.register(Talk.registration, vapid: nil))
        talk.hear(Recorded.registered(try talk.lastID()).replacing(Recorded.endpoint, with: endpoint))
        guard case .registrationFailed(Talk.registration, .internalError, let text) = talk.reports.last else {
            Issue.record("\(talk.reports)")
            return
        }
        #expect(text.hasPrefix("lab.example answered with no endpoint: "))
    }

    @Test func `an answer of somebody else is none, nor is one to no question`() throws {
        var talk = Talk()
        talk.logIn()
        talk.take(.register(Talk.registration, vapid: nil))
        let id = try talk.lastID()
        talk.reports = []
        talk.hear(Recorded.registered(id).replacing("from='lab.example'", with: "from='mallory@lab.example'"))
        talk.hear(Recorded.registered(id).replacing(" from='lab.example'", with: ""))
        talk.hear(Recorded.registered("other"))
        #expect(
            talk.reports
                == ["mallory@lab.example", "the account", "lab.example"].map {
                    .trouble("\($0) answers what it was not asked")
                })
        talk.hear(Recorded.registered(id))
        #expect(
            talk.reports.last == .registered(Talk.registration, endpoint: Recorded.endpoint, expires: Recorded.expiry))
        #expect(talk.redials.isEmpty)
    }

    @Test func `a registration that was ended is refused as unknown from then on`() throws {
        var talk = try Talk.registered()
        talk.take(.unregister(Talk.registration, endpoint: Recorded.endpoint))
        #expect(talk.reports.last == .unregistered(Talk.registration))
        talk.hear(Recorded.push("a", "aGVsbG8="))
        #expect(talk.arrived.isEmpty)
        #expect(talk.said() == error("item-not-found", "cancel") + Talk.question)
    }

    @Test func `there are so many registrations and no more`() {
        var talk = Talk()
        for index in 0...XMPPMemory.mostRegistrations {
            let digits = String(index, radix: 16)
            let text = String(repeating: "0", count: 32 - digits.count) + digits
            talk.take(.register(Talk.registration(text), vapid: nil))
        }
        let last = Talk.registration("00000000000000000000000000000100")
        let text = "an XMPP account has up to 256 registrations"
        #expect(talk.reports == [.registrationsFull(last, text)])
        #expect(XMPPMemory.mostRegistrations == 4 * DistributorLimits().registrationsOfApp, "no app has all of them")
        talk.logIn()
        // No more than a server acknowledges at a time.
        #expect((20...60).contains(talk.output.components(after: "<register ").count))
        var handled = 0
        while talk.output.hasSuffix(Talk.question), handled < 300 {
            handled = Int(talk.server.memory.management?.sent ?? 0)
            let ids = talk.said().components(after: "type='set' id='").filter { $0 != "bind" }
            talk.hear(ids.map(Recorded.registered).joined() + "<a xmlns='urn:xmpp:sm:3' h='\(handled)'/>")
        }
        #expect(handled == XMPPMemory.mostRegistrations)
        #expect(talk.server.parking != nil)
        #expect(talk.memory?.count ?? 0 < XMPPMemory.mostBytes)
    }

    // MARK: - Where the service is

    @Test func `the service is looked for at the account's server, and known from then on`() throws {
        var talk = Talk(account: Talk.account(service: nil))
        talk.logIn()
        talk.take(.register(Talk.registration, vapid: nil))
        talk.hear("<iq type='result' id='\(try talk.lastID())' from='lab.example'>\(Recorded.discovered)</iq>")
        #expect(talk.said().contains("to='lab.example'><register "))
        talk = Talk(memory: talk.memory, account: Talk.account(service: nil))
        #expect(talk.server.service == "lab.example")
    }

    @Test func `the service may be among what the server lists`() throws {
        var talk = Talk(account: Talk.account(service: nil))
        talk.logIn()
        talk.take(.register(Talk.registration, vapid: nil))
        let nothing = "<query xmlns='http://jabber.org/protocol/disco#info'/>"
        talk.hear("<iq type='result' id='\(try talk.lastID())' from='lab.example'>\(nothing)</iq>")
        talk.hear(
            "<iq type='result' id='\(try talk.lastID())' from='lab.example'>"
                + "<query xmlns='http://jabber.org/protocol/disco#items'><item jid='muc.lab.example'/>"
                + "<item jid='push.lab.example'/></query></iq>")
        talk.hear(
            "<iq type='error' id='\(try talk.lastID())' from='muc.lab.example'><error type='cancel'>"
                + "<service-unavailable xmlns='urn:ietf:params:xml:ns:xmpp-stanzas'/></error></iq>")
        talk.hear("<iq type='result' id='\(try talk.lastID())' from='push.lab.example'>\(Recorded.discovered)</iq>")
        #expect(talk.said().contains("to='push.lab.example'><register "))
        #expect(talk.server.service == "push.lab.example")
    }

    @Test func `a server without a service is told`() throws {
        var talk = Talk(account: Talk.account(service: nil))
        talk.logIn()
        talk.take(.register(Talk.registration, vapid: nil))
        // It does not answer.
        talk.hear("<a xmlns='urn:xmpp:sm:3' h='1'/>")
        talk.wait(.seconds(60))
        talk.hear("<a xmlns='urn:xmpp:sm:3' h='2'/>")
        talk.wait(.seconds(60))
        let text = "lab.example has no push service; give the JID of one"
        #expect(talk.reports.last == .registrationFailed(Talk.registration, .actionRequired, text))
        #expect(talk.server.deadline == nil)
    }

    // MARK: - Pushes

    @Test(arguments: [
        (MessageOutcome.taken, "<iq type='result' id='a' to='lab.example'/>"),
        (.givenUp("expired"), "not-acceptable cancel"), (.notNow("unsaved"), "recipient-unavailable wait"),
        (.full("full"), "recipient-unavailable wait"),
    ]) func `a push is answered once its app has it, or not`(outcome: MessageOutcome, answer: String) throws {
        var talk = try Talk.registered()
        talk.hear(Recorded.push("a", "aGVsbG8="))
        let message = try #require(talk.arrived.first)
        #expect(message.body == Array("hello".utf8))
        #expect(message.registration == Talk.registration)
        talk.take(.settled(message.id, .kept))
        #expect(talk.said().isEmpty)
        talk.take(.settled(message.id, outcome))
        let words = answer.split(separator: " ").map(String.init)
        #expect(talk.said() == (words.count == 2 ? error(words[0], words[1]) : answer) + Talk.question)
        talk.take(.settled(message.id, outcome))
        #expect(talk.said().isEmpty)
    }

    @Test func `a message that is given up after its registration was ended tells the sender that that is gone`() throws
    {
        var talk = try Talk.registered()
        talk.hear(Recorded.push("a", "aGVsbG8="))
        talk.take(.unregister(Talk.registration, endpoint: nil))
        talk.take(.settled(try #require(talk.arrived.first).id, .givenUp("no such registration")))
        #expect(talk.said() == error("item-not-found", "cancel") + Talk.question)
    }

    @Test func `the same iq is the same message, and another under its id is not`() throws {
        var talk = try Talk.registered()
        talk.hear(Recorded.push("a", "YQ==") + Recorded.push("a", "YQ=="))
        #expect(talk.arrived.count == 1)
        talk.hear(Recorded.push("a", "Yg=="))
        #expect(talk.arrived.map(\.body) == [Array("a".utf8), Array("b".utf8)])
        #expect(Set(talk.arrived.map(\.id)).count == 2)
        _ = talk.said()
        // The answer would be taken for the new one's.
        talk.take(.settled(talk.arrived[0].id, .taken))
        #expect(talk.said().isEmpty)
        talk.take(.settled(talk.arrived[1].id, .taken))
        #expect(talk.said() == "<iq type='result' id='a' to='lab.example'/>" + Talk.question)
        // After its answer the same comes by the same name, and the next value would give it the same one.
        talk.hear(Recorded.push("a", "Yg=="))
        #expect(talk.arrived.last?.id == talk.arrived[1].id)
    }

    @Test(arguments: [
        (Recorded.push("a", "aGVsbG8=", from: "mallory@lab.example"), "forbidden auth mallory@lab.example"),
        (Recorded.push("a", "aGVsbG8=", from: "lab.example/x"), "forbidden auth lab.example/x"),
        (
            Recorded.push("a", "aGVsbG8=", instance: "MTEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="),
            "item-not-found cancel"
        ),
        (Recorded.push("a", "aGVsbG8=", instance: "?"), "item-not-found cancel"),
        (Recorded.push("a", "aGVsbG8=").replacing("41ae", with: "42ae"), "item-not-found cancel"),
        (Recorded.push("a", ""), "bad-request modify"), (Recorded.push("a", "aGVsbG8"), "bad-request modify"),
        (Recorded.push("a", String(repeating: "AAAA", count: 1366)), "bad-request modify"),
        ("<iq type='set' id='a' from='lab.example'/>", "bad-request modify"),
        ("<iq type='what' id='a' from='lab.example'><x xmlns='urn:x'/></iq>", "bad-request modify"),
        ("<iq type='get' id='a' from='lab.example'><x xmlns='urn:x'/></iq>", "service-unavailable cancel"),
        ("<iq type='set' id='a' from='x@y/z'><ping xmlns='urn:xmpp:ping'/></iq>", "service-unavailable cancel x@y/z"),
    ]) func `what is no push is answered as RFC 6120 wants`(iq: String, answer: String) throws {
        var talk = try Talk.registered()
        talk.hear(iq)
        let words = answer.split(separator: " ").map(String.init)
        #expect(
            talk.said() == error(words[0], words[1], to: words.last == words[1] ? "lab.example" : words[2])
                + Talk.question)
        #expect(talk.arrived.isEmpty)
        #expect(talk.redials.isEmpty)
        #expect(talk.server.memory.management?.handled == 2)
    }

    @Test func `the largest push has 4096 bytes, and may have blanks`() throws {
        var talk = try Talk.registered()
        talk.hear(Recorded.push("a", String(repeating: "AAAA\n", count: 1365) + "AA=="))
        #expect(talk.arrived.first?.body.count == 4096)
    }

    @Test func `pings and questions for what it is are answered`() throws {
        var talk = try Talk.registered()
        talk.hear("<iq type='get' id='&apos;1' from='lab.example'><ping xmlns='urn:xmpp:ping'/></iq>")
        #expect(talk.said() == "<iq type='result' id='&apos;1' to='lab.example'/>" + Talk.question)
        talk.hear("<iq type='get' id='2'><query xmlns='http://jabber.org/protocol/disco#info'/></iq>")
        #expect(talk.said().hasPrefix("<iq type='result' id='2'><query xmlns='http://jabber.org/protocol/disco#info'>"))
    }

    @Test func `so many pushes wait for their answers, and no more`() throws {
        var talk = try Talk.registered()
        for index in 0..<XMPPMemory.mostPending { talk.hear(Recorded.push("a\(index)", "YQ==")) }
        #expect(talk.said().isEmpty)
        talk.hear(Recorded.push("b", "YQ=="))
        #expect(talk.said() == error("resource-constraint", "wait", id: "b") + Talk.question)
        #expect(talk.arrived.count == XMPPMemory.mostPending)
    }

    @Test func `an app that takes none of its pushes keeps no other's away`() throws {
        var talk = try Talk.registered(others: ["b", "c"].map { Talk.registration(String(repeating: $0, count: 32)) })
        func push(_ id: String, for digit: Character) -> String {
            let registration = Talk.registration(String(repeating: digit, count: 32))
            return Recorded.push(id, "YQ==", instance: XMPPPushServer.instance(of: registration))
        }
        func said() -> String {
            defer { talk.hear(talk.acknowledgement) }
            return talk.said()
        }
        talk.hear(push("c", for: "c"))
        for index in 1..<XMPPMemory.mostPending { talk.hear(Recorded.push("a\(index)", "YQ==")) }
        #expect(said().isEmpty)
        // The sender of the oldest of those that are the most is told that nobody waits any longer.
        let first = talk.arrived[1].id
        talk.hear(push("b1", for: "b"))
        #expect(talk.arrived.last?.id.text.hasPrefix("b1 ") == true)
        #expect(said() == error("resource-constraint", "wait", id: "a1") + Talk.question)
        let memory = try XMPPMemory(try #require(talk.memory), account: Talk.account.bareJID)
        #expect(memory.pending.count == XMPPMemory.mostPending)
        talk.take(.settled(first, .taken))
        #expect(said().isEmpty, "that one was answered")
        // Who had the one was never among the most.
        talk.take(.settled(talk.arrived[0].id, .taken))
        #expect(said() == "<iq type='result' id='c' to='lab.example'/>" + Talk.question)
        // Where an iq comes again that was answered so, it is the same message, and the distributor has it.
        talk.hear(Recorded.push("a1", "YQ=="))
        #expect(talk.arrived.last?.id == first)
        // Each has its share.
        for index in 2...XMPPMemory.pendingShare { talk.hear(push("b\(index)", for: "b")) }
        #expect(talk.arrived.last?.id.text.hasPrefix("b16 ") == true)
        _ = said()
        talk.hear(push("b17", for: "b"))
        #expect(said() == error("resource-constraint", "wait", id: "b17") + Talk.question)
    }

    @Test func `many registrations of an app that takes nothing keep no other's pushes away either`() throws {
        let others = (1...40).map { Talk.registration(String(repeating: "0", count: 30) + "\(10 + $0)") }
        var talk = try Talk.registered(others: others)
        for (number, other) in others.enumerated() {
            talk.hear(Recorded.push("a\(number)", "YQ==", instance: XMPPPushServer.instance(of: other)))
        }
        for number in 1...XMPPMemory.pendingShare { talk.hear(Recorded.push("b\(number)", "YQ==")) }
        #expect(talk.arrived.count == 40 + XMPPMemory.pendingShare)
        _ = talk.said()
        for message in talk.arrived.suffix(XMPPMemory.pendingShare) {
            talk.take(.settled(message.id, .taken))
            #expect(talk.said().hasPrefix("<iq type='result' id='b"))
            talk.hear(talk.acknowledgement)
        }
    }

    // MARK: - Times

    @Test(arguments: [
        ("2026-11-29T01:00:32Z", 1_795_914_032_000), ("2026-11-29T01:00:32.5Z", 1_795_914_032_500),
        ("2026-11-29T01:00:32.123456Z", 1_795_914_032_123), ("2026-11-29T02:30:32+01:30", 1_795_914_032_000),
        ("2026-11-28T20:00:32.000-05:00", 1_795_914_032_000), ("1969-07-21T02:56:15Z", -14_159_025_000),
    ]) func `a time is read`(text: String, milliseconds: Int64) {
        #expect(WallTime(xmpp: text) == WallTime(milliseconds: milliseconds))
    }

    @Test(arguments: [
        "", "2026", "2026-11-29T01:00:32", "2026-11-29 01:00:32Z", "2026-11-29T01:00:32.Zx", "-026-11-29T01:00:32Z",
        "2026-11-29T01:00:32+0130", "2026-11-29T01:00:32Z ", "2026-11-29T+1:00:32Z",
        String(repeating: "2", count: 1000),
        "ä026-11-29T01:00:32Z",
    ]) func `what is no time is none`(text: String) {
        #expect(WallTime(xmpp: text) == nil)
    }
}
