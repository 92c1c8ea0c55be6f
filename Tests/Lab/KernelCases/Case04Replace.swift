// SPDX-License-Identifier: Apache-2.0

import DialtoneExpectations
import DialtoneLabSupport
import DialtoneNetworkPath
import Testing

/// A route that is replaced makes one message, which takes the old one back unsaid; replaced by its like, none.
@Suite(.lab)
struct Case04Replace {
    @Test func `case 4: an identical replace is no change`() async throws {
        try await KernelCase.play { it in
            let paths = try await it.watch()
            let path = try #require(paths.all.first)
            let routes = try await KernelNotices.of([.v4Route], on: it.host)
            try await it.lab.addDefaultRoute(via: .wan0, families: [.v4])
            #expect(try routes.pending().isEmpty, "the kernel has nothing to tell")
            expect(try await it.expectSilence(on: paths, since: path), is: 1)
        }
    }

    @Test(arguments: Family.allCases)
    func `case 4: a replace by another gateway is one message and one change`(family: Family) async throws {
        try await KernelCase.play { it in
            let paths = try await it.watch(.server(family))
            let routes = try await KernelNotices.of([.v4Route, .v6Route], on: it.host)
            let other = other(family)
            try await it.host.ip("route replace default via \(other) dev wan0 metric \(Uplink.wan0.metric)")
            let notices = try routes.pending()
            #expect(notices.map(\.kind) == [.newRoute] && notices.allSatisfy(\.replaces), "\(notices)")
            let report = try await paths.nextReport("the other gateway")
            #expect(report.path.gateway == IPAddress(other))
            #expect(report.changes == [.gateway])
            try await it.expectAgreement(report.path, on: .server(family))
        }
    }

    /// Routes of one destination are told apart by their metric (and table, and TOS): a worse one is no replacement.
    @Test(arguments: Family.allCases)
    func `case 4: a route with a higher metric beside the first changes nothing`(family: Family) async throws {
        try await KernelCase.play { it in
            let paths = try await it.watch(.server(family))
            let path = try #require(paths.all.first)
            try await it.host.ip("route replace default via \(other(family)) dev wan0 metric 150")
            // It was looked into, and found to be none of the path's.
            expect(try await it.expectSilence(on: paths, since: path)) { $0 >= 1 }
        }
    }

    /// Another neighbour on the first uplink.
    private func other(_ family: Family) -> String {
        switch family {
        case .v4: "192.0.2.254"
        case .v6: "2001:db8:a::fe"
        }
    }
}
