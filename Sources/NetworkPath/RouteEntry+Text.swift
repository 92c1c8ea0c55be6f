// SPDX-License-Identifier: Apache-2.0

extension RouteEntry {
    /// The entry as `ip route` writes it, without what no operator looks at:
    /// `default via 192.168.1.1 dev wlan0 proto dhcp metric 100`.
    ///
    /// - Parameter name: the name of an interface by its index.
    package func text(_ name: (Int) -> String) -> String {
        var words = kindWords + [prefix.short]
        if let sourcePrefix, sourcePrefix.length > 0 { words += ["from", sourcePrefix.short] }
        if let nextHopObject { words += ["nhid", "\(nextHopObject)"] }
        if nextHops.count == 1, !kind.isRefusing {
            words += nextHops[0].words(to: prefix.address.family, name)
        } else if nextHops.count > 1 {
            words.append("by \(nextHops.count) next hops")
        }
        if table != Self.main, table != Self.local { words += ["table", Self.name(ofTable: table)] }
        if let origin = Self.name(ofOrigin: origin) { words += ["proto", origin] }
        if metric != 0 { words += ["metric", "\(metric)"] }
        if let preferredSource { words += ["src", preferredSource.description] }
        return words.joined(separator: " ")
    }

    private var kindWords: [String] {
        switch kind {
        case .unicast, .group: []
        case .local: ["local"]
        case .blackhole: ["blackhole"]
        case .unreachable: ["unreachable"]
        case .prohibit: ["prohibit"]
        case .throw: ["throw"]
        case .other(let number): ["type", "\(number)"]
        }
    }

    /// `RT_TABLE_MAIN`.
    package static let main: UInt32 = 254
    /// `RT_TABLE_LOCAL`.
    package static let local: UInt32 = 255
    /// `RT_TABLE_DEFAULT`.
    static let `default`: UInt32 = 253

    /// Whether every machine has the table: nobody made it for a purpose of his own.
    package static func isOrdinary(table: UInt32) -> Bool { [local, main, `default`].contains(table) }

    /// What `ip` calls a table when nobody named it: `main`, `100`.
    package static func name(ofTable table: UInt32) -> String {
        switch table {
        case main: "main"
        case local: "local"
        case `default`: "default"
        default: "\(table)"
        }
    }

    /// Who set a route, by its number (include/uapi/linux/rtnetlink.h, `RTPROT_`); `nil` where `ip` says nothing.
    private static func name(ofOrigin origin: UInt8) -> String? {
        switch origin {
        case 0, 3: nil
        case 1: "redirect"
        case 2: "kernel"
        case 4: "static"
        case 9: "ra"
        case 12: "bird"
        case 16: "dhcp"
        case 18: "keepalived"
        case 186: "bgp"
        case 188: "ospf"
        default: "\(origin)"
        }
    }
}

extension RouteEntry.NextHop {
    /// `via 192.0.2.1 dev wan0 linkdown`.
    func words(to family: IPAddress.Family, _ name: (Int) -> String) -> [String] {
        var words: [String] = []
        if let gateway {
            words += gateway.family == family ? ["via"] : ["via", gateway.family == .v6 ? "inet6" : "inet"]
            words.append(gateway.description)
        }
        words += ["dev", name(interfaceIndex)]
        if isDead { words.append("dead") }
        if isLinkDown { words.append("linkdown") }
        return words
    }
}
