// SPDX-License-Identifier: Apache-2.0

import DialtoneConnection
import Testing

/// When a program that was launched for a connection is launched again.
@Suite struct RelaunchTests {
    /// A harness whose program was launched with the flow.
    private static func launched(_ change: (inout WakePolicy) -> Void = { _ in }) -> WakeHarness {
        var harness = WakeHarness([.exec], change)
        harness.tell(.needed(.data, []))
        harness.launch()
        return harness
    }

    @Test func `a program that failed is launched again after a growing pause`() {
        var harness = Self.launched()
        var pauses: [Duration] = []
        for _ in 0..<4 {
            let actions = harness.tell(.programEnded(.exited(status: 1)), after: .seconds(1))
            #expect(actions.reports == [.programEnded(.exited(status: 1)), .began])
            #expect(actions.means.isEmpty, "not at once")
            let deadline = actions.deadline ?? harness.now
            pauses.append(deadline - harness.now)
            #expect(harness.means(.timerFired, after: deadline - harness.now) == [.exec])
            harness.launch()
        }
        #expect(pauses == [.seconds(1.5), .seconds(3), .seconds(6), .seconds(12)])
    }

    @Test func `a signal that ends it is a failure`() {
        var harness = Self.launched()
        #expect(harness.tell(.programEnded(.killed(signal: 11))).reports.last == .began)
        #expect(harness.machine.standing?.reasons == [.clientDied])
    }

    @Test func `the first failure after a long run is the first`() {
        var harness = Self.launched()
        for _ in 0..<3 {
            let deadline = harness.tell(.programEnded(.exited(status: 1)), after: .seconds(60)).deadline
            #expect(deadline == harness.now + .seconds(1.5))
            harness.tell(.timerFired, after: .seconds(2))
            harness.launch()
        }
    }

    @Test func `one that ends with zero is launched when there is something for it`() {
        var harness = Self.launched()
        #expect(harness.tell(.programEnded(.exited(status: 0))).reports == [.programEnded(.exited(status: 0))])
        #expect(harness.machine.standing == nil)
        #expect(harness.means(.needed(.data, [])) == [.exec], "without a pause")
    }

    @Test func `an end in order mends its record`() {
        var harness = Self.launched()
        for _ in 0..<3 {
            let deadline = harness.tell(.programEnded(.exited(status: 1))).deadline ?? harness.now
            harness.tell(.timerFired, after: deadline - harness.now)
            harness.launch()
        }
        harness.tell(.programEnded(.exited(status: 0)))
        harness.tell(.needed(.data, []))
        harness.launch()
        #expect(harness.tell(.programEnded(.exited(status: 1))).deadline == harness.now + .seconds(1.5))
    }

    @Test func `an end that nobody saw is no failure and mends nothing`() {
        var harness = Self.launched()
        for pause in [1.5, 3] {
            let deadline = harness.tell(.programEnded(.exited(status: 1))).deadline ?? harness.now
            #expect(deadline - harness.now == .seconds(pause))
            harness.tell(.timerFired, after: deadline - harness.now)
            harness.launch()
        }
        #expect(harness.tell(.programEnded(.unseen)).reports == [.programEnded(.unseen)])
        #expect(harness.machine.standing == nil)
        harness.tell(.needed(.data, []))
        harness.launch()
        #expect(harness.tell(.programEnded(.exited(status: 1))).deadline == harness.now + .seconds(6))
    }

    @Test func `one that ends with zero while something waits is launched again`() {
        var harness = WakeHarness([.exec])
        harness.tell(.needed(.lost, []))
        harness.tell(.programStarted)
        harness.done()
        let actions = harness.tell(.programEnded(.exited(status: 0)), after: .seconds(1))
        let deadline = actions.deadline ?? harness.now
        #expect(deadline > harness.now, "after the pause between two rounds")
        #expect(harness.means(.timerFired, after: deadline - harness.now) == [.exec])
    }

    @Test func `one that fails for ever is left alone until there is another reason`() {
        var harness = Self.launched { $0.rounds = 3 }
        var launches = 0
        while launches < 100, let deadline = harness.tell(.programEnded(.exited(status: 1))).deadline {
            #expect(harness.means(.timerFired, after: deadline - harness.now) == [.exec])
            harness.launch()
            launches += 1
        }
        #expect(launches == 3)
        #expect(harness.machine.standing?.hasFailed == true, "and who looks sees it")
        let deadline = harness.tell(.needed(.data, [])).deadline
        #expect(deadline.map { $0 > harness.now } == true, "with the pause that it has come to")
    }

    @Test func `whoever wants none is not relaunched`() {
        var harness = Self.launched { $0.relaunches = false }
        #expect(harness.tell(.programEnded(.exited(status: 1))).reports == [.programEnded(.exited(status: 1))])
        #expect(harness.machine.standing == nil)
    }

    /// A harness with a wake that stands, and a program that was launched for it and does not answer.
    private static func hanging() -> WakeHarness {
        var harness = WakeHarness([.exec])
        harness.tell(.needed(.lost, []))
        harness.tell(.programStarted)
        harness.done()
        let pause = harness.tell(.timerFired, after: .seconds(30)).deadline ?? harness.now
        #expect(harness.means(.timerFired, after: pause - harness.now).isEmpty, "not beside itself")
        return harness
    }

    @Test func `a program that runs is waited for and not launched beside itself`() {
        var harness = Self.hanging()
        #expect(!harness.tell(.timerFired, after: .seconds(29)).hasFailed)
        #expect(harness.tell(.timerFired, after: .seconds(1)).hasFailed, "there is nothing else to try")
    }

    @Test func `when it ends at last it is launched again`() {
        var waiting = Self.hanging()
        #expect(waiting.means(.programEnded(.exited(status: 0))) == [.exec])
        var failed = Self.hanging()
        failed.tell(.timerFired, after: .seconds(30))
        let actions = failed.tell(.programEnded(.exited(status: 0)), after: .seconds(600))
        #expect(actions.means == [.exec], "what it was wanted for still waits")
        #expect(failed.machine.standing?.number == 2 && failed.machine.standing?.reasons == [.lost])
    }

    @Test func `its end does not disturb a wake by other means`() {
        var harness = WakeHarness([.exec])
        harness.tell(.needed(.start, []))
        harness.launch()
        harness.tell(.needed(.data, [.subscribed, .alive]))
        harness.done()
        let actions = harness.tell(.programEnded(.exited(status: 0)))
        #expect(actions.reports == [.programEnded(.exited(status: 0))], "whoever watches has its three seconds")
        #expect(harness.means(.timerFired, after: .seconds(3)) == [.exec])
    }

    @Test func `launches in a row are paced`() {
        var harness = WakeHarness([.exec])
        var atOnce = 0
        while atOnce < 100, harness.means(.needed(.data, [])) == [.exec] {
            harness.launch()
            harness.tell(.programEnded(.exited(status: 0)))
            atOnce += 1
        }
        #expect(atOnce == 30)
        #expect(harness.means(.timerFired, after: .seconds(2)) == [.exec])
    }

    @Test func `the file may have it run from the start`() {
        var always = WakeHarness([.exec]) { $0.launch = .always }
        #expect(always.means(.started) == [.exec])
        #expect(always.machine.standing?.reasons == [.start])
        var onDemand = WakeHarness([.exec])
        #expect(onDemand.tell(.started).isEmpty)
    }
}

extension WakeHarness {
    /// The program was launched with the flow.
    fileprivate mutating func launch() {
        tell(.programStarted)
        done()
        tell(.taken)
    }
}
