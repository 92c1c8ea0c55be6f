// SPDX-License-Identifier: Apache-2.0

@testable internal import DialtoneConnection

extension FuzzTarget {
    /// Wakes of a client, one that an earlier process left among them.
    static let wakes = FuzzTarget(name: "wakes") { bytes in
        var draw = Draw(bytes)
        var now = Duration.seconds(1000)
        let policy = WakePolicy(
            means: Set(WakeMeans.allCases.filter { _ in draw.chance() }), rounds: 1 + draw.below(10),
            launch: draw.pick(WakePolicy.Launch.allCases), relaunches: draw.chance())
        let number = UInt64(bitPattern: Int64(draw.number()))
        var machine = WakeMachine(policy: policy, lastNumber: number, now: now)
        var (timer, attempt): (Duration?, WakeAttempt?) = (nil, nil)
        var random = Draw([])
        while !draw.isOver {
            let input: WakeInput
            switch draw.below(9) {
            case 0: input = .started
            case 1: input = .needed(draw.pick(WakeReason.allCases), ClientPresence(rawValue: draw.byte() & 31))
            case 2: input = .acknowledged(wake: machine.standing?.number ?? 0)
            case 3: input = .taken
            case 4:
                guard let attempt else { continue }
                input = .attempted(wake: attempt.wake, attempt: attempt.attempt, draw.chance() ? .done : .failed("no"))
            case 5: input = .programStarted
            case 6:
                input = .programEnded(draw.pick([.exited(status: 0), .exited(status: 1), .killed(signal: 9), .unseen]))
            case 7:
                now = max(now, draw.chance() ? timer ?? now : now + .milliseconds(Int64(draw.byte()) * 100))
                guard let due = timer, due <= now else { continue }
                timer = nil
                input = .timerFired
            default:
                input = .restored(
                    StandingWake(
                        number: UInt64(bitPattern: Int64(draw.number())), reasons: [draw.pick(WakeReason.allCases)],
                        since: .nanoseconds(Int64(draw.number())), attempts: draw.number(), hasFailed: draw.chance()))
            }
            for action in machine.process(input, now: now, using: &random) {
                switch action {
                case .attempt(let next): attempt = next
                case .scheduleTimer(let deadline): timer = deadline
                case .cancelTimer: timer = nil
                case .report: break
                }
            }
        }
    }
}
