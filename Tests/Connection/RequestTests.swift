// SPDX-License-Identifier: Apache-2.0

import DialtoneNetworkPath
import Testing

@testable import DialtoneConnection

@Suite struct RedialTests {
    @Test func `a live flow is closed and dialled anew`() {
        var harness = Harness.ready()
        let actions = harness.tell(.redialRequested(), after: .seconds(5))
        #expect(
            actions == [
                .closeSocket(epoch: 1, .superseded, .dropped),
                .openSocket(.office(epoch: 2)),
                .scheduleTimer(.dial, deadline: harness.now + .seconds(10)),
                harness.event(from: .ready, after: .seconds(5)),
            ])
        #expect(harness.status.reason == .redialRequested)
    }

    @Test func `a backoff is cut short`() {
        var harness = Harness.refused()
        let actions = harness.tell(.redialRequested())
        #expect(
            actions == [
                .cancelTimer(.retry),
                .openSocket(.office(epoch: 2)),
                .scheduleTimer(.dial, deadline: harness.now + .seconds(10)),
                harness.event(from: .backingOff),
            ])
        #expect(harness.status.attempt == 1)
    }

    @Test func `a script that redials without end is no storm`() {
        var harness = Harness()
        harness.tell(all: .opened, .pathChanged(.wifi))
        for _ in 0..<100 { harness.tell(.redialRequested()) }
        #expect(harness.status.epoch == 10)
        #expect(harness.status.state == .backingOff)
    }
}

@Suite struct CloseTests {
    static func everyState() -> [[ConnectionInput]] {
        let begun: [ConnectionInput] = [.opened, .pathChanged(.wifi)]
        return [
            [.opened], begun, begun + [.dialSucceeded(epoch: 1, local: .local, remote: .office)],
            begun + [.dialFailed(epoch: 1, .refused)], [.opened, .pathChanged(.none)],
        ]
    }

    @Test func `closing a flow leaves nothing`() {
        var harness = Harness.ready()
        let actions = harness.tell(.closeRequested, after: .seconds(5))
        #expect(
            actions == [
                .closeSocket(epoch: 1, .closeRequested, .dropped), .stopObservingPath,
                harness.event(from: .ready, after: .seconds(5)),
            ])
    }

    @Test(arguments: everyState())
    func `after it nothing is answered`(inputs: [ConnectionInput]) {
        var harness = Harness()
        for input in inputs { harness.tell(input) }
        harness.tell(.closeRequested)
        #expect(harness.status.state == .closed)
        let later: [ConnectionInput] = [
            .opened, .pathChanged(.none), .pathChanged(.modem),
            .dialSucceeded(epoch: 1, local: .local, remote: .office),
            .dialFailed(epoch: 1, .refused), .remoteClosed(epoch: 1), .flowFailed(epoch: 1, .reset),
            .localAddressRemoved(.wifiSource), .timerFired(.retry), .timerFired(.dial), .redialRequested(),
            .policyChanged(.named), .closeRequested,
        ]
        for input in later { #expect(harness.tell(input, after: .seconds(3600)) == []) }
    }
}

@Suite struct PolicyChangeTests {
    @Test func `the same policy changes nothing`() {
        var harness = Harness.ready()
        let same = harness.machine.policy
        #expect(harness.tell(.policyChanged(same)) == [])
    }

    @Test func `another remote needs another path first`() {
        var harness = Harness.ready()
        let actions = harness.tell(.policyChanged(.named), after: .seconds(1))
        #expect(
            actions == [
                .closeSocket(epoch: 1, .superseded, .dropped),
                .observePath(Target(.name("sip.example.com"), port: 5060, transport: .tcp)),
                harness.event(from: .ready, after: .seconds(1)),
            ])
        #expect(harness.status.state == .waiting)
        #expect(harness.status.path == nil)
        #expect(harness.tell(.pathChanged(.wifi)).first == .resolve(query: 1, .addresses("sip.example.com", .v6)))
    }

    @Test func `another mark or user needs another flow too`() {
        for change in [{ $0.mark = 7 }, { $0.user = 1000 }] as [(inout ConnectionPolicy) -> Void] {
            var policy = ConnectionPolicy.office
            change(&policy)
            var harness = Harness.ready()
            let actions = harness.tell(.policyChanged(policy))
            #expect(actions.first == .closeSocket(epoch: 1, .superseded, .dropped))
            #expect(actions.dropFirst().first == .observePath(policy.target))
        }
    }

    @Test func `another keepalive is set on the flow that stands`() {
        var policy = ConnectionPolicy.office
        policy.keepalive = KeepalivePolicy(idle: .seconds(30), interval: .seconds(5), count: 2)
        var harness = Harness.ready()
        let actions = harness.tell(.policyChanged(policy))
        #expect(
            actions == [
                .configureSocket(
                    epoch: 1, SocketOptions(keepalive: policy.keepalive, userTimeout: .seconds(40))),
                harness.event(.policyChanged, from: .ready, because: .policyChanged),
            ])
        #expect(harness.status.state == .ready)
    }

    @Test func `a flow whose dial began under another policy is set up by the new one`() {
        var harness = Harness(.named)
        harness.tell(all: .opened, .pathChanged(.wifi))
        harness.answer([.office, .second])
        var policy = ConnectionPolicy.named
        policy.keepalive = KeepalivePolicy(idle: .seconds(30), interval: .seconds(5), count: 2)
        #expect(harness.tell(.policyChanged(policy)).first == .configureSocket(epoch: 1, policy.socketOptions))
        // The second address is dialled by what the dial began with.
        #expect(harness.tell(.dialFailed(epoch: 1, .refused)).contains(.openSocket(.second(epoch: 2))))
        let actions = harness.tell(.dialSucceeded(epoch: 2, local: .local, remote: .second))
        #expect(actions.contains(.configureSocket(epoch: 2, policy.socketOptions)))
    }

    @Test func `a shorter backoff shortens the wait that runs`() {
        var harness = Harness.refused(ConnectionPolicy(remote: .of("sip://192.0.2.7")))
        #expect(harness.status.nextAttempt == harness.now + .seconds(45))
        var policy = harness.machine.policy
        policy.backoff = BackoffPolicy(base: .seconds(10), multiplier: 2, ceiling: .seconds(60), jitter: .half)
        let actions = harness.tell(.policyChanged(policy))
        #expect(
            actions == [
                .scheduleTimer(.retry, deadline: harness.now + .seconds(15)),
                harness.event(.policyChanged, from: .backingOff, because: .policyChanged),
            ])
        #expect(harness.status.nextAttempt == harness.now + .seconds(15))
    }

    @Test func `a longer backoff leaves it`() {
        var policy = ConnectionPolicy.office
        policy.backoff = .sip
        var harness = Harness.refused()
        let deadline = harness.status.nextAttempt
        let actions = harness.tell(.policyChanged(policy))
        #expect(actions == [harness.event(.policyChanged, from: .backingOff, because: .policyChanged)])
        #expect(harness.status.nextAttempt == deadline)
    }
}
