// SPDX-License-Identifier: Apache-2.0

import DialtoneExpectations
import Testing

@testable import DialtoneConnection

// What another run of the agent goes on with.

extension OwnershipTests {
    /// A connection that goes on where another one is now.
    static func restarted(
        _ former: borrowing ConnectionHarness, launching: Bool = false,
        _ damage: (inout Connection.Saved) -> Void = { _ in }
    ) -> ConnectionHarness {
        var harness = ConnectionHarness(launching: launching)
        harness.connection = Connection(
            policy: former.connection.policy, wakes: former.connection.wakes.settings, now: former.now)
        (harness.now, harness.facts) = (former.now, former.facts)
        var saved = former.connection.saved(knowing: former.connection.processes)
        damage(&saved)
        let sockets = Set(saved.clientele.ended.map(\.epoch) + [saved.standing?.epoch].compactMap(\.self))
        harness.effects = harness.connection.restore(
            saved, with: sockets, now: harness.now, facts: harness.facts, using: &harness.random)
        return harness
    }

    @Test func `who has a socket has it after a restart`() throws {
        var harness = Self.ended()
        try harness.take(by: .first)
        try harness.take(by: .second)
        let next = Self.restarted(harness)
        #expect(next.connection.reader == .client(.second))
        #expect(next.connection.ownership.reader(of: 1) == .client(.first))
        let processes = harness.connection.processes
        expect(
            next.connection.saved(knowing: processes).clientele,
            is: harness.connection.saved(knowing: processes).clientele)
    }

    @Test func `what a reader that is gone had done is not forgotten, where the next run knows the reader`() {
        var harness = Self.ended()
        var effects: [ConnectionEffect] = []
        harness.connection.ownership.keep(7, left: (.program(.second), .untouched), &effects)
        let first = Clientele.EndedFlow(epoch: 1, reader: nil, left: nil)
        expect(
            harness.connection.saved(knowing: [.second]).clientele.ended,
            is: [first, .init(epoch: 7, reader: .program(.second), left: .untouched)])
        expect(
            harness.connection.saved(knowing: [.first]).clientele.ended,
            is: [first, .init(epoch: 7, reader: .unknown, left: nil)])
    }

    @Test func `a flow that was left in the middle of its opening is closed, and the next one is dialled`() {
        var policy = ConnectionPolicy.office
        policy.opening = Opening([.init(send: [1], answer: ExpectedAnswer(BytePattern([2])))])
        var harness = Self.restarted(ConnectionHarness.ready(policy))
        #expect(harness.effects.contains(.close(epoch: 1, aborting: false)), "\(harness.effects)")
        expect(harness.connection.status.reason, is: .restarted(.openingCut))
        harness.tell(.pathChanged(.wifi))
        expect(harness.connection.status.epoch, is: 2)
    }

    @Test func `what a client left for another server is not said after a restart either`() {
        var harness = ConnectionHarness.ready()
        _ = try? harness.take()
        let left = Opening([.init(send: [1], answer: ExpectedAnswer(BytePattern([2])))])
        harness.tell(.parked(epoch: 1, leaving: left, answering: AnsweredMessages([.websocket])))
        #expect(harness.connection.saved(knowing: []).opening == left)
        #expect(harness.connection.saved(knowing: []).answers != nil)
        harness.tell(.policyChanged(ConnectionPolicy(remote: .of("tcp://192.0.2.99:5060"))))
        #expect(harness.connection.saved(knowing: []).opening == nil)
        #expect(harness.connection.saved(knowing: []).answers == nil)
    }

    @Test func `after a restart the client is woken for bytes that were seen`() throws {
        var harness = ConnectionHarness.ready()
        harness.park(1)
        // A socket that does not answer in time may have bytes, too.
        harness.facts.unread[1] = 3
        var next = Self.restarted(harness)
        #expect(next.connection.wakes.standing == nil)
        next.tell(.arrived(epoch: 1))
        #expect(next.connection.wakes.standing?.reasons == [.data])
    }

    @Test func `a program goes on after a restart`() throws {
        var harness = try Self.launching()
        harness.tell(.launched(harness.attempt, .first))
        var next = Self.restarted(harness, launching: true)
        #expect(next.connection.reader == .program(.first))
        next.facts.touches[1] = .touched
        next.tell(.processEnded(.first, .exited(status: 0)))
        #expect(next.connection.status.ownership == .parked)
    }

    @Test func `attempts before a restart keep their numbers`() throws {
        var harness = ConnectionHarness.ready()
        harness.park(1)
        // The flow stands while another one is tried, in vain.
        harness.tell(.pathChanged(.modem))
        harness.tell(.dialFailed(epoch: 2, .refused))
        var next = Self.restarted(harness)
        let effects = next.tell(.pathChanged(.modem)) + next.tell(.redialRequested())
        let numbers = effects.compactMap { effect in
            if case .network(.openSocket(let request)) = effect { request.epoch } else { nil }
        }
        #expect(numbers.first == 3, "\(effects)")
    }
}
