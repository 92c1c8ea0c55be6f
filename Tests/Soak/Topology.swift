// SPDX-License-Identifier: Apache-2.0

import DialtoneLabSupport

/// The network that is churned: a host, and at the other end of its cables one machine that is all its gateways.
///
/// ```
///   host  e0 10.0.0.2      ───  e0 10.0.0.1   far
///         e1 10.1.0.2      ───  e1 10.1.0.1
///         e2 10.2.0.2      ───  e2 10.2.0.1
///         x0, x1: cables that come and go; m0, b0, i0: a macvlan, a bridge, an ifb
/// ```
///
/// IPv6 likewise: 2001:db8:N::2 and ::1 on cable N. `.254` and `::dead` are gateways that nobody is.
struct Topology: Sendable {
    let host: Namespace
    let far: Namespace

    /// The cables that stay.
    static let cables = [0, 1, 2]
    /// Those that come and go.
    static let passing = ["x0", "x1"]

    /// Builds it, both families usable, everything up.
    static func create() async throws -> Topology {
        let topology = Topology(
            host: try await Namespace.create("the host"), far: try await Namespace.create("the far machine"))
        try await topology.host.sysctl(parameters)
        // As a router it says of itself that it is one.
        try await topology.far.sysctl(
            [("net.ipv6.conf.all.keep_addr_on_down", "1"), ("net.ipv6.conf.all.forwarding", "1")] + parameters)
        try await topology.host.ip(
            batch: ["link set lo up"]
                + cables.map {
                    "link add name e\($0) index 1\($0) type veth"
                        + " peer name e\($0) index 2\($0) netns \(topology.far.threadID)"
                })
        try await topology.far.sysctl(cables.map { ("net.ipv6.conf.e\($0).keep_addr_on_down", "1") })
        try await topology.host.sysctl(cables.flatMap { neighbourTimes("e\($0)") })
        try await topology.host.sysctl(cables.map { ("net.ipv6.conf.e\($0).accept_ra", "1") })
        try await topology.far.ip(batch: ["link set lo up"] + cables.flatMap(farConfiguration))
        try await topology.host.ip(batch: cables.flatMap { configuration("e\($0)", $0) })
        for cable in cables {
            try await topology.host.link("e\(cable)", "has carrier") { $0.hasCarrier }
        }
        return topology
    }

    /// A command that names the far machine as `FAR`, as the kernel here knows it.
    func hostCommand(_ command: String) -> String {
        command.hasSuffix("netns FAR") ? command.dropLast(3) + "\(far.threadID)" : command
    }

    func close() async {
        await host.close()
        await far.close()
    }

    /// What the far machine has on a cable.
    static func farConfiguration(_ cable: Int) -> [String] {
        [
            "address replace 10.\(cable).0.1/24 dev e\(cable)",
            "address replace 2001:db8:\(cable)::1/64 dev e\(cable) nodad",
            "address replace fe80::1/64 dev e\(cable) nodad",
            "link set e\(cable) up",
        ]
    }

    /// What a network manager on the host does to a link.
    static func configuration(_ link: String, _ number: Int) -> [String] {
        [
            "link set \(link) up",
            "address replace 10.\(number).0.2/24 dev \(link)",
            "address replace 2001:db8:\(number)::2/64 dev \(link) nodad",
            "route replace default via 10.\(number).0.1 dev \(link) metric \(100 + number)",
            "route replace default via 2001:db8:\(number)::1 dev \(link) metric \(100 + number)",
        ]
    }

    /// Where the kernel waits for another machine's answer, it is not to wait for seconds.
    private static func neighbourTimes(_ link: String) -> [(String, String)] {
        ["ipv4", "ipv6"].flatMap { family in
            [
                ("net.\(family).neigh.\(link).retrans_time_ms", "20"),
                ("net.\(family).neigh.\(link).mcast_solicit", "1"),
                ("net.\(family).neigh.\(link).ucast_solicit", "1"),
            ]
        }
    }

    private static let parameters = [
        ("net.ipv4.conf.all.rp_filter", "0"),
        ("net.ipv6.conf.all.disable_ipv6", "0"),
        ("net.ipv6.conf.default.disable_ipv6", "0"),
        ("net.ipv6.conf.default.accept_ra", "0"),
        ("net.ipv6.conf.default.router_solicitations", "0"),
        ("net.ipv6.conf.default.router_solicitation_delay", "0"),
        // Of an expired route whose message was lost with others, the product is told when the kernel sweeps its table:
        // after half a minute, if left to itself.
        ("net.ipv6.route.gc_interval", "1"),
    ]
}
