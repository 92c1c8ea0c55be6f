// SPDX-License-Identifier: Apache-2.0

import DialtoneExpectations
import DialtoneLabSupport
import DialtoneNetworkPath
import Testing

/// Unreachable is `EHOSTUNREACH`, blackhole `EINVAL` (which looks like a bug of one's own), prohibit `EACCES`, throw or
/// no route `ENETUNREACH`: each another mistake to whoever has to mend it.
@Suite(.lab)
struct Case11Refusals {
    @Test(arguments: Family.allCases, Self.refusals)
    func `case 11: a route that refuses is named`(family: Family, refusal: Refusal) async throws {
        try await KernelCase.play { it in
            let target = Target.server(family)
            let paths = try await it.watch(target)
            try await it.lab.addRefusingRoute(refusal.route, Self.network(family))
            let report = try await paths.nextReport("the refusal")
            #expect(report.path.reason == refusal.reason)
            #expect(report.changes == [.status, .reason, .interface, .addresses, .gateway, .source])
            #expect(report.path.interface == nil && report.path.gateway == nil && report.path.source == nil)
            try await it.expectAgreement(report.path, on: target)
            try await it.lab.removeRefusingRoute(refusal.route, Self.network(family))
            let path = try await paths.next("the way back") { $0.status == .satisfied }
            try await it.expectAgreement(path, on: target)
        }
    }

    @Test(arguments: Family.allCases, Self.refusals.filter { $0.route != .throw })
    func `case 11: a rule that refuses is named`(family: Family, refusal: Refusal) async throws {
        try await KernelCase.play { it in
            let target = Target.server(family)
            let paths = try await it.watch(target)
            let rule = "to \(Self.network(family)) \(refusal.route.rawValue)"
            try await it.lab.addRule(family, rule)
            let path = try await paths.next("the refusal") { $0.status == .unsatisfied }
            // A rule that says "unreachable" answers as if there were no route (`fib4_rule_action`).
            #expect(path.reason == (refusal.route == .unreachable ? .noRoute : refusal.reason))
            try await it.expectAgreement(path, on: target)
            try await it.lab.removeRule(family, rule)
            try await paths.next("the way back") { $0.status == .satisfied }
        }
    }

    @Test(arguments: Family.allCases)
    func `case 11: a throw route leads on to the next table`(family: Family) async throws {
        try await KernelCase.play { it in
            try await it.lab.addRefusingRoute(.throw, Self.network(family), table: 1000)
            let paths = try await it.watch(.server(family))
            let path = try #require(paths.all.first)
            try await it.lab.addRule(family, "lookup 1000")
            expect(try await it.expectSilence(on: paths, since: path)) { $0 >= 1 }
        }
    }

    struct Refusal: Sendable, CustomTestStringConvertible {
        let route: RefusingRoute
        let reason: Path.Reason

        var testDescription: String { route.rawValue }
    }

    static let refusals = [
        Refusal(route: .unreachable, reason: .unreachable), Refusal(route: .blackhole, reason: .blackhole),
        Refusal(route: .prohibit, reason: .prohibited), Refusal(route: .throw, reason: .noRoute),
    ]

    static func network(_ family: Family) -> String {
        switch family {
        case .v4: "203.0.113.0/24"
        case .v6: "2001:db8:c::/64"
        }
    }
}
