// SPDX-License-Identifier: Apache-2.0

/// What explains an interface beyond ``Interface``: how it stands on others. Asked for when a path is explained, not
/// followed.
package struct LinkDetail: Hashable, Sendable {
    /// The driver's name of it: `vlan`, `macvlan`, `veth` (`IFLA_INFO_KIND`).
    package var driver: String?
    /// The interface that it is made on, or for a veth its other end; `nil` when that is in another network namespace
    /// (`IFLA_LINK` without `IFLA_LINK_NETNSID`).
    package var lower: Int?
    /// The bridge, bond or VRF that it is part of (`IFLA_MASTER`).
    package var master: Int?
    /// Its group (`IFLA_GROUP`).
    package var group: UInt32
    /// Whether packets to it need a neighbour's address: not on a loopback, nor on most tunnels (`IFF_NOARP`).
    package var resolvesNeighbours: Bool
    /// The table of a VRF (`IFLA_VRF_TABLE`).
    package var table: UInt32?

    /// A detail.
    package init(
        driver: String? = nil, lower: Int? = nil, master: Int? = nil, group: UInt32 = 0,
        resolvesNeighbours: Bool = true, table: UInt32? = nil
    ) {
        self.driver = driver
        self.lower = lower
        self.master = master
        self.group = group
        self.resolvesNeighbours = resolvesNeighbours
        self.table = table
    }

    /// Whether it goes when the interface of ``lower`` goes. The drivers of these unregister with the interface they
    /// stand on; a tunnel stays, and its outer packets find another way or none.
    var goesWithLower: Bool {
        switch driver {
        case "vlan", "macvlan", "macvtap", "ipvlan", "ipvtap", "macsec", "veth", "dsa", "rmnet": true
        default: false
        }
    }

    /// The interface that it is made on.
    var base: Int? { driver == "veth" ? nil : lower }

    /// Whether it has a carrier as long as one of its ports has.
    var livesByItsPorts: Bool {
        switch driver {
        case "bridge", "bond", "team": true
        default: false
        }
    }
}

/// The links of a machine at one moment, with how they stand on each other.
package struct LinkStack: Hashable, Sendable {
    /// Links and addresses.
    package var snapshot: NetworkSnapshot
    /// The details by index.
    package var details: [Int: LinkDetail]

    /// A stack.
    package init(_ snapshot: NetworkSnapshot, details: [Int: LinkDetail] = [:]) {
        self.snapshot = snapshot
        self.details = details
    }

    /// The name of an interface, or its number where it has none any more.
    package func name(_ index: Int) -> String {
        snapshot.interfaces[index].map(\.name) ?? "interface \(index)"
    }

    /// The index of the interface of this name.
    package func index(of name: String) -> Int? {
        snapshot.interfaces.values.first { $0.name == name }?.index
    }

    /// The ports of a bridge or bond, by index.
    func ports(of master: Int) -> [Interface] {
        details.filter { $0.value.master == master }.keys.sorted().compactMap { snapshot.interfaces[$0] }
    }

    /// The table of the VRF that an interface is, or is part of.
    package func tableOfVRF(_ index: Int) -> UInt32? {
        let detail = details[index]
        return detail?.table ?? detail?.master.flatMap { details[$0]?.table }
    }
}
