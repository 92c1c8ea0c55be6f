// SPDX-License-Identifier: Apache-2.0

import DialtoneExpectations
import Testing

@testable import DialtoneConnection

/// What cannot be is ignored and told; what only comes late is ignored.
@Suite struct ObjectionTests {
    @Test(arguments: [
        (ConnectionInput.arrived(epoch: 2), "arrived: flow 2, after 1"),
        (.remoteClosed(epoch: .max), "remoteClosed: flow 18446744073709551615, after 1"),
        (.resolutionFailed(query: 1, .temporary), "resolutionFailed: query 1, after 0"),
        (.opened, "opened: it has begun already"),
        (.reopened(epoch: 7, .withoutFlow), "reopened: it has begun already"),
    ])
    func `what never was is objected to`(input: ConnectionInput, objection: String) {
        var harness = ConnectionHarness.ready()
        let before = harness.connection.status
        #expect(harness.tell(input) == [.objection(objection)])
        #expect(harness.connection.status == before)
    }

    @Test func `nothing comes before the beginning but answers that were left`() {
        let wakes = Wakes.Settings(policy: WakePolicy(), reasons: [], isTended: false, budget: .seconds(30))
        var connection = Connection(policy: .office, wakes: wakes, now: .seconds(1000))
        var random = FixedRandom()
        func tell(_ input: ConnectionInput, _ connection: inout Connection) -> [ConnectionEffect] {
            connection.process(input, now: .seconds(1000), facts: TestFacts(), using: &random)
        }
        #expect(tell(.resumed, &connection) == [.objection("resumed: it has not begun")])
        #expect(tell(.openingLeft(nil), &connection) == [.objection("openingLeft: it has not begun")])
        #expect(tell(.answersLeft(AnsweredMessages([])), &connection).isEmpty)
        #expect(!tell(.opened, &connection).isEmpty)
    }

    @Test func `what comes late is none`() {
        var harness = ConnectionHarness.ready()
        harness.tell(.redialRequested())
        harness.connect(2)
        #expect(harness.tell(.remoteClosed(epoch: 1)) == [])
        #expect(harness.tell(.timerFired(.proof)) == [])
        harness.tell(.closeRequested)
        #expect(harness.tell(.opened) == [])
    }

    @Test func `a flow that an earlier run left may be spoken of, whatever number that run counted to`() throws {
        var harness = OwnershipTests.restarted(OwnershipTests.ended()) { saved in
            (saved.standing, saved.newestEpoch) = (nil, 0)
            for index in saved.clientele.ended.indices { saved.clientele.ended[index].epoch = 50 }
        }
        harness.tell(.pathChanged(.wifi))
        expect(harness.connection.status.epoch, is: 51)
        #expect(harness.tell(.remoteClosed(epoch: 50)) == [])
    }
}
