// SPDX-License-Identifier: Apache-2.0

import DialtoneAPI
import DialtoneConnection
import DialtoneNetworkPath
import DialtoneTestSupport
import DialtoneVarlink
import Testing

@testable import DialtoneAgent
@testable import DialtoneCoalescing

/// No figure that a client names ends the process, and what is accepted can be computed with. Each case runs in a
/// process of its own: a trap is that process's end, and a failed test.
@Suite struct ExtremeSettingsTests {
    @Test func `a keepalive of no time at all is refused`() async {
        await #expect(processExitsWith: .success) {
            for scheme in Remote.Scheme.allCases {
                for (interval, isAdaptive) in [(0, nil), (0, true), (0, false), (-1, nil), (Int.min, true)] {
                    let keepalive = ConnectionsAPI.Keepalive(
                        interval: .milliseconds(interval), tolerance: .zero, adaptive: isAdaptive)
                    let parameters = ConnectionsAPI.Open.Parameters(
                        remote: Extremes.remote(scheme), settings: .init(keepalive: keepalive))
                    for redials in [true, false] {
                        #expect(throws: VarlinkFailure.self, "\(scheme), \(interval)") {
                            try ConnectionPolicy(parameters, user: 0, redials: redials)
                        }
                    }
                }
            }
        }
    }

    @Test(arguments: seeds(4))
    func `what is accepted of random extremes can be lived with`(seed: UInt64) async {
        await #expect(processExitsWith: .success) { [seed] in
            var extremes = Extremes(random: SplitMix64(seed: seed))
            var accepted = 0
            for _ in 0..<3000 {
                let parameters = extremes.parameters()
                let redials = extremes.random.chance(70)
                guard let policy = try? ConnectionPolicy(parameters, user: 0, redials: redials) else { continue }
                accepted += 1
                extremes.live(under: policy)
            }
            #expect(accepted > 100, "the extremes leave too little that is valid")
        }
    }
}

/// Draws settings and happenings that are as far out as their types allow, beside plain ones.
struct Extremes {
    var random: SplitMix64
    private var now = Duration.seconds(1000)

    init(random: SplitMix64) { self.random = random }

    /// A remote with a host and a port, whatever the scheme.
    static func remote(_ scheme: Remote.Scheme) -> String { "\(scheme.rawValue)://192.0.2.7:5060" }

    private static let end = Endpoint(address: .loopback, port: 1)
    private static let numbers = [
        Int.min, Int.min + 1, -86_400_001, -1, 0, 1, 99, 100, 999, 1000, 1001, 9999, 10_000, 29_999, 30_000, 57_000,
        57_001, 60_000, 90_000, 120_000, 1_800_000, 3_600_000, 3_600_001, 32_767_000, 32_768_000, 86_400_000,
        86_400_001, 1 << 32, 1 << 53, Int.max / 1000, Int.max - 1, Int.max,
    ]
    private static let factors: [Double] = [
        -.infinity, -1, -0.0, 0, .leastNonzeroMagnitude, 0.999, 1, 1.0.nextUp, 1.6, 10, 10.0.nextUp, 1e300,
        .greatestFiniteMagnitude, .infinity, .nan, .signalingNaN,
    ]
    private static let texts = [
        "", "a", "\0", "a\0b", #"\0"#, #"\xff\x?f"#, #"\x"#, "é", "\u{FFFD}", "/", "/a", "mqtt", "websocket", "1.2",
        "cs5",
        "-1", "9223372036854775808", String(repeating: "x", count: 1025), String(repeating: "é", count: 20_000),
        // A CONNECT that promises a Keep Alive of nothing, of a second and of all that there is.
        #"\x10\x0c\0\x04MQTT\x04\x02\0\0"#, #"\x10\x0c\0\x04MQTT\x04\x02\0\x01"#,
        #"\x10\x0c\0\x04MQTT\x04\x02\xff\xff"#, #"\x10\xff\xff\xff\x7f\0\x04MQTT\x04\x02\xff"#,
    ]

    private mutating func pick<Value>(_ values: [Value]) -> Value { values[random.below(values.count)] }

    private mutating func maybe<Value>(_ percent: Int = 30, _ value: (inout Extremes) -> Value) -> Value? {
        random.chance(percent) ? value(&self) : nil
    }

    private mutating func number() -> Int { pick(Self.numbers) }

    private mutating func milliseconds() -> Duration { .milliseconds(number()) }

    private mutating func text() -> String { pick(Self.texts) }

    private mutating func duration() -> Duration {
        random.chance(50) ? milliseconds() : .seconds(number())
    }

    /// What a client may write in an `Open`.
    mutating func parameters() -> ConnectionsAPI.Open.Parameters {
        let protocols = ["tcp", "crlf", "whitespace", "xmpp-ping", "mqtt", "websocket", "custom", "client", "none"]
        return ConnectionsAPI.Open.Parameters(
            remote: Self.remote(pick(Remote.Scheme.allCases)),
            settings: .init(
                keepalive: maybe(60) { extremes in
                    let name = extremes.maybe { $0.pick(protocols) }
                    return ConnectionsAPI.Keepalive(
                        protocol: name, interval: extremes.maybe(50) { $0.milliseconds() },
                        tolerance: extremes.maybe { $0.milliseconds() },
                        adaptive: extremes.maybe { $0.random.chance(50) },
                        send: name == "custom" ? extremes.text() : nil, expect: name == "custom" ? extremes.text() : nil
                    )
                }, opening: maybe { extremes in (0...extremes.random.below(3)).map { _ in extremes.step() } },
                answers: maybe(10) { extremes in (0...extremes.random.below(3)).map { _ in extremes.answer() } },
                backoff: maybe { extremes in
                    ConnectionsAPI.Backoff(
                        initial: extremes.maybe { $0.milliseconds() },
                        maximum: extremes.maybe { $0.milliseconds() },
                        factor: extremes.maybe { $0.pick(Self.factors) },
                        stableAfter: extremes.maybe { $0.milliseconds() })
                }, connectTimeout: maybe(10) { $0.milliseconds() },
                userTimeout: maybe(10) { $0.milliseconds() }, grace: maybe(10) { $0.milliseconds() },
                priority: maybe(10) { $0.number() }, mark: maybe(10) { $0.number() }))
    }

    private mutating func step() -> ConnectionsAPI.OpeningStep {
        .init(
            send: maybe(80) { $0.text() },
            expect: maybe(70) { extremes in
                .init(
                    bytes: extremes.maybe { $0.text() }, length: extremes.maybe { $0.number() },
                    until: extremes.maybe { $0.text() }, message: extremes.maybe { $0.text() },
                    contains: extremes.maybe(10) { $0.text() })
            },
            overtakenBy: maybe(10) { [$0.text()] })
    }

    private mutating func answer() -> ConnectionsAPI.AnsweredMessage {
        let name = pick(["websocket", "xmpp", "custom"])
        let isCustom = name == "custom"
        return .init(
            protocol: name, receive: isCustom ? text() : nil, send: isCustom ? maybe { $0.text() } : nil,
            handled: name == "xmpp" ? maybe { $0.number() } : nil)
    }

    /// Lets a connection live for a while in virtual time, and tells it whatever may be told.
    mutating func live(under policy: ConnectionPolicy) {
        var machine = ConnectionStateMachine(policy: policy, now: now)
        var epoch: UInt64 = 0
        var timers: [Duration] = []
        func tell(_ input: ConnectionInput, _ extremes: inout Extremes) {
            for action in machine.process(input, now: extremes.now, using: &extremes.random) {
                switch action {
                case .openSocket(let request): epoch = request.epoch
                case .scheduleTimer(_, let deadline): timers.append(deadline)
                case .keepAlive(_, let heartbeat?): extremes.plan(heartbeat)
                case .playOpening(_, let opening): extremes.play(opening)
                case .answerMessages(_, let answers?): extremes.ask(answers)
                default: break
                }
            }
        }
        if policy.redials {
            tell(.opened, &self)
        } else {
            tell(.adopted(Adoption(local: Self.end, remote: Self.end, ownership: .new)), &self)
            epoch = 1
        }
        for _ in 0..<40 {
            tell(happening(to: epoch), &self)
            if random.chance(50), let next = timers.min() {
                now = max(now, next)
                timers.removeAll { $0 <= now }
                for timer in ConnectionTimer.allCases { tell(.timerFired(timer), &self) }
            }
            _ = machine.status
        }
        if let handler = policy.handler { plan(handler.cadence) }
    }

    private mutating func happening(to epoch: UInt64) -> ConnectionInput {
        switch random.below(14) {
        case 0, 1: .pathChanged(Path(status: random.chance(80) ? .satisfied : .unsatisfied))
        case 2, 3: .dialSucceeded(epoch: epoch, local: Self.end, remote: Self.end)
        case 4: .dialFailed(epoch: epoch, .refused)
        case 5: .probeSent(epoch: epoch)
        case 6: .answered(epoch: epoch, count: number())
        case 7: .acknowledged(epoch: epoch, begun: duration())
        case 8: .serverAsked(duration())
        case 9: .redialRequested(after: duration())
        case 10: .openingAnswered(epoch: epoch, awaiting: number(), begun: duration())
        case 11: .remoteClosed(epoch: epoch)
        case 12: .flowFailed(epoch: epoch, .timedOut)
        default: .sessionOpened(epoch: epoch)
        }
    }

    private mutating func plan(_ heartbeat: Heartbeat) {
        plan(heartbeat.cadence)
        guard let bounds = heartbeat.bounds else { return }
        plan(heartbeat.cadence(each: bounds.lowerBound))
        plan(heartbeat.cadence(each: bounds.upperBound))
        var learned = AdaptiveInterval()
        guard let network = NetworkIdentity(kind: .wifi, gateway: [1, 2, 3, 4, 5, 6]) else { return }
        for _ in 0..<4 {
            learned.survived(duration(), on: network, heartbeat.kind.figures)
            learned.died(after: duration(), sentAt: now, on: network, heartbeat.kind.figures)
            _ = learned.trial(on: network, heartbeat.kind.figures, within: bounds)
            _ = AdaptiveInterval.users(in: AdaptiveInterval.text(of: [.init(user: 1000, learned)]))
        }
    }

    private mutating func plan(_ cadence: Cadence) {
        var planner = TimerCoalescer()
        _ = planner.add(cadence, after: now)
        _ = planner.add(Cadence(interval: .seconds(30), tolerance: .seconds(10)), after: now)
        for _ in 0..<4 {
            guard let next = planner.nextWake else { return }
            now = max(now, next)
            _ = planner.take(at: now)
        }
    }

    private mutating func ask(_ answers: AnsweredMessages) {
        var input = ParkedInput()
        input.questions = ServerQuestions(answers)
        for _ in 0..<8 {
            let unread = Array(text().utf8.prefix(4096)) + [0x89, 0]
            if case .reply = input.next(unread, at: now, using: &random) { input.answered(at: now) }
            _ = input.lacksRoom(at: now)
        }
    }

    private mutating func play(_ opening: Opening) {
        var play = OpeningPlay(opening)
        var unread: [UInt8] = []
        for _ in 0..<8 {
            switch play.next(unread) {
            case .send: break
            case .wait: unread += Array(text().utf8.prefix(20_000)) + [UInt8(random.below(256)), 0xFF]
            case .keep(let count), .read(let count): unread.removeFirst(count)
            case .done, .failed: return
            }
        }
    }
}
