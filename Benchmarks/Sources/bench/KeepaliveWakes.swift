// SPDX-License-Identifier: Apache-2.0

import DialtoneCoalescing
internal import DialtoneConnection
internal import DialtoneModels
internal import DialtoneTestSupport

/// How often the keepalives of a thousand connections wake the process, in virtual time: as the daemon plans it, and as
/// no plan can undercut. `docs/keepalive.md` has more loads.
enum KeepaliveWakes {
    struct Figures {
        /// What the connections are.
        let load: String
        /// Wakes an hour: one for each keepalive, as planned, and the least that any plan can do with.
        let each: Double
        let planned: Double
        let lowerBound: Double
    }

    private static let connections = 1000
    /// Long enough that the first minutes, in which groups find each other, weigh little.
    private static let hours = 12

    private static func cadence(_ kind: KeepaliveProtocol) -> Cadence { kind.figures.cadence }

    /// Of twenty connections, what each is.
    private static let loads: [(name: String, cadences: [Cadence])] = [
        ("1,000 of SIP", [cadence(.crlf)]),
        (
            "500 SIP, 250 MQTT, 200 XMPP, 50 WebSocket",
            [KeepaliveProtocol](repeating: .crlf, count: 10).map(cadence)
                + [KeepaliveProtocol](repeating: .mqtt, count: 5).map(cadence)
                + [KeepaliveProtocol](repeating: .xmppPing, count: 4).map(cadence) + [cadence(.websocket)]
        ),
    ]

    static func compute() throws -> [Figures] {
        try loads.map { name, cadences in
            var random = SplitMix64(seed: 1)
            let load = KeepaliveLoad(connections, of: cadences, using: &random)
            let horizon = Duration.seconds(3600 * hours)
            return Figures(
                load: name, each: load.items.reduce(0) { $0 + .seconds(3600) / $1.cadence.interval },
                planned: Double(try load.planned(until: horizon).wakes) / Double(hours),
                lowerBound: Double(load.lowerBound(until: horizon)) / Double(hours))
        }
    }
}
