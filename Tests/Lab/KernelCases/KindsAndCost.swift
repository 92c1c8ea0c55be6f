// SPDX-License-Identifier: Apache-2.0

import DialtoneExpectations
import DialtoneLabSupport
import DialtoneNetworkPath
import DialtonePlatform
import Foundation
import Reachability
import Testing

/// The last section of kernel.md: what an interface leads to, from `IFLA_INFO_KIND` and the `DEVTYPE` in sysfs (which
/// InterfaceKindsTests has for hardware that is not here), and what follows from it for the paths.
@Suite(.lab)
struct KindsAndCost {
    @Test(arguments: Device.all)
    func `kinds: a device is of its driver's kind`(device: Device) async throws {
        try await KernelCase.play { it in
            do {
                try await it.host.ip(device.command)
            } catch LabError.commandFailed(_, _, let complaint) where complaint.contains("Unknown device type") {
                try Test.cancel("this kernel has no \(device.driver)")
            } catch LabError.commandFailed(_, _, let complaint) where device.isTunnel && complaint.contains("denied") {
                try Test.cancel("/dev/net/tun is not for this user")
            }
            let paths = try await it.watch()
            try await it.catchUp(paths)
            let found = await it.engine.snapshot.interfaces.values.first { $0.name == "x0" }
            #expect(found?.kind == device.kind)
        }
    }

    @Test(.enabled(if: WirelessInterface.name != nil, "there is no wireless interface in this network"))
    func `kinds: a wireless interface is wifi`() async throws {
        let name = try #require(WirelessInterface.name)
        let index = try #require(await NetworkState.shared.snapshot.interfaces.values.first { $0.name == name }?.index)
        expect(await NetworkState.shared.snapshot.interfaces[index]?.kind, is: .wifi)
    }

    @Test(arguments: Family.allCases)
    func `kinds: a bridge is up with its port, and without carrier when the port is`(family: Family) async throws {
        try await KernelCase.play {
            try await $0.moveUplink(to: "br0", by: ["link add br0 type bridge", "link set wan0 master br0"])
        } _: { it in
            let paths = try await it.watch(.server(family))
            #expect(paths.all.first?.interface?.name == "br0" && paths.all.first?.interface?.kind == .bridge)
            try await it.lab.cut(.wan0)
            let path = try await paths.next("the lost carrier") { $0.status == .unsatisfied }
            #expect(path.reason == .noCarrier)
            try await it.lab.plug(.wan0)
            try await paths.next("the carrier") { $0.status == .satisfied && $0.interface?.name == "br0" }
        }
    }

    @Test func `kinds: a macvlan goes with the link below it`() async throws {
        try await KernelCase.play {
            try await $0.moveUplink(to: "mac0", by: ["link add link wan0 name mac0 type macvlan mode bridge"])
        } _: { it in
            let paths = try await it.watch()
            #expect(paths.all.first?.interface?.name == "mac0" && paths.all.first?.interface?.kind == .virtual)
            try await it.lab.cut(.wan0)
            let path = try await paths.next("the lost carrier") { $0.status == .unsatisfied }
            #expect(path.reason == .noCarrier)
            try await it.lab.plug(.wan0)
            try await paths.next("the carrier") { $0.status == .satisfied }
            try await it.host.ip("link delete mac0")
            try await paths.next("the other uplink") { $0.interface?.name == "wan1" }
        }
    }

    /// A VPN's client that crashed has let go of its device, which stays.
    @Test(.enabled(if: access("/dev/net/tun", R_OK | W_OK) == 0, "/dev/net/tun is missing, or not for this user"))
    func `kinds: a tunnel is a way for as long as a program has it open`() async throws {
        try await KernelCase.play {
            try await $0.host.ip(batch: [
                "tuntap add tun0 mode tun", "link set tun0 up", "address add 198.18.0.1 peer 198.18.0.2 dev tun0",
                "route add 203.0.113.0/24 dev tun0",
            ])
        } _: { it in
            let paths = try await it.watch(isSatisfied: false)
            #expect(paths.all.first?.reason == .noCarrier)
            let tunnel = try await it.host.run { try TunnelEnd("tun0") }
            let path = try await paths.next("the program") { $0.status == .satisfied }
            #expect(path.interface?.name == "tun0" && path.interface?.kind == .tunnel && path.isDirect)
            #expect(path.source == IPAddress("198.18.0.1"))
            try await it.expectAgreement(path, on: .server(.v4))
            tunnel.close()
            try await paths.next("the program's end") { $0.reason == .noCarrier }
        }
    }

    /// Asked for a packet that leaves by a given link, IPv4 takes every destination for a neighbour on it. Of a host
    /// that may be true, and the kernel's word stands; the Internet is no neighbour.
    @Test func `kinds: where a kind is required, its links need a route`() async throws {
        try await KernelCase.play {
            try await $0.host.ip(batch: ["link add br0 type bridge", "link add name c0 type veth peer name c1"])
            try await $0.host.ip(batch: [
                "link set c0 master br0", "link set c0 up", "link set c1 up", "link set br0 up",
                "address add 172.17.0.1/16 dev br0",
            ])
            try await $0.host.link("br0", "has carrier") { $0.hasCarrier }
        } _: { it in
            let bridges = it.watchNetwork(.requires(.bridge))
            let path = try await bridges.next("the present path") { _ in true }
            #expect(path.status == .unsatisfied && path.reason == .noRoute, "\(path)")
            let bound = Target.server(.v4).with { $0.interface = "br0" }
            let host = await it.path(to: bound)
            #expect(host.status == .satisfied)
            try await it.expectAgreement(host, on: bound)
            try await it.host.ip("route add default via 172.17.0.2 dev br0 metric 900")
            try await bridges.next("a route") { $0.status == .satisfied && $0.interface?.name == "br0" }
        }
    }

    /// A supplicant sets the mode; until it has agreed on keys the link is dormant, and what is sent there is lost.
    @Test func `kinds: a link that waits for its keys has no carrier yet`() async throws {
        try await KernelCase.play {
            try await $0.removeDefaultRoute(via: .wan1)
            try await $0.host.ip("link set wan0 mode dormant")
            try await $0.cut(.wan0)
        } _: { it in
            let paths = try await it.watch(isSatisfied: false)
            try await it.lab.router.ip("link set wan0 up")
            try await it.host.link("wan0", "dormant") { $0.operstate == "DORMANT" && $0.flags.contains("LOWER_UP") }
            expect(await it.path(to: .server(.v4)).reason, is: .noCarrier)
            try await it.host.ip("link set wan0 state up")
            try await paths.next("the keys") { $0.status == .satisfied }
            #expect(paths.count == 2)
        }
    }

    /// An address may be there twice, with prefixes of different lengths; a flow is dead only with the last.
    @Test func `kinds: an address that is on a link twice is gone with the last`() async throws {
        try await KernelCase.play {
            try await $0.host.ip("address add \(Uplink.wan0.address(.v4))/32 dev wan0")
        } _: { it in
            let bound = Target.server(.v4).with { $0.source = IPAddress(Uplink.wan0.address(.v4)) }
            let paths = try await it.watch(bound)
            try await it.host.ip("address delete \(Uplink.wan0.address(.v4))/32 dev wan0")
            let report = try await paths.nextReport("one of the two")
            #expect(report.path.status == .satisfied && report.changes == [.addresses])
            try await it.lab.removeAddress(Uplink.wan0.prefix(.v4), from: .wan0)
            try await paths.next("the other") { $0.reason == .noAddress }
        }
    }
}

/// A link that can be made where the kernel has its driver.
struct Device: Sendable, CustomTestStringConvertible {
    let driver: String
    let kind: InterfaceKind
    private var below: String?
    private var options = ""

    /// As `ip` takes it.
    var command: String {
        isTunnel
            ? "tuntap add x0 mode \(driver)"
            : "link add \(below.map { "link \($0) " } ?? "")name x0 type \(driver) \(options)"
    }

    /// Whether it is made by `/dev/net/tun`.
    var isTunnel: Bool { driver == "tun" || driver == "tap" }

    var testDescription: String { driver }

    static let all = [
        Device(driver: "bridge", kind: .bridge), Device(driver: "veth", kind: .virtual, options: "peer name x1"),
        Device(driver: "macvlan", kind: .virtual, below: "wan0"),
        Device(driver: "macvtap", kind: .virtual, below: "wan0"),
        Device(driver: "ipvlan", kind: .virtual, below: "wan0"),
        Device(driver: "vlan", kind: .virtual, below: "wan0", options: "id 5"),
        Device(driver: "ifb", kind: .virtual), Device(driver: "dummy", kind: .virtual),
        Device(driver: "bond", kind: .virtual), Device(driver: "vrf", kind: .virtual, options: "table 1000"),
        Device(driver: "tun", kind: .tunnel), Device(driver: "tap", kind: .tunnel),
        Device(driver: "wireguard", kind: .tunnel),
        Device(driver: "vxlan", kind: .tunnel, options: "id 5 dstport 4789 remote 192.0.2.9 dev wan0"),
        Device(driver: "gre", kind: .tunnel, options: "remote 192.0.2.9 local 192.0.2.2"),
        Device(driver: "ipip", kind: .tunnel, options: "remote 192.0.2.9 local 192.0.2.2"),
        Device(driver: "sit", kind: .tunnel, options: "remote 192.0.2.9 local 192.0.2.2"),
    ]
}

/// A card with a radio in the network that the tests run in, which somebody has to move there (`iw phy … set netns`).
private enum WirelessInterface {
    static let name = try? FileManager.default.contentsOfDirectory(atPath: "/sys/class/net").first { name in
        FileManager.default.fileExists(atPath: "/sys/class/net/\(name)/phy80211")
    }
}

extension LabNetwork {
    /// Puts another device in the place of the first uplink: it gets the addresses and the default routes.
    fileprivate func moveUplink(to device: String, by commands: [String]) async throws {
        let families = Family.allCases
        try await host.ip(
            batch: families.map { "address delete \(Uplink.wan0.prefix($0)) dev wan0" } + commands
                + ["link set \(device) up"]
                + families.map { "address add \(Uplink.wan0.prefix($0)) dev \(device) nodad" }
                + families.map { "route replace default via \(Uplink.wan0.gateway($0)) dev \(device) metric 10" })
        try await host.link(device, "has carrier, and no address is tentative") { link in
            link.hasCarrier && link.addresses.allSatisfy { $0.tentative != true }
        }
    }
}
