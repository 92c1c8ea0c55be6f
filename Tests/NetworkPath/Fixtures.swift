// SPDX-License-Identifier: Apache-2.0

import DialtoneNetworkPath
import DialtoneTestSupport

/// Addresses of the documentation ranges (RFC 5737, RFC 3849), by role.
enum Sample {
    static let remote4 = IPAddress(v4: 0xC633_6407)  // 198.51.100.7
    static let remote6 = IPAddress(v6: 0x2001_0DB8_00FF_0000_0000_0000_0000_0007)
    static let own4 = IPAddress(v4: 0xC000_020A)  // 192.0.2.10
    static let own6 = IPAddress(v6: 0x2001_0DB8_0000_0000_0000_0000_0000_000A)
    static let linkLocal6 = IPAddress(v6: 0xFE80_0000_0000_0000_0000_0000_0000_000A)
    static let gateway4 = IPAddress(v4: 0xC000_0201)  // 192.0.2.1
    static let gateway6 = IPAddress(v6: 0xFE80_0000_0000_0000_0000_0000_0000_0001)

    static let wiredIndex = 2
    static let wifiIndex = 3

    static let lo = Interface(
        index: 1, name: "lo", kind: .loopback,
        addresses: [
            InterfaceAddress(IPAddress.loopback, prefixLength: 8),
            InterfaceAddress(IPAddress.loopbackV6, prefixLength: 128),
        ])
    static let wired = Interface(
        index: wiredIndex, name: "eth0", kind: .wired,
        addresses: [
            InterfaceAddress(own4, prefixLength: 24), InterfaceAddress(own6, prefixLength: 64),
            InterfaceAddress(linkLocal6, prefixLength: 64),
        ])
    static let wifi = Interface(index: wifiIndex, name: "wlan0", kind: .wifi)

    /// A machine with one working Ethernet of both families.
    static let network = NetworkSnapshot(generation: 7, interfaces: [1: lo, wiredIndex: wired])

    /// The usual way out.
    static let route4 = Route(interfaceIndex: wiredIndex, gateway: gateway4, source: own4)
    static let route6 = Route(interfaceIndex: wiredIndex, gateway: gateway6, source: own6)
}

extension NetworkSnapshot {
    /// This snapshot with one thing different.
    func with(_ change: (inout NetworkSnapshot) -> Void) -> NetworkSnapshot {
        var copy = self
        change(&copy)
        return copy
    }

    /// This snapshot with its Ethernet different.
    func wired(_ change: (inout Interface) -> Void) -> NetworkSnapshot {
        with { snapshot in
            var wired = Sample.wired
            change(&wired)
            snapshot.interfaces[Sample.wiredIndex] = wired
        }
    }

    /// This snapshot with one address of the Ethernet different.
    func address(_ address: IPAddress, _ change: (inout InterfaceAddress) -> Void) -> NetworkSnapshot {
        wired { wired in
            for position in wired.addresses.indices where wired.addresses[position].address == address {
                change(&wired.addresses[position])
            }
        }
    }
}
