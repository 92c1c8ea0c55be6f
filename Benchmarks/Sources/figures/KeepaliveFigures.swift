// SPDX-License-Identifier: Apache-2.0

internal import Models
internal import Supervisor
internal import TestSupport

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

    static func tables() -> String {
        var lines = [
            "| load of 1,000 keepalives | each for itself | each wake at the last moment | planned | lower bound |",
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
