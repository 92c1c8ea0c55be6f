// SPDX-License-Identifier: Apache-2.0

import DialtoneNetworkPath
import Testing

@testable import DialtoneConnection

@Suite struct BackoffTests {
    @Test func `the first retry after the remote's close is jittered too`() {
        var harness = Harness.ready()
        let actions = harness.tell(.remoteClosed(epoch: 1), after: .seconds(600))
        #expect(
            actions == [
                .closeSocket(epoch: 1, .remoteClosed, .keptAsRefusal),
                .scheduleTimer(.retry, deadline: harness.now + .seconds(5)),
                harness.event(from: .ready, after: .seconds(600)),
            ])
        #expect(harness.status.nextAttempt == harness.now + .seconds(5))
        #expect(harness.status.attempt == 1)
    }

    @Test func `a broken flow backs off in the same way`() {
        var harness = Harness.ready()
        let actions = harness.tell(.flowFailed(epoch: 1, .reset), after: .seconds(600))
        #expect(
            actions == [
                .closeSocket(epoch: 1, .failed, .keptAsRefusal),
                .scheduleTimer(.retry, deadline: harness.now + .seconds(5)),
                harness.event(from: .ready, after: .seconds(600)),
            ])
        #expect(harness.status.reason.description == "reset by the server")
    }

    @Test func `the end of what has the keys is no failure of the server's`() {
        var harness = Harness.ready()
        harness.tell(.flowFailed(epoch: 1, .securingEnded), after: .seconds(1))
        #expect((harness.status.state, harness.status.attempt) == (.connecting, 1))
        // In the handshake, and under a flow again: what the server sends may be the cause.
        harness.tell(.dialFailed(epoch: 2, .securingEnded))
        #expect(harness.status.nextAttempt == harness.now + .seconds(1.5))
        harness.tell(.timerFired(.retry), after: .seconds(1.5))
        harness.tell(.dialSucceeded(epoch: 3, local: .local, remote: .office))
        harness.tell(.flowFailed(epoch: 3, .securingEnded), after: .seconds(27.9))
        #expect(harness.status.nextAttempt == harness.now + .seconds(1.5))
        #expect(harness.status.attempt == 1)
        harness.tell(.timerFired(.retry), after: .seconds(1.5))
        harness.tell(.dialSucceeded(epoch: 4, local: .local, remote: .office))
        harness.tell(.flowFailed(epoch: 4, .securingEnded), after: .seconds(30))
        #expect((harness.status.state, harness.status.attempt) == (.connecting, 1))
    }

    @Test func `each failure counts once up to the ceiling`() {
        var harness = Harness()
        harness.random.fraction = 0.999_999_999
        harness.tell(all: .opened, .pathChanged(.wifi))
        var waits: [Int64] = []
        for epoch in 1...14 {
            harness.tell(.dialFailed(epoch: UInt64(epoch), .timedOut))
            guard let next = harness.status.nextAttempt else { break }
            waits.append(Int64(((next - harness.now) / .milliseconds(100)).rounded()))
            harness.tell(.timerFired(.retry), after: next - harness.now)
        }
        // 1 s × 1.6ⁿ in tenths of a second, n from 1.
        #expect(waits == [16, 26, 41, 66, 105, 168, 268, 429, 687, 1100, 1200, 1200, 1200, 1200])
    }

    @Test func `a server that accepts and kicks is dialled ever more rarely`() {
        var harness = Harness.ready()
        for attempt in 2...6 {
            let epoch = UInt64(attempt - 1)
            harness.tell(.remoteClosed(epoch: epoch), after: .seconds(1))
            #expect(harness.status.attempt == attempt)
            harness.tell(.timerFired(.retry), after: .seconds(120))
            harness.tell(.dialSucceeded(epoch: epoch + 1, local: .local, remote: .office))
        }
    }

    @Test func `the backoff starts over after a stable while`() {
        for (lasted, attempt) in [(Duration.seconds(60), 1), (.seconds(59.999), 3)] {
            var harness = Harness.refused()
            harness.tell(.timerFired(.retry), after: .seconds(2))
            harness.tell(.dialSucceeded(epoch: 2, local: .local, remote: .office))
            #expect(harness.status.attempt == 2)
            harness.tell(.remoteClosed(epoch: 2), after: lasted)
            #expect(harness.status.attempt == attempt)
        }
    }

    @Test func `sip waits by its own RFC`() {
        var harness = Harness("sip://192.0.2.7")
        harness.random.fraction = 0
        harness.tell(all: .opened, .pathChanged(.wifi))
        var waits: [Duration] = []
        for epoch in 1...7 {
            harness.tell(.dialFailed(epoch: UInt64(epoch), .timedOut))
            guard let next = harness.status.nextAttempt else { break }
            waits.append(next - harness.now)
            harness.tell(.timerFired(.retry), after: next - harness.now)
        }
        #expect(waits == [30, 60, 120, 240, 480, 900, 900].map { .seconds($0) })
    }

    @Test func `the wait after the end of a stable flow is spread further than the base`() {
        #expect(BackoffPolicy.general.range(afterFailures: 0) == .zero...(.seconds(10)))
        #expect(BackoffPolicy.general.range(afterFailures: 1) == .zero...(.seconds(1) * 1.6))
        #expect(BackoffPolicy.sip.range(afterFailures: 0) == .seconds(15)...(.seconds(30)))
        let slow = BackoffPolicy(
            base: .seconds(60), multiplier: 2, ceiling: .seconds(90), jitter: .half, spread: .seconds(200))
        #expect(slow.range(afterFailures: 0) == .seconds(45)...(.seconds(90)))
    }

    @Test func `a flapping path is dialled at once and yet no storm`() {
        var harness = Harness()
        harness.tell(.opened)
        var dials = 0
        for _ in 0..<600 {
            harness.now += .milliseconds(100)
            harness.tell(.pathChanged(.wifi))
            if harness.status.state == .connecting { dials += 1 }
            harness.tell(.pathChanged(.none))
        }
        // Ten at once, then one in two seconds, for a minute.
        #expect(dials == 10 + 29)
        harness.tell(.pathChanged(.wifi))
        #expect(harness.status.reason == .dialledTooOften)
        let next = harness.status.nextAttempt ?? .zero
        #expect(next - harness.now <= .seconds(2))
        harness.tell(.timerFired(.retry), after: next - harness.now)
        #expect(harness.status.state == .connecting)
    }
}

extension BackoffTests {
    @Test func `a wait that the budget would prolong is prolonged at once`() {
        var harness = Harness()
        harness.tell(all: .opened, .pathChanged(.wifi))
        for _ in 0..<9 { harness.tell(.redialRequested()) }
        let actions = harness.tell(.dialFailed(epoch: 10, .refused))
        #expect(actions.dropFirst(2).first == .scheduleTimer(.retry, deadline: harness.now + .seconds(2)))
        #expect(harness.status.reason == .dialFailed(.refused, .office))
        harness.tell(.timerFired(.retry), after: .seconds(2))
        #expect(harness.status.state == .connecting)
    }
}

@Suite struct SettlingTests {
    @Test func `a name server that fails while the network settles is asked again in seconds`() {
        var harness = Harness("sip://sip.example.com:5060")
        harness.tell(all: .opened, .pathChanged(.wifi))
        harness.tell(.resolutionFailed(query: 1, .temporary), after: .seconds(2))
        let actions = harness.tell(.resolutionFailed(query: 2, .temporary))
        #expect(
            actions == [
                .cancelTimer(.dial),
                .scheduleTimer(.retry, deadline: harness.now + .milliseconds(1500)),
                harness.event(from: .resolving, after: .seconds(2)),
            ])
        #expect(harness.status.attempt == 1)
    }

    @Test func `later it is asked by the backoff`() {
        var harness = Harness("sip://sip.example.com:5060")
        harness.tell(all: .opened, .pathChanged(.wifi))
        harness.tell(.resolutionFailed(query: 1, .temporary), after: .seconds(30))
        #expect(harness.status.nextAttempt == harness.now + .seconds(45))
        #expect(harness.status.attempt == 2)
    }

    @Test(arguments: [FlowFailure.networkUnreachable, .addressNotAvailable, .hostUnreachable])
    func `a dial that never left this network is repeated in seconds too`(failure: FlowFailure) {
        var harness = Harness("sip://192.0.2.7")
        harness.tell(all: .opened, .pathChanged(.wifi))
        let actions = harness.tell(.dialFailed(epoch: 1, failure))
        #expect(actions.dropFirst(2).first == .scheduleTimer(.retry, deadline: harness.now + .milliseconds(1500)))
    }

    @Test func `what the remote said is not the network settling`() {
        var harness = Harness("sip://192.0.2.7")
        harness.tell(all: .opened, .pathChanged(.wifi))
        let actions = harness.tell(.dialFailed(epoch: 1, .refused))
        #expect(actions.dropFirst(2).first == .scheduleTimer(.retry, deadline: harness.now + .seconds(45)))
    }
}

@Suite struct PermanentFailureTests {
    @Test func `a name that is not there right after a sleep is asked for again in seconds`() {
        var harness = Harness(.named)
        harness.tell(all: .opened, .pathChanged(.wifi))
        harness.tell(.resumed, after: .seconds(1))
        harness.tell(all: .resolutionFailed(query: 3, .noSuchName), .resolutionFailed(query: 4, .noSuchName))
        #expect(harness.status.state == .backingOff)
        #expect(harness.status.attempt == 1)
    }

    @Test(arguments: [ResolutionFailure.noSuchName, .noAddress])
    func `a name that does not exist fails with advice and is retried slowly`(failure: ResolutionFailure) {
        var harness = Harness(.named)
        harness.tell(all: .opened, .pathChanged(.wifi))
        harness.tell(.resolutionFailed(query: 1, failure))
        let actions = harness.tell(.resolutionFailed(query: 2, failure))
        #expect(
            actions == [
                .cancelTimer(.dial),
                .scheduleTimer(.retry, deadline: harness.now + .seconds(1350)),
                harness.event(from: .resolving),
            ])
        #expect(harness.status.state == .failed)
        #expect(harness.status.reason.advice?.contains("30 minutes") == true)
        harness.tell(.timerFired(.retry), after: .seconds(1350))
        #expect(harness.status.state == .resolving)
    }

    @Test func `it is asked for again on every change of the path and on redial`() {
        var harness = Harness(.named)
        harness.tell(all: .opened, .pathChanged(.wifi))
        harness.tell(all: .resolutionFailed(query: 1, .noSuchName), .resolutionFailed(query: 2, .noSuchName))
        harness.tell(.pathChanged(.modem))
        #expect(harness.status.state == .resolving)
        // Not for good yet: the name server of a portal says the same, or one that a VPN is about to replace.
        harness.tell(all: .resolutionFailed(query: 3, .noSuchName), .resolutionFailed(query: 4, .noSuchName))
        #expect(harness.status.state == .backingOff)
        #expect(harness.status.nextAttempt == harness.now + .milliseconds(1500))
        harness.tell(.timerFired(.retry), after: .seconds(30))
        harness.tell(all: .resolutionFailed(query: 5, .noSuchName), .resolutionFailed(query: 6, .noSuchName))
        #expect(harness.status.state == .failed)
        harness.tell(.redialRequested())
        #expect(harness.status.state == .resolving)
    }

    @Test func `refused for an hour counts as permanent`() {
        var harness = Harness()
        harness.tell(all: .opened, .pathChanged(.wifi), .dialFailed(epoch: 1, .refused))
        var epoch: UInt64 = 1
        let began = harness.now
        while harness.status.state == .backingOff, epoch < 1000, let next = harness.status.nextAttempt {
            harness.tell(.timerFired(.retry), after: next - harness.now)
            epoch += 1
            harness.tell(.dialFailed(epoch: epoch, .refused))
        }
        #expect(harness.status.state == .failed)
        #expect((Duration.seconds(3600)...(.seconds(3720))).contains(harness.now - began))
        #expect(harness.status.reason.advice != nil)
        #expect(harness.status.nextAttempt == harness.now + .seconds(1350))
    }

    @Test func `any other answer in between starts the hour anew`() {
        var harness = Harness.refused()
        harness.tell(.timerFired(.retry), after: .seconds(1800))
        harness.tell(.dialFailed(epoch: 2, .timedOut))
        harness.tell(.timerFired(.retry), after: .seconds(1800))
        harness.tell(.dialFailed(epoch: 3, .refused))
        harness.tell(.timerFired(.retry), after: .seconds(1800))
        harness.tell(.dialFailed(epoch: 4, .refused))
        #expect(harness.status.state == .backingOff)
    }
}
