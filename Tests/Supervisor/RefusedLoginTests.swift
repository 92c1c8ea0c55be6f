// SPDX-License-Identifier: Apache-2.0

import NetworkPath
import TestSupport
import Testing

@testable import Supervisor

/// A login that the server refuses is not tried again and again.
@Suite struct RefusedLoginTests {
    private static let wrong = OpeningFailure(
        step: 1, cause: .mismatch, refusal: LoginRefusal("CONNACK 4, bad user name or password"))

    private static func opening(_ word: UInt8) -> Opening {
        Opening([.init(send: [word], answer: ExpectedAnswer(BytePattern([2])))])
    }

    private static func policy(saying word: UInt8 = 1) -> ConnectionPolicy {
        var policy = ConnectionPolicy(remote: .of("mqtt://192.0.2.7:5060"))
        policy.opening = opening(word)
        return policy
    }

    /// The server refused, and hung up a second later.
    private func refused(_ failure: OpeningFailure = wrong) -> Harness {
        var harness = Harness.ready(Self.policy())
        harness.tell(.openingFailed(epoch: 1, failure))
        harness.tell(.remoteClosed(epoch: 1), after: .seconds(1))
        return harness
    }

    private static func dials(_ actions: [ConnectionAction]) -> Bool {
        actions.contains { if case .openSocket = $0 { true } else { false } }
    }

    // MARK: - How long it waits

    @Test func `what the server refuses for good fails, and says why`() {
        let harness = refused()
        #expect(harness.status.state == .failed)
        #expect(harness.status.reason == .openingFailed(Self.wrong))
        #expect(
            harness.status.reason.description
                == "the server refused step 1 of the opening: CONNACK 4, bad user name or password")
        // From the refusal on: a half of what is between 15 and 30 minutes.
        #expect(harness.status.nextAttempt == harness.now - .seconds(1) + .seconds(1350))
    }

    @Test func `it is tried again at its time, and waits anew`() {
        var harness = refused()
        #expect(Self.dials(harness.tell(.timerFired(.retry), after: .seconds(1349))))
        harness.tell(.dialSucceeded(epoch: 2, local: .local, remote: .office))
        harness.tell(.openingFailed(epoch: 2, Self.wrong))
        #expect(!Self.dials(harness.tell(.remoteClosed(epoch: 2))))
        #expect(harness.status.state == .failed)
        #expect(harness.status.nextAttempt == harness.now + .seconds(1350))
    }

    @Test func `a client that looks at the refusal and goes changes nothing`() {
        var harness = Harness.ready(Self.policy())
        harness.tell(.openingFailed(epoch: 1, Self.wrong))
        harness.tell(.taken(epoch: 1))
        #expect(!Self.dials(harness.tell(.abandoned(epoch: 1, isUntouched: false, isAlone: true))))
        #expect(harness.status.state == .failed)
    }

    @Test(arguments: [
        LoginRefusal("HTTP 503", mayPass: true), LoginRefusal("HTTP 503", mayPass: true, pause: .seconds(100)),
    ])
    func `what may pass is backed off from, and for as long as the server asks`(refusal: LoginRefusal) {
        let harness = refused(OpeningFailure(step: 1, cause: .mismatch, refusal: refusal))
        #expect(harness.status.state == .backingOff)
        let pause = refusal.pause.map { $0 - .seconds(1) } ?? .zero
        // Half of 1.6 s, which is the bound after one failure.
        #expect(harness.status.nextAttempt == harness.now + pause + .milliseconds(800))
    }

    // MARK: - What ends the wait

    @Test func `another opening is played at once`() {
        var harness = refused()
        #expect(Self.dials(harness.tell(.policyChanged(Self.policy(saying: 9)))))
        harness = refused()
        #expect(Self.dials(harness.tell(.openingLeft(Self.opening(9)))))
        harness = refused()
        #expect(!Self.dials(harness.tell(.openingLeft(Self.opening(1)))), "the same is refused again")
        #expect(!Self.dials(harness.tell(.openingLeft(nil))), "the policy's is the same")
    }

    @Test func `another opening is played on a new flow where the server has not hung up`() {
        var harness = Harness.ready(Self.policy())
        harness.tell(.openingFailed(epoch: 1, Self.wrong))
        let actions = harness.tell(.policyChanged(Self.policy(saying: 9)))
        #expect(actions.contains(.closeSocket(epoch: 1, .superseded, .dropped)))
        #expect(Self.dials(actions))
    }

    @Test func `a user's word is heard at once`() {
        var harness = refused()
        #expect(Self.dials(harness.tell(.redialRequested(after: nil))))
    }

    @Test func `another network is tried, but not more than once a minute`() {
        var harness = refused()
        #expect(!Self.dials(harness.tell(.pathChanged(.modem), after: .seconds(1))))
        #expect(harness.status.state == .failed)
        #expect(harness.status.nextAttempt == harness.now + .seconds(58))
        harness.tell(.pathChanged(.wifi), after: .seconds(1))
        #expect(Self.dials(harness.tell(.timerFired(.retry), after: .seconds(57))))
    }

    @Test func `a login that the server takes is no matter any more`() {
        var harness = refused()
        harness.tell(.redialRequested(after: nil))
        harness.tell(.dialSucceeded(epoch: 2, local: .local, remote: .office))
        harness.tell(.sessionOpened(epoch: 2))
        harness.tell(.remoteClosed(epoch: 2), after: .seconds(1000))
        #expect(harness.status.state == .backingOff)
    }

    // MARK: - What shows

    @Test func `the last failure stays until a login succeeds`() {
        var harness = refused()
        harness.tell(.redialRequested(after: nil))
        #expect(harness.status.reason == .redialRequested)
        #expect(harness.status.lastFailure == .openingFailed(Self.wrong))
        harness.tell(.dialSucceeded(epoch: 2, local: .local, remote: .office))
        #expect(harness.status.lastFailure == .openingFailed(Self.wrong))
        harness.tell(.sessionOpened(epoch: 2))
        #expect(harness.status.lastFailure == nil)
    }

    @Test func `without an opening it stays until a flow stands`() {
        var harness = Harness.refused()
        harness.tell(.timerFired(.retry), after: .seconds(60))
        #expect(harness.status.reason == .retryDue)
        #expect(harness.status.lastFailure == .dialFailed(.refused, .office))
        harness.tell(.dialSucceeded(epoch: 2, local: .local, remote: .office))
        #expect(harness.status.lastFailure == nil)
    }
}

/// What of a server's answer is a refusal, in its words.
@Suite struct LoginRefusalTests {
    @Test(
        arguments: [
            ([0x20, 2, 0, 4], "CONNACK 4, bad user name or password", false),
            ([0x20, 2, 0, 3], "CONNACK 3, server unavailable", true),
            ([0x20, 2, 0, 77], "CONNACK 77", false),
            ([0x20, 3, 0, 0x87, 0], "CONNACK 0x87, not authorized", false),
            ([0x20, 3, 0, 0x89, 0], "CONNACK 0x89, server busy", true),
            ([0x90, 4, 0, 1, 0, 0x87], "SUBACK 0x87, not authorized", false),
            ([0x90, 4, 0, 1, 0, 0x97, 0x30], "SUBACK 0x97, quota exceeded", true),
        ] as [([UInt8], String, Bool)])
    func `a code of MQTT`(answer: [UInt8], text: String, mayPass: Bool) {
        #expect(LoginRefusal(of: answer) == LoginRefusal(text, mayPass: mayPass))
    }

    @Test(
        arguments: [
            ("HTTP/1.1 401 Unauthorized\r\nServer: x\r\n\r\n", "HTTP 401 Unauthorized", false, nil),
            (
                "HTTP/1.1 503 Service Unavailable\r\nretry-after:  120 \r\n\r\n", "HTTP 503 Service Unavailable", true,
                120
            ),
            ("HTTP/1.1 429 Slow\r\nRetry-After: 99999999\r\n\r\n", "HTTP 429 Slow", true, 86_400),
            ("HTTP/1.1 429 \r\nRetry-After: soon\r\n\r\nRetry-After: 5\r\n", "HTTP 429", true, nil),
            ("HTTP/1.0 302", "HTTP 302", false, nil),
            ("HTTP/1.1 403 \u{1B}[31mred\r\n", "HTTP 403 ?[31mred", false, nil),
            ("<failure xmlns='urn:ietf:params:xml:ns:xmpp-sasl'><not-authorized/>", "SASL not-authorized", false, nil),
            ("<failure><temporary-auth-failure/></failure>", "SASL temporary-auth-failure", true, nil),
            ("<stream:error><system-shutdown xmlns='x'/>", "stream error system-shutdown", true, nil),
        ] as [(String, String, Bool, Int?)])
    func `a status or a condition`(answer: String, text: String, mayPass: Bool, pause: Int?) {
        let expected = LoginRefusal(text, mayPass: mayPass, pause: pause.map { .seconds($0) })
        #expect(LoginRefusal(of: Array(answer.utf8)) == expected)
    }

    @Test(arguments: [
        "", "\u{20}", "HTTP/1.1 101 Switching Protocols\r\n", "HTTP/1.1 4", "HTTP/1.1 999 x", "HTTP/1.1 -40 x",
        "<failure>", "<failure", "<failure><1/>", "-ERR no", "NO LOGIN failed", "\u{20}\u{02}\u{00}\u{00}",
    ])
    func `anything else is no refusal that is known`(answer: String) {
        #expect(LoginRefusal(of: Array(answer.utf8)) == nil)
    }

    @Test(arguments: seeds(200))
    func `nothing that a server sends does harm`(seed: UInt64) {
        var random = SplitMix64(seed: seed)
        let heads: [[UInt8]] = [[0x20], [0x90], Array("HTTP/1.1 ".utf8), Array("<failure".utf8), []]
        let tail = (0..<random.below(64)).map { _ in UInt8(truncatingIfNeeded: random.next()) }
        let refusal = LoginRefusal(of: heads[random.below(heads.count)] + tail)
        #expect(refusal.map { $0.text.utf8.allSatisfy { (0x20..<0x7F).contains($0) } } ?? true, "\(tail)")
    }
}
