// SPDX-License-Identifier: Apache-2.0

import DialtoneDistributor
import DialtonePlatform
import DialtoneTestSupport
import Testing

@testable import DialtonePushServers

/// XMPP: servers that lie, and memory.
@Suite struct XMPPLiesTests {
    private static let questions = (0..<300).map { number -> String in
        "<iq type='get' id='\(number)' from='a@b'><x xmlns='urn:x'/></iq>"
    }.joined()

    @Test(arguments: [
        ("<iq>" + String(repeating: "a", count: 1 << 20), "more than 65536 bytes of one stanza"),
        ("<!DOCTYPE x>", "no well-formed XML"), ("nonsense", "text between stanzas"),
        ("<a xmlns='urn:xmpp:sm:3' h='9'/>", "it acknowledges what it was not sent"),
        ("<a xmlns='urn:xmpp:sm:3' h='0'/>", "or less than before"), ("<a xmlns='urn:xmpp:sm:3'/>", "acknowledges"),
        ("<a xmlns='urn:xmpp:sm:3' h='-1'/>", "acknowledges"),
        ("<enabled xmlns='urn:xmpp:sm:3'/>", "<enabled> of stream management has no place here"),
        (XMPPLiesTests.questions, "acknowledges nothing of what it is sent"),
    ]) func `a breach ends the session, which would bring it again`(words: String, problem: String) throws {
        var talk = try Talk.registered()
        talk.reports = []
        talk.hear(words)
        #expect(talk.reports.count == 1)
        guard case .trouble(let text) = talk.reports.first else {
            Issue.record("\(talk.reports)")
            return
        }
        #expect(text.contains(problem), "\(text)")
        #expect(talk.redials == [text])
        #expect(talk.server.parking == nil)
        #expect(talk.server.deadline == nil)
        _ = talk.said()
        talk.take(.disconnected)
        talk.logIn()
        #expect(!talk.said().contains("<resume"))
        #expect(talk.reports.last == .loggedIn)
    }

    @Test func `what is wrong in a login is told, and the session of before kept from it`() {
        for count in 0..<Recorded.login.count {
            var talk = Talk()
            talk.take(.connected)
            for answer in Recorded.login.prefix(count) { talk.hear(answer) }
            let stream =
                [0, 2].contains(count) ? "<stream:stream xmlns:stream='http://etherx.jabber.org/streams'>" : ""
            talk.hear(stream + "<resumed xmlns='urn:xmpp:sm:3' previd='x' h='0'/>")
            #expect(talk.redials.count == 1, "after \(count) answers")
        }
    }

    @Test func `a session of another name is not the one that was resumed`() throws {
        for lie in [
            "<resumed h='1' xmlns='urn:xmpp:sm:3' previd='other'/>",
            "<resumed xmlns='urn:xmpp:sm:3' previd='YAR33azMA0Zb'/>",
            Recorded.resumed(2), Recorded.resumed(0),
        ] {
            var talk = try Talk.registered()
            talk.take(.disconnected)
            talk.take(.connected)
            for answer in [Recorded.mechanisms, Recorded.success, Recorded.features, lie] { talk.hear(answer) }
            #expect(talk.redials == ["the server broke the protocol: it resumed another session, or counts otherwise"])
        }
    }

    @Test func `the server closes the stream, and says why`() throws {
        var talk = try Talk.registered()
        talk.hear(Recorded.replaced.replacing("h='0'", with: "h='1'"))
        #expect(talk.redials == ["stream error, conflict: Replaced by new connection"])
        talk = try Talk.registered()
        talk.hear("</stream:stream>")
        #expect(talk.redials == ["the server closed the stream"])
        talk = try Talk.registered()
        talk.hear(
            "<stream:error><see-other-host xmlns='urn:ietf:params:xml:ns:xmpp-streams'>evil.example\u{85}"
                + "</see-other-host>"
                + "</stream:error>")
        #expect(talk.redials == ["stream error, see-other-host: evil.example\\u{85}, which is not followed"])
        #expect(talk.server.remote == "xmpps://lab.example")
    }

    @Test func `a server that closes at each hello is dialled again each time, and nothing is kept of it`() {
        var talk = Talk()
        for _ in 0..<100 {
            talk.take(.connected)
            talk.hear(Recorded.mechanisms + "</stream:stream>")
            talk.take(.disconnected)
        }
        #expect(talk.redials.count == 100)
        #expect(talk.server.deadline == nil)
    }

    @Test func `what is told of a socket is bounded, at once and in the long run`() throws {
        var talk = try Talk.registered()
        talk.reports = []
        talk.hear(String(repeating: "<x xmlns='urn:\(String(repeating: "x", count: 400))'/>", count: 10))
        for _ in 0..<20 { talk.hear("<x xmlns='urn:x'/>") }
        #expect(talk.reports.count == 16)
    }

    // MARK: - Memory

    @Test func `memory is what it was`() throws {
        var memory = XMPPMemory(account: "juliet@lab.example", resource: "r")
        memory.fullJID = Recorded.jid
        memory.service = "push.lab.example"
        memory.registrations = [Talk.registration, Talk.registration(String(repeating: "f", count: 32))]
        memory.management = XMPPStreamManagement(
            resumption: "x", handled: 7, acknowledged: 9, unacknowledged: [[1, 2], [3]])
        memory.pending = [
            .init(
                message: Talk.message("a", Talk.registration, [1]), registration: Talk.registration)
        ]
        #expect(try XMPPMemory(memory.bytes, account: memory.account) == memory)
        #expect(memory.management?.size == 3)
        #expect(throws: DamagedState.self) { try XMPPMemory(memory.bytes, account: "other@lab.example") }
        memory.management?.resumption = nil
        let read = try XMPPMemory(memory.bytes, account: memory.account)
        #expect(read.management == nil && read.pending.isEmpty)
    }

    @Test func `memory that is full fits`() throws {
        var memory = XMPPMemory(
            account: String(repeating: "a", count: XMPPAccount.longestJID), resource: String(repeating: "r", count: 64))
        memory.fullJID = String(repeating: "a", count: 2 * XMPPAccount.longestJID)
        memory.service = memory.account
        for index in 0..<XMPPMemory.mostRegistrations {
            memory.registrations.insert(
                Talk.registration(String(repeating: "0", count: 24) + String(10_000_000 + index)))
        }
        let answer = Array(
            XMPPStanza.error(.recipientUnavailable, id: String(repeating: "i", count: 128), to: memory.service).utf8)
        let count = XMPPMemory.mostUnacknowledged / answer.count + XMPPMemory.mostPending
        memory.management = XMPPStreamManagement(
            resumption: String(repeating: "x", count: XMPPMemory.longestResumption),
            unacknowledged: [[UInt8]](repeating: answer, count: count))
        for index in 0..<XMPPMemory.mostPending {
            let id = String(repeating: "i", count: 124) + String(1000 + index)
            memory.pending.append(
                .init(message: Talk.message(id, Talk.registration, [1]), registration: Talk.registration))
        }
        #expect(memory.bytes.count <= XMPPMemory.mostBytes)
        #expect(try XMPPMemory(memory.bytes, account: memory.account) == memory)
    }

    @Test(arguments: seeds(20)) func `damaged memory is read without a trap, or known as such`(seed: UInt64) throws {
        var random = SplitMix64(seed: seed)
        var whole = try Talk.registered()
        whole.hear(Recorded.push("a", "aGVsbG8=") + Recorded.push("b", "aGVsbG8="))
        whole.take(.settled(whole.arrived[0].id, .taken))
        for _ in 0..<100 {
            var bytes = try #require(whole.memory)
            random.damage(&bytes, upTo: 3)
            if random.chance(20) { bytes.removeLast(random.below(bytes.count)) }
            var talk = Talk(memory: bytes)
            talk.take(.opened)
            talk.hear("<a xmlns='urn:xmpp:sm:3' h='2'/>" + Recorded.push("c", "aGVsbG8="))
            talk.take(.disconnected)
            talk.logIn()
            #expect(talk.memory?.count ?? 0 <= XMPPMemory.mostBytes)
        }
    }

    @Test func `with memory that is damaged goes the identity`() {
        var talk = Talk(memory: [1, 2, 3])
        talk.logIn()
        let reason = "what was kept of juliet@lab.example is damaged, or another account's"
        #expect(talk.reports == [.loggedIn, .identityLost(reason)])
        #expect(talk.memory != [1, 2, 3])
        talk = Talk(memory: talk.memory)
        talk.logInAnew()
        #expect(talk.reports == [.loggedIn])
    }

    @Test func `at another push service the identity is another one`() {
        var talk = Talk()
        talk.logIn()
        for (service, isLost) in [("lab.example", false), ("push.example", true), ("push.example", false)] {
            talk = Talk(memory: talk.memory, account: Talk.account(service: service))
            // Where it is another one, no session goes on in which that would not be told.
            if isLost { talk.logIn() } else { talk.logInAnew() }
            let lost = PushServerReport.identityLost("the account has another push service than lab.example")
            #expect(talk.reports == (isLost ? [.loggedIn, lost] : [.loggedIn]), "\(service)")
        }
    }

    // MARK: - Anything

    @Test(arguments: seeds(30)) func `whatever the server says, in whatever order, nothing traps and all is bounded`(
        seed: UInt64
    ) {
        var random = SplitMix64(seed: seed)
        let words =
            Recorded.login + [
                Recorded.failure, Recorded.notResumed, Recorded.replaced, Recorded.resumed(1),
                Recorded.push("a", "YQ=="),
                Recorded.push("b", "Yg=="), Recorded.registered("9abcdef0-1"), Recorded.bound("x@y/z"),
                "<a xmlns='urn:xmpp:sm:3' h='1'/>", "<r xmlns='urn:xmpp:sm:3'/>", "<message/>", "</stream:stream>",
                "<iq type='get' id='p'><ping xmlns='urn:xmpp:ping'/></iq>",
            ]
        var talk = Talk(account: Talk.account(service: random.chance(50) ? nil : "lab.example"))
        for _ in 0..<300 {
            switch random.below(12) {
            case 0: talk.logIn()
            case 1: talk.take(.connected)
            case 2: talk.take(.disconnected)
            case 3: talk.take(random.chance(50) ? .opened : .unparked)
            case 4: talk.wait(.seconds(random.below(4000)))
            case 5: talk.take(.register(Talk.registration, vapid: nil))
            case 6: talk.take(.unregister(Talk.registration, endpoint: nil))
            case 7:
                let outcome = [MessageOutcome.taken, .givenUp(""), .notNow("")][random.below(3)]
                if let message = talk.arrived.randomElement(using: &random) { talk.take(.settled(message.id, outcome)) }
            default:
                var bytes = Array(words[random.below(words.count)].utf8)
                if random.chance(30) { random.damage(&bytes, upTo: 3) }
                let cut = random.below(bytes.count)
                talk.take(.received(Array(bytes.prefix(cut))))
                talk.take(.received(Array(bytes.dropFirst(cut))))
            }
            _ = (talk.server.parking, talk.server.deadline)
            talk.output = String(talk.output.suffix(10))
            #expect(talk.memory?.count ?? 0 <= XMPPMemory.mostBytes)
            #expect(talk.server.questions.count <= 1 + XMPPDiscovery.mostServices)
        }
        if let memory = talk.memory {
            #expect(throws: Never.self) { try XMPPMemory(memory, account: "juliet@lab.example") }
        }
    }
}
