// SPDX-License-Identifier: Apache-2.0

import DialtoneExpectations
import Testing

@testable import DialtoneConnection

/// The agent is killed while somebody else launches a program for it, which may run by now.
@Suite struct ContinuedLaunchTests {
    private static func restarted(_ former: borrowing ConnectionHarness) -> ConnectionHarness {
        OwnershipTests.restarted(former, launching: true)
    }

    @Test func `a launch that was cut by a restart is the first thing that is asked about after it`() throws {
        let harness = try OwnershipTests.launching()
        let attempt = harness.attempt
        var next = Self.restarted(harness)
        #expect(next.effects.finds == [attempt] && next.effects.launches.isEmpty, "\(next.effects)")
        expect(next.connection.reader, is: .launch(attempt), "nobody else takes the flow")
        expect(next.connection.wakes.standing?.reasons, is: [.data])
        next.tell(.launchFailed(attempt, nil))
        expect(next.connection.status.ownership, is: FlowOwnership(reader: nil, session: .unknown))
        let launches = next.tell(.attempted(attempt, .failed("there is none"))).launches
        #expect(launches.map(\.epoch) == [1] && launches.map(\.attempt.attempt) == [2], "\(launches)")
    }

    @Test func `a program that is found has the flow and has come`() throws {
        let harness = try OwnershipTests.launching()
        var next = Self.restarted(harness)
        let reports = next.tell(.launched(harness.attempt, .first)).reports
        expect(next.connection.reader, is: .program(.first))
        #expect(next.connection.wakes.standing == nil && next.connection.wakes.program == .first, "\(reports)")
        next.facts.touches[1] = .touched
        next.tell(.processEnded(.first, .exited(status: 0)))
        expect(next.connection.status.ownership, is: .parked)
    }

    @Test func `the flow is nobody else's although somebody acknowledged the wake`() throws {
        var harness = try OwnershipTests.launching()
        harness.tell(.acknowledged(wake: harness.attempt.wake))
        var next = Self.restarted(harness)
        expect(next.effects.finds, is: [harness.attempt])
        expect(next.connection.wakes.standing, is: nil)
        expect(next.connection.reader, is: .launch(harness.attempt))
        #expect(throws: TakeRefusal.heldByClient(nil)) { try next.take(by: .second) }
        next.tell(.launchFailed(harness.attempt, nil))
        expect(next.connection.reader, is: nil)
        #expect(try next.take(by: .second).epoch == 1)
    }

    @Test func `what ended is nobody else's although the one behind it was taken`() throws {
        var harness = try OwnershipTests.launching()
        harness.tell(.remoteClosed(epoch: 1))
        harness.tell(.redialRequested())
        harness.connect(2)
        #expect(try harness.take(by: .second).epoch == 2)
        expect(harness.connection.wakes.standing, is: nil)
        var next = Self.restarted(harness)
        expect(next.effects.finds, is: [harness.attempt])
        #expect(!next.effects.contains(.rest(epoch: 1)), "\(next.effects)")
        expect(next.connection.ownership.reader(of: 1), is: .launch(harness.attempt))
        #expect(next.tell(.launchFailed(harness.attempt, nil)).contains(.rest(epoch: 1)))
    }

    @Test func `no other program is launched before it is known whether there is one`() throws {
        var harness = try OwnershipTests.launching()
        // The wake is given up before the launch is over.
        while harness.connection.wakes.standing?.hasFailed == false { harness.ring() }
        var next = Self.restarted(harness)
        expect(next.effects.finds, is: [harness.attempt])
        var effects = next.tell(.processEnded(.second, .unseen)) + next.tell(.keepaliveDue(isCalled: false))
        while next.connection.wakes.standing?.hasFailed == false { effects += next.ring() }
        #expect(effects.reports.contains { if case .began = $0 { true } else { false } }, "\(effects.reports)")
        #expect(effects.launches.isEmpty, "\(effects.launches)")
        next.tell(.launched(harness.attempt, .first))
        expect(next.connection.reader, is: .program(.first))
        expect(next.connection.wakes.standing, is: nil)
    }
}

extension [ConnectionEffect] {
    /// The attempts whose programs are to be found.
    fileprivate var finds: [WakeAttempt.ID] { compactMap { if case .find(let attempt) = $0 { attempt } else { nil } } }
}
