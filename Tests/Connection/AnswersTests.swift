// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import DialtoneConnection

/// On which flows messages are answered, and with which count.
@Suite struct AnswersTests {
    private static let pings = AnsweredMessages([.websocket])
    private static func requests(_ handled: UInt32?) -> AnsweredMessages {
        AnsweredMessages([.xmpp(handled: handled)])
    }

    private static func policy(_ answers: AnsweredMessages, opening: String? = nil) -> ConnectionPolicy {
        var policy = ConnectionPolicy.office
        policy.answers = answers
        policy.opening = opening.map {
            Opening([.init(send: Array($0.utf8), answer: ExpectedAnswer(BytePattern([2])))])
        }
        return policy
    }

    /// What is said of messages to be answered; `nil` where nothing is.
    private static func word(_ actions: [ConnectionAction]) -> AnsweredMessages?? {
        actions.compactMap { if case .answerMessages(_, let answers) = $0 { .some(answers) } else { nil } }.last
    }

    @Test func `they are answered from parking to taking`() {
        var harness = Harness(Self.policy(Self.pings))
        harness.tell(all: .opened, .pathChanged(.wifi))
        // Nobody is logged in.
        #expect(Self.word(harness.tell(.dialSucceeded(epoch: 1, local: .local, remote: .office))) == .some(nil))
        #expect(Self.word(harness.tell(.taken(epoch: 1, by: .unknown))) == .some(nil))
        // Before what waits is looked at.
        #expect(
            harness.tell(.parked(epoch: 1)).prefix(2) == [
                .answerMessages(epoch: 1, Self.pings), .watchInput(epoch: 1, true),
            ])
        #expect(Self.word(harness.tell(.taken(epoch: 1, by: .unknown))) == .some(nil))
        // Who never ran leaves it as it was.
        #expect(Self.word(harness.tell(.returned(epoch: 1))) == Self.pings)
    }

    @Test func `nothing is said where nothing is to be answered`() {
        var harness = Harness.ready()
        #expect(Self.word(harness.tell(.taken(epoch: 1, by: .unknown))) == nil)
        #expect(Self.word(harness.tell(.parked(epoch: 1, handled: 3))) == nil)
    }

    @Test func `nothing is answered after a client that ended in the middle of something`() {
        var policy = Self.policy(Self.pings)
        policy.keepsAbandonedFlow = true
        var harness = Harness.ready(policy)
        harness.tell(all: .taken(epoch: 1, by: .unknown), .parked(epoch: 1), .taken(epoch: 1, by: .unknown))
        #expect(
            Self.word(harness.tell(.abandoned(epoch: 1, isUntouched: false, isAlone: true))) == .some(nil))
    }

    @Test func `nothing is answered inside TLS of a client's own`() {
        var policy = Self.policy(Self.pings)
        policy.remote = .of("tls://192.0.2.7:5060")
        var harness = Harness(policy)
        #expect(Self.word(harness.tell(.adopted(Adoption(local: .local, remote: .office)))) == .some(nil))
    }

    // MARK: - What a client leaves, and what the policy says

    @Test func `what a client left goes before the policy, until that changes`() {
        var harness = Harness.ready(Self.policy(Self.pings))
        harness.tell(all: .taken(epoch: 1, by: .unknown), .answersLeft(AnsweredMessages()))
        #expect(Self.word(harness.tell(.parked(epoch: 1))) == nil)
        // Of something else.
        var policy = Self.policy(Self.pings)
        policy.triesOtherUplinks = false
        policy.grace = .seconds(1)
        #expect(Self.word(harness.tell(.policyChanged(policy))) == nil)
        policy.answers = Self.requests(nil)
        #expect(Self.word(harness.tell(.policyChanged(policy))) == Self.requests(nil))
        policy.answers = AnsweredMessages()
        #expect(Self.word(harness.tell(.policyChanged(policy))) == .some(nil))
    }

    @Test func `what a client left is not for another server`() {
        var harness = Harness.ready()
        harness.tell(all: .taken(epoch: 1, by: .unknown), .answersLeft(Self.pings))
        #expect(Self.word(harness.tell(.parked(epoch: 1))) == Self.pings)
        harness.tell(.policyChanged(ConnectionPolicy(remote: .of("tcp://198.51.100.7:5060"))))
        harness.tell(.pathChanged(.wifi))
        #expect(Self.word(harness.tell(.dialSucceeded(epoch: 2, local: .local, remote: .second))) == nil)
    }

    // MARK: - How many stanzas were handled

    @Test func `the count is that of the last parking alone`() {
        var harness = Harness.ready(Self.policy(Self.requests(5)))
        harness.tell(.taken(epoch: 1, by: .unknown))
        // The policy's is of another stream.
        #expect(Self.word(harness.tell(.parked(epoch: 1))) == Self.requests(nil))
        harness.tell(.taken(epoch: 1, by: .unknown))
        #expect(Self.word(harness.tell(.parked(epoch: 1, handled: 7))) == Self.requests(7))
        harness.tell(.taken(epoch: 1, by: .unknown))
        #expect(Self.word(harness.tell(.returned(epoch: 1))) == Self.requests(7))
        harness.tell(.taken(epoch: 1, by: .unknown))
        #expect(Self.word(harness.tell(.parked(epoch: 1))) == Self.requests(nil))
    }

    @Test func `the count goes on after a restart`() {
        var harness = Harness.ready(Self.policy(Self.requests(nil)))
        harness.tell(all: .taken(epoch: 1, by: .unknown), .parked(epoch: 1, handled: 7))
        guard let adoption = harness.machine.adoption else {
            Issue.record("no flow stands")
            return
        }
        var next = Harness(Self.policy(AnsweredMessages()))
        // What the client left is told before.
        #expect(next.tell(.answersLeft(Self.requests(7))) == [])
        #expect(Self.word(next.tell(.adopted(adoption))) == Self.requests(7))
    }

    @Test(arguments: [("<enable/>", 0), ("<resume previd='x' h='5'/>", 5)] as [(String, UInt32)])
    func `a stream that the opening begins has no stanza, and one that it resumes has the client's`(
        opening: String, handled: UInt32
    ) {
        var harness = Harness.ready(Self.policy(Self.requests(5), opening: opening))
        #expect(Self.word(harness.tell(.sessionOpened(epoch: 1))) == Self.requests(handled))
        // And the same on the next one, over a better path.
        harness.tell(.pathChanged(.modem), after: .seconds(100))
        harness.tell(.acknowledged(epoch: 1, begun: harness.now))
        harness.tell(.dialSucceeded(epoch: 2, local: .overModem, remote: .office))
        #expect(Self.word(harness.tell(.sessionOpened(epoch: 2))) == Self.requests(handled))
    }
}
