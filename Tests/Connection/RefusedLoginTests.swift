// SPDX-License-Identifier: Apache-2.0

import DialtoneNetworkPath
import DialtoneTestSupport
import Testing

@testable import DialtoneConnection

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
        harness.tell(.taken(epoch: 1, by: .unknown))
        #expect(!Self.dials(harness.tell(.abandoned(epoch: 1, isUntouched: false, isAlone: true))))
        #expect(harness.status.state == .failed)
    }

    @Test(arguments: [
        LoginRefusal("HTTP 503", mayPass: true), LoginRefusal("HTTP 503", mayPass: true, pause: .seconds(100)),
    ])
    func `what may pass is backed off from, and for as long as the server asks`(refusal: LoginRefusal) {
        let harness = refused(OpeningFailure(step: 1, cause: .mismatch, refusal: refusal))
        #expect(harness.status.state == .backingOff)
        // With a pause counted from the refusal, and with half of the bound of before it: ten seconds; else half of
        // 1.6 s, which is the bound after one failure.
        let wait = refusal.pause.map { $0 - .seconds(1) + .seconds(5) } ?? .milliseconds(800)
        #expect(harness.status.nextAttempt == harness.now + wait)
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

    @Test func `another opening mends nothing else`() {
        var harness = refused()
        harness.tell(.timerFired(.retry), after: .seconds(1349))
        harness.tell(.dialFailed(epoch: 2, .tls(.notTLS)))
        #expect(harness.status.state == .failed)
        #expect(!Self.dials(harness.tell(.openingLeft(Self.opening(9)))), "\(harness.status.reason)")
        #expect(harness.status.attempt == 3, "the failures are counted on")
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

    @Test func `a pause that somebody else may have asked for does not hold in another network`() {
        var harness = refused(
            OpeningFailure(step: 1, cause: .mismatch, refusal: LoginRefusal("x", mayPass: true, pause: .seconds(9000))))
        harness.tell(.pathChanged(.modem), after: .seconds(1))
        #expect(harness.status.nextAttempt == harness.now + .seconds(58))
        harness = refused(
            OpeningFailure(step: 1, cause: .mismatch, refusal: LoginRefusal("x", pause: .seconds(9000))))
        #expect(Self.dials(harness.tell(.policyChanged(Self.policy(saying: 9)))), "another login was not refused")
    }

    @Test func `a flapping link tries ever more rarely`() {
        var harness = refused()
        for round in 1...4 {
            harness.tell(.pathChanged(round.isMultiple(of: 2) ? .wifi : .modem), after: .milliseconds(1))
            let wait = (harness.status.nextAttempt ?? .zero) - harness.now
            let expected = Duration.seconds(60 << (round - 1)) - .seconds(1) - .milliseconds(1)
            #expect(wait == expected, "round \(round)")
            harness.tell(.timerFired(.retry), after: wait)
            let epoch = harness.status.epoch
            harness.tell(.dialSucceeded(epoch: epoch, local: .local, remote: .office))
            harness.tell(.openingFailed(epoch: epoch, Self.wrong))
            harness.tell(.remoteClosed(epoch: epoch), after: .seconds(1))
        }
    }

    @Test func `another network is tried, but not more than once a minute`() {
        var harness = refused()
        #expect(!Self.dials(harness.tell(.pathChanged(.modem), after: .seconds(1))))
        #expect(harness.status.state == .failed)
        #expect(harness.status.nextAttempt == harness.now + .seconds(58))
        harness.tell(.pathChanged(.wifi), after: .seconds(1))
        #expect(Self.dials(harness.tell(.timerFired(.retry), after: .seconds(57))))
    }

    @Test func `a dial that is under way does not say the same again`() {
        var harness = Harness.ready(Self.policy())
        harness.tell(.pathChanged(.modem), after: .seconds(1))
        let actions = harness.tell(.openingFailed(epoch: 1, Self.wrong))
        #expect(actions.contains(.closeSocket(epoch: 2, .superseded, .dropped)))
        let local = Endpoint(address: .modemSource, port: 1)
        #expect(harness.tell(.dialSucceeded(epoch: 2, local: local, remote: .office)) == [])
        #expect(harness.status.epoch == 1, "the refusal is there for the client")
    }

    @Test func `an opening that came meanwhile was not refused`() {
        var harness = Harness.ready(Self.policy())
        harness.tell(.policyChanged(Self.policy(saying: 9)))
        harness.tell(.openingFailed(epoch: 1, Self.wrong))
        harness.tell(.remoteClosed(epoch: 1))
        #expect(harness.status.state == .backingOff)
    }

    @Test func `a configuration that says another takes the place of what a client left`() {
        var harness = refused()
        harness.tell(.openingLeft(Self.opening(7)))
        harness.tell(.dialSucceeded(epoch: 2, local: .local, remote: .office))
        harness.tell(.openingFailed(epoch: 2, Self.wrong))
        harness.tell(.remoteClosed(epoch: 2))
        #expect(harness.status.state == .failed)
        #expect(Self.dials(harness.tell(.policyChanged(Self.policy(saying: 9)))))
        let actions = harness.tell(.dialSucceeded(epoch: 3, local: .local, remote: .office))
        #expect(actions.contains(.playOpening(epoch: 3, Self.opening(9))))
    }

    @Test func `a second session that is refused holds up moves alone`() {
        var harness = Harness.ready(Self.policy())
        harness.tell(.sessionOpened(epoch: 1))
        harness.tell(.pathChanged(.modem), after: .seconds(100))
        harness.tell(all: .acknowledged(epoch: 1, begun: harness.now))
        let local = Endpoint(address: .modemSource, port: 1)
        harness.tell(.dialSucceeded(epoch: 2, local: local, remote: .office))
        let actions = harness.tell(.openingFailed(epoch: 2, Self.wrong))
        #expect(actions.contains(.scheduleTimer(.retry, deadline: harness.now + .seconds(1350))))
        #expect(harness.status.lastFailure == nil, "the flow that stands is logged in on")
        #expect(Self.dials(harness.tell(.localAddressRemoved(.wifiSource))), "beside the one that is silent now")
        harness.tell(.timerFired(.proof), after: .seconds(5))
        #expect(harness.status.state == .connecting)
    }

    @Test func `a client that logs in itself shows by how long it lasts that the server took it`() {
        var harness = Harness.ready(Self.policy())
        harness.tell(.openingFailed(epoch: 1, Self.wrong))
        harness.tell(all: .taken(epoch: 1, by: .unknown), .parked(epoch: 1))
        #expect(harness.status.lastFailure == nil)
        harness.tell(.remoteClosed(epoch: 1), after: .seconds(60))
        #expect(harness.status.state == .backingOff)
    }

    @Test func `a login that the server takes does away with the refusal`() {
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
