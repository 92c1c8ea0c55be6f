// SPDX-License-Identifier: Apache-2.0

/// Links, their cables, their neighbours, and kernel parameters.
extension ChangeGenerator {
    mutating func linkChange() -> [Change] {
        switch below(100) {
        case ..<22: [.host("link set \(link().name) up")]
        case ..<32: [.host("link set \(link().name) down")]
        case ..<50: carrierChange()
        case ..<68: creation()
        case ..<76: [.host("link delete \(pick(["x0", "x1", "y0", "m0", "b0", "i0"]))")]
        case ..<80: [.host("link set e2 master b0")]
        case ..<84: [.host("link set e2 nomaster")]
        case ..<88: [.host("link set x0 name y0")]
        case ..<91: [.host("link set y0 name x0")]
        // Below 1280 bytes a link is not fit for IPv6 (RFC 8200, section 5), and loses it.
        case ..<94: [.host("link set \(link().name) mtu \(pick([1200, 1400, 1500]))")]
        case ..<95: [.host("link set lo \(pick(["up", "down"]))")]
        // Into another network, from which nothing is heard of it.
        case ..<96: [.host("link set i0 netns FAR"), .far("link delete i0")]
        // By which a rule may pass over the routes of a link.
        case ..<99: [.host("link set \(link().name) group \(pick([0, 7, 7]))")]
        // What is told of and means nothing.
        default: [.host("link set \(link().name) \(pick(["promisc on", "promisc off", "alias cable"]))")]
        }
    }

    private mutating func carrierChange() -> [Change] {
        let name = chance(80) ? "e\(below(3))" : pick(Topology.passing)
        return [.far("link set \(name) \(pick(["up", "up", "down"]))")]
    }

    private mutating func creation() -> [Change] {
        let commands =
            switch below(5) {
            case 0: ["link add name x0 index 30 type veth peer name x0 index 40 netns FAR"]
            case 1: ["link add name x1 index 31 type veth peer name x1 index 41 netns FAR"]
            case 2: ["link add name m0 index 50 link e\(below(3)) type macvlan"]
            case 3: ["link add name b0 index 51 type bridge"]
            default: ["link add name i0 index 52 type ifb"]
            }
        guard chance(70) else { return commands.map(Change.host) }
        let name = String(commands[0].split(separator: " ")[3])
        let number = ["x0": 3, "x1": 4, "m0": 5, "b0": 6, "i0": 7][name, default: 7]
        let cable: [Change] = Topology.passing.contains(name) ? [.far("link set \(name) up")] : []
        return commands.map(Change.host) + cable + Topology.configuration(name, number).map(Change.host)
    }

    mutating func neighbourChange() -> [Change] {
        let gateway = gateway(family())
        let place = "\(gateway.address) dev \(gateway.link)"
        return switch below(100) {
        // The kernel asks for it, as it would for a packet; whether somebody answers is the far machine's affair.
        case ..<30: [.host("neigh replace \(place) use")]
        // An entry that was never valid turns to FAILED without a notice when an administrator says so.
        case ..<50:
            [
                .host("neigh replace \(place) lladdr 02:00:00:00:00:01 nud stale"),
                .host("neigh replace \(place) nud failed"),
            ]
        case ..<62:
            [.host("neigh replace \(place) lladdr 02:00:00:00:00:01 nud \(pick(["reachable", "stale", "permanent"]))")]
        case ..<72: [.host("neigh delete \(place)")]
        case ..<76: [.host("neigh flush dev \(gateway.link)")]
        // The gateway dies and comes back. Nobody notices before a packet wants to go there.
        case ..<88: [.far("address delete \(farAddress())"), .host("neigh replace \(place) use")]
        default: [.far("address replace \(farAddress()) nodad"), .host("neigh replace \(place) use")]
        }
    }

    private mutating func farAddress() -> String {
        let cable = below(3)
        return pick(["10.\(cable).0.1/24", "2001:db8:\(cable)::1/64", "fe80::1/64"]) + " dev e\(cable)"
    }

    mutating func parameterChange() -> [Change] {
        let link = chance(25) ? "all" : "e\(below(3))"
        let family = family()
        return switch below(100) {
        case ..<75:
            [
                .parameter(
                    name: "net.ipv\(family).conf.\(link).ignore_routes_with_linkdown", value: pick(["0", "1", "1"]))
            ]
        case ..<88: [.parameter(name: "net.ipv6.conf.e\(below(3)).keep_addr_on_down", value: pick(["0", "1"]))]
        default: [.parameter(name: "net.ipv6.conf.e\(below(3)).disable_ipv6", value: pick(["0", "0", "1"]))]
        }
    }
}
