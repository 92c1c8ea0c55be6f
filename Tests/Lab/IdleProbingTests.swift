// SPDX-License-Identifier: Apache-2.0

import DialtoneExpectations
import DialtoneLabSupport
import DialtoneNetworkPath
import DialtoneTestSupport
import Reachability
import Testing

/// A dead gateway is asked for while somebody wants to know, and as any user may.
@Suite(.lab)
struct IdleProbingTests {
    @Test func `nobody asks for a dead gateway that nobody asks about`() async throws {
        try await LabNetwork.with { lab in
            try await lab.removeDefaultRoute(via: .wan1)
            let engine = try await lab.engine()
            // The daemon's history is such an observer.
            let history = await engine.observe(.network(.any), isPassive: true) { _, _ in }
            let host = HostReachability(.server(.v4), on: { engine })
            try await lab.setNeighbours([Uplink.wan0.gateway(.v4)], on: .wan0, answering: false)
            for await (path, _) in host.updates where path.reason == .gatewayUnreachable { break }
            try await eventually("no probe without anybody who asks") { engine.probedGateways.isEmpty }
            // It is known for dead all the same, and asked for as soon as somebody wants to know.
            expect(await engine.snapshot.failedNeighbours.count, is: 1)
            for await (path, _) in host.updates where path.status == .satisfied { break }
            try await eventually("no probe afterwards") { engine.probedGateways.isEmpty }
            await history.cancel()
        }
    }

    /// Asked for again, such a gateway is good at once, and the kernel tells nobody. Other users may not have it ask
    /// (`CAP_NET_ADMIN`): they send a packet.
    @Test(.anotherUser, arguments: [[], AnotherUser.command])
    func `a gateway that needs no asking any more is found by any user`(launcher: [String]) async throws {
        try await LabNetwork.with { lab in
            try await lab.removeDefaultRoute(via: .wan1)
            try await lab.drop(.gateway, on: .wan0)
            try await lab.host.failNeighbour("\(Uplink.wan0.gateway(.v4)) dev wan0")
            let server = LabNetwork.serverAddress(.v4)
            let waiting = try await lab.host.spawn(launcher + [LabAgent.program("dialtone"), "wait", server])
            // It probes the gateway, which shows that it has its verdict.
            try await eventually("the gateway is asked for") {
                try await lab.host.ip("neighbour show dev wan0").contains("INCOMPLETE")
            }
            try await lab.host.ip("link set wan0 arp off")
            expect(try await waiting.exit(), is: .status(0), "\(waiting.text(of: .error))")
        }
    }
}
