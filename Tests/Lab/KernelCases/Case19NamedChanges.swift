// SPDX-License-Identifier: Apache-2.0

import DialtoneExpectations
import DialtoneLabSupport
import DialtoneNetworkPath
import Reachability
import Testing

/// Who watches is told what differs, by name, and only if something does.
@Suite(.lab)
struct Case19NamedChanges {
    @Test func `case 19: each change is told by its names`() async throws {
        try await KernelCase.play { it in
            let paths = try await it.watch()
            func expect(_ changes: [PathChange], after command: String) async throws {
                try await it.host.ip(command)
                let report = try await paths.nextReport(command)
                #expect(report.changes == changes, "\(command)")
                try await it.expectAgreement(report.path, on: .server(.v4))
            }
            #expect(paths.reports.first?.changes == [], "the first is no change")
            try await expect([.gateway], after: "route replace default via 192.0.2.254 dev wan0 metric 100")
            try await expect([.addresses], after: "address add 192.0.2.9/24 dev wan0")
            try await expect(
                [.source], after: "route replace default via 192.0.2.254 dev wan0 metric 100 src 192.0.2.9")
            try await expect([.gateway, .direct], after: "route add 203.0.113.0/24 dev wan0 src 192.0.2.9")
            try await expect(
                [.interface, .addresses, .source], after: "route replace 203.0.113.0/24 dev wan1 src 198.51.100.2")
            try await expect([.interface], after: "link set wan1 name wan9")
            try await expect(
                [.status, .reason, .interface, .addresses, .source, .direct],
                after: "route replace prohibit 203.0.113.0/24")
        }
    }

    @Test func `case 19: the user's word on what an interface costs is a change`() async throws {
        try await KernelCase.play { it in
            let paths = try await it.watch()
            await it.engine.setCosts(CostPolicy(expensive: ["wan0"]))
            expect(try await paths.nextReport("the cost").changes, is: [.expensive])
            await it.engine.setCosts(CostPolicy(expensive: ["wan1"], constrained: ["wan0"]))
            expect(try await paths.nextReport("the other cost").changes, is: [.expensive, .constrained])
        }
    }

    @Test(arguments: Family.allCases)
    func `case 19: a target that a change does not concern is not told of it`(family: Family) async throws {
        try await KernelCase.play { it in
            let paths = try await it.watch(.server(family))
            let path = try #require(paths.all.first)
            let neighbour = Target(.init(family == .v4 ? "203.0.113.77" : "2001:db8:c::77:0:0"))
            let other = try await it.watch(neighbour)
            try await it.lab.addRefusingRoute(.unreachable, family == .v4 ? "203.0.113.64/26" : "2001:db8:c::77:0:0/96")
            try await other.next("the refusal") { $0.reason == .unreachable }
            expect(try await it.expectSilence(on: paths, since: path), is: 2)
        }
    }
}
