// SPDX-License-Identifier: Apache-2.0

/// What kind of network an interface leads to. ``other`` is an answer: the kernel did not say.
public enum InterfaceKind: String, Hashable, Sendable, CaseIterable {
    /// The machine itself (`IFF_LOOPBACK`).
    case loopback
    /// Ethernet over a cable.
    case wired
    /// IEEE 802.11 (`DEVTYPE=wlan`).
    case wifi
    /// A mobile network's modem (`DEVTYPE=wwan`).
    case cellular
    /// A tunnel or VPN: `tun`, `wireguard`, `ipip`, `gre`, `sit`, `vti`, `xfrm`, `ppp`.
    case tunnel
    /// A software bridge.
    case bridge
    /// Made of or beside other interfaces: `veth`, `macvlan`, `vlan`, `bond`, `dummy`.
    case virtual
    /// None of these, or not known.
    case other
}

/// An address that an interface has, with what the kernel says of its usability.
public struct InterfaceAddress: Hashable, Sendable {
    /// The address itself (`IFA_LOCAL`, else `IFA_ADDRESS`).
    public var address: IPAddress
    /// How many leading bits the network shares (from `ifa_prefixlen`).
    public var prefixLength: Int
    /// The other end's address, where the link is one to a single peer (`IFA_ADDRESS` beside `IFA_LOCAL`).
    public var peer: IPAddress?
    /// Not usable yet: duplicate address detection is running (from `IFA_F_TENTATIVE` without `IFA_F_OPTIMISTIC`).
    public var isTentative: Bool
    /// Another host has it (from `IFA_F_DADFAILED`).
    public var isDuplicate: Bool
    /// Valid, but not for new connections (from `IFA_F_DEPRECATED`).
    public var isDeprecated: Bool
    /// Used without asking whether another host has it (from `IFA_F_NODAD`).
    public var skipsDetection: Bool
    /// How far an IPv4 address is known, lower is farther (from `ifa_scope`); zero for an IPv6 address, which says it
    /// itself.
    public var scope: UInt8
    /// An IPv4 address of a network that the interface has an earlier one of (from `IFA_F_SECONDARY`).
    public var isSecondary: Bool

    /// An address, by default one that is fully usable.
    public init(
        _ address: IPAddress, prefixLength: Int, peer: IPAddress? = nil,
        isTentative: Bool = false, isDuplicate: Bool = false, isDeprecated: Bool = false, skipsDetection: Bool = false,
        scope: UInt8 = 0, isSecondary: Bool = false
    ) {
        self.address = address
        self.prefixLength = prefixLength
        self.peer = peer
        self.isTentative = isTentative
        self.isDuplicate = isDuplicate
        self.isDeprecated = isDeprecated
        self.skipsDetection = skipsDetection
        self.scope = scope
        self.isSecondary = isSecondary
    }

    /// Whether packets may carry it as their source.
    public var isUsable: Bool { !isTentative && !isDuplicate }

    /// What a client sees of it, and nothing else.
    var look: InterfaceAddress {
        InterfaceAddress(
            address, prefixLength: prefixLength, isTentative: isTentative, isDuplicate: isDuplicate,
            isDeprecated: isDeprecated)
    }

    /// Whether `other` is what became of this one: the kernel's entry is the same. A link may have an IPv4 address
    /// several times over, with prefixes of different lengths or with different peers, and an IPv6 address once.
    func isSameEntry(as other: InterfaceAddress) -> Bool {
        address == other.address
            && (address.family == .v6 || prefixLength == other.prefixLength && peer == other.peer)
    }
}

/// A network interface as a path shows it.
public struct Interface: Hashable, Sendable {
    /// The kernel's number of it (`ifi_index`), unique in its network namespace.
    public var index: Int
    /// Its name (`IFLA_IFNAME`). May change; the index does not.
    public var name: String
    /// What it leads to.
    public var kind: InterfaceKind
    /// Whether an administrator has it up (from `IFF_UP`).
    public var isUp: Bool
    /// Whether the other end is there, and ready to be spoken to: a cable, an association whose keys are agreed on
    /// (from `IFF_LOWER_UP` with `IFF_RUNNING`).
    public var hasCarrier: Bool
    /// Its addresses, in the kernel's order.
    public var addresses: [InterfaceAddress]
    /// Whether its traffic costs money by volume, as far as is known.
    public var isExpensive: Bool
    /// Who says so, or says that it does not; `nil` where nobody says anything, and the cost is unknown.
    public var costSource: CostSource?
    /// Whether its user asked to spare it.
    public var isConstrained: Bool

    /// An interface; by default up, with carrier, without addresses and free of cost.
    public init(
        index: Int, name: String, kind: InterfaceKind, isUp: Bool = true, hasCarrier: Bool = true,
        addresses: [InterfaceAddress] = [], isExpensive: Bool = false, costSource: CostSource? = nil,
        isConstrained: Bool = false
    ) {
        self.index = index
        self.name = name
        self.kind = kind
        self.isUp = isUp
        self.hasCarrier = hasCarrier
        self.addresses = addresses
        self.isExpensive = isExpensive
        self.costSource = costSource
        self.isConstrained = isConstrained
    }

    /// Whether a packet handed to it can leave.
    public var isOperational: Bool { isUp && hasCarrier }
}
