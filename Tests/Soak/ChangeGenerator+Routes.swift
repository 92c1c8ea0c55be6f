// SPDX-License-Identifier: Apache-2.0

/// Routes of every kind, rules, and next-hop objects.
extension ChangeGenerator {
    mutating func routeChange() -> [Change] {
        let family = family()
        if chance(6) { return [.host(flush(family))] }
        let verb = pick(["add", "add", "replace", "replace", "append", "prepend", "change", "delete", "delete"])
        let key = "\(prefix(family))" + maybe(30, "metric \(pick([0, 10, 100, 1024]))") + table()
        let type = below(100)
        if verb == "delete", type < 50 { return [.host("route delete \(key)")] }
        if type < 22 {
            let kind = pick(["blackhole", "unreachable", "prohibit", "throw"])
            return [.host("route \(verb) \(kind) \(key)")]
        }
        return [.host("route \(verb) \(key)\(attributes(family)) \(hops(family))")]
    }

    private mutating func hops(_ family: Int) -> String {
        switch below(100) {
        case ..<50: hop(family)
        case ..<62: "dev \(link().name)"
        case ..<80: (0...below(3)).map { _ in "nexthop \(hop(family)) weight \(1 + below(3))" }.joined(separator: " ")
        default: "nhid \(pick([1, 2, 3, 4, 5, 6, 10, 11]))"
        }
    }

    private mutating func hop(_ family: Int) -> String {
        // RFC 8950: IPv4 by an IPv6 next hop.
        let gateway = gateway(family == 4 && chance(15) ? 6 : family)
        let via = family == 4 && gateway.address.contains(":") ? "via inet6" : "via"
        return "\(via) \(gateway.address) dev \(gateway.link)" + maybe(25, "onlink")
    }

    /// A next hop: one that is there, or one that nobody is.
    mutating func gateway(_ family: Int) -> (address: String, link: String) {
        let (link, number) = link()
        let addresses =
            family == 4
            ? ["10.\(number).0.1", "10.\(number).0.1", "10.\(number).0.254", "10.\(number).2.1"]
            : ["2001:db8:\(number)::1", "fe80::1", "2001:db8:\(number)::dead", "fe80::1"]
        return (pick(addresses), link)
    }

    private mutating func attributes(_ family: Int) -> String {
        let number = below(3)
        let source = family == 4 ? "10.\(number).0.\(pick([2, 3]))" : "2001:db8:\(number)::\(pick([2, 3]))"
        return maybe(12, "src \(source)") + maybe(5, "mtu 1400") + maybe(5, "tos 0x10")
            + (family == 6 ? maybe(6, "expires 1") + maybe(8, "pref \(pick(["high", "low"]))") : "")
    }

    mutating func prefix(_ family: Int) -> String {
        family == 4
            ? pick([
                "0.0.0.0/0", "0.0.0.0/0", "0.0.0.0/1", "128.0.0.0/1", "198.51.100.0/24", "198.51.100.7/32",
                "203.0.113.0/24",
                "203.0.113.128/25", "172.16.0.0/12", "198.18.\(below(256)).0/24", "10.\(below(5)).0.0/16",
            ])
            : pick([
                "::/0", "::/0", "::/1", "8000::/1", "2000::/3", "2001:db8:aaaa::/48", "2001:db8:aaaa::/64",
                "2001:db8:aaaa::7/128", "2001:db8:bbbb::/64", "2001:db8:5\(below(256))::/48", "fd00::/8",
            ])
    }

    private mutating func table() -> String { maybe(25, "table \(pick([100, 101]))") }

    private mutating func flush(_ family: Int) -> String {
        "-\(family) route flush "
            + pick(["table 100", "table 101", "root \(prefix(family))", "table main dev \(link().name)", "cache"])
    }

    /// A router that comes, goes, and lets its lifetime end before it says anything again.
    mutating func advertisement() -> [Change] {
        let cable = below(3)
        let isBare = chance(30)
        func advertise(_ lifetime: UInt16) -> Change { .advertise(cable: cable, lifetime: lifetime, isBare: isBare) }
        return switch below(100) {
        case ..<30: [advertise(1800)]
        case ..<45: [advertise(0)]
        case ..<70: [advertise(1)]
        case ..<85: [advertise(1), .pause]
        default: [advertise(1), .pause, advertise(pick([1, 1800]))]
        }
    }

    mutating func ruleChange() -> [Change] {
        let family = family()
        let preference = "pref \(100 + below(10))"
        if chance(45) { return [.host("-\(family) rule delete \(preference)")] }
        if chance(4) { return [.host("-\(family) rule \(pick(["add", "delete"])) pref 32766 lookup main")] }
        let selectors = (0...below(2)).map { _ in selector(family) }.joined(separator: " ")
        return [.host("-\(family) rule add \(preference) \(maybe(8, "not")) \(selectors) \(action())")]
    }

    private mutating func selector(_ family: Int) -> String {
        switch below(9) {
        case 0: "fwmark \(pick(["7", "8", "0x7/0x7", "0/0x8"]))"
        case 1: "uidrange \(pick(["1000-1000", "0-0", "500-2000"]))"
        case 2: "ipproto \(pick(["tcp", "udp"]))"
        case 3: "ipproto \(pick(["tcp", "udp"])) dport \(pick(["5060", "5000-6000", "53"]))"
        case 4: "from \(family == 4 ? "10.\(below(3)).0.0/16" : "2001:db8:\(below(3))::/48")"
        case 5, 6: "to \(prefix(family))"
        case 7: "oif \(link().name)"
        default: "iif lo"
        }
    }

    private mutating func action() -> String {
        switch below(100) {
        case ..<60:
            "lookup \(pick([100, 101, 100, 101, 254]))"
                + maybe(15, pick(["suppress_prefixlength 0", "suppress_ifgroup 7"]))
        case ..<85: pick(["blackhole", "unreachable", "prohibit"])
        default: "goto \(pick([105, 109, 32766]))"
        }
    }

    mutating func nextHopChange() -> [Change] {
        let id = 1 + below(6)
        return switch below(100) {
        case ..<50:
            [.host("nexthop \(pick(["add", "replace"])) id \(id) " + (chance(85) ? hopObject() : "blackhole"))]
        case ..<66:
            [
                .host(
                    "nexthop \(pick(["add", "replace"])) id \(pick([10, 11])) group \(members())"
                        + maybe(15, "type mpath"))
            ]
        case ..<96: [.host("nexthop delete id \(pick([id, id, id, 10, 11]))")]
        case ..<98: [.host("nexthop replace id \(pick([10, 11])) group \(members()) type resilient buckets 8")]
        default: [.host("nexthop flush")]
        }
    }

    private mutating func hopObject() -> String {
        if chance(10) { return "dev \(link().name)" }
        let gateway = gateway(family())
        return "via \(gateway.address) dev \(gateway.link)" + maybe(25, "onlink")
    }

    private mutating func members() -> String {
        (0...below(3)).map { _ in "\(1 + below(6)),\(1 + below(3))" }.joined(separator: "/")
    }
}
