// SPDX-License-Identifier: Apache-2.0

internal import DialtoneDistributor

@testable internal import DialtoneConnection
@testable internal import DialtonePushServers

extension FuzzTarget {
    /// What a push server says, between what else its value is told. Whatever it says, the value stays within what it
    /// promised its driver.
    static let dialogues = FuzzTarget(name: "dialogues") { bytes in
        var draw = Draw(bytes)
        let memory = draw.maybe { $0.bytes() }
        switch draw.below(3) {
        case 0:
            let account = try? XMPPAccount(
                jid: "juliet@lab.example", password: "secret", service: draw.chance() ? "lab.example" : nil)
            guard let account else { return }
            lead(XMPPPushServer(account: account, memory: memory, seed: 1), &draw, words: xmpp) { $0 }
        case 1:
            guard let server = AutopushServer(memory: memory, random: draw) else { return }
            lead(server, &draw, words: autopush, frame)
        default:
            guard let server = NtfyServer(url: "https://ntfy.test", memory: memory, random: draw) else { return }
            lead(server, &draw, words: ntfy, frame)
        }
    }

    /// What comes on a socket while it is parked.
    static let questions = FuzzTarget(name: "questions") { bytes in
        var draw = Draw(bytes)
        let answers = AnsweredMessages(
            draw.several(3) { draw in
                switch draw.below(3) {
                case 0: .websocket
                case 1: .xmpp(handled: draw.maybe { UInt32(truncatingIfNeeded: $0.number()) })
                default: .custom(receive: BytePattern(draw.bytes()), send: draw.bytes())
                }
            })
        guard answers.problem == nil else { return }
        var input = ParkedInput()
        input.questions = ServerQuestions(answers)
        var (unread, now) = ([UInt8](), Duration.seconds(100))
        while !draw.isOver {
            unread += draw.bytes()
            now += .milliseconds(Int(draw.byte()) * 100)
            var random = Draw([])
            while !unread.isEmpty {
                guard case .reply(let length, let reply) = input.next(unread, at: now, using: &random) else { break }
                precondition((1...unread.count).contains(length), "\(length) of \(unread.count)")
                precondition(reply.count <= 2 * KeepaliveProtocol.longestCustom, "\(reply.count)")
                if draw.chance(), input.lacksRoom(at: now) == nil { break }
                unread.removeFirst(length)
                input.answered(at: now)
            }
        }
    }

    /// Leads a value through what is drawn.
    private static func lead(
        _ server: some PushServer, _ draw: inout Draw, words: [String], _ framed: ([UInt8]) -> [UInt8]
    ) {
        var (server, now, arrived) = (server, Duration.seconds(1000), [ServerMessageID]())
        while !draw.isOver {
            let input: PushServerInput
            switch draw.below(12) {
            case 0: input = .connected
            case 1: input = .opened
            case 2: input = .parked
            case 3: input = .unparked
            case 4: input = .disconnected
            case 5:
                now += .seconds(Int(draw.byte()) * 20)
                input = .timePassed
            case 6: input = .register(registration(&draw), vapid: nil)
            case 7: input = .unregister(registration(&draw), endpoint: nil)
            case 8:
                guard !arrived.isEmpty else { continue }
                let outcomes: [MessageOutcome] = [.kept, .taken, .givenUp("over"), .notNow("full"), .full("full")]
                input = .settled(draw.pick(arrived), draw.pick(outcomes))
            case 9: input = .received(framed(draw.bytes()))
            case 10: input = .received(framed(Array(draw.pick(words).utf8)))
            default: input = .received(draw.bytes())
            }
            let turn = server.take(
                input,
                at: Moment(
                    uptime: now, wall: WallTime(milliseconds: 1_800_000_000_000 + Int64(now.components.seconds) * 1000))
            )
            precondition(turn.memory?.count ?? 0 <= DistributorLimits.memory, "it remembers too much")
            precondition(turn.arrived.allSatisfy { DistributorLimits.body.contains($0.body.count) }, "a body")
            precondition(turn.output.count <= 64 * 1024, "it says \(turn.output.count) bytes at once")
            precondition(server.parking?.opening.count ?? 0 <= 16, "an opening has 16 steps at most")
            arrived = Array((arrived + turn.arrived.map(\.id)).suffix(200))
            _ = server.deadline
        }
    }

    private static func registration(_ draw: inout Draw) -> RegistrationID {
        let digit = String(draw.below(8))
        // Thirty-two digits.
        guard let id = RegistrationID(String(repeating: digit, count: 32)) else { preconditionFailure(digit) }
        return id
    }

    /// A message of text as a WebSocket's server sends it.
    private static func frame(_ content: [UInt8]) -> [UInt8] {
        content.count < 126
            ? [0x81, UInt8(content.count)] + content
            : [0x81, 126, UInt8(content.count >> 8 & 0xFF), UInt8(content.count & 0xFF)] + content
    }

    private static let stream =
        "<?xml version='1.0'?><stream:stream xmlns:stream='http://etherx.jabber.org/streams' xmlns='jabber:client'>"
    private static let xmpp = [
        stream + "<stream:features><mechanisms xmlns='urn:ietf:params:xml:ns:xmpp-sasl'><mechanism>PLAIN</mechanism>"
            + "</mechanisms></stream:features>",
        "<success xmlns='urn:ietf:params:xml:ns:xmpp-sasl'/>",
        stream + "<stream:features><sm xmlns='urn:xmpp:sm:3'/></stream:features>",
        "<iq type='result' id='bind'><bind xmlns='urn:ietf:params:xml:ns:xmpp-bind'><jid>a@b/c</jid></bind></iq>",
        "<enabled resume='true' xmlns='urn:xmpp:sm:3' id='x'/>", "<resumed h='1' xmlns='urn:xmpp:sm:3' previd='x'/>",
        "<failed xmlns='urn:xmpp:sm:3'/>", "<r xmlns='urn:xmpp:sm:3'/>", "<a xmlns='urn:xmpp:sm:3' h='1'/>",
        "<a xmlns='urn:xmpp:sm:3' h='2'/>", "<message/>", "</stream:stream>",
        "<iq id='1' type='set' from='lab.example'><push xmlns='http://gultsch.de/xmpp/drafts/unified-push' "
            + "application='41ae675Vnw7nzzG+vV2BMW0wgdKwCzMBmiDbkZ0rxCE=' "
            + "instance='MTExMTExMTExMTExMTExMTExMTExMTExMTExMTExMTE='>YQ==</push></iq>",
    ]
    private static let autopush = [
        #"{"messageType":"hello","uaid":"ab","status":200}"#, #"{"messageType":"hello","uaid":"cd","status":200}"#,
        #"{"messageType":"register","channelID":"11111111-1111-1111-1111-111111111111","status":200,"#
            + #""pushEndpoint":"https://push.test/x"}"#,
        #"{"messageType":"unregister","channelID":"11111111-1111-1111-1111-111111111111","status":200}"#,
        #"{"messageType":"notification","channelID":"11111111-1111-1111-1111-111111111111","version":"1","#
            + #""data":"AQID","ttl":9223372036854775807,"headers":{"encoding":"aes128gcm","urgency":"high"}}"#,
        "{}",
    ]
    private static let ntfy = [
        #"{"id":"a","time":1800001000,"event":"open"}"#,
        #"{"id":"b","time":1800001001,"event":"message","topic":"upAAAAAAAAAAAA","message":"AQID","#
            + #""encoding":"base64","expires":9223372036854775807}"#,
        #"{"id":"c","time":9223372036854775807,"event":"message","topic":"x"}"#,
    ]
}
