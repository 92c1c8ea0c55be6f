// SPDX-License-Identifier: Apache-2.0

internal import CDialtoneNetlink
internal import DialtoneNetworkPath
internal import Glibc

/// Finds out what kind of network each link leads to, once per link and name.
///
/// The driver's name in the link message (`IFLA_INFO_KIND`) settles it for everything made in software. Hardware has no
/// driver name there and is asked for in sysfs, whose `uevent` file carries `DEVTYPE`; that is one read when an
/// interface appears, and one when it is renamed: udev does so at once, and what was asked for under the first name may
/// have found nothing there any more.
struct InterfaceKinds {
    private var known: [Int: (name: String, kind: InterfaceKind)] = [:]
    private let deviceType: (String) -> String?
    /// Where the answers of sysfs are recorded.
    var recorder: Recorder?

    /// - Parameter folder: where the kernel describes its interfaces; tests bring their own.
    init(folder: String = "/sys/class/net") {
        deviceType = { Self.deviceType(of: $0, in: folder) }
    }

    /// - Parameter deviceType: answers in the place of sysfs.
    init(deviceType: @escaping (String) -> String?) {
        self.deviceType = deviceType
    }

    /// Forgets a removed interface: its number may come back as something else.
    mutating func forget(_ index: Int) { known[index] = nil }

    /// The kind of a link from its message's fields.
    ///
    /// - Parameters:
    ///   - hardware: `ifi_type`, an `ARPHRD_` number.
    ///   - driver: `IFLA_INFO_KIND`, where the link has one.
    mutating func kind(ofIndex index: Int, name: String, hardware: UInt16, driver: String?) -> InterfaceKind {
        if CInt(hardware) == ARPHRD_LOOPBACK { return .loopback }
        if let driver { return Self.kind(ofDriver: driver) }
        if let known = known[index], known.name == name { return known.kind }
        let type = deviceType(name)
        recorder?.noteDeviceType(type, of: name)
        let kind = Self.kind(ofDeviceType: type, hardware: CInt(hardware))
        known[index] = (name, kind)
        return kind
    }

    private static func kind(ofDriver driver: String) -> InterfaceKind {
        switch driver {
        case "bridge": .bridge
        case "tun", "wireguard", "ipip", "ip6tnl", "gre", "gretap", "ip6gre", "ip6gretap", "sit", "vti", "vti6", "xfrm",
            "ppp", "ovpn", "erspan", "geneve", "vxlan", "l2tp", "amt":
            .tunnel
        case "rmnet", "wwan": .cellular
        case "veth", "macvlan", "macvtap", "ipvlan", "ipvtap", "vlan", "bond", "team", "dummy", "ifb", "vrf", "netkit",
            "macsec", "hsr", "nlmon", "vcan":
            .virtual
        default: .other
        }
    }

    private static func kind(ofDeviceType type: String?, hardware: CInt) -> InterfaceKind {
        switch type {
        case "wlan": return .wifi
        case "wwan": return .cellular
        case "bridge": return .bridge
        case "vlan", "bond": return .virtual
        case "wireguard", "ppp", "vxlan", "gre": return .tunnel
        default: break
        }
        switch hardware {
        case ARPHRD_ETHER: return .wired
        // Modems with raw IP framing have no Ethernet and, with older drivers, no DEVTYPE either.
        case ARPHRD_RAWIP: return .cellular
        case ARPHRD_PPP, ARPHRD_TUNNEL, ARPHRD_TUNNEL6, ARPHRD_SIT, ARPHRD_IPGRE, ARPHRD_NONE: return .tunnel
        default: return .other
        }
    }

    /// `DEVTYPE` of an interface; `nil` where it has none, as plain Ethernet cards, or where there is no sysfs.
    private static func deviceType(of name: String, in folder: String) -> String? {
        let file = open("\(folder)/\(name)/uevent", O_RDONLY | O_CLOEXEC)
        guard file >= 0 else { return nil }
        defer { close(file) }
        // The file has two or three short lines: DEVTYPE, INTERFACE, IFINDEX.
        let text = withUnsafeTemporaryAllocation(byteCount: 512, alignment: 1) { buffer in
            let count = read(file, buffer.baseAddress, buffer.count)
            return String(decoding: buffer.prefix(max(0, count)), as: UTF8.self)
        }
        return text.split(separator: "\n").first { $0.hasPrefix("DEVTYPE=") }.map { String($0.dropFirst(8)) }
    }
}
