// SPDX-License-Identifier: Apache-2.0

import DialtoneLabSupport
import DialtoneNetworkPath
import Reachability
import Testing

/// While the kernel asks for a gateway, its entry says nothing: a machine that goes on sending to a dead one has it in
/// `INCOMPLETE` for three seconds, in `FAILED` for a moment, and in `INCOMPLETE` again.
@Suite(.lab)
struct Case10AwaitedGateway {
    @Test(arguments: Family.allCases)
    func `case 10: the first verdict waits until the gateway has failed`(family: Family) async throws {
        try await Self.play(family) { it in
            let paths = PathRecorder(.server(family), by: it.engine)
            let report = try await paths.nextReport("the first verdict")
            #expect(report.path.reason == .gatewayUnreachable, "\(report.path)")
        }
    }

    @Test(arguments: Family.allCases)
    func `case 10: the first verdict waits until the gateway answers`(family: Family) async throws {
        try await Self.play(family) { it in
            let paths = PathRecorder(.server(family), by: it.engine)
            let network = it.watchNetwork()
            try await it.lab.restore(.wan0)
            let report = try await paths.nextReport("the first verdict")
            #expect(report.path.status == .satisfied, "\(report.path)")
            try await network.nextReport("the network's") { $0.status == .satisfied }
        }
    }

    /// Who knows a path already is told at once of another, as a connection has to be that moves.
    @Test func `case 10: a path that changes waits for nothing`() async throws {
        try await KernelCase.play { it in
            let paths = try await it.watch()
            try await it.lab.drop(.gateway, on: .wan1)
            try await it.host.ip("neigh flush dev wan1")
            try await it.host.ip("neigh replace \(Uplink.wan1.gateway(.v4)) dev wan1 use")
            try await it.lab.preferDefaultRoute(via: .wan1, families: [.v4])
            let report = try await paths.nextReport("the other uplink")
            #expect(report.path.status == .satisfied && report.path.interface?.name == "wan1", "\(report.path)")
            try await paths.next("its gateway's failure") { $0.reason == .gatewayUnreachable }
        }
    }

    @Test(arguments: [
        ["check", "SERVER"], ["check", "SERVER", "--explain"], ["check", "SERVER", "--json"],
        ["wait", "SERVER", "--timeout", "5"], ["wait", "--timeout", "5"],
    ])
    func `case 10: the command line does not take a dead gateway for one that answers`(
        arguments: [String]
    ) async throws {
        try await Self.play(.v4) { it in
            try await it.lab.removeDefaultRoute(via: .wan0, families: [.v6])
            let words = arguments.map { $0 == "SERVER" ? LabNetwork.serverAddress(.v4) : $0 }
            let outcome = try await it.host.outcome([LabAgent.program("dialtone")] + words)
            #expect(outcome.exit == .status(1), "\(outcome)")
            if words[0] == "check" {
                #expect(outcome.output.contains("gateway"), "\(outcome)")
            }
        }
    }

    /// A network in which somebody sends by a gateway that does not answer, and the kernel has begun to ask for it.
    private static func play(_ family: Family, _ body: (KernelCase) async throws -> Void) async throws {
        try await KernelCase.play {
            try await $0.removeDefaultRoute(via: .wan1)
            try await $0.drop(.gateway, on: .wan0)
            try await $0.host.ip("neigh flush dev wan0")
            try await $0.host.ip("neigh replace \(Uplink.wan0.gateway(family)) dev wan0 use")
        } _: {
            try await body($0)
        }
    }
}
