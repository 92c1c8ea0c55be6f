// SPDX-License-Identifier: Apache-2.0

internal import DialtoneAPI

@testable internal import DialtoneAgent
@testable internal import DialtoneConfiguration
@testable internal import DialtoneConnection

extension FuzzTarget {
    /// What a server sends where the answer to a keepalive is awaited.
    static let answers = FuzzTarget(name: "answers") { bytes in
        var draw = Draw(bytes)
        let kind: KeepaliveProtocol = draw.pick([
            .crlf, .whitespace, .xmppPing, .mqtt, .websocket, .custom(send: [1], expect: [2, 3]), .kernel,
        ])
        var dialogue = KeepaliveDialogue(kind)
        while !draw.isOver {
            switch draw.below(4) {
            case 0:
                // The same words each time, so that an answer to them can be found.
                var random = Draw([])
                _ = try? dialogue.ping(isVerification: draw.chance(), using: &random)
            case 1: dialogue.giveUp()
            default:
                let unread = draw.bytes()
                if case .answer(let length, let answers) = dialogue.peeked(unread) {
                    precondition(length <= unread.count && answers > 0)
                }
            }
        }
    }

    /// What a server sends where an opening exchange is played, and the exchange itself.
    static let openings = FuzzTarget(name: "openings") { bytes in
        var draw = Draw(bytes)
        let steps = draw.several(4) { draw in
            Opening.Step(
                send: draw.bytes(), answer: draw.maybe(Self.answer),
                overtakers: draw.several(2) { draw in BytePattern(draw.bytes()) })
        }
        let opening = Opening(steps)
        _ = opening.promisedKeepAlive
        // The daemon plays none that has a problem.
        guard opening.problem == nil else { return }
        var play = OpeningPlay(opening)
        var unread: [UInt8] = []
        for _ in 0..<64 {
            switch play.next(unread) {
            case .send: break
            case .keep(let count), .read(let count):
                precondition(count <= unread.count)
                unread.removeFirst(count)
            case .wait:
                if draw.isOver { return }
                unread += draw.bytes()
            case .done, .failed: return
            }
        }
    }

    private static func answer(_ draw: inout Draw) -> ExpectedAnswer {
        if draw.chance() {
            let answer = ConnectionsAPI.OpeningAnswer(
                bytes: draw.maybe { $0.text() }, length: draw.maybe { $0.number() }, until: draw.maybe { $0.text() },
                message: draw.maybe { $0.pick(["mqtt", "websocket", ""]) }, contains: draw.maybe { $0.text() })
            if let written = OpeningCheck([.init(expect: answer)]).opening?.steps.first?.answer { return written }
        }
        let extent: ExpectedAnswer.Extent =
            switch draw.below(3) {
            case 0: .length(draw.number())
            case 1: .delimiter(draw.bytes())
            default: .message(draw.pick([.mqtt, .websocket]))
            }
        let beginning = draw.bytes()
        let mask = beginning.map { _ in draw.byte() }
        return ExpectedAnswer(
            extent, beginning: BytePattern(zip(beginning, mask).map { $0 & $1 }, mask: mask), content: draw.bytes())
    }
}
