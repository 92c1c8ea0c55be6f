// SPDX-License-Identifier: Apache-2.0

import DialtoneLabSupport
import DialtoneNetlink
import DialtoneNetworkPath
import DialtoneTestSupport
import Reachability
import Testing

/// The path without an interface, as it is predicted, against the path once that interface is gone.
@Suite(.lab)
struct WhatIfTests {
    @Test(arguments: seeds(4))
    func `what is predicted is what the kernel does once the interface is gone`(seed: UInt64) async throws {
        var random = SplitMix64(seed: seed)
        var verdicts: [Path.Status: Int] = [:]
        for round in 0..<12 {
            // In some rounds no table is read whole, as on a router. Not everything can be seen through then.
            let isRouter = random.chance(30)
            let network = RandomNetwork(&random, isPlain: isRouter)
            let machine = try await network.build()
            let mostRoutes = isRouter ? 1 : KernelInspector.mostRoutes
            let lost = network.interfaces.randomElement(using: &random) ?? "wan0"
            let targets = network.targets(&random)
            let predicted = try await machine.run {
                try targets.map { try verdict(on: $0, without: lost, mostRoutes: mostRoutes) }
            }
            try await machine.ip("link delete \(lost)")
            for (target, prediction) in zip(targets, predicted) {
                verdicts[prediction.path.status, default: 0] += 1
                #expect(
                    prediction.decisive == (prediction.path.status == .satisfied ? 0 : 1), "seed \(seed): \(target)")
                var truth: Verdict?
                do {
                    // What lived by the lost interface loses its carrier a moment later.
                    try await machine.changes.wait(for: "the prediction to come true") {
                        let now = try await machine.run { try verdict(on: target) }
                        truth = now
                        return prediction.comesTrue(now) ? () : nil
                    }
                } catch {
                    Issue.record(
                        """
                        \(error)
                        seed \(seed), round \(round), without \(lost), of a table \(mostRoutes) routes read: \(target)
                        predicted \(prediction)
                        is        \(truth.map { "\($0)" } ?? "unknown")
                        \(network.commands.values.joined().joined(separator: "\n"))
                        \(try await machine.ip("rule"))
                        \(try await machine.ip("-6 rule"))
                        \(try await machine.ip("route show table all"))
                        \(try await machine.ip("-6 route show table all"))
                        """)
                    return
                }
            }
        }
        // A network in which nothing can be reached, or everything, would prove nothing.
        #expect((verdicts[.satisfied] ?? 0) > 20 && (verdicts[.unsatisfied] ?? 0) > 20, "\(verdicts)")
    }

    @Test func `a rule for packets bound to an interface has no say in the source of others`() async throws {
        try await LabNetwork.with { lab in
            try await lab.host.ip(batch: [
                "link add other0 type veth peer name other1", "link set other1 up", "link set other0 up",
                "address add 2001:db8:99::2/64 dev other0 nodad",
                "route add default via \(Uplink.wan0.gateway(.v6)) dev wan0 table 101 src 2001:db8:99::2",
            ])
            try await lab.addRule(.v6, "oif wan0 lookup 101")
            // Beside this machine, by the route that came with its address.
            let target = Target(.init(Uplink.wan0.gateway(.v6)))
            let predicted = try await lab.host.run {
                try verdict(on: target, without: "wan1", mostRoutes: KernelInspector.mostRoutes)
            }
            #expect(predicted.path.source == IPAddress(Uplink.wan0.address(.v6)))
            try await lab.host.ip("link delete wan1")
            try await lab.host.changes.wait(for: "the prediction to come true") {
                let now = try await lab.host.run { try verdict(on: target) }
                return predicted.comesTrue(now) ? () : nil
            }
        }
    }
}

/// What of a path the kernel decides.
private struct Verdict: CustomStringConvertible {
    let path: Path
    /// The step that tells of next hops.
    let hops: String
    /// How many steps are said to have decided.
    let decisive: Int

    /// Whether what happened is what was predicted: the same, or where the choice was open another of the same choices.
    func comesTrue(_ truth: Verdict) -> Bool {
        guard hops.hasSuffix("which of them is open") else { return description == truth.description }
        return hops.prefix { $0 != ";" } == truth.hops.prefix { $0 != ";" }
    }

    var description: String {
        let way = [path.interface?.name, path.gateway?.description, path.source?.description].map { $0 ?? "-" }
        return "\(path.status) \(path.reason.map(\.rawValue) ?? "-") \(way.joined(separator: " ")) \(path.isDirect)"
    }
}

private func verdict(
    on target: Target, without interface: String? = nil, mostRoutes: Int = KernelInspector.mostRoutes
) throws -> Verdict {
    guard case .address(let address) = target.host else { preconditionFailure("names are not looked up here") }
    let inspector = try PathInspector(without: interface)
    inspector.mostRoutes = mostRoutes
    let explanation = try inspector.explanation(of: target, at: [address])
    let hops = explanation.steps.first { $0.subject == .nexthop }?.text ?? ""
    return Verdict(path: explanation.path, hops: hops, decisive: explanation.steps.filter(\.isDecisive).count)
}

/// A machine with two or three uplinks, links on them, and rules, tables, routes and next-hop objects at random.
private struct RandomNetwork {
    private(set) var links: [String] = []
    private(set) var settings: [(String, String)] = []
    private(set) var commands: [Family: [String]] = [:]
    private(set) var cut: [String] = []
    private(set) var interfaces: [String] = []

    private var nextHopObjects = 0

    private static let tables = ["main", "main", "main", "100", "101"]

    init(_ random: inout SplitMix64, isPlain: Bool) {
        let uplinks = (0..<Int.random(in: 2...3, using: &random)).map { "wan\($0)" }
        for uplink in uplinks {
            links += [
                "link add \(uplink) type veth peer name far-\(uplink)", "link set far-\(uplink) up",
                "link set \(uplink) up",
            ]
        }
        interfaces = uplinks
        if random.chance(40) {
            links += ["link add mac0 link wan0 type macvlan mode bridge", "link set mac0 up"]
            interfaces.append("mac0")
        }
        if random.chance(40) {
            links += [
                "link add port0 type veth peer name far-port0", "link set far-port0 up", "link set port0 up",
                "link add br0 type bridge", "link set port0 master br0", "link set br0 up",
            ]
            interfaces.append("br0")
        }
        let networked = interfaces
        if interfaces.contains("br0") { interfaces.append("port0") }
        for name in networked where random.chance(25) {
            settings.append(("net.ipv4.conf.\(name).ignore_routes_with_linkdown", "1"))
            settings.append(("net.ipv6.conf.\(name).ignore_routes_with_linkdown", "1"))
        }
        if random.chance(30) { settings.append(("net.ipv6.conf.all.forwarding", "1")) }
        addAddresses(networked, &random)
        for _ in 0..<Int.random(in: 3...12, using: &random) { addRoute(networked, isPlain, &random) }
        for _ in 0..<Int.random(in: 0...4, using: &random) { addRule(networked, isPlain, &random) }
        for (name, family) in networked.flatMap({ name in Family.allCases.map { (name, $0) } }) where random.chance(15)
        {
            add(family, "neigh replace \(Self.gateway(name, family)) dev \(name) nud failed \(Namespace.isKept)")
        }
        cut = uplinks.filter { _ in random.chance(15) }
    }

    private static func network(_ name: String, _ family: Family) -> String {
        let number = ["wan0": 0, "wan1": 1, "wan2": 2, "mac0": 3, "br0": 4][name] ?? 9
        return family == .v4 ? "10.0.\(number)." : "2001:db8:\(number)::"
    }

    private static func address(_ name: String, _ family: Family) -> String { network(name, family) + "2" }
    private static func gateway(_ name: String, _ family: Family) -> String { network(name, family) + "1" }

    private mutating func add(_ family: Family, _ command: String) { commands[family, default: []].append(command) }

    private mutating func addAddresses(_ names: [String], _ random: inout SplitMix64) {
        for name in names {
            // An interface without an address of its own borrows one.
            if random.chance(90) { add(.v4, "address add \(Self.address(name, .v4))/24 dev \(name)") }
            if random.chance(90) { add(.v6, "address add \(Self.address(name, .v6))/64 dev \(name) nodad") }
        }
    }

    private mutating func addRoute(_ names: [String], _ isPlain: Bool, _ random: inout SplitMix64) {
        let family = random.chance(50) ? Family.v4 : .v6
        let far =
            family == .v4
            ? ["203.0.113.0/24", "203.0.112.0/20", "203.0.113.9/32"]
            : ["2001:db8:c::/48", "2001:db8:c::9/128", "2001:d00::/24"]
        let prefix = (["default", "default", "default"] + far).randomElement(using: &random) ?? "default"
        let table = Self.tables.randomElement(using: &random) ?? "main"
        let tail = "table \(table) metric \(Int.random(in: 1...400, using: &random))"
        let name = names.randomElement(using: &random) ?? "wan0"
        let gateway = Self.gateway(name, family)
        let other = names.randomElement(using: &random) ?? "wan1"
        let verb = "route add"
        switch Int.random(in: 0..<100, using: &random) {
        case ..<45,
            ..<84 where isPlain:
            add(family, "\(verb) \(prefix) via \(gateway) dev \(name) onlink \(tail)")
        case ..<53:
            add(
                family, "\(verb) \(prefix) via \(gateway) dev \(name) onlink \(tail) src \(Self.address(other, family))"
            )
        case ..<58: add(family, "\(verb) \(prefix) dev \(name) \(tail)")
        case ..<68 where name != other:
            add(
                family,
                "\(verb) \(prefix) \(tail) nexthop via \(gateway) dev \(name) onlink"
                    + " nexthop via \(Self.gateway(other, family)) dev \(other) onlink")
        case ..<80:
            let id = 10 * (nextHopObjects + 1)
            nextHopObjects += 1
            add(family, "nexthop add id \(id + 1) via \(gateway) dev \(name)")
            add(family, "nexthop add id \(id + 2) via \(Self.gateway(other, family)) dev \(other)")
            add(family, "nexthop add id \(id + 3) group \(id + 1)/\(id + 2)")
            add(family, "\(verb) \(prefix) nhid \(id + Int.random(in: 1...3, using: &random)) \(tail)")
        case ..<84 where family == .v4:
            add(family, "\(verb) \(prefix) via inet6 \(Self.gateway(name, .v6)) dev \(name) \(tail)")
        default:
            let kinds = ["blackhole", "unreachable", "prohibit"] + (isPlain ? [] : ["throw"])
            let kind = kinds.randomElement(using: &random) ?? "prohibit"
            add(family, "\(verb) \(kind) \(prefix) \(tail)")
        }
    }

    private mutating func addRule(_ names: [String], _ isPlain: Bool, _ random: inout SplitMix64) {
        let family = random.chance(50) ? Family.v4 : .v6
        let selectors = [
            "fwmark 7", "fwmark 0x6/0x2", "not fwmark 7", "ipproto tcp dport 5060", "ipproto udp", "uidrange 1000-2000",
            "iif lo", "iif wan0", "oif \(names.randomElement(using: &random) ?? "wan0")",
            family == .v4 ? "to 203.0.113.0/24" : "to 2001:db8:c::/48",
            family == .v4 ? "from 10.0.0.0/24" : "from 2001:db8::/64", "",
        ]
        let actions = [
            "lookup 100", "lookup 101", "lookup 100", "lookup 101 suppress_prefixlength 0", "lookup 999",
            "lookup main suppress_prefixlength 0", "blackhole", "unreachable", "prohibit", "goto 32766",
        ]
        let selector = selectors.randomElement(using: &random) ?? ""
        let action = actions.randomElement(using: &random) ?? "lookup 100"
        guard !isPlain || !selector.hasPrefix("oif") && !action.contains("suppress") else { return }
        // One that refuses every packet would leave nothing to tell.
        guard !selector.isEmpty || action.hasPrefix("lookup") else { return }
        add(family, "rule add \(selector) \(action)")
    }

    /// Builds it; what the kernel will not have (a route twice, a next hop off its link) is left out.
    func build() async throws -> Namespace {
        let machine = try await Namespace.create("a random network")
        try await machine.sysctl([
            ("net.ipv6.conf.default.accept_dad", "0"), ("net.ipv6.conf.default.router_solicitations", "0"),
        ])
        try await machine.ip(batch: ["link set lo up"] + links)
        for name in interfaces { try await machine.link(name, "has carrier") { $0.hasCarrier } }
        try await machine.sysctl(settings)
        // IPv6 first, for the IPv4 routes by way of it.
        for family in [Family.v6, .v4] {
            let process = try await machine.spawn(["ip", family.rawValue, "-force", "-batch", "-"])
            try process.send((commands[family] ?? []).joined(separator: "\n") + "\n")
            process.closeInput()
            _ = try await process.exit()
        }
        for name in cut {
            try await machine.ip("link set far-\(name) down")
            try await machine.link(name, "has lost its carrier") { $0.operstate != "UP" }
        }
        // IPv6 addresses come a moment after their links, and count as the machine's own a moment after that.
        for name in interfaces where name != "port0" {
            let link = try await machine.link(name, "has no tentative address") { link in
                link.addresses.allSatisfy { $0.tentative != true }
            }
            for address in link.addresses where address.local.contains(":") {
                try await machine.changes.wait(for: "\(address.local) to be local") {
                    let routes = try await machine.ip("-6 route show table local \(address.local)")
                    return routes.isEmpty ? nil : ()
                }
            }
        }
        return machine
    }

    /// What to ask about: hosts far and near, the machine itself, and packets of several kinds.
    func targets(_ random: inout SplitMix64) -> [Target] {
        var targets: [Target] = []
        for family in Family.allCases {
            let hosts =
                (family == .v4
                    ? ["203.0.113.9", "203.0.113.77", "198.51.100.1"]
                    : ["2001:db8:c::9", "2001:db8:c::77", "2001:db8:f::1"])
                + interfaces.filter { $0 != "port0" }.flatMap {
                    [Self.address($0, family), Self.network($0, family) + "77"]
                }
            for host in hosts {
                var target = Target(.init(host))
                if random.chance(40) { target.mark = random.chance(50) ? 7 : 2 }
                if random.chance(30) { target.port = 5060 }
                if random.chance(20) { target.transport = .udp }
                if random.chance(20) { target.user = 1500 }
                if random.chance(5) {
                    target.interface = interfaces.filter { $0 != "port0" }.randomElement(using: &random)
                }
                targets.append(target)
            }
        }
        return targets
    }
}
