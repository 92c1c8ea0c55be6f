// SPDX-License-Identifier: Apache-2.0

import DialtoneCoalescing
import Testing

@testable import DialtoneConnection

/// What an opening says, and what of the server's bytes it takes for its answers.
@Suite struct OpeningPlayTests {
    /// A server's end in memory: what it sends, and what was sent to it.
    private struct Line {
        var play: OpeningPlay
        var unread: [UInt8] = []
        var sent: [[UInt8]] = []
        var steps = 0

        init(_ opening: Opening) { play = OpeningPlay(opening) }

        /// Lets bytes come, and plays as far as that goes.
        mutating func receive(_ bytes: [UInt8]) -> OpeningPlay.Move {
            unread += bytes
            while true {
                switch play.next(unread) {
                case .send(let bytes): sent.append(bytes)
                case .read(let count):
                    steps += 1
                    unread.removeFirst(count)
                case .keep(let count):
                    #expect(count == unread.count && count > 0)
                    unread = []
                case .wait: return .wait
                case .done: return .done
                case .failed(let failure): return .failed(failure)
                }
            }
        }

        mutating func receive(_ text: String) -> OpeningPlay.Move { receive(Array(text.utf8)) }
    }

    @Test func `what is of an answer is read as it comes and what may not be is left`() {
        let end = Array("</features>".utf8)
        var line = Line(
            Opening([.init(send: [1], answer: ExpectedAnswer(.delimiter(end)), overtakers: [BytePattern([9, 9, 9])])]))
        _ = line.receive("")
        // It may yet be the other thing, which would be the client's.
        #expect(line.receive([9, 9]) == .wait)
        #expect(line.unread == [9, 9])
        var longest = 0
        for byte in [UInt8](repeating: 0x20, count: 10_000) + end.dropLast() {
            #expect(line.receive([byte]) == .wait)
            longest = max(longest, line.unread.count)
        }
        #expect(longest < OpeningPlay.leftUnread)
        #expect(line.receive([end[end.count - 1], 0x55]) == .done)
        #expect(line.unread == [0x55])
    }

    @Test func `an answer that has no end is given up`() {
        var line = Line(Opening([.init(send: [1], answer: ExpectedAnswer(.delimiter([0x5A])))]))
        var last = OpeningPlay.Move.wait
        var count = 0
        while last == .wait, count < 100_000 {
            last = line.receive([0x20])
            count += 1
        }
        #expect(last == .failed(.init(step: 1, cause: .tooLong)))
        #expect(count == ExpectedAnswer.longestAnswer)
        var refusal = Line(Opening([.init(send: [1], answer: ExpectedAnswer(.delimiter([0x5A]), content: [0x59]))]))
        _ = refusal.receive([UInt8](repeating: 0x20, count: 900))
        #expect(refusal.receive([0x5A]) == .failed(.init(step: 1, cause: .mismatch)))
        #expect(refusal.unread.count == 901, "a client looks at it")
    }

    // MARK: - MQTT

    /// CONNECT with a Keep Alive of 60 s, and SUBSCRIBE to `a` with packet identifier 1.
    private static let connect: [UInt8] =
        [0x10, 0x0D, 0, 4] + "MQTT".utf8 + [4, 0, 0, 60, 0, 1] + "c".utf8
    private static let subscribe: [UInt8] = [0x82, 6, 0, 1, 0, 1, 0x61, 1]
    private static let mqtt = Opening([
        .init(send: connect, answer: ExpectedAnswer(BytePattern([0x20, 2, 0, 0], mask: [0xFF, 0xFF, 0xFE, 0xFF]))),
        .init(
            send: subscribe, answer: ExpectedAnswer(BytePattern([0x90, 3, 0, 1, 1])),
            overtakers: [BytePattern([0x30], mask: [0xF0]), BytePattern([0x62])]),
    ])

    @Test(arguments: [UInt8(0), 1])
    func `the session present bit is free`(flags: UInt8) {
        var line = Line(Self.mqtt)
        #expect(line.receive("") == .wait)
        #expect(line.sent == [Self.connect])
        #expect(line.receive([0x20, 2, flags, 0]) == .wait)
        #expect(line.sent == [Self.connect, Self.subscribe])
        #expect(line.receive([0x90, 3, 0, 1, 1]) == .done)
        #expect(line.unread == [])
    }

    @Test func `a refused login is a mismatch of its step`() {
        var line = Line(Self.mqtt)
        #expect(line.receive([0x20, 2, 0, 5]) == .failed(.refused(1, "CONNACK 5, not authorized")))
        #expect(line.sent.count == 1)
        #expect(line.unread == [0x20, 2, 0, 5])
    }

    @Test func `what comes behind the last answer is the client's`() {
        let publish: [UInt8] = [0x32, 6, 0, 1, 0x61, 0, 9, 0x21]
        var line = Line(Self.mqtt)
        _ = line.receive("")
        _ = line.receive([0x20, 2, 0, 0])
        #expect(line.receive([0x90, 3, 0, 1, 1] + publish + publish) == .done)
        #expect(line.unread == publish + publish)
    }

    @Test func `a message that overtakes the answer shows that the session stands`() {
        let publish: [UInt8] = [0x3A, 6, 0, 1, 0x61, 0, 9, 0x21]
        var line = Line(Self.mqtt)
        _ = line.receive("")
        #expect(line.receive([0x20, 2, 1, 0] + publish + [0x90, 3, 0, 1, 1]) == .done)
        #expect(line.unread == publish + [0x90, 3, 0, 1, 1])
        #expect(line.sent == [Self.connect, Self.subscribe])
    }

    @Test func `a refused subscription is a mismatch`() {
        var line = Line(Self.mqtt)
        _ = line.receive([0x20, 2, 0, 0])
        #expect(line.receive([0x90, 3, 0, 1, 0x80]) == .failed(.refused(2, "SUBACK 0x80, unspecified error")))
    }

    @Test func `how the stream is cut makes no difference`() {
        let stream: [UInt8] = [0x20, 2, 1, 0, 0x90, 3, 0, 1, 1, 0x30, 3, 0, 1, 0x61]
        for cut in 0...stream.count {
            var line = Line(Self.mqtt)
            var last = line.receive(Array(stream[..<cut]))
            if last == .wait { last = line.receive(Array(stream[cut...])) } else { line.unread += stream[cut...] }
            #expect(last == .done, "cut at \(cut)")
            #expect(line.unread == [0x30, 3, 0, 1, 0x61], "cut at \(cut)")
        }
        var line = Line(Self.mqtt)
        #expect(stream.prefix(9).map { line.receive([$0]) }.last == .done)
    }

    @Test func `a message of unknown length is cut by its protocol`() {
        // CONNACK of MQTT 5: flags, reason, and properties of any length.
        let opening = Opening([
            .init(
                send: Self.connect,
                answer: ExpectedAnswer(
                    .message(.mqtt), beginning: BytePattern([0x20, 0, 0, 0], mask: [0xFF, 0, 0xFE, 0xFF])))
        ])
        var line = Line(opening)
        #expect(line.receive([0x20, 6, 1, 0, 3, 0x21]) == .wait)
        #expect(line.receive([0, 20, 0x30]) == .done)
        #expect(line.unread == [0x30])
        var refused = Line(opening)
        #expect(refused.receive([0x20, 3, 0, 0x87, 0]) == .failed(.refused(1, "CONNACK 0x87, not authorized")))
        // Type 0 is forbidden.
        var broken = Line(Opening([.init(answer: ExpectedAnswer(.message(.mqtt), content: [1]))]))
        #expect(broken.receive([0, 1, 1]) == .failed(.init(step: 1, cause: .mismatch)))
    }

    // MARK: - WebSocket, XMPP, lines

    @Test func `a token over a web socket`() {
        let opening = Opening([
            .init(
                send: Array("GET /ws HTTP/1.1\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n".utf8),
                answer: ExpectedAnswer(
                    .delimiter(Array("\r\n\r\n".utf8)), beginning: BytePattern(Array("HTTP/1.1 101".utf8)),
                    content: Array("s3pPLMBiTxaQ9kYGzzhZRbK+xOo=".utf8))),
            .init(answer: ExpectedAnswer(.message(.websocket), content: Array("auth_required".utf8))),
            .init(
                send: [0x81, 0x80, 0, 0, 0, 0],
                answer: ExpectedAnswer(.message(.websocket), content: Array("auth_ok".utf8))),
        ])
        let head = "HTTP/1.1 101 Switching Protocols\r\nsec-websocket-accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n"
        let frame = { (text: String) in [0x81, UInt8(text.utf8.count)] + Array(text.utf8) }

        var line = Line(opening)
        #expect(line.receive(Array(head.utf8) + frame(#"{"type":"auth_required"}"#)) == .wait)
        #expect(line.sent.count == 2)
        #expect(line.receive(frame(#"{"type":"auth_ok"}"#) + frame("{}").dropLast()) == .done)
        #expect(line.unread == frame("{}").dropLast())

        var other = Line(opening)
        #expect(other.receive("HTTP/1.1 4") == .wait, "it will say why")
        #expect(other.receive("01 Unauthorized\r\n\r\n") == .failed(.refused(1, "HTTP 401 Unauthorized")))
        var wrongKey = Line(opening)
        #expect(
            wrongKey.receive("HTTP/1.1 101 Switching Protocols\r\n\r\n") == .failed(.init(step: 1, cause: .mismatch)))
        var invalid = Line(opening)
        _ = invalid.receive(Array(head.utf8) + frame(#"{"type":"auth_required"}"#))
        #expect(
            invalid.receive(frame(#"{"type":"auth_invalid"}"#)) == .failed(.init(step: 3, cause: .mismatch)))
    }

    @Test func `plain XMPP`() {
        func until(_ end: String, _ content: String = "", from start: String = "") -> ExpectedAnswer {
            ExpectedAnswer(
                .delimiter(Array(end.utf8)), beginning: BytePattern(Array(start.utf8)), content: Array(content.utf8))
        }
        let opening = Opening([
            .init(send: Array("<stream:stream>".utf8), answer: until("</stream:features>", "PLAIN")),
            .init(send: Array("<auth/>".utf8), answer: until(">", from: "<success")),
            .init(send: Array("<stream:stream>".utf8), answer: until("</stream:features>", ":xmpp-bind")),
            .init(send: Array("<iq/>".utf8), answer: until("</iq>", "type='result'", from: "<iq")),
            .init(send: Array("<presence/>".utf8), answer: nil),
        ])
        var line = Line(opening)
        #expect(line.receive("<?xml version='1.0'?><stream:stream><stream:features><m>PLAIN</m>") == .wait)
        #expect(line.receive("</stream:features>") == .wait)
        #expect(line.receive("<success xmlns='urn:ietf:params:xml:ns:xmpp-sasl'/>") == .wait)
        #expect(line.receive("<stream:stream><stream:features><bind xmlns=':xmpp-bind'/></stream:features>") == .wait)
        #expect(line.receive("<iq type='result' id='b'><jid>a@b</jid></iq><message/>") == .done)
        #expect(line.sent.count == 5)
        #expect(line.unread == Array("<message/>".utf8))

        var refused = Line(opening)
        _ = refused.receive("<stream:features>PLAIN</stream:features>")
        #expect(refused.receive("<failure><not-authorized/>") == .failed(.refused(2, "SASL failure, not-authorized")))
    }

    @Test func `the server may speak first`() {
        let opening = Opening([
            .init(answer: ExpectedAnswer(.delimiter([10]), beginning: BytePattern(Array("220 ".utf8)))),
            .init(send: Array("EHLO me\r\n".utf8), answer: ExpectedAnswer(.length(3), content: Array("250".utf8))),
        ])
        var line = Line(opening)
        #expect(line.receive("") == .wait)
        #expect(line.sent.isEmpty)
        #expect(line.receive("220 ready\n250") == .done)
    }

    // MARK: - Bounds

    @Test func `an answer has a longest length`() {
        let longest = ExpectedAnswer.longestAnswer
        let opening = Opening([.init(send: [1], answer: ExpectedAnswer(.delimiter([10])))])
        var line = Line(opening)
        #expect(line.receive([UInt8](repeating: 65, count: longest - 1)) == .wait)
        #expect(line.receive([10]) == .done)
        var endless = Line(opening)
        #expect(endless.receive([UInt8](repeating: 65, count: longest)) == .failed(.init(step: 1, cause: .tooLong)))
        var late = Line(opening)
        #expect(
            late.receive([UInt8](repeating: 65, count: longest) + [10]) == .failed(.init(step: 1, cause: .tooLong)))
        var announced = Line(Opening([.init(send: [1], answer: ExpectedAnswer(.message(.mqtt), content: [65]))]))
        #expect(announced.receive([0x30, 0xFF, 0xFF, 0x03]) == .wait)
        #expect(announced.receive([UInt8](repeating: 65, count: 70_000)) == .failed(.init(step: 1, cause: .tooLong)))
    }

    private static let right = Opening.Step(send: [1], answer: ExpectedAnswer(BytePattern([2])))

    @Test(arguments: [
        (Opening([]), String?.none),
        (Opening([right]), nil),
        (Opening([Opening.Step](repeating: right, count: 17)), "17 steps are more than 16"),
        (Opening([right, .init(send: [1], answer: nil)]), nil),
        (Opening([.init(send: [1], answer: nil)]), "no step expects an answer"),
        (Opening([right, .init(answer: nil)]), "step 2 neither sends nor expects anything"),
        (
            Opening([.init(send: [UInt8](repeating: 0, count: 33_000), answer: right.answer)]),
            "33001 bytes are more than 32768"
        ),
        (
            Opening([.init(answer: ExpectedAnswer(.length(0)))]),
            "step 1 expects what an answer has from 1 to 16384 bytes"
        ),
        (
            Opening([.init(answer: ExpectedAnswer(.length(2), beginning: BytePattern([1, 2, 3])))]),
            "step 1 expects what is shorter than what it holds"
        ),
        (Opening([.init(answer: ExpectedAnswer(.delimiter([])))]), "step 1 expects what ends with nothing"),
        (Opening([.init(answer: ExpectedAnswer(.message(.mqtt)))]), "step 1 expects what says nothing of the message"),
        (
            Opening([.init(send: [1], answer: right.answer, overtakers: [BytePattern([3])]), right]),
            "step 1 has its answer overtaken, which only the last one may"
        ),
        (
            Opening([.init(send: [1], answer: right.answer, overtakers: [BytePattern([])])]),
            "step 1 has its answer overtaken by anything"
        ),
    ])
    func `what is wrong is said`(opening: Opening, problem: String?) {
        #expect(opening.problem == problem)
        var policy = ConnectionPolicy.office
        policy.opening = opening
        let isValid = (try? policy.validate()) != nil
        #expect(isValid == (problem == nil))
    }

    // MARK: - Secrets

    @Test func `no description shows a byte of it`() {
        let opening = Opening([
            .init(
                send: Array("swordfish".utf8),
                answer: ExpectedAnswer(
                    .delimiter(Array("swordfish".utf8)), beginning: BytePattern(Array("swordfish".utf8)),
                    content: Array("swordfish".utf8)), overtakers: [BytePattern(Array("swordfish".utf8))])
        ])
        var policy = ConnectionPolicy.office
        policy.opening = opening
        var dumped = ""
        dump(policy, to: &dumped)
        dump(ConnectionAction.playOpening(epoch: 1, opening), to: &dumped)
        dump(opening.steps, to: &dumped)
        dump(opening.steps[0].answer?.extent, to: &dumped)
        var play = OpeningPlay(opening)
        let move = play.next([])
        #expect(move == .send(Array("swordfish".utf8)))
        dump(move, to: &dumped)
        dump(play, to: &dumped)
        let said = [
            "\(move)", "\(play)", String(reflecting: move), String(reflecting: play),
            "\(policy)", String(reflecting: policy), "\(ConnectionAction.playOpening(epoch: 1, opening))",
            String(reflecting: ConnectionInput.openingLeft(opening)), "\(opening.steps)", "\(opening)", dumped,
            String(reflecting: opening.steps[0]), "\(opening.steps[0].answer as Any)",
        ].joined(separator: "\n")
        // Bytes print as decimals, too.
        for hidden in ["swordfish", "115", "119, 111"] { #expect(!said.contains(hidden), "\(said)") }
    }

    // MARK: - What an MQTT client promises

    /// CONNECTs, and the Keep Alive that is in them.
    private static let promises: [(packet: [UInt8], promise: Duration?)] = {
        func packet(_ head: [UInt8], _ name: String, _ rest: [UInt8]) -> [UInt8] {
            head + [0, UInt8(name.utf8.count)] + Array(name.utf8) + rest
        }
        return [
            (connect, .seconds(60)),
            (packet([0x10, 13], "MQTT", [5, 2, 1, 44, 0, 1, 0x63]), .seconds(300)),
            (packet([0x10, 15], "MQIsdp", [3, 2, 0, 20, 0, 1, 0x63]), .seconds(20)),
            // A length of two bytes.
            (packet([0x10, 0x8D, 1], "MQTT", [4, 2, 0, 90, 0, 1]), .seconds(90)),
            (packet([0x10, 13], "MQTT", [4, 2, 0, 0, 0, 1, 0x63]), nil),
            (packet([0x10, 13], "MQTX", [4, 2, 0, 60]), nil),
            (packet([0x10, 0xFF, 0xFF, 0xFF, 0xFF, 1], "MQTT", [4, 2, 0, 60]), nil),
            (packet([0x10, 13], "MQTT", [4, 2, 0]), nil),
            (Array("GET / HTTP/1.1".utf8), nil),
        ]
    }()

    @Test func `the keep alive of a connect is kept`() {
        for (packet, promise) in Self.promises {
            let opening = Opening([.init(send: packet, answer: ExpectedAnswer(BytePattern([1])))])
            #expect(opening.promisedKeepAlive == promise, "\(packet)")
        }
    }

    @Test func `a heartbeat is as frequent as the connect promises`() {
        func opening(_ seconds: UInt8) -> Opening {
            Opening([.init(send: [0x10, 12, 0, 4] + "MQTT".utf8 + [4, 2, 0, seconds], answer: nil)])
        }
        let usual = Heartbeat(.mqtt)
        #expect(usual.keeping(nil) == usual)
        #expect(usual.keeping(opening(0)) == usual)
        #expect(usual.keeping(opening(60)) == usual)
        let short = usual.keeping(opening(20))
        #expect(short.cadence.interval == .seconds(19))
        #expect(short.cadence.tolerance == usual.cadence.tolerance / 3)
        #expect(short.bounds == .seconds(10)...(.seconds(19)))
        // Shorter than what is learned of networks.
        #expect(usual.keeping(opening(5)).bounds == nil)
        #expect(usual.keeping(opening(5)).cadence.interval == .milliseconds(4750))
        #expect(Heartbeat(.mqtt, interval: .seconds(50)).keeping(opening(20)).bounds == nil)
        #expect(Heartbeat(.crlf).keeping(opening(20)) == Heartbeat(.crlf))

        // The kernel's keepalive keeps the promise, too.
        var silent = ConnectionPolicy(remote: .of("mqtt://192.0.2.7"))
        #expect(silent.socketOptions.keepalive?.idle == .seconds(58))
        silent.opening = opening(20)
        #expect(silent.socketOptions.keepalive?.idle == .seconds(20))

        // A longer promise lets the user choose a longer interval.
        var policy = ConnectionPolicy(remote: .of("mqtt://192.0.2.7"))
        policy.heartbeat = Heartbeat(.mqtt, interval: .seconds(150))
        #expect(throws: PolicyError.self) { try policy.validate() }
        policy.opening = Opening(opening(200).steps + [Self.right])
        #expect(throws: Never.self) { try policy.validate() }
    }

    // MARK: - Delimiters

    /// The one who says where the answer ends may be the one who sends it, too, a byte at a time.
    @Test(.timeLimit(.minutes(1)))
    func `an end that nearly comes everywhere takes no longer than another`() {
        let end = [UInt8](repeating: 0x61, count: 8191) + [0x62]
        var line = Line(Opening([.init(answer: ExpectedAnswer(.delimiter(end), content: end))]))
        for _ in 0..<15 { #expect(line.receive([UInt8](repeating: 0x61, count: 1024)) == .wait) }
        #expect(line.receive([0x62]) == .done)
        #expect(line.unread == [])
    }

    @Test func `an answer ends with the first of what ends it`() {
        func texts(_ length: Int) -> [[UInt8]] {
            (0..<1 << length).map { number in (0..<length).map { UInt8(number >> $0 & 1) } }
        }
        for end in (1...4).flatMap(texts) {
            let answer = ExpectedAnswer(.delimiter(end))
            for input in texts(8) {
                let first = (0...8 - end.count).first { input[$0...].starts(with: end) }
                let expected = first.map { ExpectedAnswer.Match.whole(length: $0 + end.count) } ?? .beginning
                #expect(answer.match(input[...]) == expected)
            }
        }
    }
}

extension OpeningFailure {
    /// The server said no, in words that are known.
    fileprivate static func refused(_ step: Int, _ text: String) -> OpeningFailure {
        OpeningFailure(step: step, cause: .mismatch, refusal: LoginRefusal(text))
    }
}
