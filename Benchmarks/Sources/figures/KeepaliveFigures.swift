// SPDX-License-Identifier: Apache-2.0

import DialtoneCoalescing
internal import DialtoneConnection
internal import DialtoneModels
internal import DialtoneNetworkPath
internal import DialtoneTestSupport

/// Wakes an hour of loads of keepalives, beside what no plan can undercut.
enum KeepaliveFigures {
    private static let hours = 12

    private static func cadence(_ interval: Int, _ tolerance: Int) -> Cadence {
        Cadence(interval: .seconds(interval), tolerance: .seconds(tolerance))
    }

    private static let loads: [(name: String, cadences: [Cadence])] = [
        ("SIP: 120 s, tolerance 25 s", [cadence(120, 25)]),
        ("the same with 5 s of tolerance", [cadence(120, 5)]),
        ("SIP and MQTT: and 57 s, 14 s", [cadence(120, 25), cadence(57, 14)]),
        ("and XMPP: 240 s, 60 s", [cadence(120, 25), cadence(57, 14), cadence(240, 60)]),
        ("and WebSocket: 50 s, 20 s", [cadence(120, 25), cadence(57, 14), cadence(240, 60), cadence(50, 20)]),
        ("two that do not fit: 100 s, 10 s and 130 s, 13 s", [cadence(100, 10), cadence(130, 13)]),
    ]

    static func tables() -> String { "\(wakes())\n\(learning())" }

    /// What learning each of some networks costs and brings, within five hours and within thirty days.
    private static func learning() -> String {
        var lines = [
            "| the network forgets after | interval after 5 h | of what is possible | sockets lost until then "
                + "| the last after | sockets lost in 30 days | keepalives an hour | with 120 s |",
            "| ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
        ]
        let figures = KeepaliveProtocol.crlf.figures
        guard let network = NetworkIdentity(kind: .wifi, gateway: [2, 0, 0, 0, 0, 1]) else { return "" }
        for seconds in [35, 60, 90, 120, 180, 300, 600, 900, 1800, nil] {
            let holds = seconds.map { Duration.seconds($0) }
            var quiet = NATLife(holds: holds)
            (quiet.chancePer10000, quiet.resetPerMille) = (0, 20)
            var learner = AdaptiveInterval()
            let first = quiet.run(&learner, on: network, figures, for: .seconds(5 * 3600), seed: 1)
            learner = AdaptiveInterval()
            let month = NATLife(holds: holds).run(&learner, on: network, figures, for: .seconds(30 * 86_400), seed: 1)
            let possible = min(holds ?? figures.intervals.upperBound, figures.intervals.upperBound)
            let fixed = holds.map { $0 < figures.cadence.interval } ?? false ? "every socket lost" : "30"
            lines.append(
                "| \(seconds.map { "\($0) s" } ?? "never") | \(Int(first.interval / .seconds(1))) s "
                    + "| \(Int(first.interval / possible * 100)) % | \(first.lost) "
                    + "| \(Int(first.lastLoss / .seconds(60))) min | \(month.lost) "
                    + "| \(month.keepalives / 720) | \(fixed) |")
        }
        return lines.joined(separator: "\n") + "\n"
    }

    private static func wakes() -> String {
        var lines = [
            "| load of 1,000 keepalives | each for itself | rule 1 alone | planned | lower bound |",
            "| --- | ---: | ---: | ---: | ---: |",
        ]
        let horizon = Duration.seconds(3600 * hours)
        for (name, cadences) in loads {
            var random = SplitMix64(seed: 1)
            let load = KeepaliveLoad(1000, of: cadences, using: &random)
            let alone = load.items.reduce(0.0) { $0 + .seconds(3600) / $1.cadence.interval }
            let planned = (try? load.planned(until: horizon).wakes).map(anHour) ?? "broken"
            lines.append(
                "| \(name) | \(Int(alone).grouped) | \(anHour(load.atTheLastMoment(until: horizon))) | \(planned) "
                    + "| \(anHour(load.lowerBound(until: horizon))) |")
        }
        return lines.joined(separator: "\n") + "\n"
    }

    private static func anHour(_ count: Int) -> String {
        "\((Double(count) / Double(hours) * 10).rounded() / 10)"
    }
}
