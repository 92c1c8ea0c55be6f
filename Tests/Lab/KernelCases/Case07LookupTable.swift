// SPDX-License-Identifier: Apache-2.0

import DialtoneExpectations
import DialtoneLabSupport
import DialtoneNetlink
import DialtoneNetworkPath
import Testing

/// The reply to a lookup says table 254 even when a rule led to another, unless `RTM_F_LOOKUP_TABLE` is set.
@Suite(.lab)
struct Case07LookupTable {
    @Test(arguments: Family.allCases)
    func `case 7: a lookup names the table that a rule led to`(family: Family) async throws {
        try await LabNetwork.with { lab in
            let sockets = try await lab.host.run { try KernelSockets() }
            let kernel = try await KernelMonitor(sockets)
            let destination = try #require(IPAddress(LabNetwork.serverAddress(family)))
            let query = PreparedQuery(RouteQuery(destination))
            expect(try await kernel.routes(for: [query]).first?.table, is: 254)
            try await lab.host.ip("route add default via \(Uplink.wan1.gateway(family)) dev wan1 table 1000")
            try await lab.addRule(family, "to \(destination) lookup 1000")
            let answer = try #require(try await kernel.routes(for: [query]).first)
            #expect(answer.table == 1000, "\(answer)")
        }
    }
}

extension RouteAnswer {
    fileprivate var table: UInt32? {
        switch self {
        case .route(let route): route.table
        case .refused: nil
        }
    }
}
