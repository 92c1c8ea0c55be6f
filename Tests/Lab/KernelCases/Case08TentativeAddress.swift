// SPDX-License-Identifier: Apache-2.0

import DialtoneLabSupport
import DialtoneNetworkPath
import Testing

/// While an IPv6 address is tentative a lookup succeeds, with a source that no answer would find its way to: `::1`, or
/// the link-local address, which is there first.
@Suite(.lab)
struct Case08TentativeAddress {
    @Test func `case 8: while an address is tentative there is no way`() async throws {
        try await KernelCase.play {
            try await $0.takeDown(.wan1)
            try await $0.setDuplicateAddressDetection(true, on: .wan0)
        } _: { it in
            let target = Target.server(.v6)
            let paths = try await it.watch(target)
            try await it.lab.takeDown(.wan0)
            try await paths.next("the loss") { $0.status == .unsatisfied && $0.interface == nil }
            try await it.lab.bringUp(.wan0)
            // Before the route there is no address either; with it the kernel names the interface.
            try await paths.next("the route, before the address") {
                $0.reason == .noAddress && $0.interface?.name == "wan0"
            }
            let path = try await paths.next("the address") { $0.status == .satisfied }
            #expect(path.source == IPAddress(Uplink.wan0.address(.v6)))
            try await it.expectAgreement(path, on: target)
            // Never in between was another address taken for a source.
            #expect(paths.all.allSatisfy { $0.status == .unsatisfied || $0.source == path.source })
        }
    }

    /// A router's advertisement brings the default route while the global address is still tentative; the link-local
    /// one is there already. No router forwards it (RFC 4291, section 2.5.6).
    @Test func `case 8: a link-local address is no source beyond the link`() async throws {
        try await KernelCase.play {
            try await $0.takeDown(.wan1)
            try await $0.removeAddress(Uplink.wan0.prefix(.v6), from: .wan0)
        } _: { it in
            let target = Target.server(.v6)
            let paths = try await it.watch(target, isSatisfied: false)
            let path = try #require(paths.all.first)
            #expect(path.source?.isLinkLocal == true, "the kernel would take it")
            #expect(path.reason == .noAddress)
            try await it.lab.addAddress(Uplink.wan0.prefix(.v6), to: .wan0)
            let back = try await paths.next("an address") { $0.status == .satisfied }
            try await it.expectAgreement(back, on: target)

            let router = try await it.lab.router.link("wan0").addresses.first { $0.scope == "link" }
            let neighbour = Target(.init(try #require(router).local), interface: "wan0")
            let near = await it.path(to: neighbour)
            #expect(near.status == .satisfied && near.isDirect, "on the link it is as good as any: \(near)")
        }
    }

    @Test func `case 8: an address that another host has is none`() async throws {
        try await KernelCase.play {
            try await $0.takeDown(.wan1)
            try await $0.router.ip("address add 2001:db8:a::9/64 dev wan0 nodad")
            try await $0.setDuplicateAddressDetection(true, on: .wan0)
        } _: { it in
            let paths = try await it.watch(.server(.v6))
            try await it.lab.addAddress("2001:db8:a::9/64", to: .wan0)
            try await it.lab.removeAddress(Uplink.wan0.prefix(.v6), from: .wan0)
            let path = try await paths.next("the end of the detection") { path in
                path.reason == .noAddress && path.interface?.addresses.contains { $0.isDuplicate } == true
            }
            #expect(paths.all.allSatisfy { $0.source != IPAddress("2001:db8:a::9") })
            try await it.expectAgreement(path, on: .server(.v6))
        }
    }

    @Test func `case 8: where the kernel borrows another link's address, so does the verdict`() async throws {
        try await KernelCase.play { it in
            let target = Target.server(.v6)
            let paths = try await it.watch(target)
            try await it.lab.removeAddress(Uplink.wan0.prefix(.v6), from: .wan0)
            let path = try await paths.next("the other link's address") { $0.source != nil && $0.status == .satisfied }
            #expect(path.interface?.name == "wan0")
            #expect(path.source == IPAddress(Uplink.wan1.address(.v6)))
            try await it.expectAgreement(path, on: target)
        }
    }
}
