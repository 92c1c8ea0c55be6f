// SPDX-License-Identifier: Apache-2.0

import DialtoneNetworkPath
import Testing

@testable import DialtoneConnection

/// A server that ends each socket at the same age.
@Suite struct RepeatedEndingTests {
    /// Has the server end one flow after the other at these ages, in seconds, and gives for each what is told of it and
    /// the number of the next attempt.
    private func play(
        _ ages: [Int], to remote: String = "mqtt://192.0.2.7:1883", by failure: FlowFailure? = nil,
        _ during: (inout Harness, UInt64) -> Void = { _, _ in }
    ) -> [(reason: StatusReason, attempt: Int, wait: Duration)] {
        var harness = Harness(remote)
        harness.tell(all: .opened, .pathChanged(.wifi))
        var seen: [(reason: StatusReason, attempt: Int, wait: Duration)] = []
        for age in ages {
            let epoch = harness.machine.numbers.epoch
            harness.tell(.dialSucceeded(epoch: epoch, local: .local, remote: .office))
            during(&harness, epoch)
            harness.tell(
                failure.map { .flowFailed(epoch: epoch, $0) } ?? .remoteClosed(epoch: epoch), after: .seconds(age))
            let status = harness.status
            let wait = (status.nextAttempt ?? harness.now) - harness.now
            seen.append((status.reason, status.attempt, wait))
            harness.tell(.timerFired(.retry), after: wait)
        }
        return seen
    }

    @Test func `such a socket counts as failed from the second on, and the wait grows`() {
        let seen = play([90, 91, 89, 92, 90])
        #expect(seen.map(\.attempt) == [1, 2, 3, 4, 5], "\(seen)")
        #expect(zip(seen, seen.dropFirst()).allSatisfy { $0.wait < $1.wait }, "\(seen)")
        #expect(seen[0].reason == .remoteClosed)
        let last = RepeatedEnding.Report(times: 5, age: .seconds(90), isReset: false, lacksLogin: true)
        #expect(seen[4].reason == .endedAgain(last))
        #expect(
            "\(seen[4].reason)"
                == "closed by the server 5 times in a row, each time after about 1 m 30 s, not logged in")
        #expect(seen[4].reason.cause == .closedByRemote)
        #expect(seen[4].reason.advice?.contains("opening") == true)
    }

    @Test func `a reset is an ending too, and is told as one`() {
        let seen = play([90, 90], by: .reset)
        #expect(seen[1].attempt == 2)
        #expect(seen[1].reason.cause == .reset)
        #expect("\(seen[1].reason)".hasPrefix("reset by the server 2 times"))
    }

    @Test(arguments: [
        // Other ages: a server that restarts now and then.
        [90, 300, 90, 300],
        // As old as sockets become that servers end for being old.
        [601, 601, 601],
        [70, 78, 86, 95],
    ])
    func `sockets that lasted, each another time or long, do not`(ages: [Int]) {
        let seen = play(ages)
        #expect(seen.allSatisfy { $0.attempt == 1 && $0.reason == .remoteClosed }, "\(seen)")
    }

    @Test func `one that lasts longer ends the row`() {
        let seen = play([90, 90, 200, 90, 90])
        #expect(seen.map(\.attempt) == [1, 2, 1, 1, 2], "\(seen)")
    }

    @Test func `where a client is logged in it is told, and the wait does not grow`() {
        let seen = play([90, 90, 90]) { harness, epoch in
            harness.tell(all: .taken(epoch: epoch, by: .unknown), .parked(epoch: epoch))
        }
        #expect(seen.map(\.attempt) == [1, 1, 1], "\(seen)")
        let last = RepeatedEnding.Report(times: 3, age: .seconds(90), isReset: false, lacksLogin: false)
        #expect(seen[2].reason == .endedAgain(last))
        #expect(seen[2].reason.advice == nil)
    }

    @Test func `an end of the line's own begins anew`() {
        var harness = Harness("mqtt://192.0.2.7:1883")
        harness.tell(all: .opened, .pathChanged(.wifi))
        for ending in [nil, FlowFailure.timedOut, nil] {
            let epoch = harness.machine.numbers.epoch
            harness.tell(.dialSucceeded(epoch: epoch, local: .local, remote: .office))
            harness.tell(
                ending.map { .flowFailed(epoch: epoch, $0) } ?? .remoteClosed(epoch: epoch), after: .seconds(90))
            harness.tell(.timerFired(.retry), after: .seconds(30))
        }
        #expect(harness.status.attempt == 1)
    }

    @Test(arguments: [("tcp://192.0.2.7:1883", false), ("mqtt://192.0.2.7", true), ("sip://192.0.2.7", true)])
    func `a socket on which nobody is logged in shows as such where the protocol has a login`(
        remote: String, lacks: Bool
    ) {
        var harness = Harness(remote)
        harness.tell(all: .opened, .pathChanged(.wifi), .dialSucceeded(epoch: 1, local: .local, remote: .office))
        #expect(harness.status.lacksLogin == lacks)
        harness.tell(.taken(epoch: 1, by: .unknown))
        #expect(!harness.status.lacksLogin, "what a client does on it nobody knows")
    }

    @Test func `it is down since its last socket ended, through all attempts`() {
        var harness = Harness.ready()
        let upSince = harness.status.turnedAt
        harness.tell(.pathChanged(.gatewayMoved), after: .seconds(100))
        #expect(harness.status.turnedAt == upSince, "\(harness.status.state)")
        harness.tell(.remoteClosed(epoch: 1), after: .seconds(20))
        let downSince = harness.now
        for _ in 0..<3 {
            harness.tell(.timerFired(.retry), after: .seconds(200))
            harness.tell(.dialFailed(epoch: harness.machine.numbers.epoch, .refused), after: .seconds(1))
            #expect(harness.status.turnedAt == downSince)
            #expect(harness.status.since == harness.now)
        }
        harness.tell(.timerFired(.retry), after: .seconds(200))
        harness.tell(.dialSucceeded(epoch: harness.machine.numbers.epoch, local: .local, remote: .office))
        #expect(harness.status.turnedAt == harness.now)
    }

    @Test func `one that is up when the agent starts is up since it came up, whichever socket it has now`() {
        for upSince in [nil, Duration.seconds(-90_000)] {
            var harness = Harness()
            let connectedAt = harness.now - .seconds(5000)
            let past = Adoption.Past(connectedAt: connectedAt, since: harness.now - .seconds(9), upSince: upSince)
            harness.tell(
                .adopted(Adoption(epoch: 7, local: .local, remote: .office, ownership: .parked, past: past)))
            #expect(harness.status.turnedAt == upSince ?? connectedAt)
            #expect(harness.machine.adoption?.past?.upSince == upSince ?? connectedAt, "and in the next run, too")
        }
    }
}
