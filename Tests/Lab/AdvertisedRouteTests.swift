// SPDX-License-Identifier: Apache-2.0

import DialtoneExpectations
import DialtoneLabSupport
import DialtoneNetworkPath
import DialtoneTestSupport
import Reachability
import Testing

/// Default routes that a router advertises: they end without a message, and come back without one.
@Suite(.lab)
struct AdvertisedRouteTests {
    /// Between the end of its lifetime and the kernel's sweep a route stands in its table and is passed over. An
    /// advertisement in that time prolongs it, and no message tells of the route.
    @Test(arguments: [[], [.prefix], [.nameServer]] as [Set<AdvertisedOption>])
    func `a route that has ended is taken again when its router prolongs it`(
        options: Set<AdvertisedOption>
    ) async throws {
        try await LabNetwork.with { lab in
            // No sweep, so that the route is there whenever the test looks.
            try await lab.host.sysctl([("net.ipv6.route.gc_interval", "3600")])
            for uplink in Uplink.allCases { try await lab.removeDefaultRoute(via: uplink, families: [.v6]) }
            try await lab.acceptAdvertisements(on: .wan0)
            let recorder = try await EngineRecorder.start(on: lab.host)
            let server = Question.address(LabNetwork.serverAddress(.v6))
            try await recorder.watch([server])
            for round in 1...2 {
                try await lab.advertise(lifetime: 2, options, on: .wan0)
                try await recorder.path(to: server, "the route, round \(round)") { $0.status == .satisfied }
                try await recorder.path(to: server, "its end, round \(round)") { $0.reason == .noRoute }
                expect(try await lab.host.ip("-6 route show default")) { $0.contains("proto ra") }
            }
        }
    }

    /// Who begins to look in between knows nothing of the route.
    @Test func `a route that had ended before the start is taken when its router prolongs it`() async throws {
        try await LabNetwork.with { lab in
            try await lab.host.sysctl([("net.ipv6.route.gc_interval", "3600")])
            for uplink in Uplink.allCases { try await lab.removeDefaultRoute(via: uplink, families: [.v6]) }
            try await lab.acceptAdvertisements(on: .wan0)
            let server = LabNetwork.serverAddress(.v6)
            try await lab.advertise(lifetime: 1, on: .wan0)
            try await eventually("the end of the route") { try await lab.host.kernelRoute(server).found == nil }
            expect(try await lab.host.ip("-6 route show default")) { $0.contains("proto ra") }
            let recorder = try await EngineRecorder.start(on: lab.host)
            try await recorder.watch([.address(server)])
            try await recorder.rest()
            try await lab.advertise(lifetime: 1800, [.nameServer], on: .wan0)
            try await recorder.path(to: .address(server), "the route") { $0.status == .satisfied }
        }
    }
}
