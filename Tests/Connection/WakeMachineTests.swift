// SPDX-License-Identifier: Apache-2.0

import DialtoneConnection
import Testing

/// A machine of wakes with its clock; its chance always chooses the middle.
struct WakeHarness: ~Copyable {
    var machine: WakeMachine
    var now: Duration = .seconds(1000)
    var random = FixedRandom()

    init(_ means: Set<WakeMeans> = [], _ change: (inout WakePolicy) -> Void = { _ in }) {
        var policy = WakePolicy(means: means)
        change(&policy)
        machine = WakeMachine(policy: policy, now: now)
    }

    @discardableResult
    mutating func tell(_ input: WakeInput, after delay: Duration = .zero) -> [WakeAction] {
        now += delay
        return machine.process(input, now: now, using: &random)
    }

    /// The means of the attempts among the answers.
    mutating func means(_ input: WakeInput, after delay: Duration = .zero) -> [WakeMeans] {
        tell(input, after: delay).means
    }

    /// Says that the attempt that runs was done.
    @discardableResult
    mutating func done() -> [WakeAction] { outcome(.done) }

    @discardableResult
    mutating func outcome(_ outcome: WakeOutcome) -> [WakeAction] {
        let standing = machine.standing
        return tell(.attempted(wake: standing?.number ?? 0, attempt: standing?.attempts ?? 0, outcome))
    }
}

extension [WakeAction] {
    var means: [WakeMeans] { compactMap { if case .attempt(let attempt) = $0 { attempt.means } else { nil } } }

    var reports: [WakeReport.Kind] { compactMap { if case .report(let report) = $0 { report.kind } else { nil } } }

    var deadline: Duration? {
        compactMap { if case .scheduleTimer(let deadline) = $0 { deadline } else { nil } }.last
    }

    var hasFailed: Bool { reports.contains { if case .failed = $0 { true } else { false } } }
}

/// What a connection's client is woken by, in what order, and when that ends.
@Suite struct WakeMachineTests {
    private let running: ClientPresence = [.subscribed, .alive]

    @Test func `a client that watches is sent an event and has three seconds`() {
        var harness = WakeHarness()
        let actions = harness.tell(.needed(.data, running))
        let wake = StandingWake(number: 1, reasons: [.data], since: harness.now)
        let tried = StandingWake(number: 1, reasons: [.data], since: harness.now, attempts: 1, means: .event)
        #expect(
            actions == [
                .report(WakeReport(.began, wake)), .scheduleTimer(harness.now + .seconds(3)),
                .report(WakeReport(.attempted(.event), tried)),
                .attempt(WakeAttempt(wake: 1, attempt: 1, means: .event, reasons: [.data])),
            ])
        #expect(harness.done() == [.scheduleTimer(harness.now + .seconds(3))])
        let answer = harness.tell(.acknowledged(wake: 1), after: .milliseconds(20))
        #expect(answer == [.cancelTimer, .report(WakeReport(.acknowledged(after: .milliseconds(20)), tried))])
        #expect(harness.machine.standing == nil)
    }

    @Test func `a number that is not the wake's acknowledges nothing`() {
        var harness = WakeHarness()
        harness.tell(.needed(.data, running))
        #expect(harness.tell(.acknowledged(wake: 2)).isEmpty)
        harness.tell(.acknowledged(wake: 1))
        harness.tell(.needed(.data, running))
        #expect(harness.tell(.acknowledged(wake: 1)).isEmpty, "the first wake's, late")
        #expect(harness.machine.standing?.number == 2)
    }

    @Test func `taking the flow acknowledges`() {
        var harness = WakeHarness()
        harness.tell(.needed(.data, running))
        #expect(harness.tell(.taken).reports == [.acknowledged(after: .zero)])
        #expect(harness.tell(.taken).isEmpty)
    }

    @Test func `reasons are merged into one wake`() {
        var harness = WakeHarness()
        harness.tell(.needed(.data, running))
        #expect(harness.tell(.needed(.data, running)).isEmpty)
        let joined = harness.tell(.needed(.reconnected, running))
        #expect(joined.reports == [.joined(.reconnected)])
        #expect(joined.means.isEmpty, "the client is being woken already")
        #expect(harness.machine.standing?.reasons == [.data, .reconnected])
        #expect(harness.machine.standing?.number == 1)
    }

    @Test func `the cheapest means comes first and the next when nobody answers`() {
        var harness = WakeHarness([.exec, .unit, .signal, .thaw])
        var tried = harness.means(.needed(.data, running))
        for wait in [3, 3, 3, 30] {
            harness.done()
            #expect(harness.means(.timerFired, after: .seconds(wait) - .milliseconds(1)).isEmpty, "not before its time")
            tried += harness.means(.timerFired, after: .milliseconds(1))
        }
        #expect(tried == [.event, .signal, .thaw, .unit, .exec])
    }

    private static let firstMeans: [(client: ClientPresence, first: WakeMeans)] = [
        ([], .unit), ([.subscribed, .alive], .event), (.alive, .signal), ([.subscribed, .alive, .stopped], .signal),
        ([.subscribed, .alive, .frozen], .thaw), ([.alive, .stopped, .frozen], .thaw),
    ]

    @Test(arguments: firstMeans)
    func `what cannot reach the client is not tried`(client: ClientPresence, first: WakeMeans) {
        var harness = WakeHarness([.signal, .thaw, .unit])
        #expect(harness.means(.needed(.data, client)) == [first])
    }

    @Test(arguments: [([.signal], 0.25), ([.thaw], 0.25), ([], 3), ([.unit], 3)] as [(Set<WakeMeans>, Double)])
    func `one that may be stopped is not waited for as if it ran`(means: Set<WakeMeans>, seconds: Double) {
        var harness = WakeHarness(means)
        #expect(harness.means(.needed(.data, [.subscribed, .alive, .hidden])) == [.event])
        #expect(harness.done().deadline == harness.now + .seconds(seconds))
    }

    @Test func `an attempt that fails is followed by the next at once`() {
        var harness = WakeHarness([.signal, .unit])
        harness.tell(.needed(.data, running))
        harness.done()
        harness.tell(.timerFired, after: .seconds(3))
        let next = harness.outcome(.failed("there is no such process"))
        #expect(next.reports == [.attemptFailed(.signal, "there is no such process"), .attempted(.unit)])
        #expect(next.means == [.unit])
    }

    @Test func `a client that goes is not waited for`() {
        var harness = WakeHarness([.unit])
        harness.tell(.needed(.data, running))
        harness.done()
        #expect(harness.tell(.clientChanged(.alive)).means == [.unit])
        harness.done()
        #expect(harness.tell(.clientChanged([])).isEmpty, "a unit that is being started is waited for")
    }

    @Test func `an attempt that is never answered ends by its timer`() {
        var harness = WakeHarness([.unit, .exec])
        #expect(harness.means(.needed(.data, [])) == [.unit])
        let actions = harness.tell(.timerFired, after: .seconds(30))
        #expect(actions.reports == [.attemptFailed(.unit, "it took too long"), .attempted(.exec)])
        let late = harness.tell(.attempted(wake: 1, attempt: 1, .failed("late")))
        #expect(late.isEmpty)
    }

    @Test func `rounds are paused between and the wake is given up after the last`() {
        var harness = WakeHarness([.unit]) { $0.rounds = 3 }
        #expect(harness.means(.needed(.data, running)) == [.event])
        var waits: [Duration] = []
        var tried: [WakeMeans] = [.event]
        var failed = false
        while !failed {
            let deadline = harness.done().deadline ?? harness.now
            let began = harness.now
            let actions = harness.tell(.timerFired, after: deadline - harness.now)
            failed = actions.hasFailed
            guard !failed, actions.means.isEmpty, let end = actions.deadline else {
                tried += actions.means
                continue
            }
            waits.append(end - harness.now)
            #expect(harness.now > began)
            tried += harness.means(.timerFired, after: end - harness.now)
        }
        #expect(tried == [.event, .unit, .event, .unit, .event, .unit])
        #expect(waits == [.seconds(7.5), .seconds(15)], "three quarters of 10 and 20 s: the middle of half to whole")
        #expect(harness.machine.standing?.hasFailed == true)
        #expect(harness.tell(.timerFired, after: .seconds(3600)).isEmpty, "nothing runs for a wake that was given up")
    }

    @Test func `rounds count also where not every means is tried`() {
        var harness = WakeHarness([.signal, .thaw, .unit]) { $0.rounds = 2 }
        var tried = harness.means(.needed(.data, []))
        while let deadline = harness.outcome(.failed("no")).deadline {
            tried += harness.means(.timerFired, after: deadline - harness.now)
        }
        #expect(tried == [.unit, .unit])
    }

    @Test func `where nothing can reach the client the wake is given up at once`() {
        var harness = WakeHarness([.signal])
        let actions = harness.tell(.needed(.data, []))
        #expect(actions.means.isEmpty)
        #expect(actions.reports == [.began, .failed(after: .zero)])
    }

    @Test func `a reason after a failure begins another wake`() {
        var harness = WakeHarness()
        harness.tell(.needed(.data, []))
        let actions = harness.tell(.needed(.reconnected, running))
        #expect(actions.reports == [.began, .attempted(.event)])
        #expect(harness.machine.standing?.number == 2)
        #expect(harness.machine.standing?.reasons == [.reconnected])
    }

    @Test func `a wake that was given up can still be acknowledged`() {
        var harness = WakeHarness()
        harness.tell(.needed(.data, []))
        let actions = harness.tell(.acknowledged(wake: 1), after: .seconds(60))
        #expect(actions.reports == [.acknowledged(after: .seconds(60))])
        #expect(harness.machine.standing == nil)
    }

    @Test func `a means that is no more configured is not waited for`() {
        var harness = WakeHarness([.signal, .unit])
        harness.tell(.needed(.data, .alive))
        harness.done()
        #expect(harness.means(.policyChanged(WakePolicy(means: [.unit]))) == [.unit])
        #expect(harness.means(.policyChanged(WakePolicy(means: [.unit, .exec]))).isEmpty)
    }

    @Test func `a wake of the last run goes on with its number`() {
        var harness = WakeHarness([.unit])
        let wake = StandingWake(number: 41, reasons: [.data], since: .seconds(900), attempts: 2, means: .event)
        #expect(harness.tell(.restored(wake)).reports.isEmpty, "it does not begin a second time")
        let actions = harness.tell(.timerFired, after: WakeMachine.returnTime)
        #expect(actions.means == [.unit])
        #expect(actions.reports == [.attempted(.unit)])
        let duration = Duration.seconds(100) + WakeMachine.returnTime
        #expect(harness.tell(.acknowledged(wake: 41)).reports == [.acknowledged(after: duration)])
        harness.tell(.needed(.data, []))
        #expect(harness.machine.lastNumber == 42)
    }

    /// Nobody can be subscribed yet to an agent that was just started.
    @Test func `subscribers have time to come back after a restart`() {
        let wake = StandingWake(number: 41, reasons: [.data], since: .seconds(900), attempts: 1, means: .event)
        var harness = WakeHarness([.event])
        #expect(harness.tell(.restored(wake)).reports.isEmpty)
        #expect(harness.tell(.clientChanged([.alive])).isEmpty)
        #expect(harness.means(.clientChanged([.alive, .subscribed])) == [.event])
        #expect(harness.machine.standing?.number == 41)
        // One who does not come is not waited for.
        harness = WakeHarness([.event])
        harness.tell(.restored(wake))
        #expect(harness.tell(.timerFired, after: WakeMachine.returnTime).reports.count == 1)
        #expect(harness.machine.standing?.hasFailed == true)
    }

    /// Its program may run by now, with the flow.
    @Test func `a launch that was under way is gone on with at once after a restart`() {
        let wake = StandingWake(number: 41, reasons: [.data], since: .seconds(900), attempts: 2, means: .exec)
        var harness = WakeHarness([.event, .exec])
        harness.tell(.clientChanged([.alive, .subscribed]))
        #expect(harness.means(.restored(wake)) == [.exec])
    }

    @Test func `a failed wake of the last run stays and is not tried again`() {
        var harness = WakeHarness([.unit])
        let wake = StandingWake(number: 7, reasons: [.data], since: .seconds(900), hasFailed: true)
        #expect(harness.tell(.restored(wake)).isEmpty)
        #expect(harness.machine.standing == wake)
        #expect(harness.means(.needed(.data, [])) == [.unit])
        #expect(harness.machine.lastNumber == 8)
    }

    @Test func `after the end nothing runs`() {
        var harness = WakeHarness([.exec])
        harness.tell(.needed(.data, running))
        #expect(harness.tell(.closed) == [.cancelTimer])
        #expect(harness.tell(.needed(.data, running)).isEmpty)
        #expect(harness.tell(.timerFired, after: .seconds(60)).isEmpty)
    }
}
