// SPDX-License-Identifier: Apache-2.0

import DialtoneNetworkPath
import Testing

@testable import DialtoneConnection

@Suite struct DiallingTests {
    @Test func `both families of a name are asked for first`() {
        var harness = Harness(.named)
        harness.tell(.opened)
        let actions = harness.tell(.pathChanged(.wifi))
        #expect(
            actions == [
                .resolve(query: 1, .addresses("sip.example.com", .v6)),
                .resolve(query: 2, .addresses("sip.example.com", .v4)),
                .scheduleTimer(.dial, deadline: harness.now + .seconds(15)),
                harness.event(from: .waiting),
            ])
        #expect(harness.status.state == .resolving)
    }

    @Test func `the best address is connected to from its own source`() {
        var harness = Harness(.named)
        harness.tell(all: .opened, .pathChanged(.wifi))
        let actions = harness.answer([.office, .second], after: .milliseconds(20))
        #expect(
            actions == [
                .openSocket(.office(epoch: 1, policy: .named)),
                .scheduleTimer(.dial, deadline: harness.now + .milliseconds(250)),
                harness.event(from: .resolving, after: .milliseconds(20)),
            ])
    }

    @Test func `an answer for IPv4 waits a moment for IPv6`() {
        var harness = Harness(.named)
        harness.tell(all: .opened, .pathChanged(.wifi))
        let office = NameAnswer.addresses([.init(overWifi: .office)])
        let actions = harness.tell(.resolved(query: 2, office))
        #expect(actions == [.scheduleTimer(.dial, deadline: harness.now + .milliseconds(50))])
        let later = harness.tell(.timerFired(.dial), after: .milliseconds(50))
        #expect(later.first == .openSocket(.office(epoch: 1, policy: .named)))
    }

    @Test func `another address is tried beside one that takes its time`() {
        var harness = Harness(.named)
        harness.tell(all: .opened, .pathChanged(.wifi))
        harness.answer([.office, .second])
        let actions = harness.tell(.timerFired(.dial), after: .milliseconds(250))
        #expect(
            actions == [
                .openSocket(.second(epoch: 2)),
                .scheduleTimer(.dial, deadline: harness.now + .milliseconds(9750)),
                harness.event(.attemptBegan, from: .connecting, after: .milliseconds(250)),
            ])
        #expect(harness.status.remoteAddress == .second)
        // The first one was the faster after all.
        let won = harness.tell(.dialSucceeded(epoch: 1, local: .local, remote: .office), after: .milliseconds(5))
        #expect(
            won == [
                .cancelTimer(.dial), .closeSocket(epoch: 2, .outrun, .dropped), .watchInput(epoch: 1, true),
                harness.event(from: .connecting, after: .milliseconds(255)),
            ])
        #expect(harness.status.epoch == 1)
    }

    @Test func `no other address is tried beside a handshake`() {
        var harness = Harness(ConnectionPolicy(remote: .of("tls://sip.example.com:5060")))
        harness.tell(all: .opened, .pathChanged(.wifi))
        harness.answer([.office, .second])
        harness.tell(.handshakeBegan(epoch: 1, local: .local), after: .milliseconds(200))
        #expect(harness.tell(.timerFired(.dial), after: .milliseconds(50)).map(\.isScheduling) == [true])
        #expect(harness.status.epoch == 1)
    }

    @Test func `every dial resolves anew`() {
        var harness = Harness(.named)
        harness.tell(all: .opened, .pathChanged(.wifi))
        harness.answer([.office])
        harness.tell(all: .dialFailed(epoch: 1, .refused))
        let actions = harness.tell(.timerFired(.retry), after: .seconds(10))
        #expect(actions.first == .resolve(query: 3, .addresses("sip.example.com", .v6)))
    }

    @Test func `success cancels the deadline and leaves no timer`() {
        var harness = Harness()
        harness.tell(all: .opened, .pathChanged(.wifi))
        let actions = harness.tell(
            .dialSucceeded(epoch: 1, local: .local, remote: .office), after: .milliseconds(75))
        #expect(
            actions == [
                .cancelTimer(.dial), .watchInput(epoch: 1, true),
                harness.event(from: .connecting, after: .milliseconds(75)),
            ])
        #expect(
            harness.status
                == ConnectionStatus(
                    state: .ready, reason: .connected, epoch: 1, since: harness.now, localAddress: .local,
                    remoteAddress: .office, interface: "wlan0", path: .wifi, lastProof: harness.now, ownership: .new))
    }

    @Test func `the next address is tried at once and the failure not counted`() {
        var harness = Harness(.named)
        harness.tell(all: .opened, .pathChanged(.wifi))
        harness.answer([.office, .second])
        let actions = harness.tell(.dialFailed(epoch: 1, .refused), after: .milliseconds(100))
        #expect(
            actions == [
                .closeSocket(epoch: 1, .dialFailed, .dropped),
                .openSocket(.second(epoch: 2)),
                .scheduleTimer(.dial, deadline: harness.now + .seconds(10)),
                harness.event(
                    .addressFailed, from: .connecting, after: .milliseconds(100),
                    because: .dialFailed(.refused, .office)),
            ])
        #expect(harness.status.attempt == 1)
        #expect(harness.status.remoteAddress == .second)
    }

    @Test func `the dial fails once after its last address`() {
        var harness = Harness(.named)
        harness.tell(all: .opened, .pathChanged(.wifi))
        harness.answer([.office, .sixth])
        harness.tell(.timerFired(.dial), after: .milliseconds(250))
        harness.tell(.dialFailed(epoch: 2, .refused))
        let actions = harness.tell(.dialFailed(epoch: 1, .networkUnreachable))
        #expect(
            actions == [
                .closeSocket(epoch: 1, .dialFailed, .dropped), .cancelTimer(.dial),
                .scheduleTimer(.retry, deadline: harness.now + .milliseconds(800)),
                harness.event(from: .connecting, after: .milliseconds(250)),
            ])
        #expect(harness.status.attempt == 2)
        // The remote's own word is kept over this network's lack of IPv6.
        #expect(harness.status.reason.description == "refused by 192.0.2.7:5060")
    }

    @Test func `an address that does not answer is given up at its deadline`() {
        var harness = Harness()
        harness.tell(all: .opened, .pathChanged(.wifi))
        let actions = harness.tell(.timerFired(.dial), after: .seconds(10))
        #expect(
            actions == [
                .closeSocket(epoch: 1, .timedOut, .dropped),
                .scheduleTimer(.retry, deadline: harness.now + .milliseconds(800)),
                harness.event(from: .connecting, after: .seconds(10)),
            ])
        #expect(harness.status.reason == .dialFailed(.timedOut, .office))
    }

    @Test func `a resolver that does not answer is given up at its deadline`() {
        var harness = Harness(.named)
        harness.tell(all: .opened, .pathChanged(.wifi))
        let actions = harness.tell(.timerFired(.dial), after: .seconds(15))
        #expect(actions.prefix(2) == [.cancelResolution(query: 1), .cancelResolution(query: 2)])
        #expect(harness.status.reason == .resolutionFailed(.temporary))
    }

    @Test func `a timer that is told early is scheduled anew`() {
        var harness = Harness()
        harness.tell(all: .opened, .pathChanged(.wifi))
        let deadline = harness.now + .seconds(10)
        #expect(
            harness.tell(.timerFired(.dial), after: .seconds(9)) == [.scheduleTimer(.dial, deadline: deadline)])
    }

    @Test func `a long answer is not tried to its end`() {
        var harness = Harness(.named)
        harness.tell(all: .opened, .pathChanged(.wifi))
        harness.answer((1...20).map { IPAddress(v4: 0xC633_6400 + $0) })
        for epoch in 1...8 { harness.tell(.dialFailed(epoch: UInt64(epoch), .refused)) }
        #expect(harness.status.state == .backingOff)
    }

    @Test func `an empty answer is a name without an address`() {
        var harness = Harness(.named)
        harness.tell(all: .opened, .pathChanged(.wifi))
        harness.answer([])
        #expect(harness.status.state == .failed)
        #expect(harness.status.reason == .resolutionFailed(.noAddress))
    }
}

extension ConnectionAction {
    fileprivate var isScheduling: Bool { if case .scheduleTimer = self { true } else { false } }
}

@Suite struct StaleInputTests {
    @Test(arguments: [
        ConnectionInput.dialSucceeded(epoch: 1, local: .local, remote: .office),
        .dialFailed(epoch: 1, .refused),
        .remoteClosed(epoch: 1),
        .flowFailed(epoch: 1, .reset),
        .resolved(query: 1, .addresses([.init(overWifi: .office)])),
        .resolutionFailed(query: 1, .noSuchName),
    ])
    func `word of an earlier epoch or query is ignored`(input: ConnectionInput) {
        var harness = Harness.ready()
        harness.tell(.redialRequested())
        #expect(harness.tell(input) == [])
        harness.tell(.dialSucceeded(epoch: 2, local: .local, remote: .office))
        #expect(harness.tell(input) == [])
        #expect(harness.status.state == .ready)

        var named = Harness(.named)
        named.tell(all: .opened, .pathChanged(.wifi), .redialRequested())
        #expect(named.tell(input) == [])
        #expect(named.status.state == .resolving)
    }

    @Test(arguments: ConnectionTimer.allCases)
    func `a timer of another state is ignored`(timer: ConnectionTimer) {
        var ready = Harness.ready()
        #expect(ready.tell(.timerFired(timer), after: .seconds(10_000)) == [])
        var waiting = Harness()
        waiting.tell(all: .opened, .pathChanged(.none))
        #expect(waiting.tell(.timerFired(timer), after: .seconds(10_000)) == [])
    }

    @Test func `a connected flow is not ended by word of its dial`() {
        var harness = Harness.ready()
        #expect(harness.tell(.dialFailed(epoch: 1, .refused)) == [])
        #expect(harness.tell(.dialSucceeded(epoch: 1, local: .local, remote: .office)) == [])
    }
}
