// SPDX-License-Identifier: Apache-2.0

import DialtoneDistributor
import DialtonePlatform
import Testing

@testable import DialtonePushServers

/// XMPP: login.
@Suite struct XMPPLoginTests {
    private static let header =
        "<?xml version='1.0'?><stream:stream to='lab.example' version='1.0' xmlns='jabber:client' "
        + "xmlns:stream='http://etherx.jabber.org/streams'>"
    private static let auth =
        "<auth xmlns='urn:ietf:params:xml:ns:xmpp-sasl' mechanism='PLAIN'>AGp1bGlldABzZWNyZXQ=</auth>"
    private static let bind =
        "<iq type='set' id='bind'><bind xmlns='urn:ietf:params:xml:ns:xmpp-bind'>"
        + "<resource>dialtone-123456789abcdef0</resource></bind></iq>"

    @Test func `a new session is logged in step by step`() {
        var talk = Talk()
        talk.take(.connected)
        #expect(talk.said() == Self.header)
        talk.hear(Recorded.mechanisms)
        #expect(talk.said() == Self.auth)
        talk.hear(Recorded.success)
        #expect(talk.said() == Self.header)
        talk.hear(Recorded.features)
        #expect(talk.said() == Self.bind)
        talk.hear(Recorded.bound())
        #expect(talk.said() == "<enable xmlns='urn:xmpp:sm:3' resume='true'/>")
        #expect(talk.server.deadline == talk.now.uptime + .seconds(30))
        #expect(talk.server.parking == nil)
        talk.hear(Recorded.enabled)
        #expect(talk.said().isEmpty)
        #expect(talk.reports == [.loggedIn])
        #expect(talk.server.deadline == nil)
    }

    @Test func `a stream may be cut anywhere`() throws {
        func run(_ cutChunk: Int, _ cut: Int?) throws -> Talk {
            var talk = Talk()
            talk.take(.connected)
            talk.take(.register(Talk.registration, vapid: nil))
            for (index, answer) in Recorded.login.enumerated() { talk.hear(answer, cut: index == cutChunk ? cut : nil) }
            let id = try talk.lastID()
            let rest =
                Recorded.registered(id) + "<a xmlns='urn:xmpp:sm:3' h='1'/>\n" + Recorded.push("one", "aGVsbG8=")
                + "<r xmlns='urn:xmpp:sm:3'/><iq type='get' id='p' from='lab.example'><ping "
                + "xmlns='urn:xmpp:ping'/></iq>"
                + Recorded.push("two", "aGVsbG8=") + "<message from='x@y'><body>&lt;é</body></message>"
            talk.hear(rest, cut: cutChunk == Recorded.login.count ? cut : nil)
            // Where it asks for acknowledgements depends on what comes together.
            talk.output = talk.output.replacing(Talk.question, with: "")
            return talk
        }
        let whole = try run(0, nil)
        #expect(whole.arrived.count == 2)
        #expect(whole.server.ignored == 1)
        for chunk in 0...Recorded.login.count {
            let length = chunk < Recorded.login.count ? Recorded.login[chunk].utf8.count : 1000
            for cut in 0...length {
                let talk = try run(chunk, cut)
                #expect(talk.output == whole.output, "answer \(chunk) cut at \(cut)")
                #expect(talk.reports == whole.reports && talk.arrived == whole.arrived, "answer \(chunk) cut at \(cut)")
                #expect(talk.memory == whole.memory && talk.redials == whole.redials, "answer \(chunk) cut at \(cut)")
            }
        }
    }

    @Test func `a refused account waits longer each time, also on a new socket`() {
        var talk = Talk()
        for hours in [0.5, 1, 2, 4, 8, 8] {
            talk.take(.connected)
            talk.hear(Recorded.mechanisms)
            talk.reports = []
            talk.hear(Recorded.failure)
            let text = "SASL failure, not-authorized: Unable to authorize you with the authentication credentials "
            #expect(talk.reports == [.loginRefused(text + "you've sent.")])
            #expect(talk.server.deadline == talk.now.uptime + .seconds(hours * 3600))
            _ = talk.said()
            talk.take(.disconnected)
            talk.take(.connected)
            talk.hear(Recorded.mechanisms)
            #expect(talk.said().isEmpty)
            #expect(talk.redials.isEmpty)
            talk.wait(.seconds(hours * 3600))
            #expect(talk.redials == ["the account is tried again"])
            talk.redials = []
        }
    }

    @Test(arguments: [
        (
            Recorded.mechanisms.replacing("<mechanism>PLAIN</mechanism>", with: ""),
            "the server offers SCRAM-SHA-256, SCRAM-SHA-1, and a login that can be left with the agent takes PLAIN"
        ),
        (
            "<stream:stream xmlns='jabber:client' xmlns:stream='http://etherx.jabber.org/streams'><stream:features>"
                + "<starttls xmlns='urn:ietf:params:xml:ns:xmpp-tls'><required/></starttls></stream:features>",
            "the server wants STARTTLS here; give the port that has TLS from the first byte"
        ),
    ]) func `a server that takes no PLAIN is told by what it offers`(answer: String, reason: String) {
        var talk = Talk()
        talk.take(.connected)
        talk.hear(answer)
        #expect(talk.reports == [.loginRefused(reason)])
        #expect(!talk.output.contains("<auth"))
    }

    @Test func `what passes by itself is tried again with the next socket`() {
        var talk = Talk()
        talk.take(.connected)
        talk.hear(Recorded.mechanisms)
        talk.hear(
            "<failure xmlns='urn:ietf:params:xml:ns:xmpp-sasl'><temporary-auth-failure/></failure>")
        #expect(talk.redials == ["SASL failure, temporary-auth-failure"])
        talk.redials = []
        talk.take(.disconnected)
        talk.logIn()
        #expect(talk.reports.last == .loggedIn)
        #expect(talk.redials.isEmpty)
    }

    @Test func `a server without stream management has a session all the same, which ends with its socket`() throws {
        var talk = Talk()
        talk.take(.connected)
        talk.take(.register(Talk.registration, vapid: nil))
        for answer in Recorded.login.dropLast() {
            talk.hear(answer.replacing("<sm xmlns='urn:xmpp:sm:3'><optional/></sm>", with: ""))
        }
        #expect(talk.reports == [.loggedIn])
        #expect(!talk.output.contains("enable"))
        talk.hear(Recorded.registered(try talk.lastID()))
        talk.hear(Recorded.push("a", "aGVsbG8="))
        #expect(talk.server.parking == PushParking(opening: [], answers: .xmpp(handled: 0)))
        talk.take(.disconnected)
        _ = talk.said()
        talk.take(.settled(try #require(talk.arrived.first?.id), .taken))
        talk.logIn()
        #expect(!talk.said().contains("id='a'"))
    }

    @Test func `a server that refuses to count is gone on with`() {
        var talk = Talk()
        talk.take(.connected)
        for answer in Recorded.login.dropLast() { talk.hear(answer) }
        talk.hear(
            "<failed xmlns='urn:xmpp:sm:3'><feature-not-implemented xmlns='urn:ietf:params:xml:ns:xmpp-stanzas'/>"
                + "</failed>"
        )
        #expect(talk.reports == [.loggedIn])
        #expect(talk.redials.isEmpty)
        #expect(talk.server.parking?.opening == [])
    }

    @Test func `another JID than before is another identity`() throws {
        var talk = Talk(memory: try Talk.registered().memory, seed: 7)
        talk.take(.connected)
        for answer in [Recorded.mechanisms, Recorded.success, Recorded.features, Recorded.notResumed] {
            talk.hear(answer)
        }
        // The resource of before is asked for.
        #expect(talk.output.hasSuffix(Self.bind))
        talk.hear(Recorded.bound("juliet@lab.example/another"))
        talk.hear(Recorded.enabled)
        let reason =
            "the server bound juliet@lab.example/another in place of \(Recorded.jid), where the endpoints push to"
        #expect(talk.reports == [.loggedIn, .identityLost(reason)])
    }

    @Test func `the same JID in another session is the same identity`() throws {
        var talk = Talk(memory: try Talk.registered().memory, seed: 7)
        talk.take(.connected)
        for answer in [Recorded.mechanisms, Recorded.success, Recorded.features, Recorded.notResumed] {
            talk.hear(answer)
        }
        talk.hear(Recorded.bound())
        talk.hear(Recorded.enabled)
        #expect(talk.reports == [.loggedIn])
        #expect(talk.redials.isEmpty)
    }

    @Test func `a resource that the server gives to nobody is tried again`() {
        var talk = Talk()
        talk.take(.connected)
        for answer in [Recorded.mechanisms, Recorded.success, Recorded.features] { talk.hear(answer) }
        talk.hear(
            "<iq type='error' id='bind'><error type='cancel'><conflict xmlns='urn:ietf:params:xml:ns:xmpp-stanzas'/>"
                + "</error></iq>")
        #expect(talk.redials == ["the server bound no resource: conflict"])
    }

    @Test func `a login that stands still is given up`() {
        for count in 0..<Recorded.login.count {
            var talk = Talk()
            talk.take(.connected)
            for answer in Recorded.login.prefix(count) { talk.hear(answer) }
            talk.wait(.seconds(29))
            #expect(talk.redials.isEmpty)
            talk.wait(.seconds(1))
            #expect(talk.redials == ["the login took longer than 30.0 seconds"], "after \(count) answers")
            #expect(talk.server.deadline == nil)
        }
    }

    @Test(arguments: [
        "", "@lab.example", "juliet@", "juliet", "a@b@c", "jul iet@lab.example", "juliet@lab.example/door",
        "jul'iet@lab.example", String(repeating: "a", count: 512) + "@b",
    ]) func `what is no account is told`(jid: String) {
        #expect(throws: XMPPAccountError.self) { try XMPPAccount(jid: jid, password: "secret") }
    }

    @Test func `the remote has TLS, or is on this machine`() throws {
        func remote(_ host: String?, _ port: UInt16?, _ security: XMPPAccount.Security) throws -> String {
            try XMPPAccount(
                jid: "juliet@Lab.example", password: "secret", host: host, port: port, security: security
            ).remote
        }
        #expect(try remote(nil, nil, .directTLS) == "xmpps://lab.example")
        #expect(try remote("xmpp.lab.example", 443, .directTLS) == "xmpps://xmpp.lab.example:443")
        #expect(try remote("2001:db8::1", 443, .directTLS) == "xmpps://[2001:db8::1]:443")
        #expect(try remote("127.0.0.1", 15222, .plainTextToLoopback) == "xmpp://127.0.0.1:15222")
        #expect(throws: XMPPAccountError.self) { try remote("192.0.2.1", nil, .plainTextToLoopback) }
        #expect(throws: XMPPAccountError.self) { try remote(nil, nil, .plainTextToLoopback) }
        #expect("\(Talk.account)" == "juliet@lab.example")
        #expect(!String(reflecting: Talk.account).contains("secret"))
    }
}
