// SPDX-License-Identifier: Apache-2.0

internal import CBench
internal import DialtoneAPI
internal import DialtoneLabSupport
internal import DialtonePlatform

/// Ten thousand connections of one daemon: until they stand, at rest, and when their path is back after an outage.
enum ManyProbe {
    static let connections = 10_000
    private static let port: UInt16 = 7000

    struct Figures: Sendable {
        /// From the daemon's start until the server had the last connection.
        var ready: Int64
        var rest: IdleProbe.Rest
        /// From the return of the route until the server saw the first SYN and the last one, and had accepted the last
        /// connection.
        var firstSYN: Int64
        var lastSYN: Int64
        var accepted: Int64
        /// How many SYN there were, and the most in a second and in ten milliseconds.
        var syns: Int
        var mostInSecond: Int
        var mostInTenMilliseconds: Int
    }

    static func measure(_ daemon: String) async throws -> Figures {
        try await LabNetwork.with { lab in
            try await lab.removeDefaultRoute(via: .wan1)
            // After an outage the ports of the old flows are taken for a while. Where most of them are, the kernel
            // looks for a free one through all (`__inet_hash_connect`), and the default range has 28,232.
            try await lab.host.sysctl([("net.ipv4.ip_local_port_range", "1024 65535")])
            let (server, segments) = try await lab.server.run {
                (
                    try Stamper(opened("listening", bench_open_listener(port)), BENCH_CONNECTIONS),
                    try Stamper(opened("opening a packet socket", bench_open_packets()), BENCH_SYNS)
                )
            }
            // A row behind this one needs the descriptors.
            defer { bench_close_connections(server.handle) }
            let route = try await lab.host.run { try RouteChanger(.wan0) }
            let text = Agent.configuration(connections, port: port)
            let (agent, ready) = try await MemoryProbe.start(daemon, connections, text, on: lab.host, server)
            defer { withExtendedLifetime(agent) {} }
            let rest = try await IdleProbe.rest(of: agent, with: connections, on: lab.host)
            try route.change(add: false)
            try await agent.wait(for: .waiting, of: connections)
            bench_close_connections(server.handle)
            let before = (accepted: server.count, syns: segments.count)
            let start = bench_now()
            try route.change(add: true)
            try await MemoryProbe.wait(for: server, toReach: before.accepted + connections)
            // What is repeated because an answer did not come at once comes after a second.
            try await agent.wait(for: .ready, of: connections)
            try await Task.sleep(for: .seconds(2))
            let syns = (before.syns..<segments.count).map { segments[$0] }
            return Figures(
                ready: ready, rest: rest, firstSYN: (syns.first ?? start) - start,
                lastSYN: (syns.last ?? start) - start,
                accepted: server[before.accepted + connections - 1] - start, syns: syns.count,
                mostInSecond: syns.most(within: .seconds(1)),
                mostInTenMilliseconds: syns.most(within: .milliseconds(10)))
        }
    }
}

extension [Int64] {
    /// The most of these instants, in order, that lie within such a time.
    fileprivate func most(within time: Duration) -> Int {
        var (most, first) = (0, 0)
        for last in indices {
            while self[last] - self[first] >= time.nanoseconds { first += 1 }
            most = Swift.max(most, last - first + 1)
        }
        return most
    }
}
