// SPDX-License-Identifier: Apache-2.0

internal import DialtonePlatform

/// Three machines in one: a host with two uplinks, the router both lead to, and a server behind it.
///
/// ```
///            wan0 192.0.2.2      ┌────────┐
///           ┌────────────────────┤        │  203.0.113.10
///      host │ wan1 198.51.100.2  │ router ├───────────────── server
///           └────────────────────┤        │  2001:db8:c::10
///                                └────────┘
/// ```
///
/// Both families are set up on every link, with fixed addresses and without duplicate address detection, so that
/// nothing is tentative when a test starts. Each Lab is a world of its own: tests may run side by side.
package final class LabNetwork: Sendable {
    /// The machine under test.
    package let host: Namespace
    /// The router. Its ends of the cables are called like the host's, `wan0` and `wan1`.
    package let router: Namespace
    /// The server's machine.
    package let server: Namespace

    /// The server's address, which is the same over both uplinks.
    package static func serverAddress(_ family: Family) -> String { serverNetwork(family) + "10" }

    private let uplinksWithDetection = Lock<Set<Uplink>>([])
    private let dropGeneration = Lock<UInt32>(0)

    private init(host: Namespace, router: Namespace, server: Namespace) {
        self.host = host
        self.router = router
        self.server = server
    }

    /// Builds a network, runs `body` in it, and takes it down with every process in it, also when `body` throws.
    ///
    /// - Throws: what `body` throws; before that, the kernel's or `ip`'s refusal.
    @discardableResult
    package static func with<T>(_ body: (LabNetwork) async throws -> T) async throws -> T {
        try await run(body, in: try await create())
    }

    static func run<T>(_ body: (LabNetwork) async throws -> T, in lab: LabNetwork) async throws -> T {
        let result: Result<T, any Error>
        do {
            result = .success(try await body(lab))
        } catch {
            result = .failure(error)
        }
        await lab.close()
        return try result.get()
    }

    /// Builds a network, for a caller that ends it with ``close()``. Tests use ``with(_:)``.
    package static func create() async throws -> LabNetwork {
        try await create(hostIn: .new)
    }

    static func create(hostIn location: NamespaceThread.Location) async throws -> LabNetwork {
        async let host = Namespace("the host", in: location)
        async let router = Namespace.create("the router")
        async let server = Namespace.create("the server")
        let lab = LabNetwork(host: try await host, router: try await router, server: try await server)
        try await lab.build()
        return lab
    }

    /// Ends every process of the network. Its links and namespaces go with the last reference.
    package func close() async {
        for machine in [host, server, router] { await machine.close() }
    }
}

extension LabNetwork {
    /// Whether addresses that an uplink gets now go through duplicate address detection.
    func detectsDuplicates(on uplink: Uplink) -> Bool { uplinksWithDetection.withLock { $0.contains(uplink) } }

    func setDetectsDuplicates(_ isOn: Bool, on uplink: Uplink) {
        uplinksWithDetection.withLock { uplinks in
            if isOn { uplinks.insert(uplink) } else { uplinks.remove(uplink) }
        }
    }

    /// A number higher than those before, to tell connections that were there from those that came.
    func nextDropGeneration() -> UInt32 {
        dropGeneration.withLock { generation in
            generation += 1
            return generation
        }
    }

    private static func serverNetwork(_ family: Family) -> String {
        switch family {
        case .v4: "203.0.113."
        case .v6: "2001:db8:c::"
        }
    }

    private func build() async throws {
        for machine in [host, router, server] { try await machine.sysctl(Self.parameters) }
        try await router.sysctl(Self.routerParameters)
        try await router.ip(batch: routerCommands)
        async let hostIsUp: Void = host.ip(batch: hostCommands)
        async let serverIsUp: Void = server.ip(batch: serverCommands)
        async let canDrop: Void = prepareDrops()
        _ = try await (hostIsUp, serverIsUp, canDrop)
        for uplink in Uplink.allCases { try await waitUntilUsable(uplink) }
        for machine in [router, server] {
            try await machine.link("eth0", "has carrier") { $0.hasCarrier }
        }
    }

    /// What must not depend on the machine the tests run on, whose values new namespaces may inherit.
    private static let parameters = [
        // Packets may leave by one uplink and come back by the other.
        ("net.ipv4.conf.all.rp_filter", "0"),
        ("net.ipv4.conf.default.rp_filter", "0"),
        // As systemd has it everywhere: an address added beside the first does not go with it.
        ("net.ipv4.conf.all.promote_secondaries", "1"),
        ("net.ipv6.conf.all.disable_ipv6", "0"),
        ("net.ipv6.conf.default.disable_ipv6", "0"),
        ("net.ipv6.conf.default.accept_dad", "0"),
        ("net.ipv6.conf.default.accept_ra", "0"),
        ("net.ipv6.conf.default.router_solicitations", "0"),
    ]

    private static let routerParameters = [
        ("net.ipv4.ip_forward", "1"),
        ("net.ipv6.conf.all.forwarding", "1"),
        // A cable is cut by taking the router's end down, which must not cost the router its addresses.
        ("net.ipv6.conf.all.keep_addr_on_down", "1"),
        ("net.ipv6.conf.default.keep_addr_on_down", "1"),
    ]

    private var routerCommands: [String] {
        var commands = [
            "link add name eth0 index 30 type veth peer name eth0 index 31 netns \(server.threadID)"
        ]
        for uplink in Uplink.allCases {
            commands.append(
                "link add name \(uplink.name) index \(uplink.index + 10) type veth"
                    + " peer name \(uplink.name) index \(uplink.index) netns \(host.threadID)")
            commands += Family.allCases.map { "address add \(uplink.gatewayPrefix($0)) dev \(uplink.name) nodad" }
            commands.append("link set \(uplink.name) up")
        }
        commands += Family.allCases.map {
            "address add \(Self.serverNetwork($0))1/\(Uplink.prefixLength($0)) dev eth0 nodad"
        }
        return commands + ["link set eth0 up"]
    }

    private var hostCommands: [String] {
        ["link set lo up"]
            + Uplink.allCases.map { "link set \($0.name) up" }
            + Uplink.allCases.flatMap { configuration(of: $0) }
    }

    /// What a network manager does to an uplink that came up: addresses and default routes. Repeating it is harmless.
    func configuration(of uplink: Uplink) -> [String] {
        Family.allCases.map { addressCommand("replace", uplink.prefix($0), uplink) }
            + Family.allCases.map { "route replace " + defaultRoute(via: uplink, $0, metric: uplink.metric) }
    }

    private var serverCommands: [String] {
        ["link set lo up", "link set eth0 up"]
            + Family.allCases.flatMap { family in
                [
                    "address add \(Self.serverAddress(family))/\(Uplink.prefixLength(family)) dev eth0 nodad",
                    "route add default via \(Self.serverNetwork(family))1",
                ]
            }
    }
}
