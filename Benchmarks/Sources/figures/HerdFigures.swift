// SPDX-License-Identifier: Apache-2.0

internal import DialtoneConnection
internal import DialtoneModels

/// 100,000 agents that lose one server, by family and by what becomes of the server.
enum HerdFigures {
    /// One herd and what became of it.
    struct Life {
        let family: String
        let scenario: Int
        let herd: Herd
        let outcome: Herd.Outcome
    }

    static let seed: UInt64 = 1
    static let agents = 100_000

    static let scenarios: [(name: String, outage: Duration, acceptsEachSecond: Int?)] = [
        ("restarts in 1 s", .seconds(1), nil),
        ("back after 30 s", .seconds(30), nil),
        ("back after 10 min", .seconds(600), nil),
        ("back after 30 s, accepts 500 a second", .seconds(30), 500),
    ]

    private static var families: [(name: String, policy: BackoffPolicy)] {
        var unspread = BackoffPolicy.general
        unspread.spread = .zero
        var slow = BackoffPolicy.general
        slow.base = .seconds(10)
        return [
            ("SIP", .sip), ("MQTT, others", .general), ("with `initial = \"10s\"`", slow), ("without spread", unspread),
        ]
    }

    static func lives() -> [Life] {
        scenarios.indices.flatMap { index in
            families.map { family in
                let herd = Herd(
                    agents: agents, policy: family.policy, outage: scenarios[index].outage,
                    acceptsEachSecond: scenarios[index].acceptsEachSecond)
                return Life(family: family.name, scenario: index, herd: herd, outcome: herd.run(seed: seed))
            }
        }
    }

    static func table(_ lives: [Life]) -> String {
        var lines = [
            "| the server | family | peak a second | of the herd | steady rate | peak once it is back "
                + "| half back after | 99 % after | attempts an agent |",
            "| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
        ]
        for life in lives {
            let (herd, outcome) = (life.herd, life.outcome)
            let back = Int(herd.outage / .seconds(1))
            let half = outcome.second(ofAccepted: agents / 2).map { "\($0 + 1 - back) s" } ?? "never"
            let most = outcome.second(ofAccepted: agents * 99 / 100).map { "\($0 + 1 - back) s" } ?? "never"
            let total = outcome.attempts.reduce(0, +)
            lines.append(
                "| \(scenarios[life.scenario].name) | \(life.family) | \(outcome.peak.grouped) "
                    + "| \(outcome.peak * 100 / agents) % | \(Int(herd.steadyRate).grouped) "
                    + "| \(outcome.peak(from: back).grouped) | \(half) | \(most) "
                    + "| \(Double(total * 10 / agents) / 10) |"
            )
        }
        return lines.joined(separator: "\n")
    }
}

extension Int {
    /// With a comma before each three digits.
    var grouped: String {
        let digits = String(self)
        return digits.enumerated().map { index, digit in
            let left = digits.count - index
            return index > 0 && left % 3 == 0 ? ",\(digit)" : "\(digit)"
        }.joined()
    }
}
