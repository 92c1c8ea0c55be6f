// SPDX-License-Identifier: Apache-2.0

import DialtoneConnection
import DialtoneTestSupport
import Testing

/// Parked flows whose servers ask things, drawn from seeds: in pieces, in bursts, between messages for the client and
/// answers to keepalives, with a socket that has no room now and then.
@Suite struct AnsweringProperties {
    @Test(arguments: [1, 2, 3] + seeds(3)) func `each question is answered once, and what is the client's stays`(
        seed: UInt64
    ) throws {
        var random = SplitMix64(seed: seed)
        var answered = 0
        for round in 0..<600 {
            let server = AskingServer(AskingServer.Speech.allCases[round % 3])
            var flow = ParkedFlow(server, &random)
            try flow.live(&random)
            let what = "\(server.speech), round \(round): \(flow.summary)"
            let isInOrder = flow.heard.elementsEqual(flow.expected.prefix(flow.heard.count))
            #expect(isInOrder && flow.answers == flow.asked, "\(what)")
            if let message = flow.firstMessage {
                let isWhole = flow.unread.elementsEqual(flow.sent[message...])
                #expect(isWhole && flow.wakes == 1 && flow.heard.count == flow.expectedBefore(message), "\(what)")
            } else {
                #expect(flow.wakes == 0 && flow.unread.isEmpty, "\(what)")
                #expect(flow.heard.count == flow.expected.count, "\(what)")
            }
            answered += flow.heard.count
        }
        #expect(answered > 1000, "\(answered)")
    }
}

/// One flow that the agent has, and a driver that does with it what ``ParkedInput`` says.
private struct ParkedFlow {
    let server: AskingServer
    var input = ParkedInput()
    var now = Duration.seconds(1000)
    /// All that the server has sent, and how much of it the agent has read.
    var sent: [UInt8] = []
    var read = 0
    /// Where the first thing begins that is for the client.
    var firstMessage: Int?
    /// What the server expects to hear, and behind which of its bytes.
    private var expectations: [(end: Int, reply: [UInt8])] = []
    /// What it heard.
    var heard: [[UInt8]] = []
    var wakes = 0
    /// How many keepalives the agent has sent, and how many answers it found, before the first message.
    var asked = 0
    var answers = 0
    /// How many bytes the server has said, those included that are under way.
    private var said = 0

    var unread: [UInt8] { Array(sent[read...]) }
    var expected: [[UInt8]] { expectations.map(\.reply) }

    /// Its figures, for a failure.
    var summary: String {
        "\(heard.count) of \(expected.count) replies heard, \(answers) of \(asked) answers found, \(wakes) wakes, "
            + "read \(read) of \(sent.count) bytes, the first message at \(firstMessage.map { "\($0)" } ?? "none")"
    }

    init(_ server: AskingServer, _ random: inout SplitMix64) {
        self.server = server
        if random.chance(70) { input.keepalive = KeepaliveDialogue(server.keepalive) }
        input.questions = ServerQuestions(server.answered)
    }

    /// How many replies the server expects to what it said before that place.
    func expectedBefore(_ place: Int) -> Int { expectations.count { $0.end <= place } }

    mutating func live(_ random: inout SplitMix64) throws {
        for _ in 0..<random.below(20) {
            // No more than a minute may have.
            now += .seconds(10 + random.below(30))
            var underway = keepAlive(&random)[...]
            for _ in 0...random.below(2) { underway += say(&random) }
            while !underway.isEmpty {
                let piece = underway.prefix(1 + random.below([1, 4, 300][random.below(3)]))
                underway = underway.dropFirst(piece.count)
                sent += piece
                drive(&random)
                now += .milliseconds(random.below(20))
            }
            if wakes > 0 { return }
        }
    }

    /// The agent sends a keepalive, as it does on a flow with nothing unread.
    ///
    /// - Returns: the answer; nothing where none was sent.
    private mutating func keepAlive(_ random: inout SplitMix64) -> [UInt8] {
        guard random.chance(30), let ping = try? input.keepalive?.ping(using: &random) else { return [] }
        asked += 1
        let answer = Self.answer(to: ping, server.keepalive)
        said += answer.count
        return answer
    }

    /// The answer to a keepalive, as a server by the book gives it.
    private static func answer(to ping: [UInt8], _ keepalive: KeepaliveProtocol) -> [UInt8] {
        switch keepalive {
        case .crlf: return Array("\r\n".utf8)
        case .mqtt: return [0xD0, 0x00]
        case .websocket: return [0x8A, 0x08] + ping[6...].enumerated().map { $1 ^ ping[2 + $0 % 4] }
        case .xmppPing:
            let id = String(decoding: ping, as: UTF8.self).split(separator: "'")[3]
            return Array("<iq from='example.com' id='\(id)' type='result'/>".utf8)
        case .kernel, .whitespace, .custom: return []
        }
    }

    /// The server says something.
    private mutating func say(_ random: inout SplitMix64) -> [UInt8] {
        let word = random.chance(95) ? server.question(&random) : server.message(&random)
        let start = said
        said += word.bytes.count
        switch word {
        case .question(_, let reply): if let reply { expectations.append((said, reply)) }
        case .message: firstMessage = firstMessage ?? start
        }
        return word.bytes
    }

    private mutating func drive(_ random: inout SplitMix64) {
        while !unread.isEmpty, input.isLooked {
            let before = input
            switch input.next(unread, at: now, using: &random) {
            case .answer(let length, let count):
                read += length
                answers += count
            case .reply(let length, let reply):
                if random.chance(10) {
                    // No room: the same again later.
                    input = before
                    #expect(input.lacksRoom(at: now) != nil)
                    continue
                }
                if !reply.isEmpty { heard.append(server.heard(reply) ?? []) }
                read += length
                input.answered(at: now)
            case .wait:
                return
            case .forClient:
                wakes += 1
                _ = input.keepalive?.giveUp()
                return
            }
        }
    }
}
