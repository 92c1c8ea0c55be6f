// SPDX-License-Identifier: Apache-2.0

import DialtoneConnection
import DialtoneModels
import DialtoneNetworkPath
import DialtoneTestSupport
import Testing

/// Networks whose timeouts nobody tells: what learning them costs and brings. `docs/keepalive.md` has the table.
@Suite struct AdaptiveIntervalProperties {
    private static let holds: [Duration?] = [
        .seconds(35), .seconds(60), .seconds(90), .seconds(120), .seconds(180), .seconds(300), .seconds(600),
        .seconds(900), .seconds(1800), nil,
    ]

    @Test(arguments: holds) func `a network costs few flows and is then used well`(holds: Duration?) throws {
        let figures = KeepaliveProtocol.crlf.figures
        let network = try #require(NetworkIdentity(kind: .wifi, gateway: [2, 0, 0, 0, 0, 1]))
        for seed in [1, 2, 3, 4] + seeds(4) {
            var quiet = NATLife(holds: holds)
            (quiet.chancePer10000, quiet.resetPerMille) = (0, 20)
            var learner = AdaptiveInterval()
            let possible = min(holds ?? figures.intervals.upperBound, figures.intervals.upperBound)
            // Less than the time after which what was fatal is tried again, and enough for every step up to the longest
            // interval, each of which takes six keepalives or, where some go early or are reset, a few more.
            let day = quiet.run(&learner, on: network, figures, for: max(.seconds(5 * 3600), possible * 20), seed: seed)
            #expect(day.lost <= 3, "seed \(seed)")
            #expect(day.interval <= possible, "seed \(seed)")
            #expect(day.interval >= max(possible * 0.55, figures.intervals.lowerBound), "seed \(seed)")
        }
    }

    @Test(arguments: holds) func `in the long run a flow a day is the most`(holds: Duration?) throws {
        let network = try #require(NetworkIdentity(kind: .wifi, gateway: [2, 0, 0, 0, 0, 1]))
        for seed in [1, 2] + seeds(2) {
            var learner = AdaptiveInterval()
            let month = NATLife(holds: holds).run(
                &learner, on: network, KeepaliveProtocol.crlf.figures, for: .seconds(30 * 86_400), seed: seed)
            #expect(month.lost <= 30, "seed \(seed): \(month)")
        }
    }

    /// A longer interval is tried by one flow alone: the others never die of what is not known yet.
    @Test(arguments: [.seconds(130), .seconds(180), .seconds(400), .seconds(900)] as [Duration])
    func `a hundred flows lose no more than one`(holds: Duration) throws {
        let figures = KeepaliveProtocol.crlf.figures
        let network = try #require(NetworkIdentity(kind: .wifi, gateway: [2, 0, 0, 0, 0, 1]))
        for seed in [1, 2] + seeds(2) {
            var life = NATLife(holds: holds)
            (life.flows, life.chancePer10000) = (100, 0)
            var learner = AdaptiveInterval()
            let day = life.run(&learner, on: network, figures, for: .seconds(2 * 3600), seed: seed)
            #expect(day.lost <= 4, "seed \(seed)")
            #expect(day.interval <= holds, "seed \(seed)")
        }
    }

    @Test(arguments: [1, 2, 3] + seeds(2)) func `a network that changes is learned anew`(seed: UInt64) throws {
        let figures = KeepaliveProtocol.crlf.figures
        let network = try #require(NetworkIdentity(kind: .wifi, gateway: [2, 0, 0, 0, 0, 1]))
        var learner = AdaptiveInterval()
        _ = NATLife(holds: .seconds(900)).run(&learner, on: network, figures, for: .seconds(86_400), seed: seed)
        let shorter = NATLife(holds: .seconds(100)).run(
            &learner, on: network, figures, from: .seconds(100_000), for: .seconds(86_400), seed: seed &+ 1)
        #expect(shorter.interval <= .seconds(100))
        #expect(shorter.lost <= 12)
    }

    @Test(arguments: [1, 2, 3] + seeds(2)) func `no text makes it trap or break its bounds`(seed: UInt64) throws {
        var random = SplitMix64(seed: seed)
        let figures = KeepaliveProtocol.crlf.figures
        let network = try #require(NetworkIdentity(kind: .wifi, gateway: [2]))
        let characters = Array("0123456789abcdef -/:.\nwifi-")
        for _ in 0..<300 {
            var text = "dialtone-keepalive-intervals 2\n"
            for _ in 0..<random.below(12) {
                let interval = random.next() >> UInt64(random.below(64))
                text += "\(random.below(3)) wifi 02 - - \(interval) \(random.below(9)) - 1 1\n"
                text += String((0..<random.below(40)).map { _ in characters[random.below(characters.count)] }) + "\n"
            }
            var learner = AdaptiveInterval.users(in: text).first?.learned ?? AdaptiveInterval()
            #expect(figures.intervals.contains(learner.interval(on: network, figures)))
            learner.survived(.seconds(1 << 40), on: network, figures)
            learner.died(after: .seconds(-1), sentAt: .zero, on: network, figures)
            #expect(figures.intervals.contains(learner.interval(on: network, figures)))
            let kept = AdaptiveInterval.text(of: [.init(user: 7, learner)])
            #expect(AdaptiveInterval.text(of: AdaptiveInterval.users(in: kept)) == kept)
        }
    }
}
