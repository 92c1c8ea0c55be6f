// SPDX-License-Identifier: Apache-2.0

internal import CBench
internal import DialtoneLabSupport
internal import DialtonePlatform

/// The second uplink gets the better default route while the first one works on: for how long the connection has no
/// flow that works, with and without `make_before_break`.
///
/// With two kinds of router. One passes packets whatever their source, and the old flow works on, by the new way. The
/// other drops those that come by the second uplink with an address of the first, as most do (`rp_filter`, BCP 38):
/// from the change on, the server hears no more of the old flow.
enum RoamProbe {
    struct Figures {
        /// The open router, with: from the end of the old flow to the new one's accept; negative where the new one
        /// came first. The bare reader's part is from the route's change to that end.
        var moved: Measurement
        /// The open router, without: how often the flow had not moved after ``patience``, and of how many.
        var kept: (count: Int, of: Int)
        /// The strict router, with and without: from the bare reader's wake-up to the new flow's accept.
        var strict: Measurement
        var strictWithout: Measurement
    }

    /// Longer than a flow has to prove itself.
    private static let patience = Duration.seconds(4)
    /// Rounds that take seconds each.
    private static let fewRounds = 5

    static func measure(_ daemon: String) async throws -> Figures {
        try await LabNetwork.with { lab in
            let roam = try await Roam(daemon, in: lab)
            let moved = try await roam.measure(
                Rounds(count: 40, warmUp: 3, pause: .milliseconds(300)), against: roam.ends, makeBeforeBreak: true)
            let kept = try await roam.measure(
                Rounds(count: fewRounds, warmUp: 0, patience: patience), against: roam.ends, makeBeforeBreak: false)
            try await lab.router.sysctl([("net.ipv4.conf.wan1.rp_filter", "1")])
            return Figures(
                moved: moved, kept: (kept.missed, kept.missed + kept.samples.count),
                strict: try await roam.measure(
                    Rounds(count: 40, warmUp: 3, pause: .milliseconds(300)), against: roam.bare,
                    makeBeforeBreak: true),
                strictWithout: try await roam.measure(
                    Rounds(count: fewRounds, warmUp: 0, patience: patience * 2), against: roam.bare,
                    makeBeforeBreak: false))
        }
    }
}

/// A daemon with one connection, and who watches it.
private struct Roam {
    let port: UInt16 = 7000
    let agent: Agent
    let bare: Stamper
    let accepted: Stamper
    let ends: Stamper
    let better: RouteChanger

    init(_ daemon: String, in lab: LabNetwork) async throws {
        let port = port
        (accepted, ends) = try await lab.server.run {
            (
                try Stamper(opened("listening", bench_open_listener(port)), BENCH_CONNECTIONS),
                try Stamper(opened("opening a packet socket", bench_open_packets()), BENCH_ENDS)
            )
        }
        (bare, better) = try await lab.host.run {
            let route = bench_route(
                (0, 0, 0, 0), length: 0, via: (198, 51, 100, 1), metric: LabNetwork.preferredMetric)
            return (try Stamper.bareReader(), try RouteChanger(route))
        }
        agent = try await Agent(daemon, on: lab.host)
    }

    /// Each round begins with a new connection over the first uplink.
    func measure(_ rounds: Rounds, against first: Stamper, makeBeforeBreak: Bool) async throws -> Measurement {
        let measurement = try await rounds.measure(against: first, accepted) { round in
            if round > -rounds.warmUp { try better.change(add: false) }
            try await agent.reopen(port: port, makeBeforeBreak: makeBeforeBreak)
        } event: { _ in
            try better.change(add: true)
        }
        try better.change(add: false)
        return measurement
    }
}
