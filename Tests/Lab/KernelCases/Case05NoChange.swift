// SPDX-License-Identifier: Apache-2.0

import DialtoneExpectations
import DialtoneLabSupport
import DialtoneNetworkPath
import Testing

/// The kernel repeats itself. A lifetime that is refreshed sends the address again, a setting that is nobody's concern
/// sends the link again with `ifi_change == 0`, as wireless drivers do at each scan. Neither is a change.
@Suite(.lab)
struct Case05NoChange {
    @Test(arguments: Family.allCases)
    func `case 5: an address whose lifetime is refreshed is no change`(family: Family) async throws {
        try await KernelCase.play {
            try await $0.refresh(family, seconds: 4000)
        } _: { it in
            let paths = try await it.watch(.server(family))
            let path = try #require(paths.all.first)
            let addresses = try await KernelNotices.of([.v4Address, .v6Address], on: it.host)
            for seconds in [5000, 6000, 7000] { try await it.lab.refresh(family, seconds: seconds) }
            let notices = try addresses.pending()
            #expect(notices.filter { $0.kind == .newAddress }.count >= 3, "the kernel tells of each: \(notices)")
            expect(try await it.expectSilence(on: paths, since: path), is: 1)
        }
    }

    @Test func `case 5: a link that is told of again is no change`() async throws {
        try await KernelCase.play { it in
            let paths = try await it.watch()
            let path = try #require(paths.all.first)
            let links = try await KernelNotices.of([.link], on: it.host)
            for length in [900, 800, 700] { try await it.host.ip("link set dev wan0 txqueuelen \(length)") }
            let notices = try links.pending()
            #expect(notices.count >= 3 && notices.allSatisfy { $0.changedFlags == 0 }, "\(notices)")
            expect(try await it.expectSilence(on: paths, since: path), is: 1)
        }
    }

    /// At once, as a router's advertisement does that withdraws a prefix, and when the time is over.
    @Test(arguments: [0, 1])
    func `case 5: an address whose preferred lifetime ends is deprecated, and the kernel's choice followed`(
        lifetime: Int
    ) async throws {
        try await KernelCase.play {
            try await $0.addAddress("2001:db8:a::9/64", to: .wan0)
        } _: { it in
            let target = Target.server(.v6)
            let paths = try await it.watch(target)
            let source = try #require(paths.all.first?.source)
            try await it.host.ip(
                "address change \(source)/64 dev wan0 valid_lft 4000 preferred_lft \(lifetime)")
            let report = try await paths.nextReport("the other address") { $0.source != source }
            #expect(report.path.status == .satisfied)
            #expect(report.changes == [.addresses, .source])
            let former = report.path.interface?.addresses.first { $0.address == source }
            #expect(former?.isDeprecated == true && former?.isUsable == true)
            try await it.expectAgreement(report.path, on: target)
        }
    }

    @Test(arguments: Family.allCases)
    func `case 5: a deprecated address still serves where there is no other`(family: Family) async throws {
        try await KernelCase.play {
            try await $0.takeDown(.wan1)
        } _: { it in
            let paths = try await it.watch(.server(family))
            try await it.host.ip(
                "address change \(Uplink.wan0.prefix(family)) dev wan0 valid_lft 4000 preferred_lft 0")
            let report = try await paths.nextReport("the deprecation")
            #expect(report.path.status == .satisfied)
            #expect(report.changes == [.addresses])
            try await it.expectAgreement(report.path, on: .server(family))
        }
    }
}

extension LabNetwork {
    /// What a lease that is renewed does, or a router's advertisement.
    fileprivate func refresh(_ family: Family, seconds: Int) async throws {
        try await host.ip(
            "address change \(Uplink.wan0.prefix(family)) dev wan0 valid_lft \(seconds) preferred_lft \(seconds)")
    }
}
