// SPDX-License-Identifier: Apache-2.0

import DialtoneTestSupport
import Testing

@testable import DialtoneConnection

/// Which bytes are a message that the agent answers, and by what.
@Suite struct AnsweredMessageTests {
    private var random = SplitMix64(seed: 1)

    private mutating func step(
        _ message: AnsweredMessage, _ unread: [UInt8], at now: Duration = .zero
    ) -> ParkedInput.Step {
        var input = ParkedInput()
        input.questions = ServerQuestions(AnsweredMessages([message]))
        return input.next(unread, at: now, using: &random)
    }

    // MARK: - WebSocket

    @Test(arguments: [0, 1, 4, 125]) mutating func `a ping has a masked pong with its payload`(count: Int) throws {
        let payload = (0..<count).map { UInt8($0) }
        // What comes behind it is judged later.
        let step = step(.websocket, [0x89, UInt8(count)] + payload + [0x89])
        guard case .reply(2 + count, let reply) = step else {
            Issue.record("\(step)")
            return
        }
        #expect(reply.count == 6 + count)
        #expect(reply.prefix(2) == [0x8A, 0x80 | UInt8(count)])
        #expect(reply.dropFirst(6).enumerated().map { $1 ^ reply[2 + $0 % 4] } == payload)
    }

    @Test mutating func `each pong has a mask of its own`() {
        guard case .reply(_, let first) = step(.websocket, [0x89, 0]),
            case .reply(_, let second) = step(.websocket, [0x89, 0])
        else {
            Issue.record("not answered")
            return
        }
        #expect(first[2...] != second[2...])
    }

    @Test(
        arguments: [
            // Masked, as by a client; fragmented; a bit of an extension; with a length of two bytes; text, pong, close.
            [0x89, 0x80, 1, 2, 3, 4], [0x09, 0x00], [0xC9, 0x00], [0xA9, 0x00], [0x99, 0x00], [0x89, 126, 0, 126],
            [0x89, 127], [0x81, 0x00], [0x8A, 0x00], [0x88, 0x00],
        ] as [[UInt8]])
    mutating func `a frame that is no ping by the book is the client's`(frame: [UInt8]) {
        #expect(step(.websocket, frame) == .forClient)
    }

    @Test mutating func `a part of a ping is waited for`() {
        let wait = ParkedInput.Step.wait(until: .seconds(10))
        for part in [[0x89], [0x89, 2], [0x89, 2, 1]] as [[UInt8]] { #expect(step(.websocket, part) == wait) }
    }

    // MARK: - XMPP

    @Test(arguments: [
        "<r xmlns='urn:xmpp:sm:3'/>", "<r xmlns=\"urn:xmpp:sm:3\"/>", "<r xmlns='urn:xmpp:sm:3' />",
        "<r  xmlns='urn:xmpp:sm:3'></r>",
    ])
    mutating func `a request is answered by the count`(request: String) {
        let reply = Array("<a xmlns='urn:xmpp:sm:3' h='4294967295'/>".utf8)
        let step = step(.xmpp(handled: .max), Array((request + "<message/>").utf8))
        #expect(step == .reply(length: request.utf8.count, reply))
        // It comes in pieces.
        for count in 1..<request.utf8.count {
            let part = Array(request.utf8.prefix(count))
            #expect(self.step(.xmpp(handled: 1), part) == .wait(until: .seconds(10)), "\(count) bytes")
        }
    }

    @Test(arguments: [
        "<r xmlns='urn:xmpp:sm:2'/>", "<r/>", "<r xmlns='urn:xmpp:sm:3' x='1'/>", "<rx xmlns='urn:xmpp:sm:3'/>",
        "<r xmlns='urn:xmpp:sm:3'>1</r>", "<r xmlns='urn:xmpp:sm:3'><r/></r>", "<a xmlns='urn:xmpp:sm:3' h='1'/>",
        "<message/>", "</stream:stream>", "r",
    ])
    mutating func `another element is the client's`(element: String) {
        #expect(step(.xmpp(handled: 1), Array(element.utf8)) == .forClient)
    }

    @Test mutating func `a request without a known count is the client's, and blanks are not`() {
        #expect(step(.xmpp(handled: nil), Array("<r xmlns='urn:xmpp:sm:3'/>".utf8)) == .forClient)
        #expect(step(.xmpp(handled: nil), Array(" \r\n<message/>".utf8)) == .reply(length: 3, []))
    }

    // MARK: - What a user says

    @Test mutating func `a pattern is answered, and what differs in a bit that counts is not`() {
        let message = AnsweredMessage.custom(
            receive: BytePattern([0x50, 0, 0x0A], mask: [0xF0, 0, 0xFF]), send: [1, 2])
        #expect(step(message, [0x5F, 9, 0x0A, 7]) == .reply(length: 3, [1, 2]))
        #expect(step(message, [0x5F, 9]) == .wait(until: .seconds(10)))
        #expect(step(message, [0x4F, 9, 0x0A]) == .forClient)
        #expect(step(message, [0x5F, 9, 0x0B]) == .forClient)
        #expect(step(.custom(receive: BytePattern([1]), send: []), [1]) == .reply(length: 1, []))
    }

    @Test(arguments: [
        (AnsweredMessage.custom(receive: BytePattern([]), send: [1]), "receive"),
        (.custom(receive: BytePattern([0, 0], mask: [0, 0]), send: [1]), "receive"),
        (.custom(receive: BytePattern([UInt8](repeating: 1, count: 1025)), send: [1]), "receive"),
        (.custom(receive: BytePattern([1]), send: [UInt8](repeating: 1, count: 1025)), "send"),
    ])
    func `what would answer everything, or is too long, is refused`(message: AnsweredMessage, field: String) {
        let problem = AnsweredMessages([.websocket, message]).problem
        #expect(problem?.index == 1 && problem?.field == field, "\(String(describing: problem))")
    }

    @Test func `nine are refused and eight are not`() {
        #expect(AnsweredMessages([AnsweredMessage](repeating: .websocket, count: 8)).problem == nil)
        #expect(AnsweredMessages([AnsweredMessage](repeating: .websocket, count: 9)).problem != nil)
    }

    @Test func `no description shows what a user says`() {
        let secret = AnsweredMessage.custom(
            receive: BytePattern(Array("hunter2".utf8)), send: Array("hunter2".utf8))
        var policy = ConnectionPolicy(remote: .of("tcp://192.0.2.7:1"))
        policy.answers = AnsweredMessages([secret])
        var dumped = ""
        dump(policy, to: &dumped)
        dump(ServerQuestions(policy.answers), to: &dumped)
        let bytes = "\(Array("hunter2".utf8))".dropFirst().dropLast()
        for text in [
            dumped, "\(policy)", String(reflecting: policy),
            "\(ConnectionAction.answerMessages(epoch: 1, policy.answers))",
        ] {
            #expect(!text.contains("hunter2") && !text.contains(bytes), "\(text)")
        }
    }

    // MARK: - How long, and how often

    @Test mutating func `a part is the client's after ten seconds, with what comes then`() {
        var input = ParkedInput()
        input.questions = ServerQuestions(AnsweredMessages([.websocket]))
        #expect(input.next([0x89], at: .seconds(100), using: &random) == .wait(until: .seconds(110)))
        #expect(input.next([0x89, 1], at: .seconds(109), using: &random) == .wait(until: .seconds(110)))
        #expect(input.next([0x89, 1], at: .seconds(110), using: &random) == .forClient)
        #expect(input.next([0x89, 1, 2], at: .seconds(111), using: &random) == .forClient)
        #expect(!input.isLooked)
    }

    @Test mutating func `a reply without room is tried for ten seconds`() {
        var input = ParkedInput()
        input.questions = ServerQuestions(AnsweredMessages([.websocket]))
        #expect(input.lacksRoom(at: .seconds(100)) == .seconds(110))
        #expect(input.lacksRoom(at: .seconds(109)) == .seconds(110))
        guard case .reply = input.next([0x89, 0], at: .seconds(109), using: &random) else {
            Issue.record("given up")
            return
        }
        #expect(input.lacksRoom(at: .seconds(110)) == nil)
        #expect(input.next([0x89, 0], at: .seconds(110), using: &random) == .forClient)
    }

    @Test mutating func `twenty in a minute are answered and no more`() {
        var input = ParkedInput()
        input.questions = ServerQuestions(AnsweredMessages([.websocket]))
        // For an hour, one each three seconds.
        var now = Duration.zero
        for _ in 0..<1200 {
            guard case .reply = input.next([0x89, 0], at: now, using: &random) else {
                Issue.record("not answered at \(now)")
                return
            }
            input.answered(at: now)
            now += .seconds(3)
        }
        // And then one sooner.
        now -= .seconds(1)
        #expect(input.next([0x89, 0], at: now, using: &random) == .forClient)
        #expect(input.next([0x89, 0], at: now + .seconds(3600), using: &random) == .forClient)
    }

    // MARK: - Beside keepalives

    @Test mutating func `a pong to the agent's own ping is its answer, and a ping before it is answered`() throws {
        var keepalive = KeepaliveDialogue(.websocket)
        let ping = try keepalive.ping(using: &random)
        var input = ParkedInput()
        input.keepalive = keepalive
        input.questions = ServerQuestions(AnsweredMessages([.websocket]))
        let pong = [0x8A, 0x08] + ping[6...].enumerated().map { $1 ^ ping[2 + $0 % 4] }
        guard case .reply(2, _) = input.next([0x89, 0] + pong, at: .zero, using: &random) else {
            Issue.record("the ping is not answered")
            return
        }
        input.answered(at: .zero)
        #expect(input.next(pong, at: .zero, using: &random) == .answer(length: 10, answers: 1))
        #expect(input.next(pong, at: .zero, using: &random) == .forClient)
    }

    @Test mutating func `what becomes the answer to a keepalive ends no answering`() throws {
        var keepalive = KeepaliveDialogue(.xmppPing)
        let ping = try keepalive.ping(using: &random)
        var input = ParkedInput()
        input.keepalive = keepalive
        input.questions = ServerQuestions(AnsweredMessages([.xmpp(handled: 1)]))
        let id = String(decoding: ping, as: UTF8.self).split(separator: "'")[3]
        let answer = Array("<iq type='result' id='\(id)'/>".utf8)
        #expect(input.next(Array(answer.prefix(9)), at: .zero, using: &random) == .wait(until: nil))
        #expect(
            input.next(answer, at: .zero, using: &random) == .answer(length: answer.count, answers: 1))
        guard case .reply = input.next(Array("<r xmlns='urn:xmpp:sm:3'/>".utf8), at: .zero, using: &random) else {
            Issue.record("answers nothing any more")
            return
        }
    }

    @Test mutating func `what may yet be the answer to a keepalive is not the client's`() throws {
        var input = ParkedInput()
        input.keepalive = KeepaliveDialogue(.xmppPing)
        input.questions = ServerQuestions(AnsweredMessages([.xmpp(handled: 1)]))
        _ = try input.keepalive?.ping(using: &random)
        // Either of both, until the second byte; how long the answer may take is judged elsewhere.
        #expect(input.next(Array("<".utf8), at: .zero, using: &random) == .wait(until: nil))
        #expect(input.next(Array("<iq".utf8), at: .seconds(99), using: &random) == .wait(until: nil))
        #expect(input.next(Array("<message".utf8), at: .zero, using: &random) == .forClient)
    }
}
