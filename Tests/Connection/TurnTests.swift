// SPDX-License-Identifier: Apache-2.0

import DialtoneNetworkPath
import Testing

@testable import DialtoneConnection

/// A connection whose user's budget is used up waits for its turn to dial.
@Suite struct TurnTests {
    @Test func `without a turn nothing is dialled`() {
        var harness = Harness("tcp://sip.example.com:5060")
        harness.dialsFrom = harness.now + .seconds(7)
        harness.tell(.opened)
        let actions = harness.tell(.pathChanged(.wifi))
        #expect(actions.first == .scheduleTimer(.retry, deadline: harness.dialsFrom))
        #expect(actions.count == 2, "and the event: \(actions)")
        #expect(harness.status.state == .backingOff)
        #expect(harness.status.reason.description == "waits its turn: this user dials too often at the moment")
        #expect(harness.status.nextAttempt == harness.dialsFrom)
        #expect(harness.machine.awaitedTurn == harness.dialsFrom)
        #expect(harness.status.attempt == 1, "that is no failure")
        harness.tell(.timerFired(.retry), after: .seconds(7))
        #expect(harness.status.state == .resolving)
        #expect(harness.machine.awaitedTurn == nil)
    }

    @Test func `a redial is no way round it`() {
        var harness = Harness()
        harness.dialsFrom = harness.now + .seconds(7)
        harness.tell(all: .opened, .pathChanged(.wifi))
        for _ in 0..<5 {
            harness.tell(.redialRequested(), after: .seconds(1))
            #expect(harness.status.reason == .awaitsTurn)
            #expect(harness.status.nextAttempt == harness.dialsFrom)
        }
        harness.tell(.timerFired(.retry), after: .seconds(2))
        #expect(harness.status.state == .connecting)
    }

    @Test func `what may not be tried is a failure with that reason`() {
        var harness = Harness()
        harness.tell(all: .opened, .pathChanged(.wifi))
        harness.tell(.dialFailed(epoch: 1, .heldBack(.byServer)), after: .seconds(40))
        #expect(harness.status.state == .backingOff)
        #expect(
            harness.status.reason.description
                == "192.0.2.7:5060: not tried, too many dials of this user to this server at the moment")
        harness = Harness("tcp://sip.example.com:5060")
        harness.tell(all: .opened, .pathChanged(.wifi))
        harness.tell(.resolutionFailed(query: 1, .heldBack), after: .seconds(40))
        harness.tell(.resolutionFailed(query: 2, .temporary))
        #expect(harness.status.reason == .resolutionFailed(.heldBack))
        #expect(harness.status.reason.description.hasSuffix("too many DNS questions of this user at the moment"))
    }
}
