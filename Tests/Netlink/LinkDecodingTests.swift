// SPDX-License-Identifier: Apache-2.0

import CDialtoneNetlink
import DialtoneNetworkPath
import DialtoneTestSupport
import Foundation
import Glibc
import Testing

@testable import DialtoneNetlink

struct LinkDecodingTests {
    @Test(arguments: [
        ([], false, false), ([IFF_UP], true, false), ([IFF_LOWER_UP, IFF_RUNNING], false, true),
        ([IFF_UP, IFF_LOWER_UP, IFF_RUNNING], true, true), ([IFF_UP, IFF_RUNNING], true, false),
        // Its driver has a carrier, and a supplicant is still to agree on keys, or the kernel to notice.
        ([IFF_UP, IFF_LOWER_UP], true, false),
    ])
    func `the link's state is in its flags`(flags: [net_device_flags], isUp: Bool, hasCarrier: Bool) {
        let expected = Interface(index: 2, name: "eth7", kind: .wired, isUp: isUp, hasCarrier: hasCarrier)
        let isRunning = flags.contains(IFF_RUNNING)
        #expect(events(linkMessage(flags: flags)) == [.interfacePresent(expected, isRunning: isRunning)])
    }

    @Test(arguments: [
        ("bridge", InterfaceKind.bridge), ("wireguard", .tunnel), ("tun", .tunnel), ("veth", .virtual),
        ("vlan", .virtual), ("dummy", .virtual), ("wwan", .cellular), ("unheard-of", .other),
    ])
    func `a driver's name settles the kind`(driver: String, kind: InterfaceKind) {
        #expect(self.kind(of: linkMessage(linkInfo(driver: driver))) == kind)
    }

    /// A port of a bridge has the bridge's name in it, but as `IFLA_INFO_SLAVE_KIND`.
    @Test func `a port's master is not its kind`() {
        let info = attribute(Int(IFLA_LINKINFO), attribute(Int(IFLA_INFO_SLAVE_KIND), text: "bridge"))
        #expect(kind(of: linkMessage(info)) == .wired)
    }

    /// An attribute that nests may carry the flag for it (`NLA_F_NESTED`) or not.
    @Test func `the flag for nesting is not part of the type`() {
        var info = linkInfo(driver: "veth")
        info[3] |= 0x80
        #expect(kind(of: linkMessage(info)) == .virtual)
    }

    @Test(arguments: [
        (ARPHRD_ETHER, InterfaceKind.wired), (ARPHRD_LOOPBACK, .loopback), (ARPHRD_NONE, .tunnel),
        (ARPHRD_PPP, .tunnel), (ARPHRD_SIT, .tunnel), (ARPHRD_RAWIP, .cellular), (ARPHRD_INFINIBAND, .other),
    ])
    func `without a driver the hardware decides`(hardware: CInt, kind: InterfaceKind) {
        #expect(self.kind(of: linkMessage(hardware: hardware)) == kind)
    }

    /// The bridge code tells of its ports in messages of the same type; a port's departure is not its interface's.
    @Test(arguments: [RTM_NEWLINK, RTM_DELLINK])
    func `what the bridge says of its ports is ignored`(type: Int) {
        #expect(events(linkMessage(type: type, family: AF_BRIDGE)).isEmpty)
    }

    @Test func `a removed link is named by its index`() {
        #expect(events(linkMessage(type: RTM_DELLINK, index: 9)) == [.interfaceRemoved(index: 9)])
    }

    @Test func `a header cut short says nothing`() {
        #expect(events(message(RTM_NEWLINK, UInt64(0))).isEmpty)
        #expect(events(message(RTM_NEWADDR, UInt32(0))).isEmpty)
        #expect(events(message(RTM_NEWROUTE, UInt64(0))).isEmpty)
        #expect(events(message(RTM_NEWNEIGH, UInt64(0))).isEmpty)
    }

    @Test func `a datagram may hold many messages`() {
        let datagram = linkMessage(type: RTM_DELLINK, index: 3) + message(RTM_NEWRULE, rtmsg()) + linkMessage(index: 4)
        #expect(events(datagram).count == 3)
    }

    private func kind(of datagram: [UInt8]) -> InterfaceKind? {
        guard case .interfacePresent(let interface, _, _)? = events(datagram).first else { return nil }
        return interface.kind
    }
}

struct InterfaceKindsTests {
    @Test(arguments: [
        ("DEVTYPE=wlan\nINTERFACE=x0\nIFINDEX=2\n", InterfaceKind.wifi),
        ("DEVTYPE=wwan\nINTERFACE=x0\nIFINDEX=2\n", .cellular),
        ("DEVTYPE=bridge\n", .bridge),
        ("INTERFACE=x0\nIFINDEX=2\n", .wired),
        ("INTERFACE=x0\nDEVTYPE=dsa\n", .wired),
        ("", .wired),
    ])
    func `hardware is asked for in sysfs`(text: String, kind: InterfaceKind) throws {
        let folder = try Sysfs(["x0": text])
        var kinds = InterfaceKinds(folder: folder.path)
        #expect(kinds.kind(ofIndex: 2, name: "x0", hardware: UInt16(ARPHRD_ETHER), driver: nil) == kind)
    }

    @Test func `it is asked for once for each name`() throws {
        let folder = try Sysfs(["x0": "DEVTYPE=wlan\n"])
        var kinds = InterfaceKinds(folder: folder.path)
        #expect(kinds.ofEthernet(2, "x0") == .wifi)
        try folder.write("DEVTYPE=wwan\n", for: "x0")
        #expect(kinds.ofEthernet(2, "x0") == .wifi)
        kinds.forget(2)
        #expect(kinds.ofEthernet(2, "x0") == .cellular)
    }

    /// udev renames a new interface at once: by the time its message is read, nothing is under its first name any more.
    @Test func `an interface that was renamed meanwhile is asked for again`() throws {
        let folder = try Sysfs(["wlp3s0": "DEVTYPE=wlan\n"])
        var kinds = InterfaceKinds(folder: folder.path)
        #expect(kinds.ofEthernet(2, "wlan0") == .wired)
        #expect(kinds.ofEthernet(2, "wlp3s0") == .wifi)
    }

    /// A folder that looks like `/sys/class/net`.
    private final class Sysfs {
        private let folder = TemporaryDirectory()
        var path: String { folder.path }

        init(_ interfaces: [String: String]) throws {
            for (name, text) in interfaces { try write(text, for: name) }
        }

        func write(_ text: String, for name: String) throws {
            try folder.write(text, to: "\(name)/uevent")
        }
    }
}

extension InterfaceKinds {
    fileprivate mutating func ofEthernet(_ index: Int, _ name: String) -> InterfaceKind {
        kind(ofIndex: index, name: name, hardware: UInt16(ARPHRD_ETHER), driver: nil)
    }
}
