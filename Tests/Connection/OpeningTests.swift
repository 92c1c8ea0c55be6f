// SPDX-License-Identifier: Apache-2.0

import DialtoneCoalescing
import DialtoneNetworkPath
import Testing

@testable import DialtoneConnection

/// How the machine goes about an opening: what is told when, and what follows from what becomes of it.
@Suite struct OpeningTests {
    private static let opening = Opening([
        .init(send: [1], answer: ExpectedAnswer(BytePattern([2]))),
        .init(send: [3], answer: ExpectedAnswer(BytePattern([4]))),
    ])
    private static func policy(_ remote: String = "mqtt://192.0.2.7:5060") -> ConnectionPolicy {
        var policy = ConnectionPolicy(remote: .of(remote))
        policy.opening = opening
        return policy
    }

    /// A flow, epoch 1, on which the opening is played.
    private func opening(_ policy: ConnectionPolicy = policy()) -> Harness { .ready(policy) }

    /// A flow, epoch 1, on which the agent has logged in.
    private func opened(_ policy: ConnectionPolicy = policy()) -> Harness {
        var harness = Harness.ready(policy)
        harness.tell(.sessionOpened(epoch: 1))
        return harness
    }

    /// A flow with a session, and a next one over the modem, epoch 2, on which the opening is played.
    private func moving(_ policy: ConnectionPolicy = policy()) -> Harness {
        var harness = opened(policy)
        harness.tell(.pathChanged(.modem), after: .seconds(100))
        harness.tell(all: .acknowledged(epoch: 1, begun: harness.now))
        harness.tell(.dialSucceeded(epoch: 2, local: .overModem, remote: .office))
        return harness
    }

    private static func kinds(_ actions: [ConnectionAction]) -> [ConnectionEvent.Kind] {
        actions.compactMap { if case .emit(let event) = $0 { event.kind } else { nil } }
    }

    // MARK: - A new flow

    @Test func `a new flow is logged in on before anything else`() {
        var harness = Harness(Self.policy())
        harness.tell(all: .opened, .pathChanged(.wifi))
        #expect(
            harness.tell(.dialSucceeded(epoch: 1, local: .local, remote: .office)) == [
                .cancelTimer(.dial), .playOpening(epoch: 1, Self.opening),
                .scheduleTimer(.opening, deadline: harness.now + .seconds(10)), harness.event(from: .connecting),
            ])
        #expect(harness.status.ownership == FlowOwnership(reader: nil, session: .opening))
        #expect(harness.tell(.taken(epoch: 1, by: .unknown)) == [])
        #expect(harness.tell(.arrived(epoch: 1)) == [])
    }

    @Test func `when all is answered it is as if parked`() {
        var harness = opening()
        #expect(
            harness.tell(.sessionOpened(epoch: 1), after: .seconds(1)) == [
                .cancelTimer(.opening), .watchInput(epoch: 1, true),
                .keepAlive(epoch: 1, ConnectionPolicy(remote: .of("mqtt://192.0.2.7")).heartbeat),
                harness.event(.sessionOpened, from: .ready, after: .seconds(1), because: .sessionOpened),
            ])
        #expect(harness.status.ownership == .parked)
        #expect(harness.tell(.sessionOpened(epoch: 1)) == [])
        #expect(harness.tell(.openingFailed(epoch: 1, .init(step: 1, cause: .mismatch))) == [])
    }

    @Test func `each answer is a proof and has a time of its own`() {
        var harness = opening()
        let begin = harness.now
        #expect(
            harness.tell(.openingAnswered(epoch: 1, awaiting: 2, begun: begin), after: .seconds(9)) == [
                .scheduleTimer(.opening, deadline: begin + .seconds(19))
            ])
        #expect(harness.status.lastProof == begin + .seconds(9))
        // All of it has thirty seconds.
        harness.tell(.openingAnswered(epoch: 1, awaiting: 2, begun: harness.now), after: .seconds(9))
        #expect(
            harness.tell(.openingAnswered(epoch: 1, awaiting: 2, begun: nil), after: .seconds(9)) == [
                .scheduleTimer(.opening, deadline: begin + .seconds(30))
            ])
        // What was not asked for proves nothing.
        #expect(harness.status.lastProof == begin + .seconds(18))
    }

    @Test func `an answer ends the verification of a flow that moved`() {
        var harness = opening()
        harness.tell(.resumed, after: .seconds(1))
        #expect(harness.status.state == .verifying)
        harness.tell(.openingAnswered(epoch: 1, awaiting: 2, begun: harness.now), after: .seconds(1))
        #expect(harness.status.state == .ready)
    }

    // MARK: - Refused

    @Test func `a refusal calls the client and leaves it the flow`() {
        let failure = OpeningFailure(step: 1, cause: .mismatch)
        var harness = opening()
        #expect(
            harness.tell(.openingFailed(epoch: 1, failure)) == [
                .cancelTimer(.opening), .keepAlive(epoch: 1, nil),
                harness.event(.openingFailed, from: .ready, because: .openingFailed(failure)),
            ])
        #expect(harness.status.ownership == .new)
        #expect(harness.status.reason == .openingFailed(failure))
        #expect(harness.status.reason.advice?.contains("password") == true)
        harness.tell(.taken(epoch: 1, by: .unknown))
        #expect(harness.status.ownership == FlowOwnership(reader: .unknown, session: .unknown))
    }

    @Test func `a server that is busy is asked ever more rarely however late it hangs up`() {
        var harness = opening()
        let busy = OpeningFailure(step: 1, cause: .mismatch, refusal: LoginRefusal("busy", mayPass: true))
        for attempt in 1...3 {
            let epoch = harness.status.epoch
            harness.tell(.openingFailed(epoch: epoch, busy))
            harness.tell(.remoteClosed(epoch: epoch), after: .seconds(600))
            #expect(harness.status.state == .backingOff)
            #expect(harness.status.attempt == attempt + 1)
            harness.tell(.timerFired(.retry), after: .seconds(600))
            harness.tell(.dialSucceeded(epoch: epoch + 1, local: .local, remote: .office))
        }
    }

    @Test func `what a client makes of a refused flow counts as any other`() {
        var harness = opening()
        harness.tell(.openingFailed(epoch: 1, .init(step: 1, cause: .mismatch)))
        harness.tell(all: .taken(epoch: 1, by: .unknown), .parked(epoch: 1))
        harness.tell(.remoteClosed(epoch: 1), after: .seconds(600))
        #expect(harness.status.attempt == 1)
    }

    @Test func `a session that lasted starts the backoff over and one that did not does not`() {
        var harness = opening()
        harness.tell(.openingAnswered(epoch: 1, awaiting: 2, begun: nil), after: .seconds(9))
        harness.tell(.sessionOpened(epoch: 1), after: .seconds(9))
        harness.tell(.remoteClosed(epoch: 1), after: .seconds(59))
        #expect(harness.status.attempt == 2)
        harness.tell(.timerFired(.retry), after: .seconds(600))
        harness.tell(.dialSucceeded(epoch: 2, local: .local, remote: .office))
        harness.tell(.sessionOpened(epoch: 2))
        harness.tell(.remoteClosed(epoch: 2), after: .seconds(60))
        #expect(harness.status.attempt == 1)
    }

    // MARK: - Silence

    @Test func `a server that does not answer is dialled anew`() {
        let failure = OpeningFailure(step: 2, cause: .timedOut)
        var harness = opening()
        harness.tell(.openingAnswered(epoch: 1, awaiting: 2, begun: nil))
        #expect(
            harness.tell(.timerFired(.opening)) == [
                .scheduleTimer(.opening, deadline: harness.now + .seconds(10))
            ])
        let actions = harness.tell(.timerFired(.opening), after: .seconds(10))
        #expect(actions.first == .closeSocket(epoch: 1, .timedOut, .keptAsRefusal))
        #expect(Self.kinds(actions) == [.stateChanged])
        #expect(harness.status.state == .backingOff)
        #expect(harness.status.reason == .openingFailed(failure))
        #expect(harness.status.attempt == 2)
    }

    @Test func `the third opening in a row that comes to nothing calls the client once`() {
        var harness = opening()
        for attempt in 1...5 {
            let epoch = harness.status.epoch
            let actions =
                attempt.isMultiple(of: 2)
                ? harness.tell(.remoteClosed(epoch: epoch))
                : harness.tell(.timerFired(.opening), after: .seconds(10))
            #expect(Self.kinds(actions) == (attempt == 3 ? [.stateChanged, .openingFailed] : [.stateChanged]))
            harness.tell(.timerFired(.retry), after: .seconds(600))
            harness.tell(.dialSucceeded(epoch: epoch + 1, local: .local, remote: .office))
        }
        harness.tell(.sessionOpened(epoch: 6))
        #expect(Self.kinds(harness.tell(.remoteClosed(epoch: 6))) == [.stateChanged])
    }

    @Test func `an opening that succeeds starts that count over`() {
        var harness = opening()
        for attempt in 1...6 {
            let epoch = harness.status.epoch
            if attempt.isMultiple(of: 3) { harness.tell(.sessionOpened(epoch: epoch)) }
            #expect(Self.kinds(harness.tell(.remoteClosed(epoch: epoch))) == [.stateChanged])
            harness.tell(.timerFired(.retry), after: .seconds(600))
            harness.tell(.dialSucceeded(epoch: epoch + 1, local: .local, remote: .office))
        }
    }

    @Test func `no keepalive that the policy brings is sent in the middle`() {
        var harness = opening(Self.policy("sip://192.0.2.7:5060"))
        var policy = Self.policy("sip://192.0.2.7:5060")
        policy.heartbeat = Heartbeat(.crlf, interval: .seconds(40))
        #expect(harness.tell(.policyChanged(policy)).contains(.keepAlive(epoch: 1, nil)))
    }

    @Test func `a loss of the path is nobody's refusal`() {
        var harness = opening()
        for _ in 1...4 {
            #expect(Self.kinds(harness.tell(.pathChanged(.none))) == [.stateChanged])
            harness.tell(.pathChanged(.wifi))
            harness.tell(.dialSucceeded(epoch: harness.status.epoch, local: .local, remote: .office))
            #expect(harness.status.ownership == .opening)
        }
    }

    @Test func `a flow that does not prove itself in the middle takes its timers along`() {
        var harness = opening()
        harness.tell(.resumed)
        let actions = harness.tell(.timerFired(.proof), after: .seconds(3))
        #expect(actions.prefix(2) == [.cancelTimer(.opening), .closeSocket(epoch: 1, .unanswered, .dropped)])
    }

    // MARK: - Moving

    @Test func `a flow over a better path takes the place of the other when it has a session`() {
        var harness = opened()
        harness.tell(.pathChanged(.modem), after: .seconds(100))
        #expect(
            harness.tell(.dialSucceeded(epoch: 2, local: .overModem, remote: .office)) == [
                .cancelTimer(.dial), .playOpening(epoch: 2, Self.opening),
                .scheduleTimer(.opening, deadline: harness.now + .seconds(10)),
            ])
        #expect(harness.status.epoch == 1)
        #expect(harness.status.ownership == .parked)
        let actions = harness.tell(.sessionOpened(epoch: 2))
        #expect(
            actions.prefix(4) == [
                .cancelTimer(.opening), .cancelTimer(.proof), .closeSocket(epoch: 1, .replaced, .kept),
                .watchInput(epoch: 2, true),
            ])
        #expect(harness.status.epoch == 2)
        #expect(harness.status.ownership == .parked)
        #expect(harness.status.reason == .replaced)
    }

    @Test(arguments: [false, true])
    func `a server that answered on the old flow meanwhile is known to answer`(isOldLost: Bool) {
        var harness = moving(Self.policy("sip://192.0.2.7:5060"))
        harness.tell(all: .probeSent(epoch: 1), .answered(epoch: 1, count: 1))
        if isOldLost { harness.tell(.remoteClosed(epoch: 1)) }
        harness.tell(all: .sessionOpened(epoch: 2), .probeSent(epoch: 2))
        let actions = harness.tell(.timerFired(.proof), after: .seconds(10))
        #expect(actions.contains(.closeSocket(epoch: 2, .unanswered, .kept)))
    }

    @Test func `a server with one session ends the other flow and that is no failure`() {
        var harness = moving()
        let actions = harness.tell(.remoteClosed(epoch: 1))
        #expect(actions.contains(.closeSocket(epoch: 1, .remoteClosed, .kept)))
        #expect(harness.status.state == .ready)
        #expect(harness.status.epoch == 2)
        #expect(harness.status.ownership == .opening)
        #expect(harness.status.attempt == 1)
        harness.tell(.sessionOpened(epoch: 2))
        #expect(harness.status.ownership == .parked)
    }

    @Test func `a move whose opening fails leaves the flow that stands`() {
        for input in [
            ConnectionInput.openingFailed(epoch: 2, .init(step: 1, cause: .mismatch)), .remoteClosed(epoch: 2),
            .timerFired(.opening),
        ] {
            var harness = moving()
            let actions = harness.tell(input, after: .seconds(10))
            #expect(Self.kinds(actions) == [.moveFailed])
            #expect(harness.status.epoch == 1)
            #expect(harness.status.ownership == .parked)
            #expect(actions.contains { if case .scheduleTimer(.retry, _) = $0 { true } else { false } })
        }
    }

    @Test func `what the server says on the old flow meanwhile does not end the move`() {
        var harness = moving()
        #expect(Self.kinds(harness.tell(.arrived(epoch: 1))) == [.arrived])
        harness.tell(.pathChanged(.modem))
        harness.tell(.sessionOpened(epoch: 2))
        #expect(harness.status.epoch == 2)
    }

    @Test func `a flow without a session is not kept for the next`() {
        var harness = opening()
        harness.tell(.pathChanged(.modem))
        let actions = harness.tell(.dialSucceeded(epoch: 2, local: .overModem, remote: .office))
        #expect(actions.contains(.closeSocket(epoch: 1, .replaced, .dropped)))
        #expect(harness.status.ownership == .opening)
    }

    @Test func `the next flow goes with its address and stays without the others`() {
        var harness = moving()
        #expect(
            harness.tell(.localAddressRemoved(.modemSource)).contains(
                .closeSocket(epoch: 2, .localAddressRemoved, .dropped)))
        #expect(harness.status.epoch == 1)
        var policy = Self.policy()
        policy.grace = .zero
        var other = moving(policy)
        #expect(
            other.tell(.localAddressRemoved(.wifiSource)).contains(.closeSocket(epoch: 1, .localAddressRemoved, .kept)))
        #expect(other.status.epoch == 2)
        #expect(other.status.ownership == .opening)
        var third = moving()
        let actions = third.tell(.closeRequested)
        #expect(
            actions.prefix(3) == [
                .cancelTimer(.opening), .closeSocket(epoch: 2, .closeRequested, .dropped),
                .closeSocket(epoch: 1, .closeRequested, .dropped),
            ])
    }

    @Test func `a path that leads back ends the move`() {
        var harness = moving()
        #expect(harness.tell(.pathChanged(.wifi)).contains(.closeSocket(epoch: 2, .pathMoved, .dropped)))
        #expect(harness.status.epoch == 1)
    }

    // MARK: - What a client leaves

    @Test func `what a client left goes before the policy`() {
        let left = Opening([.init(send: [9], answer: ExpectedAnswer(BytePattern([8])))])
        var harness = Harness(Self.policy())
        harness.tell(all: .opened, .openingLeft(left), .pathChanged(.wifi))
        let actions = harness.tell(.dialSucceeded(epoch: 1, local: .local, remote: .office))
        #expect(actions.contains(.playOpening(epoch: 1, left)))

        var none = Harness(Self.policy())
        none.tell(all: .opened, .openingLeft(Opening([])), .pathChanged(.wifi))
        none.tell(.dialSucceeded(epoch: 1, local: .local, remote: .office))
        #expect(none.status.ownership == .new)
    }

    @Test func `a login on the next flow is begun again where the client leaves another one meanwhile`() {
        let left = Opening([.init(send: [9], answer: ExpectedAnswer(BytePattern([8])))])
        var harness = moving()
        harness.tell(.taken(epoch: 1, by: .unknown))
        let actions = harness.tell(.openingLeft(left))
        #expect(actions.contains(.closeSocket(epoch: 2, .superseded, .dropped)), "\(actions)")
        #expect(actions.contains { if case .openSocket = $0 { true } else { false } }, "\(actions)")
        harness.tell(.parked(epoch: 1))
        let again = harness.tell(.dialSucceeded(epoch: 3, local: .overModem, remote: .office))
        #expect(again.contains(.playOpening(epoch: 3, left)), "\(again)")
        // Where it says the same as before, nothing is in the way.
        #expect(harness.tell(.openingLeft(left)) == [])
        // Who leaves another one each second may be faster than the server.
        let more = harness.tell(.openingLeft(Opening([.init(send: [7], answer: ExpectedAnswer(BytePattern([8])))])))
        #expect(more.contains(.closeSocket(epoch: 3, .superseded, .dropped)), "\(more)")
        #expect(more.contains { if case .scheduleTimer(.retry, _) = $0 { true } else { false } }, "\(more)")
        #expect(!more.contains { if case .openSocket = $0 { true } else { false } }, "\(more)")
    }

    @Test func `what a client left is not said to another server`() {
        let left = Opening([.init(send: [9], answer: ExpectedAnswer(BytePattern([8])))])
        var harness = Harness.ready(.office)
        harness.tell(all: .taken(epoch: 1, by: .unknown), .openingLeft(left), .parked(epoch: 1))
        harness.tell(.policyChanged(ConnectionPolicy(remote: .of("tcp://198.51.100.7:5060"))))
        harness.tell(.pathChanged(.wifi))
        harness.tell(.dialSucceeded(epoch: 2, local: .local, remote: .second))
        #expect(harness.status.ownership == .new)
    }

    @Test func `the connect that a client leaves bounds its keepalives`() {
        let left = Opening([
            .init(
                send: [0x10, 12, 0, 4] + "MQTT".utf8 + [4, 2, 0, 20],
                answer: ExpectedAnswer(BytePattern([0x20, 2, 0, 0])))
        ])
        var harness = Harness.ready(ConnectionPolicy(remote: .of("mqtt://192.0.2.7")))
        harness.tell(.taken(epoch: 1, by: .unknown))
        let configured = harness.tell(.openingLeft(left)).compactMap { action -> SocketOptions? in
            if case .configureSocket(1, let options) = action { options } else { nil }
        }
        #expect(configured.map(\.keepalive) == [KeepalivePolicy(idle: .seconds(20))], "the kernel's as well")
        #expect(configured.map(\.userTimeout) == [.seconds(50)])
        let sent = harness.tell(.parked(epoch: 1)).compactMap { action -> Duration? in
            if case .keepAlive(_, let heartbeat) = action { heartbeat?.cadence.interval } else { nil }
        }
        #expect(sent == [.seconds(19)])
    }
}
