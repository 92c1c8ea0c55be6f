// SPDX-License-Identifier: Apache-2.0

import DialtoneLabSupport
import Testing

/// This process as the host.
@Suite(.lab)
struct ThisProcessTests {
    @Test func `nothing of one test is left for the next`() async throws {
        let before = try await LabNetwork.withThisProcessAsHost { try await $0.host.state() }
        try await LabNetwork.withThisProcessAsHost { lab in
            try await lab.addRefusingRoute(.blackhole, "198.18.0.0/15")
            try await lab.addRefusingRoute(.throw, "2001:db8:77::/48", table: 77)
            try await lab.addRule(.v4, "fwmark 7 prohibit")
            try await lab.addRule(.v6, "to 2001:db8:77::/48 table 77")
            try await lab.host.ip("nexthop add id 7 via \(Uplink.wan0.gateway(.v4)) dev wan0")
        }
        let after = try await LabNetwork.withThisProcessAsHost { try await $0.host.state() }
        #expect(after == before)
    }
}

extension Namespace {
    /// What a test may have changed.
    fileprivate func state() async throws -> [String] {
        var state = [try await ip("nexthop show")]
        for family in Family.allCases.map(\.rawValue) {
            state.append(try await ip("\(family) rule show"))
            // Link-local routes and multicast come and go with the links' own addresses.
            let routes = try await ip("\(family) route show table all").split(separator: "\n")
            state += routes.filter { !$0.contains("fe80") && !$0.contains("ff00") }.map(String.init).sorted()
        }
        return state
    }
}
