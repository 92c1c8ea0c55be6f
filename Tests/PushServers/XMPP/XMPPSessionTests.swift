// SPDX-License-Identifier: Apache-2.0

import DialtoneDistributor
import DialtonePlatform
import Testing

@testable import DialtonePushServers

/// XMPP: resumption.
@Suite struct XMPPSessionTests {
    private static let resume = "<resume xmlns='urn:xmpp:sm:3' previd='YAR33azMA0Zb' h='%'/>"

    /// Dials again, as far as the resumption.
    private func redial(_ talk: inout Talk, handled: Int) {
        talk.take(.disconnected)
        talk.take(.connected)
        for answer in [Recorded.mechanisms, Recorded.success, Recorded.features] { talk.hear(answer) }
        let said = talk.said()
        #expect(said.hasSuffix(Self.resume.replacing("%", with: "\(handled)")), "\(said)")
    }

    @Test func `a new socket goes on with the session`() throws {
        var talk = try Talk.registered()
        talk.hear(Recorded.push("a", "aGVsbG8="))
        redial(&talk, handled: 2)
        talk.reports = []
        talk.hear(Recorded.resumed(1) + "<r xmlns='urn:xmpp:sm:3'/>")
        #expect(talk.reports == [.loggedIn])
        #expect(talk.said() == "<a xmlns='urn:xmpp:sm:3' h='2'/>")
        // What was asked for its app on the socket before is answered on this one.
        talk.take(.settled(try #require(talk.arrived.first).id, .taken))
        #expect(talk.said() == "<iq type='result' id='a' to='lab.example'/>" + Talk.question)
    }

    @Test func `what the server did not handle is sent again, and nothing else`() throws {
        var talk = try Talk.registered()
        talk.hear(Recorded.push("a", "YQ==") + Recorded.push("b", "Yg==") + Recorded.push("c", "Yw=="))
        for message in talk.arrived { talk.take(.settled(message.id, .taken)) }
        redial(&talk, handled: 4)
        // It had one registration and the first answer.
        talk.hear(Recorded.resumed(2))
        let rest = ["b", "c"].map { "<iq type='result' id='\($0)' to='lab.example'/>" }.joined()
        #expect(talk.said() == rest + Talk.question)
        #expect(talk.server.parking == nil)
        talk.hear("<a xmlns='urn:xmpp:sm:3' h='4'/>")
        #expect(talk.server.parking != nil)
        #expect(talk.said().isEmpty)
    }

    @Test func `an answer that is given while there is no socket goes out on the next one, also in another process`()
        throws
    {
        var talk = try Talk.registered()
        talk.hear(Recorded.push("a", "aGVsbG8="))
        let message = try #require(talk.arrived.first).id
        talk.take(.disconnected)
        talk = Talk(memory: talk.memory, seed: 5)
        talk.take(.settled(message, .taken))
        #expect(talk.output.isEmpty)
        talk = Talk(memory: talk.memory, seed: 6)
        redial(&talk, handled: 2)
        talk.hear(Recorded.resumed(1))
        #expect(talk.said() == "<iq type='result' id='a' to='lab.example'/>" + Talk.question)
    }

    @Test func `a turn that was not saved has not been`() throws {
        let before = try Talk.registered()
        var talk = before
        talk.hear(Recorded.push("a", "aGVsbG8="))
        #expect(talk.arrived.count == 1)
        talk = Talk(memory: before.memory, seed: 5)
        redial(&talk, handled: 1)
        talk.hear(Recorded.resumed(1) + Recorded.push("a", "aGVsbG8="))
        #expect(talk.arrived.count == 1)
    }

    @Test func `with a session that is lost go the answers that it waits for, and what was asked is asked again`()
        throws
    {
        var talk = try Talk.registered()
        talk.hear(Recorded.push("a", "aGVsbG8="))
        talk.take(.register(Talk.registration, vapid: nil))
        talk.take(.settled(try #require(talk.arrived.first).id, .taken))
        talk.take(.disconnected)
        talk.take(.connected)
        for answer in [Recorded.mechanisms, Recorded.success, Recorded.features, Recorded.notResumed] {
            talk.hear(answer)
        }
        talk.hear(Recorded.bound())
        _ = talk.said()
        talk.hear(Recorded.enabled.replacing("YAR33azMA0Zb", with: "another"))
        let said = talk.said()
        #expect(said.contains("<register ") && !said.contains("id='a'"), "\(said)")
        talk.hear(Recorded.registered(said.components(after: " id='")[0]) + "<a xmlns='urn:xmpp:sm:3' h='1'/>")
        #expect(
            talk.reports.last == .registered(Talk.registration, endpoint: Recorded.endpoint, expires: Recorded.expiry))
        #expect(talk.server.parking?.answers == .xmpp(handled: 1))
    }

    @Test func `a registration that is asked twice is sent once, also over a resumption`() throws {
        var talk = try Talk.registered()
        talk.take(.register(Talk.registration, vapid: nil))
        let asked = talk.said()
        talk.take(.register(Talk.registration, vapid: nil))
        #expect(talk.said().isEmpty)
        redial(&talk, handled: 1)
        talk.take(.register(Talk.registration, vapid: nil))
        talk.hear(Recorded.resumed(1))
        #expect(talk.said() == asked)
        talk.reports = []
        talk.wait(.seconds(29))
        talk.hear("<a xmlns='urn:xmpp:sm:3' h='2'/>")
        talk.wait(.seconds(31))
        #expect(
            talk.reports == [
                .registrationFailed(Talk.registration, .network, "lab.example did not answer in 60.0 seconds")
            ])
    }

    // MARK: - Counts

    @Test func `each stanza counts, and nothing else`() throws {
        var talk = try Talk.registered()
        talk.hear(
            "<message/><presence/> <iq type='get' id='x' from='a@b'><z xmlns='urn:z'/></iq>"
                + "<r xmlns='urn:xmpp:sm:3'/><a xmlns='urn:xmpp:sm:3' h='1'/>\n<r xmlns='urn:xmpp:sm:3'/>")
        #expect(talk.said().components(after: " h='") == ["4", "4"])
        #expect(talk.server.ignored == 3)
    }

    @Test func `an acknowledgement alone is not worth a transaction, and a count is`() throws {
        var talk = try Talk.registered()
        talk.take(.register(Talk.registration, vapid: nil))
        #expect(talk.hear("<a xmlns='urn:xmpp:sm:3' h='2'/>").memory == nil)
        let turn = talk.hear("<message/><r xmlns='urn:xmpp:sm:3'/><a xmlns='urn:xmpp:sm:3' h='2'/>")
        let memory = try XMPPMemory(try #require(turn.memory), account: "juliet@lab.example")
        #expect(memory.management?.handled == 2)
        // What was not saved, the server says again.
        talk = Talk(memory: talk.memory, seed: 5)
        redial(&talk, handled: 2)
        talk.hear(Recorded.resumed(2))
        #expect(talk.redials.isEmpty && talk.said().isEmpty)
    }

    @Test func `the counts go round after 2^32 stanzas`() throws {
        var memory = XMPPMemory(account: "juliet@lab.example", resource: "dialtone-1")
        memory.registrations = [Talk.registration]
        memory.management = XMPPStreamManagement(
            resumption: "YAR33azMA0Zb", handled: .max, acknowledged: .max - 1,
            unacknowledged: [Array("<iq type='result' id='1'/>".utf8), Array("<iq type='result' id='2'/>".utf8)])
        var talk = Talk(memory: memory.bytes)
        redial(&talk, handled: Int(UInt32.max))
        talk.hear(Recorded.resumed(Int(UInt32.max)) + Recorded.push("a", "aGVsbG8=") + "<r xmlns='urn:xmpp:sm:3'/>")
        #expect(talk.said() == "<iq type='result' id='2'/><a xmlns='urn:xmpp:sm:3' h='0'/>" + Talk.question)
        talk.hear("<a xmlns='urn:xmpp:sm:3' h='0'/>")
        #expect(talk.server.parking?.answers == .xmpp(handled: 0))
        #expect(talk.redials.isEmpty)
    }

    @Test func `a server that acknowledges nothing is dialled again`() throws {
        var talk = try Talk.registered()
        talk.take(.register(Talk.registration, vapid: nil))
        talk.hear("<a xmlns='urn:xmpp:sm:3' h='1'/>")
        #expect(talk.said().components(after: "<r ").count == 1)
        talk.wait(.seconds(30))
        #expect(talk.redials == ["the server did not acknowledge what it was sent in 30.0 seconds"])
        // The session goes on.
        redial(&talk, handled: 1)
    }

    // MARK: - What the agent logged in

    @Test func `behind an opening the server is asked for its count before anything is sent`() throws {
        for isAnotherProcess in [false, true] {
            var talk = try Talk.registered()
            talk.hear(Recorded.push("a", "YQ=="))
            if isAnotherProcess { talk = Talk(memory: talk.memory, seed: 5) } else { talk.take(.disconnected) }
            talk.take(.settled(Talk.message("a", Talk.registration, Array("a".utf8)), .taken))
            #expect(talk.said().isEmpty)
            talk.reports = []
            talk.take(.opened)
            #expect(talk.said() == Talk.question)
            #expect(talk.reports == [.loggedIn])
            #expect(talk.server.parking == nil)
            // What the server sends again comes before.
            talk.hear(Recorded.push("b", "Yg==") + "<r xmlns='urn:xmpp:sm:3'/>")
            talk.take(.settled(try #require(talk.arrived.last).id, .taken))
            #expect(talk.said() == "<a xmlns='urn:xmpp:sm:3' h='3'/>")
            talk.hear("<a xmlns='urn:xmpp:sm:3' h='1'/>")
            let answers = ["a", "b"].map { "<iq type='result' id='\($0)' to='lab.example'/>" }.joined()
            #expect(talk.said() == answers + Talk.question)
            talk.hear("<a xmlns='urn:xmpp:sm:3' h='3'/>")
            #expect(talk.server.parking?.answers == .xmpp(handled: 3))
            #expect(talk.redials.isEmpty)
        }
    }

    /// Parks, has the socket taken back for a push, and has it break.
    private func breakAfterPush(_ talk: inout Talk) throws {
        #expect(talk.server.parking?.answers == .xmpp(handled: 1))
        talk.take(.parked)
        talk.take(.unparked)
        talk.hear(Recorded.push("a", "YQ=="))
        talk.take(.disconnected)
        talk.take(.opened)
    }

    @Test func `a socket that broke before it was parked again goes on from the count of the opening`() throws {
        var talk = try Talk.registered()
        try breakAfterPush(&talk)
        // The agent's opening resumed by 1, so the server sends the second stanza again.
        talk.hear("<a xmlns='urn:xmpp:sm:3' h='1'/>" + Recorded.push("a", "YQ=="))
        #expect(talk.server.parking?.answers == .xmpp(handled: 2))
        #expect(talk.arrived.count == 1, "it is known")
        talk.hear(Recorded.push("b", "Yg=="))
        #expect(talk.server.parking?.answers == .xmpp(handled: 3))
    }

    @Test func `what is sent again takes no room from what is new`() throws {
        var talk = try Talk.registered()
        talk.take(.parked)
        talk.take(.unparked)
        var pushes = ""
        for number in 1...40 {
            pushes += Recorded.push("push-\(number)", "YQ==")
            talk.hear(Recorded.push("push-\(number)", "YQ=="))
            talk.take(.settled(try #require(talk.arrived.last).id, .taken))
        }
        talk.take(.disconnected)
        talk.take(.opened)
        talk.hear("<a xmlns='urn:xmpp:sm:3' h='1'/>" + pushes + Recorded.push("new", "Yg=="))
        #expect(!talk.output.contains("resource-constraint"), "\(talk.output)")
        #expect(talk.arrived.count == 41)
        #expect(talk.server.parking == nil, "the new one waits for its app")
    }

    @Test func `a server is told no more than the agent's opening says, until the socket is parked`() throws {
        var talk = try Talk.registered()
        talk.take(.parked)
        talk.take(.unparked)
        let question = "<r xmlns='urn:xmpp:sm:3'/>"
        talk.hear(Recorded.push("a", "YQ==") + question)
        #expect(talk.said() == "<a xmlns='urn:xmpp:sm:3' h='1'/>")
        talk.take(.parked)
        talk.take(.unparked)
        talk.hear(question)
        #expect(talk.said() == "<a xmlns='urn:xmpp:sm:3' h='2'/>")
        // But the server does not keep what it sent for ever.
        talk.hear(String(repeating: "<message/>", count: 384) + question)
        #expect(talk.said() == "<a xmlns='urn:xmpp:sm:3' h='386'/>")
        // A socket without an opening is resumed by what counts now.
        redial(&talk, handled: 386)
        talk.hear(Recorded.resumed(1) + question)
        #expect(talk.said() == "<a xmlns='urn:xmpp:sm:3' h='386'/>")
    }

    @Test func `a socket that comes back from the agent goes on`() throws {
        var talk = try Talk.registered()
        talk.take(.unparked)
        talk.hear(Recorded.push("a", "YQ=="))
        #expect(talk.arrived.count == 1)
        // In another process nothing is known of what was sent.
        talk = Talk(memory: talk.memory, seed: 5)
        talk.take(.unparked)
        #expect(talk.said() == Talk.question)
        talk.hear("<a xmlns='urn:xmpp:sm:3' h='1'/>" + Recorded.push("b", "Yg=="))
        #expect(talk.arrived.count == 1)
    }

    @Test func `a socket that the agent logged in for nobody is dialled again`() {
        var talk = Talk()
        talk.take(.opened)
        #expect(talk.redials == ["nothing is known of the session of a socket that was parked"])
    }

    @Test func `the opening is what the server answered before`() throws {
        var talk = try Talk.registered()
        #expect(talk.server.parking?.answers == .xmpp(handled: 1))
        let opening = try #require(talk.server.parking).opening
        let answers = [Recorded.mechanisms, Recorded.success, Recorded.features, Recorded.resumed(1)]
        #expect(opening.count == answers.count)
        for (step, answer) in zip(opening, answers) {
            #expect(step.matches(answer), "\(answer)")
            for other in answers where other != answer { #expect(!step.matches(other), "\(other)") }
        }
        #expect(!opening[3].matches(Recorded.notResumed))
        #expect(!opening[1].matches(Recorded.failure))
        talk.take(.disconnected)
        talk.take(.connected)
        _ = talk.said()
        talk.output = String(decoding: opening[0].send, as: UTF8.self)
        for (step, answer) in zip(opening, answers) {
            #expect(talk.said() == String(decoding: step.send, as: UTF8.self))
            talk.hear(answer)
        }
        #expect(talk.server.parking != nil)
    }

    @Test func `it is parked between stanzas alone, and with nothing under way`() throws {
        var talk = try Talk.registered()
        let push = Recorded.push("a", "aGVsbG8=")
        for cut in 1..<push.utf8.count {
            var copy = talk
            copy.take(.received(Array(push.utf8.prefix(cut))))
            #expect(copy.server.parking == nil, "cut at \(cut)")
        }
        talk.hear(push)
        #expect(talk.server.parking?.answers == .xmpp(handled: 2))
        talk.take(.settled(try #require(talk.arrived.first).id, .taken))
        #expect(talk.server.parking == nil)
        talk.hear("<a xmlns='urn:xmpp:sm:3' h='2'/>")
        #expect(talk.server.parking != nil)
        talk.take(.register(Talk.registration, vapid: nil))
        talk.hear("<a xmlns='urn:xmpp:sm:3' h='3'/>")
        #expect(talk.server.parking == nil)
    }
}

extension PushParking.OpeningStep {
    /// Whether it is the answer, to its last byte.
    func matches(_ answer: String) -> Bool {
        let bytes = Array(answer.utf8)
        guard bytes.starts(with: begins), let until else { return false }
        guard let end = bytes.firstRange(of: until), end.upperBound == bytes.count else { return false }
        return contains.map { bytes.firstRange(of: $0) != nil } ?? true
    }
}
