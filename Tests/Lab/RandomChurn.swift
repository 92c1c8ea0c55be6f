// SPDX-License-Identifier: Apache-2.0

import DialtoneLabSupport
import DialtoneNetworkPath
import DialtoneTestSupport
import Reachability

/// Random changes of the host's network, of every kind that `ip` can make, by a seed.
struct RandomChurn {
    private var random: SplitMix64

    init(seed: UInt64) {
        random = SplitMix64(seed: seed)
    }

    /// Targets in, beside and outside of the networks that change.
    static let questions: [Question] =
        (0..<8).map { .address("203.0.113.\($0 * 32 + 10)") }
        + [
            "198.18.0.1", "198.18.1.1", "10.9.0.7", "192.0.2.1", "192.0.2.2", "198.51.100.1", "2001:db8:c::10",
            "fd00::7",
        ]
        .map { .address($0) }
        + [
            .address("203.0.113.10") { $0.mark = 7 }, .address("203.0.113.10") { $0.interface = "wan1" },
            .address("203.0.113.10") { $0.interface = "extra0" },
            .address("203.0.113.10") { $0.source = IPAddress("192.0.2.2") },
            .address("203.0.113.10") { $0.source = IPAddress("10.9.0.1") },
            .address("2001:db8:c::10") { $0.source = IPAddress("2001:db8:a::2") },
            .network(.any), .network(.requires(.virtual)), .network(.prohibits([.bridge])),
        ]

    /// One to five commands for `ip`.
    mutating func burst() -> [String] {
        // Left to itself, chance takes down more than it builds.
        let repair = random.chance(40) ? self.repair(of: pick(Uplink.allCases)) : []
        return repair + (0..<Int.random(in: 1...5, using: &random)).map { _ in command() }
    }

    private func repair(of uplink: Uplink) -> [String] {
        ["link set \(uplink.name) up"]
            + Family.allCases.flatMap { family in
                [
                    "address replace \(uplink.prefix(family)) dev \(uplink.name)" + (family == .v6 ? " nodad" : ""),
                    "route replace default via \(uplink.gateway(family)) dev \(uplink.name) metric \(uplink.metric)",
                ]
            }
    }

    /// An uplink whose far end goes up or down.
    mutating func carrier() -> (Uplink, isUp: Bool)? {
        guard random.chance(25) else { return nil }
        return (pick(Uplink.allCases), random.chance(60))
    }

    /// A kernel parameter and its new value.
    mutating func setting() -> (String, String)? {
        guard random.chance(15) else { return nil }
        let family = pick(["ipv4", "ipv6"])
        return ("net.\(family).conf.\(pick(Self.uplinks)).ignore_routes_with_linkdown", pick(["0", "1"]))
    }

    private static let uplinks = Uplink.allCases.map(\.name)
    private static let links = uplinks + ["extra0", "br0"]
    private static let prefixes = [
        "default", "0.0.0.0/1", "203.0.113.0/24", "203.0.113.64/26", "203.0.113.10", "198.18.0.0/16", "10.9.0.0/24",
    ]

    private mutating func pick<T>(_ choices: [T]) -> T { choices[Int.random(in: 0..<choices.count, using: &random)] }

    private mutating func command() -> String {
        switch Int.random(in: 0..<16, using: &random) {
        case 0, 1: "link set \(pick(Self.links)) \(pick(["up", "up", "down"]))"
        case 2: pick(["link add extra0 type veth peer name far0", "link delete extra0", "link set far0 up"])
        case 3: pick(["link add br0 type bridge", "link delete br0", "link set extra0 master br0"])
        case 4: pick(["link set extra0 nomaster", "link set extra0 name extra1", "link set extra1 name extra0"])
        case 5, 6: address()
        case 7, 8, 9: route()
        case 10: route6()
        case 11: multipath()
        case 12:
            "route \(pick(["add", "delete"])) \(pick(["blackhole", "unreachable", "prohibit"])) \(pick(Self.prefixes))"
        case 13: rule()
        default: nextHop()
        }
    }

    private mutating func address() -> String {
        let address = pick([
            "192.0.2.2/24 dev wan0", "198.51.100.2/24 dev wan1", "10.9.0.1/24 dev extra0", "10.9.0.1/24 dev br0",
            "192.0.2.9/24 dev wan0", "2001:db8:a::2/64 dev wan0 nodad", "2001:db8:b::2/64 dev wan1 nodad",
            "fd00::1/64 dev extra0 nodad", "2001:db8:a::9/64 dev wan0 nodad preferred_lft 0",
        ])
        return "address \(pick(["add", "replace", "delete"])) \(address)"
    }

    private mutating func gateway() -> String {
        pick(Uplink.allCases.map { "via \($0.gateway(.v4)) dev \($0.name)" } + ["dev extra0", "dev br0", "dev wan1"])
    }

    private mutating func route() -> String {
        let options = pick(["", "", "table 100", "src 192.0.2.2", "onlink"])
        return "route \(pick(["add", "replace", "append", "delete"])) \(pick(Self.prefixes)) \(gateway()) "
            + "metric \(pick([0, 50, 100, 200])) \(options)"
    }

    private mutating func route6() -> String {
        let (verb, uplink) = (pick(["add", "replace", "append", "delete"]), pick(Uplink.allCases))
        let prefix = pick(["default", "2001:db8:c::/64", "fd00::/8"])
        return "-6 route \(verb) \(prefix) via \(uplink.gateway(.v6)) dev \(uplink.name) "
            + "metric \(pick([100, 200, 1024]))"
    }

    private mutating func multipath() -> String {
        let hops = Uplink.allCases.map { "nexthop via \($0.gateway(.v4)) dev \($0.name)" }.joined(separator: " ")
        return "route \(pick(["replace", "delete"])) \(pick(Self.prefixes)) \(hops)"
    }

    private mutating func rule() -> String {
        let selector = pick(["fwmark 7", "to 203.0.113.64/26", "ipproto tcp dport 1883", "from 192.0.2.2", "oif wan1"])
        let action = pick(["lookup 100", "prohibit", "blackhole"])
        return "rule \(pick(["add", "delete", "delete"])) \(selector) \(action)"
    }

    private mutating func nextHop() -> String {
        let id = pick([8, 9])
        switch Int.random(in: 0..<4, using: &random) {
        case 0: return "nexthop \(pick(["add", "replace"])) id \(id) \(gateway())"
        case 1: return "nexthop delete id \(id)"
        case 2: return "nexthop \(pick(["add", "replace"])) id 10 group 8/9"
        default: return "route \(pick(["add", "replace"])) \(pick(Self.prefixes)) nhid \(pick([8, 9, 10]))"
        }
    }
}
