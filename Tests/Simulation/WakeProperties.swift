// SPDX-License-Identifier: Apache-2.0

import DialtoneTestSupport
import Testing

@testable import DialtoneConnection

/// Wakes under inputs drawn from a seed: clients that come and go, attempts that fail, hang or are answered late,
/// programs that die, policies that change.
@Suite struct WakeProperties {
    @Test(arguments: [1, 2, 3] + seeds(5)) func `a wake is acknowledged or tried or reported`(seed: UInt64) throws {
        var random = SplitMix64(seed: seed)
        for _ in 0..<400 {
            var life = WakeLife(&random)
            for _ in 0..<(20 + random.below(200)) { try life.step(&random) }
            try life.end(&random)
        }
    }

    @Test(arguments: seeds(2)) func `the same seed is the same life`(seed: UInt64) throws {
        var lives: [[WakeAction]] = []
        for _ in 0..<2 {
            var random = SplitMix64(seed: seed)
            var life = WakeLife(&random)
            for _ in 0..<200 { try life.step(&random) }
            lives.append(life.history)
        }
        #expect(lives[0] == lives[1])
    }
}

/// One machine, its timer, the attempts that are not answered yet, and the program that it launched.
private struct WakeLife {
    private static let presences: [ClientPresence] = [
        [], .subscribed, .alive, [.subscribed, .alive], [.alive, .stopped], [.subscribed, .alive, .frozen],
    ]

    private(set) var history: [WakeAction] = []
    private var machine: WakeMachine
    private var now = Duration.seconds(10)
    private var timer: Duration?
    private var pending: [WakeAttempt] = []
    private var programRuns = false
    private var attempts: [UInt64: Int] = [:]
    /// The most attempts that any policy since the wake began allowed.
    private var bound: Int
    private var reported: Set<UInt64> = []
    private var begun: Set<UInt64> = []

    init(_ random: inout SplitMix64) {
        let policy = Self.policy(&random)
        machine = WakeMachine(policy: policy, now: now)
        bound = policy.mostAttempts
    }

    private static func policy(_ random: inout SplitMix64) -> WakePolicy {
        var policy = WakePolicy(rounds: 1 + random.below(4))
        for means in WakeMeans.allCases where random.chance(50) { policy.means.insert(means) }
        policy.relaunches = random.chance(70)
        policy.launch = random.chance(30) ? .always : .onDemand
        return policy
    }

    mutating func step(_ random: inout SplitMix64) throws {
        switch random.below(12) {
        case 0, 1, 2:
            let reason = WakeReason.allCases[random.below(WakeReason.allCases.count)]
            try tell(.needed(reason, presence(&random)), &random)
        case 3: try tell(.acknowledged(wake: UInt64(random.below(Int(machine.lastNumber) + 2))), &random)
        case 4: if random.chance(30) { try tell(.taken, &random) }
        case 5: try tell(.clientChanged(presence(&random)), &random)
        case 6: try answer(&random)
        case 7: try endProgram(&random)
        case 8:
            guard random.chance(20) else { return }
            let policy = Self.policy(&random)
            bound = max(bound, policy.mostAttempts)
            try tell(.policyChanged(policy), &random)
        case 9: if random.chance(20) { try tell(.started, &random) }
        case 10:
            // Early, at times.
            if timer != nil, random.chance(10) { try tell(.timerFired, &random) }
        default: try letTimePass(.milliseconds(random.below(60_000)), &random)
        }
    }

    /// Whatever stands comes to its end with nobody's help, within a day.
    mutating func end(_ random: inout SplitMix64) throws {
        var fired = 0
        while let deadline = timer {
            fired += 1
            try #require(fired < 1000, "it goes on and on")
            try letTimePass(max(deadline - now, .zero), &random)
        }
        try #require(now < .seconds(86_400 + 10 + 200 * 60))
        #expect(machine.standing.map(\.hasFailed) ?? true)
        let before = history.count
        try tell(.timerFired, &random)
        #expect(history.count == before, "nothing runs for no wake")
        try tell(.closed, &random)
        #expect(timer == nil)
        try tell(.needed(.data, [.subscribed]), &random)
        #expect(machine.standing == nil || history.count == before, "closed is closed")
    }

    private func presence(_ random: inout SplitMix64) -> ClientPresence {
        Self.presences[random.below(Self.presences.count)]
    }

    private mutating func answer(_ random: inout SplitMix64) throws {
        guard !pending.isEmpty else { return }
        let attempt = pending.remove(at: random.below(pending.count))
        if attempt.means == .exec, !programRuns, random.chance(80) {
            programRuns = true
            try tell(.programStarted, &random)
            try tell(.attempted(wake: attempt.wake, attempt: attempt.attempt, .done), &random)
            if random.chance(50) { try tell(.taken, &random) }
            return
        }
        let outcome: WakeOutcome = attempt.means != .exec && random.chance(70) ? .done : .failed("by chance")
        try tell(.attempted(wake: attempt.wake, attempt: attempt.attempt, outcome), &random)
    }

    private mutating func endProgram(_ random: inout SplitMix64) throws {
        guard programRuns else { return }
        programRuns = false
        let ends: [ProgramEnd] = [.exited(status: 0), .exited(status: 1), .killed(signal: 9), .unseen]
        try tell(.programEnded(ends[random.below(ends.count)]), &random)
    }

    private mutating func letTimePass(_ span: Duration, _ random: inout SplitMix64) throws {
        let end = now + span
        while let deadline = timer, deadline <= end {
            now = max(now, deadline)
            timer = nil
            try tell(.timerFired, &random)
        }
        now = end
    }

    private mutating func tell(_ input: WakeInput, _ random: inout SplitMix64) throws {
        let actions = machine.process(input, now: now, using: &random)
        history += actions
        for action in actions {
            switch action {
            case .scheduleTimer(let deadline):
                try #require(deadline >= now)
                timer = deadline
            case .cancelTimer: timer = nil
            case .attempt(let attempt): try check(attempt)
            case .report(let report): try check(report)
            }
        }
        guard let wake = machine.standing else {
            try #require(timer == nil, "a timer for no wake")
            return
        }
        try #require(wake.attempts <= bound)
        try #require(wake.hasFailed == (timer == nil), "it stands with a timer, or was given up without one")
        if wake.hasFailed { try #require(reported.contains(wake.number), "given up, and nobody was told") }
    }

    private mutating func check(_ attempt: WakeAttempt) throws {
        attempts[attempt.wake, default: 0] += 1
        try #require(attempts[attempt.wake] == attempt.attempt)
        try #require(attempt.attempt <= bound)
        try #require(begun.contains(attempt.wake) && !reported.contains(attempt.wake), "nothing runs for no wake")
        try #require(machine.policy.steps.contains(attempt.means))
        if attempt.means == .exec { try #require(!programRuns, "a second one beside the first") }
        pending.append(attempt)
    }

    private mutating func check(_ report: WakeReport) throws {
        let number = report.wake.number
        switch report.kind {
        case .began: try #require(begun.insert(number).inserted && begun.allSatisfy { $0 <= number })
        case .joined: try #require(machine.standing?.number == number)
        case .attempted, .attemptFailed: try #require(!reported.contains(number))
        case .failed: try #require(reported.insert(number).inserted, "given up once")
        case .acknowledged: reported.insert(number)
        case .programEnded, .overran: break
        }
    }
}
