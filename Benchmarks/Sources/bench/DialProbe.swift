// SPDX-License-Identifier: Apache-2.0

internal import CBench
internal import DialtoneAPI
internal import DialtoneLabSupport
internal import DialtonePlatform
internal import Glibc

/// From the kernel's word of a usable route to the first segment of the new connection, as it arrives at the server.
enum DialProbe {
    static func measure(_ daemon: String) async throws -> Measurement {
        try await LabNetwork.with { lab in
            try await lab.removeDefaultRoute(via: .wan1)
            let port: UInt16 = 7000
            let listener = try await lab.server.run { try opened("listening", bench_open_listener(port)) }
            defer { withExtendedLifetime(listener) {} }
            let segments = try await lab.server.run {
                try Stamper(opened("opening a packet socket", bench_open_packets()), BENCH_SYNS)
            }
            let (bare, route) = try await lab.host.run { (try Stamper.bareReader(), try RouteChanger(.wan0)) }
            let agent = try await Agent(daemon, on: lab.host)
            return try await Rounds(count: 200, warmUp: 5).measure(against: bare, segments) { _ in
                // Else each round lasts as long as the grace of a socket whose way is gone.
                try await agent.reopen(port: port, grace: .zero)
                try route.change(add: false)
                try await agent.wait(for: .waiting)
            } event: { _ in
                try route.change(add: true)
            }
        }
    }
}

/// From the kernel's word that the first uplink is down to the new connection over the second.
enum FailoverProbe {
    /// What counts as there again.
    enum End {
        /// The server has accepted the new connection.
        case accepted
        /// The client, which slept, has taken it and read what the server said on it at once.
        case read
    }

    static func measure(_ daemon: String, until end: End) async throws -> Measurement {
        try await LabNetwork.with { lab in
            let port: UInt16 = 7000
            let ends = try await lab.server.run {
                try Stamper(
                    opened("listening", bench_open_listener(port)), end == .read ? BENCH_ANSWERS : BENCH_CONNECTIONS)
            }
            let bare = try await lab.host.run { try Stamper.bareReader() }
            let agent = try await Agent(daemon, on: lab.host)
            if end == .read {
                let client = try await lab.host.spawn([LabAgent.program("sleeper"), "take", agent.socket, "c0"])
                _ = try await client.line(containing: "following")
            }
            return try await Rounds(count: 40, warmUp: 3, pause: .milliseconds(300)).measure(
                against: bare, ends
            ) { _ in
                try await lab.bringUp(.wan0)
                let before = ends.count
                try await agent.reopen(port: port)
                while ends.count == before { usleep(1000) }
                try await agent.waitUntilParked()
            } event: { _ in
                try await lab.takeDown(.wan0)
            }
        }
    }
}

extension bench_route {
    /// The Lab's default route over its first uplink.
    static var wan0: bench_route {
        bench_route((0, 0, 0, 0), length: 0, via: (192, 0, 2, 1), metric: Uplink.wan0.metric)
    }
}
