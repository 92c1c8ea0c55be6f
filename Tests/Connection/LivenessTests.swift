// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import DialtoneConnection

@Suite struct LivenessTests {
    private let start = Duration.seconds(1000)
    private var flow = Liveness(KeepaliveProtocol.crlf.figures, connectedAt: .seconds(1000))

    /// So many seconds after the flow began.
    private func at(_ seconds: Double) -> Duration { start + .seconds(seconds) }

    @Test func `the handshake is the first proof`() {
        #expect(flow.lastProof == start)
        #expect(flow.deadline == nil && !flow.isVerifying)
    }

    @Test mutating func `an answer in time is a proof`() {
        flow.probeSent(at: at(120))
        #expect(flow.deadline == at(130))
        flow.answered(at: at(121))
        #expect(flow.deadline == nil)
        #expect(flow.lastProof == at(121))
        #expect(flow.check(at: at(130)) == .alive)
    }

    @Test mutating func `a server that never answered is not dead for not answering now`() {
        flow.probeSent(at: at(120))
        #expect(flow.check(at: at(129)) == .alive)
        #expect(flow.check(at: at(130)) == .indifferent)
        #expect(flow.deadline == nil)
        #expect(flow.lastProof == start)
    }

    @Test mutating func `one that answered before is`() {
        flow.probeSent(at: at(120))
        flow.answered(at: at(121))
        flow.probeSent(at: at(240))
        #expect(flow.check(at: at(250)) == .unanswered)
        // And on its next flow as well.
        var next = Liveness(
            KeepaliveProtocol.crlf.figures, connectedAt: at(300), hasAnsweredKeepalives: flow.hasAnsweredKeepalives)
        next.probeSent(at: at(420))
        #expect(next.check(at: at(430)) == .unanswered)
    }

    @Test(arguments: [KeepaliveProtocol.mqtt, .websocket, .xmppPing])
    func `where the protocol obliges it the first silence is death`(keepalive: KeepaliveProtocol) {
        var flow = Liveness(keepalive.figures, connectedAt: start)
        flow.probeSent(at: at(60))
        #expect(flow.check(at: at(70)) == .unanswered)
    }

    @Test mutating func `only a round trip begun after the event verifies`() {
        flow.probeSent(at: at(120))
        flow.verify(at: at(121))
        #expect(flow.isVerifying && flow.deadline == at(124))
        // The answer to the probe from before the sleep was in the queue.
        flow.answered(at: at(122))
        #expect(flow.isVerifying && flow.lastProof == start)
        flow.acknowledged(at(120.9), at: at(122))
        #expect(flow.isVerifying)
        flow.probeSent(at: at(121))
        flow.answered(at: at(123))
        #expect(!flow.isVerifying && flow.lastProof == at(123))
        #expect(flow.check(at: at(124)) == .alive)
    }

    @Test mutating func `answers come in the order of their probes`() {
        flow.probeSent(at: at(120))
        flow.verify(at: at(121))
        flow.probeSent(at: at(121))
        flow.answered(at: at(122))
        #expect(flow.isVerifying)
        flow.answered(at: at(122))
        #expect(!flow.isVerifying)
    }

    @Test mutating func `an answer that stands for both verifies`() {
        flow.probeSent(at: at(120))
        flow.verify(at: at(121))
        flow.probeSent(at: at(121))
        flow.answered(2, at: at(122))
        #expect(!flow.isVerifying && flow.deadline == nil)
    }

    @Test mutating func `without a round trip the flow is dead after three seconds`() {
        flow.verify(at: at(50))
        flow.probeSent(at: at(50))
        #expect(flow.check(at: at(52.9)) == .alive)
        #expect(flow.check(at: at(53)) == .unverified)
    }

    @Test mutating func `an acknowledgement verifies and answers no keepalive`() {
        flow.verify(at: at(50))
        flow.probeSent(at: at(50))
        flow.acknowledged(at(50), at: at(51))
        #expect(!flow.isVerifying && flow.lastProof == at(51))
        #expect(!flow.hasAnsweredKeepalives)
    }

    @Test mutating func `a second event counts from itself`() {
        flow.verify(at: at(50))
        flow.probeSent(at: at(50))
        flow.verify(at: at(52))
        flow.answered(at: at(52.5))
        #expect(flow.isVerifying && flow.deadline == at(55))
    }

    @Test mutating func `a keepalive from before a sleep owes no answer in time`() {
        flow.probeSent(at: at(0))
        flow.verify(at: at(3600))
        #expect(flow.deadline == at(3603))
        #expect(flow.check(at: at(3601)) == .alive)
        flow.probeSent(at: at(3600.001))
        flow.acknowledged(at(3600), at: at(3600.2))
        // Its answers wait behind what the server has to repeat.
        #expect(flow.deadline == nil)
        flow.probeSent(at: at(3700))
        #expect(flow.deadline == at(3710))
    }

    @Test mutating func `a path that flaps does not keep a dead flow`() {
        for second in stride(from: 50.0, through: 58, by: 2) { flow.verify(at: at(second)) }
        #expect(flow.deadline == at(59))
        #expect(flow.check(at: at(59)) == .unverified)
    }

    @Test mutating func `a sleep begins it anew too`() {
        flow.verify(at: at(50))
        flow.verify(at: at(3600))
        #expect(flow.deadline == at(3603))
    }

    @Test mutating func `a proof begins the time of the next one anew`() {
        flow.verify(at: at(50))
        flow.acknowledged(at(50), at: at(50.5))
        flow.verify(at: at(58))
        #expect(flow.deadline == at(61))
    }

    @Test mutating func `an answer that nobody asked for proves nothing`() {
        flow.answered(at: at(10))
        #expect(flow.lastProof == start && !flow.hasAnsweredKeepalives)
    }

    @Test func `the user timeout outlasts the answer's deadline`() {
        #expect(KeepaliveProtocol.crlf.userTimeout(interval: .seconds(120)) == .seconds(130))
        #expect(KeepalivePolicy().giveUpAfter == .seconds(150))
    }
}
