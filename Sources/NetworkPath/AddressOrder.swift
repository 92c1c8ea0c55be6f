// SPDX-License-Identifier: Apache-2.0

/// The order in which the kernel has the addresses of an interface, kept up from its messages, which do not tell it.
extension Interface {
    /// Puts `address` in the place of what was known of it, and returns that; where the kernel puts a new one if
    /// nothing was.
    mutating func replaceOrInsert(_ address: InterfaceAddress) -> InterfaceAddress? {
        guard let position = addresses.firstIndex(where: { $0.isSameEntry(as: address) }) else {
            addresses.insert(address, at: place(of: address))
            return nil
        }
        let former = addresses[position]
        addresses[position] = address
        // It was promoted: the first of its network is gone.
        if former.isSecondary, !address.isSecondary {
            addresses.remove(at: position)
            addresses.insert(address, at: place(of: address))
        }
        return former
    }

    private func place(of address: InterfaceAddress) -> Int {
        // A dump has all of IPv4's first.
        let firstOfV6 = addresses.firstIndex { $0.address.family == .v6 } ?? addresses.count
        guard address.address.family == .v4 else {
            // Before the first that reaches no farther (`ipv6_link_dev_addr` in net/ipv6/addrconf.c).
            let reach = address.address.reach
            return addresses[firstOfV6...].firstIndex { $0.address.reach <= reach } ?? addresses.count
        }
        // Last, or behind the last primary one of as narrow a scope (`__inet_insert_ifa` in net/ipv4/devinet.c).
        if address.isSecondary { return firstOfV6 }
        let before = addresses[..<firstOfV6].lastIndex { !$0.isSecondary && $0.scope >= address.scope }
        return before.map { $0 + 1 } ?? 0
    }
}

extension IPAddress {
    /// How far an IPv6 address reaches, as `ipv6_addr_src_scope` numbers it (RFC 4007, section 4).
    fileprivate var reach: Int {
        if isLoopback { return 1 }
        if isLinkLocal { return 2 }
        // Site-local, which nobody should have any more (RFC 3879).
        return bytes[0] == 0xfe && bytes[1] & 0xc0 == 0xc0 ? 5 : 14
    }
}
