// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import DialtoneConnection

@Suite struct LivenessTests {
    private let start = Duration.seconds(1000)
    private var flow = Liveness(KeepaliveProtocol.crlf.figures, connectedAt: .seconds(1000))

    /// So many seconds after the flow began.
    private func at(_ seconds: Double) -> Duration { start + .seconds(seconds) }

    @Test func theHandshakeIsTheFirstProof() {
        #expect(flow.lastProof == start)
        #expect(flow.deadline == nil && !flow.isVerifying)
    }

    @Test mutating func anAnswerInTimeIsAProof() {
        flow.probeSent(at: at(120))
        #expect(flow.deadline == at(130))
        flow.answered(at: at(121))
        #expect(flow.deadline == nil)
        #expect(flow.lastProof == at(121))
        #expect(flow.check(at: at(130)) == .alive)
    }

    @Test mutating func aServerThatNeverAnsweredIsNotDeadForNotAnsweringNow() {
        flow.probeSent(at: at(120))
        #expect(flow.check(at: at(129)) == .alive)
        #expect(flow.check(at: at(130)) == .indifferent)
        #expect(flow.deadline == nil)
        #expect(flow.lastProof == start)
    }

    @Test mutating func oneThatAnsweredBeforeIs() {
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
    func whereTheProtocolObligesItTheFirstSilenceIsDeath(keepalive: KeepaliveProtocol) {
        var flow = Liveness(keepalive.figures, connectedAt: start)
        flow.probeSent(at: at(60))
        #expect(flow.check(at: at(70)) == .unanswered)
    }

    @Test mutating func onlyARoundTripBegunAfterTheEventVerifies() {
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

    @Test mutating func answersComeInTheOrderOfTheirProbes() {
        flow.probeSent(at: at(120))
        flow.verify(at: at(121))
        flow.probeSent(at: at(121))
        flow.answered(at: at(122))
        #expect(flow.isVerifying)
        flow.answered(at: at(122))
        #expect(!flow.isVerifying)
    }

    @Test mutating func anAnswerThatStandsForBothVerifies() {
        flow.probeSent(at: at(120))
        flow.verify(at: at(121))
        flow.probeSent(at: at(121))
        flow.answered(2, at: at(122))
        #expect(!flow.isVerifying && flow.deadline == nil)
    }

    @Test mutating func withoutARoundTripTheFlowIsDeadAfterThreeSeconds() {
        flow.verify(at: at(50))
        flow.probeSent(at: at(50))
        #expect(flow.check(at: at(52.9)) == .alive)
        #expect(flow.check(at: at(53)) == .unverified)
    }

    @Test mutating func anAcknowledgementVerifiesAndAnswersNoKeepalive() {
        flow.verify(at: at(50))
        flow.probeSent(at: at(50))
        flow.acknowledged(at(50), at: at(51))
        #expect(!flow.isVerifying && flow.lastProof == at(51))
        #expect(!flow.hasAnsweredKeepalives)
    }

    @Test mutating func aSecondEventCountsFromItself() {
        flow.verify(at: at(50))
        flow.probeSent(at: at(50))
        flow.verify(at: at(52))
        flow.answered(at: at(52.5))
        #expect(flow.isVerifying && flow.deadline == at(55))
    }

    @Test mutating func aKeepaliveFromBeforeASleepOwesNoAnswerInTime() {
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

    @Test mutating func aPathThatFlapsDoesNotKeepADeadFlow() {
        for second in stride(from: 50.0, through: 58, by: 2) { flow.verify(at: at(second)) }
        #expect(flow.deadline == at(59))
        #expect(flow.check(at: at(59)) == .unverified)
    }

    @Test mutating func aSleepBeginsItAnewToo() {
        flow.verify(at: at(50))
        flow.verify(at: at(3600))
        #expect(flow.deadline == at(3603))
    }

    @Test mutating func aProofBeginsTheTimeOfTheNextOneAnew() {
        flow.verify(at: at(50))
        flow.acknowledged(at(50), at: at(50.5))
        flow.verify(at: at(58))
        #expect(flow.deadline == at(61))
    }

    @Test mutating func anAnswerThatNobodyAskedForProvesNothing() {
        flow.answered(at: at(10))
        #expect(flow.lastProof == start && !flow.hasAnsweredKeepalives)
    }

    @Test func theUserTimeoutOutlastsTheAnswersDeadline() {
        #expect(KeepaliveProtocol.crlf.userTimeout(interval: .seconds(120)) == .seconds(130))
        #expect(KeepalivePolicy().giveUpAfter == .seconds(150))
    }
}
