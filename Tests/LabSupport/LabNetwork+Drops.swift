// SPDX-License-Identifier: Apache-2.0

/// Packets that the router loses without a word to anybody.
package enum Drop: String, Hashable, Sendable, CaseIterable {
    /// Those it would forward, in both directions.
    case all = "forward"
    /// Those of the connections that there are by now, as a middlebox does that forgot them. New connections pass.
    case established
    /// Those from the host to the server.
    case fromHost
    /// Those from the server to the host.
    case toHost
    /// Everything that reaches it from the host, neighbour discovery included: the gateway hangs, the carrier stays.
    case gateway
}

/// Silence in the middle.
extension LabNetwork {
    /// Loses packets of an uplink from now on, until ``restore(_:)``. No link changes its state.
    package func drop(_ drop: Drop, on uplink: Uplink) async throws {
        let generation = nextDropGeneration()
        try await router.nft(drop.rules(uplink.name, generation).map { "add rule " + $0 })
    }

    /// Lets all packets of an uplink pass again.
    package func restore(_ uplink: Uplink) async throws {
        try await router.nft([
            "flush chain inet lab \(uplink.name)",
            "flush chain netdev lab \(uplink.name)",
        ])
    }

    /// Gives the router the chains to drop in. The `ct` expression starts connection tracking with the network, so that
    /// every connection is known from its first packet.
    func prepareDrops() async throws {
        var commands = [
            "add table inet lab",
            "add table netdev lab",
            "add chain inet lab forward { type filter hook forward priority filter; }",
            "add rule inet lab forward ct state invalid accept",
        ]
        for uplink in Uplink.allCases.map(\.name) {
            commands += [
                "add chain inet lab \(uplink)",
                "add rule inet lab forward iifname \(uplink) jump \(uplink)",
                "add rule inet lab forward oifname \(uplink) jump \(uplink)",
                "add chain netdev lab \(uplink) { type filter hook ingress device \(uplink) priority filter; }",
            ]
        }
        try await router.nft(commands)
    }
}

extension Drop {
    /// - Parameter generation: higher than in any call before.
    fileprivate func rules(_ uplink: String, _ generation: UInt32) -> [String] {
        switch self {
        case .all: ["inet lab \(uplink) drop"]
        case .established:
            // Not by `ct state established`, which the answer to a first packet is already.
            [
                "inet lab \(uplink) ct state new ct mark set \(generation)",
                "inet lab \(uplink) ct mark < \(generation) drop",
            ]
        case .fromHost: ["inet lab \(uplink) iifname \(uplink) drop"]
        case .toHost: ["inet lab \(uplink) oifname \(uplink) drop"]
        case .gateway: ["netdev lab \(uplink) drop"]
        }
    }
}

extension Namespace {
    /// Runs commands of nft(8), one a line, all or none of them.
    package func nft(_ commands: [String]) async throws {
        try await command(["nft", "-f", "-"], input: commands.joined(separator: "\n") + "\n")
    }
}
