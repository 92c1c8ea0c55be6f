// SPDX-License-Identifier: Apache-2.0

import DialtoneNetworkPath
import Testing

@testable import DialtoneConnection

@Suite struct VerificationTests {
    @Test func `after a resume a flow proves itself`() {
        var harness = Harness.ready()
        let actions = harness.tell(.resumed, after: .seconds(30_000))
        #expect(
            actions == [
                .probe(epoch: 1), .scheduleTimer(.proof, deadline: harness.now + .seconds(3)),
                harness.event(from: .ready, after: .seconds(30_000)),
            ])
        #expect(harness.status.state == .verifying)
        #expect(harness.status.reason == .resumed)
        let begun = harness.now
        let proved = harness.tell(.acknowledged(epoch: 1, begun: begun), after: .milliseconds(90))
        #expect(proved == [.cancelTimer(.proof), harness.event(from: .verifying, after: .milliseconds(90))])
        #expect(harness.status.reason == .verified)
        #expect(harness.status.lastProof == harness.now)
    }

    @Test func `what was sent before the sleep proves nothing`() {
        var harness = Harness.ready()
        harness.tell(.probeSent(epoch: 1), after: .seconds(1))
        harness.tell(.resumed, after: .seconds(5))
        harness.tell(.answered(epoch: 1, count: 1), after: .milliseconds(1))
        #expect(harness.status.state == .verifying)
        harness.tell(.probeSent(epoch: 1))
        harness.tell(.answered(epoch: 1, count: 1), after: .milliseconds(80))
        #expect(harness.status.state == .ready)
    }

    @Test func `without a proof in time it is dialled anew at once`() {
        var harness = Harness.ready()
        harness.tell(.resumed, after: .seconds(30))
        let actions = harness.tell(.timerFired(.proof), after: .seconds(3))
        #expect(
            actions.prefix(2) == [.closeSocket(epoch: 1, .unanswered, .dropped), .openSocket(.office(epoch: 2))])
        #expect(harness.status.reason == .unverified)
    }

    @Test func `a proof that was owed to an earlier run is owed still`() throws {
        var before = Harness.ready()
        before.tell(.resumed, after: .seconds(30))
        let left = before.machine.adoption
        let adoption = try #require(left)
        var after = Harness()
        after.now = before.now + .seconds(1)
        let actions = after.tell(.adopted(adoption))
        #expect(actions.contains(.probe(epoch: 1)), "\(actions)")
        #expect(after.status.state == .verifying)
        #expect(after.status.since == before.now)
        let proved = after.tell(.acknowledged(epoch: 1, begun: after.now), after: .milliseconds(90))
        #expect(proved.first == .cancelTimer(.proof))
        #expect(after.status.state == .ready)
        after = Harness()
        after.now = before.now
        after.tell(all: .adopted(adoption), .pathChanged(.wifi))
        let lost = after.tell(.timerFired(.proof), after: .seconds(3))
        #expect(lost.first == .closeSocket(epoch: 1, .unanswered, .dropped), "\(lost)")
    }

    @Test func `whatever else ran is dialled anew after a resume`() {
        var backingOff = Harness.refused()
        #expect(backingOff.tell(.resumed).first == .cancelTimer(.retry))
        #expect(backingOff.status.state == .connecting)
        var connecting = Harness()
        connecting.tell(all: .opened, .pathChanged(.wifi))
        #expect(
            connecting.tell(.resumed).prefix(2) == [.cancelTimer(.dial), .closeSocket(epoch: 1, .overslept, .dropped)])
        #expect(connecting.status.epoch == 2)
        var waiting = Harness()
        waiting.tell(all: .opened, .pathChanged(.none))
        #expect(waiting.tell(.resumed) == [])
    }

    @Test func `a server that answered once and falls silent has lost its flow`() {
        var harness = Harness.ready(ConnectionPolicy(remote: .of("sip://192.0.2.7")))
        harness.tell(all: .probeSent(epoch: 1), .answered(epoch: 1, count: 1))
        let sent = harness.tell(.probeSent(epoch: 1), after: .seconds(120))
        #expect(sent == [.scheduleTimer(.proof, deadline: harness.now + .seconds(10))])
        let actions = harness.tell(.timerFired(.proof), after: .seconds(10))
        // It had stood for long: a line that was cut in the middle, and dialled at once.
        #expect(actions.prefix(2).map(\.epoch) == [1, 2])
        #expect(harness.status.reason == .unanswered)
    }

    @Test func `a server that never answered is not dead for that`() {
        var harness = Harness.ready(ConnectionPolicy(remote: .of("sip://192.0.2.7")))
        harness.tell(.probeSent(epoch: 1))
        #expect(harness.tell(.timerFired(.proof), after: .seconds(10)) == [.giveUpAnswers(epoch: 1)])
        #expect(harness.status.state == .ready)
    }

    @Test func `one that falls silent again and again waits`() {
        var harness = Harness.ready(ConnectionPolicy(remote: .of("mqtt://192.0.2.7")))
        harness.tell(.probeSent(epoch: 1), after: .seconds(20))
        harness.tell(.timerFired(.proof), after: .seconds(10))
        #expect(harness.status.state == .backingOff)
        #expect(harness.status.attempt == 2)
    }

    @Test func `an answer that cannot be seen proves nothing for or against`() {
        var harness = Harness.ready(ConnectionPolicy(remote: .of("mqtt://192.0.2.7")))
        harness.tell(.probeSent(epoch: 1))
        #expect(harness.tell(.answerHidden(epoch: 1)) == [.cancelTimer(.proof)])
        #expect(harness.status.state == .ready)
    }

    @Test func `bytes that a keepalive waits behind are to be acknowledged by when it would be answered`() {
        var harness = Harness.ready(ConnectionPolicy(remote: .of("mqtt://192.0.2.7")))
        #expect(
            harness.tell(.undelivered(epoch: 1)) == [.scheduleTimer(.proof, deadline: harness.now + .seconds(10))])
        #expect(harness.tell(.undelivered(epoch: 1), after: .seconds(4)).isEmpty, "the first counts")
        harness.tell(.timerFired(.proof), after: .seconds(6))
        #expect((harness.status.epoch, harness.status.lastFailure) == (1, .unanswered))
        #expect(harness.status.state != .ready)
    }

    @Test func `and it lives where they were`() {
        var harness = Harness.ready(ConnectionPolicy(remote: .of("mqtt://192.0.2.7")))
        harness.tell(.undelivered(epoch: 1))
        #expect(harness.tell(.acknowledged(epoch: 1, begun: harness.now)) == [.cancelTimer(.proof)])
        #expect(harness.status.state == .ready)
    }

    @Test func `a ready flow is kept alive as its scheme asks`() {
        var harness = Harness(ConnectionPolicy(remote: .of("sip://192.0.2.7")))
        harness.tell(all: .opened, .pathChanged(.wifi))
        let actions = harness.tell(.dialSucceeded(epoch: 1, local: .local, remote: .office))
        #expect(actions.contains(.keepAlive(epoch: 1, Heartbeat(.crlf))))
        var policy = harness.machine.policy
        policy.heartbeat = nil
        #expect(harness.tell(.policyChanged(policy)).contains(.keepAlive(epoch: 1, nil)))
    }
}

@Suite struct ServerWishTests {
    @Test func `a flow that ends of a network that is settling is dialled anew in seconds`() {
        var harness = Harness.ready(ConnectionPolicy(remote: .of("sip://192.0.2.7")))
        harness.tell(.pathChanged(.gatewayMoved), after: .seconds(10))
        harness.tell(.flowFailed(epoch: 1, .hostUnreachable), after: .seconds(2))
        #expect(harness.status.nextAttempt == harness.now + .milliseconds(1500))
        #expect(harness.status.attempt == 1)
        var late = Harness.ready(ConnectionPolicy(remote: .of("sip://192.0.2.7")))
        late.tell(.flowFailed(epoch: 1, .hostUnreachable), after: .seconds(40))
        #expect(late.status.nextAttempt == late.now + .seconds(45))
    }

    @Test func `a server that asks to be left alone is`() {
        var harness = Harness.ready()
        #expect(harness.tell(.serverAsked(.seconds(90))) == [])
        harness.tell(.remoteClosed(epoch: 1), after: .seconds(1))
        let next = harness.status.nextAttempt ?? .zero
        #expect(next > harness.now + .seconds(89))
        // And no less than its own wait on top: the server says the same to everybody.
        #expect(next > harness.now + .seconds(89) + .milliseconds(500))
        // The path's return is no reason to disturb it; a user's wish is.
        harness.tell(all: .pathChanged(.none), .pathChanged(.modem))
        #expect(harness.status.state == .backingOff)
        #expect(harness.status.reason == .serverAsked)
        harness.tell(.redialRequested())
        #expect(harness.status.state == .connecting)
    }

    @Test func `a client passes the server's wish on`() {
        var harness = Harness.ready()
        let actions = harness.tell(.redialRequested(after: .seconds(120)))
        #expect(actions.first == .closeSocket(epoch: 1, .superseded, .dropped))
        #expect(harness.status.state == .backingOff)
        #expect(harness.status.nextAttempt == harness.now + .seconds(125))
        harness.tell(.resumed, after: .seconds(60))
        #expect(harness.status.state == .backingOff)
        harness.tell(.timerFired(.retry), after: .seconds(65))
        #expect(harness.status.state == .connecting)
    }

    @Test func `a wish beyond a day is cut to one`() {
        var harness = Harness.ready()
        harness.tell(all: .serverAsked(.seconds(1_000_000)), .remoteClosed(epoch: 1))
        #expect((harness.status.nextAttempt ?? .zero) - harness.now <= .seconds(86_410))
    }
}

extension ConnectionAction {
    fileprivate var epoch: UInt64? {
        switch self {
        case .closeSocket(let epoch, _, _): epoch
        case .openSocket(let request): request.epoch
        default: nil
        }
    }
}
