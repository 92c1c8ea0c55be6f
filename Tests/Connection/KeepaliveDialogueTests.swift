// SPDX-License-Identifier: Apache-2.0

import DialtoneCoalescing
import DialtoneTestSupport
import Testing

@testable import DialtoneConnection

@Suite struct KeepaliveDialogueTests {
    private static let all: [KeepaliveProtocol] = [
        .crlf, .whitespace, .xmppPing, .mqtt, .websocket, .custom(send: [1], expect: [2, 3]),
    ]

    private var random = SplitMix64(seed: 1)

    @Test mutating func `each protocol says what its document says`() throws {
        var crlf = KeepaliveDialogue(.crlf)
        #expect(try crlf.ping(using: &random) == Array("\r\n\r\n".utf8))
        var mqtt = KeepaliveDialogue(.mqtt)
        #expect(try mqtt.ping(using: &random) == [0xC0, 0])
        var blank = KeepaliveDialogue(.whitespace)
        #expect(try blank.ping(using: &random) == Array(" ".utf8))
        #expect(!blank.isAwaitingAnswer)
        var own = KeepaliveDialogue(.custom(send: [1], expect: [2, 3]))
        #expect(try own.ping(using: &random) == [1])
        #expect(own.isAwaitingAnswer)
        #expect(own.peeked([2, 3, 4]) == .answer(length: 2, answers: 1))
    }

    @Test mutating func `a web socket ping is masked and its pong repeats the payload`() throws {
        var dialogue = KeepaliveDialogue(.websocket)
        let ping = try dialogue.ping(using: &random)
        #expect(ping.prefix(2) == [0x89, 0x88] && ping.count == 14)
        let payload = ping[6...].enumerated().map { $1 ^ ping[2 + $0 % 4] }
        #expect(payload != Array(ping[6...]))
        // Another's pong, unsolicited or late, is not the answer.
        let other = [0x8A, 0x08] + payload.reversed()
        #expect(dialogue.peeked(other) == .forClient)
        #expect(dialogue.peeked([0x8A, 0x08] + payload) == .answer(length: 10, answers: 1))
    }

    @Test mutating func `an XMPP ping is answered by its id whatever the order of the attributes`() throws {
        let forms = [
            "<iq type='result' id='ID'/>", "<iq id=\"ID\" from='example.com' to='a@example.com/b' type='result' />",
            "<iq type='result' id='ID'></iq>",
            "<iq type='error' id='ID'><ping xmlns='urn:xmpp:ping'/><error type='cancel'>"
                + "<service-unavailable xmlns='urn:ietf:params:xml:ns:xmpp-stanzas'/></error></iq>",
        ]
        for form in forms {
            var dialogue = KeepaliveDialogue(.xmppPing)
            let ping = String(decoding: try dialogue.ping(using: &random), as: UTF8.self)
            let id = ping.split(separator: "'")[3]
            #expect(ping == "<iq type='get' id='\(id)'><ping xmlns='urn:xmpp:ping'/></iq>")
            let answer = Array((form.split(separator: "ID").joined(separator: String(id))).utf8)
            #expect(dialogue.peeked(answer) == .answer(length: answer.count, answers: 1), "\(form)")
        }
    }

    @Test(arguments: [
        "<iq type='get' id='ID'/>", "<iq type='set' id='ID'><query/></iq>", "<iq type='result' id='IDx'/>",
        "<iq type='result'/>", "<iqs type='result' id='ID'/>", "<message type='result' id='ID'/>",
        "<iq type='result' id='ID' id='ID'/>", "<iq><iq type='result' id='ID'/></iq>", " ",
    ])
    mutating func `what only looks like the answer is the client's`(form: String) throws {
        var dialogue = KeepaliveDialogue(.xmppPing)
        let ping = String(decoding: try dialogue.ping(using: &random), as: UTF8.self)
        let id = ping.split(separator: "'")[3]
        let bytes = Array(
            (form.split(separator: "ID", omittingEmptySubsequences: false).joined(separator: String(id))).utf8)
        #expect(dialogue.peeked(bytes) == .forClient)
    }

    @Test mutating func `an answer in two segments is one answer`() throws {
        var dialogue = KeepaliveDialogue(.crlf)
        _ = try dialogue.ping(using: &random)
        #expect(dialogue.peeked([0x0D]) == .undecided)
        #expect(dialogue.peeked([0x0D, 0x0A]) == .answer(length: 2, answers: 1))
        // The next one nobody has asked for.
        #expect(dialogue.peeked([0x0D, 0x0A]) == .forClient)
    }

    @Test(arguments: all) func `one is awaited at a time`(keepalive: KeepaliveProtocol) throws {
        var (dialogue, random) = (KeepaliveDialogue(keepalive), SplitMix64(seed: 1))
        _ = try dialogue.ping(using: &random)
        guard keepalive.figures.answer == .message else { return }
        #expect(throws: KeepaliveDialogue.Obstacle.unanswered) { try dialogue.ping(using: &random) }
        dialogue.giveUp()
        #expect(!dialogue.isAwaitingAnswer)
        _ = try dialogue.ping(using: &random)
    }

    @Test mutating func `the kernel's keepalive is nobody else's business`() {
        var dialogue = KeepaliveDialogue(.kernel)
        #expect(throws: KeepaliveDialogue.Obstacle.kernelsOwn) { try dialogue.ping(using: &random) }
    }

    @Test mutating func `a parked socket is judged without reading it`() throws {
        var dialogue = KeepaliveDialogue(.mqtt)
        #expect(dialogue.peeked([0xD0, 0]) == .forClient)
        _ = try dialogue.ping(using: &random)
        #expect(dialogue.peeked([0xD0]) == .undecided)
        #expect(dialogue.peeked([0xD0, 0, 0x30]) == .answer(length: 2, answers: 1))
        #expect(dialogue.peeked([0x30]) == .forClient)
        _ = try dialogue.ping(using: &random)
        #expect(dialogue.peeked([0x30, 1, 0xD0, 0xD0, 0]) == .forClient)
        #expect(dialogue.isAwaitingAnswer)
    }

    @Test func `the figures are those of the documents`() {
        #expect(KeepaliveProtocol.crlf.figures.cadence == Cadence(interval: .seconds(120), tolerance: .seconds(25)))
        #expect(KeepaliveProtocol.crlf.figures.answerDeadline == .seconds(10))
        let mqtt = KeepaliveFigures.mqtt(keepAlive: .seconds(60))
        #expect(mqtt.cadence.interval == .seconds(57) && mqtt.intervals.upperBound == .seconds(57))
        for keepalive in Self.all {
            #expect(keepalive.figures.intervals.contains(keepalive.figures.cadence.interval))
        }
        #expect(KeepaliveProtocol.whitespace.figures.answer == .acknowledgement)
        #expect(KeepaliveProtocol.custom(send: [1], expect: []).figures.answer == .acknowledgement)
    }
}

extension KeepaliveDialogueTests {
    @Test mutating func `after a change of the path a second keepalive may go behind the first`() throws {
        var dialogue = KeepaliveDialogue(.crlf)
        _ = try dialogue.ping(using: &random)
        _ = try dialogue.ping(isVerification: true, using: &random)
        #expect(throws: KeepaliveDialogue.Obstacle.unanswered) {
            try dialogue.ping(isVerification: true, using: &random)
        }
        #expect(dialogue.peeked([0x0D, 0x0A]) == .answer(length: 2, answers: 1))
        #expect(dialogue.peeked([0x0D, 0x0A, 0x0D, 0x0A]) == .answer(length: 2, answers: 1))
    }

    @Test mutating func `the answer to the later of two pings stands for both`() throws {
        var dialogue = KeepaliveDialogue(.websocket)
        _ = try dialogue.ping(using: &random)
        let later = try dialogue.ping(isVerification: true, using: &random)
        let pong = [0x8A, 0x08] + later[6...].enumerated().map { $1 ^ later[2 + $0 % 4] }
        #expect(dialogue.peeked(pong) == .answer(length: 10, answers: 2))
        #expect(!dialogue.isAwaitingAnswer)
    }
}
