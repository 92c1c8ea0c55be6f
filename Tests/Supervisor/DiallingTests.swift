// SPDX-License-Identifier: Apache-2.0

import NetworkPath
import Testing

@testable import Supervisor

@Suite struct DiallingTests {
    @Test func aNameIsResolvedFirst() {
        var harness = Harness(.named)
        harness.tell(.opened)
        let actions = harness.tell(.pathChanged(.wifi))
        #expect(
            actions == [
                .resolve(query: 1, name: "sip.example.com"),
                .scheduleTimer(.resolution, deadline: harness.now + .seconds(15)),
                harness.event(from: .waiting),
            ])
        #expect(harness.status.state == .resolving)
    }

    @Test func itsFirstAddressIsConnectedTo() {
        var harness = Harness(.named)
        harness.tell(all: .opened, .pathChanged(.wifi))
        let actions = harness.tell(.dialResolved(query: 1, addresses: [.office, .second]), after: .milliseconds(20))
        #expect(
            actions == [
                .cancelTimer(.resolution),
                .openSocket(.office(epoch: 1, policy: .named)),
                .scheduleTimer(.connect, deadline: harness.now + .seconds(10)),
                harness.event(from: .resolving, after: .milliseconds(20)),
            ])
    }

    @Test func onlyTheAddressThatThePathWasFoundForIsBound() {
        var harness = Harness(.named)
        harness.tell(all: .opened, .pathChanged(.wifi))
        let actions = harness.tell(.dialResolved(query: 1, addresses: [.sixth]))
        #expect(
            actions.dropFirst().first
                == .openSocket(
                    FlowRequest(
                        epoch: 1, remote: .sixth, interfaceIndex: 3, options: ConnectionPolicy.named.socketOptions)))
    }

    @Test func everyDialResolvesAnew() {
        var harness = Harness(.named)
        harness.tell(all: .opened, .pathChanged(.wifi), .dialResolved(query: 1, addresses: [.office]))
        harness.tell(all: .dialFailed(epoch: 1, .refused))
        let actions = harness.tell(.timerFired(.retry), after: .seconds(10))
        #expect(actions.first == .resolve(query: 2, name: "sip.example.com"))
    }

    @Test func successCancelsTheDeadlineAndLeavesNoTimer() {
        var harness = Harness()
        harness.tell(all: .opened, .pathChanged(.wifi))
        let actions = harness.tell(
            .dialSucceeded(epoch: 1, local: .local, remote: .office), after: .milliseconds(75))
        #expect(
            actions == [.cancelTimer(.connect), harness.event(from: .connecting, after: .milliseconds(75))])
        #expect(
            harness.status
                == ConnectionStatus(
                    state: .ready, reason: .connected, epoch: 1, since: harness.now, localAddress: .local,
                    remoteAddress: .office, interface: "wlan0", path: .wifi, lastProof: harness.now))
    }

    @Test func theNextAddressIsTriedAtOnceAndTheFailureNotCounted() {
        var harness = Harness(.named)
        harness.tell(all: .opened, .pathChanged(.wifi), .dialResolved(query: 1, addresses: [.office, .second]))
        let actions = harness.tell(.dialFailed(epoch: 1, .refused), after: .seconds(1))
        #expect(
            actions == [
                .cancelTimer(.connect), .closeSocket(epoch: 1, .dialFailed),
                .openSocket(
                    FlowRequest(
                        epoch: 2, remote: .second, interfaceIndex: 3, options: ConnectionPolicy.named.socketOptions)),
                .scheduleTimer(.connect, deadline: harness.now + .seconds(10)),
                harness.event(
                    .addressFailed, from: .connecting, after: .seconds(1), because: .dialFailed(.refused, .office)),
            ])
        #expect(harness.status.attempt == 1)
        #expect(harness.status.remoteAddress == .second)
    }

    @Test func theDialFailsOnceAfterItsLastAddress() {
        var harness = Harness(.named)
        harness.tell(all: .opened, .pathChanged(.wifi), .dialResolved(query: 1, addresses: [.office, .sixth]))
        harness.tell(.dialFailed(epoch: 1, .refused))
        let actions = harness.tell(.dialFailed(epoch: 2, .networkUnreachable))
        #expect(
            actions == [
                .cancelTimer(.connect), .closeSocket(epoch: 2, .dialFailed),
                .scheduleTimer(.retry, deadline: harness.now + .milliseconds(800)),
                harness.event(from: .connecting),
            ])
        #expect(harness.status.attempt == 2)
        // The remote's own word is kept over this network's lack of IPv6.
        #expect(harness.status.reason.description == "refused by 192.0.2.7:5060")
    }

    @Test func anAddressThatDoesNotAnswerIsGivenUpAtItsDeadline() {
        var harness = Harness()
        harness.tell(all: .opened, .pathChanged(.wifi))
        let actions = harness.tell(.timerFired(.connect), after: .seconds(10))
        #expect(
            actions == [
                .closeSocket(epoch: 1, .timedOut),
                .scheduleTimer(.retry, deadline: harness.now + .milliseconds(800)),
                harness.event(from: .connecting, after: .seconds(10)),
            ])
        #expect(harness.status.reason == .dialFailed(.timedOut, .office))
    }

    @Test func aResolverThatDoesNotAnswerIsGivenUpAtItsDeadline() {
        var harness = Harness(.named)
        harness.tell(all: .opened, .pathChanged(.wifi))
        let actions = harness.tell(.timerFired(.resolution), after: .seconds(15))
        #expect(actions.first == .cancelResolution(query: 1))
        #expect(harness.status.reason == .resolutionFailed(.temporary))
    }

    @Test func aTimerThatIsToldEarlyIsScheduledAnew() {
        var harness = Harness()
        harness.tell(all: .opened, .pathChanged(.wifi))
        let deadline = harness.now + .seconds(10)
        #expect(
            harness.tell(.timerFired(.connect), after: .seconds(9)) == [
                .scheduleTimer(.connect, deadline: deadline)
            ])
    }

    @Test func aLongAnswerIsNotWalkedToItsEnd() {
        var harness = Harness(.named)
        let many = (1...20).map { IPAddress(v4: 0xC633_6400 + $0) }
        harness.tell(all: .opened, .pathChanged(.wifi), .dialResolved(query: 1, addresses: many))
        for epoch in 1...8 { harness.tell(.dialFailed(epoch: UInt64(epoch), .refused)) }
        #expect(harness.status.state == .backingOff)
    }

    @Test func anEmptyAnswerIsANameWithoutAnAddress() {
        var harness = Harness(.named)
        harness.tell(all: .opened, .pathChanged(.wifi), .dialResolved(query: 1, addresses: []))
        #expect(harness.status.state == .failed)
        #expect(harness.status.reason == .resolutionFailed(.noAddress))
    }
}

@Suite struct StaleInputTests {
    @Test(arguments: [
        ConnectionInput.dialSucceeded(epoch: 1, local: .local, remote: .office),
        .dialFailed(epoch: 1, .refused),
        .remoteClosed(epoch: 1),
        .flowFailed(epoch: 1, .reset),
        .dialResolved(query: 1, addresses: [.office]),
        .resolutionFailed(query: 1, .noSuchName),
    ])
    func wordOfAnEarlierEpochOrQueryIsIgnored(input: ConnectionInput) {
        var harness = Harness.ready()
        harness.tell(.redialRequested)
        #expect(harness.tell(input) == [])
        harness.tell(.dialSucceeded(epoch: 2, local: .local, remote: .office))
        #expect(harness.tell(input) == [])
        #expect(harness.status.state == .ready)

        var named = Harness(.named)
        named.tell(all: .opened, .pathChanged(.wifi), .redialRequested)
        #expect(named.tell(input) == [])
        #expect(named.status.state == .resolving)
    }

    @Test(arguments: ConnectionTimer.allCases)
    func aTimerOfAnotherStateIsIgnored(timer: ConnectionTimer) {
        var ready = Harness.ready()
        #expect(ready.tell(.timerFired(timer), after: .seconds(10_000)) == [])
        var waiting = Harness()
        waiting.tell(all: .opened, .pathChanged(.none))
        #expect(waiting.tell(.timerFired(timer), after: .seconds(10_000)) == [])
    }

    @Test func aConnectedFlowIsNotEndedByWordOfItsDial() {
        var harness = Harness.ready()
        #expect(harness.tell(.dialFailed(epoch: 1, .refused)) == [])
        #expect(harness.tell(.dialSucceeded(epoch: 1, local: .local, remote: .office)) == [])
    }
}
