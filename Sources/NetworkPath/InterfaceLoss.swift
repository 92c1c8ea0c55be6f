// SPDX-License-Identifier: Apache-2.0

/// A machine as it would be with one of its interfaces taken away: unplugged or deleted, with its addresses and routes.
///
/// What goes along is what the kernel takes along, which is not always what one would think.
package struct InterfaceLoss: Hashable, Sendable {
    /// The links that are left; those that lived by what is gone have no carrier.
    package private(set) var rest: LinkStack
    /// The interfaces that are gone: the one, and those that stand on it.
    package private(set) var gone: Set<Int>
    /// Those that lost their carrier by it.
    package private(set) var silenced: Set<Int> = []
    /// The addresses that the machine has no more.
    package private(set) var addresses: Set<IPAddress>

    /// What is left of `stack` without the interface `index`.
    package init(of index: Int, from stack: LinkStack) {
        // Another network namespace's interfaces that stand on it go too; they are none of this machine's.
        let gone = stack.closure(of: [index]) { link, detail, gone in
            // A link that names itself stands on nothing.
            detail.goesWithLower && detail.lower.map { $0 != link && gone.contains($0) } == true
        }
        rest = stack
        for link in gone {
            rest.snapshot.interfaces[link] = nil
            rest.details[link] = nil
        }
        let left = Set(rest.snapshot.interfaces.values.flatMap { $0.addresses.map(\.address) })
        addresses = Set(gone.flatMap { stack.snapshot.interfaces[$0]?.addresses.map(\.address) ?? [] }).subtracting(
            left)
        self.gone = gone
        silence(in: stack)
    }

    /// Takes the carrier from what lived by the gone interfaces alone.
    private mutating func silence(in stack: LinkStack) {
        let (rest, gone) = (rest, gone)
        silenced = rest.closure(of: []) { link, detail, silenced in
            if let base = detail.base, detail.goesWithLower, silenced.contains(base) { return true }
            guard detail.livesByItsPorts else { return false }
            // One that lost none of its ports is as it was.
            let lost = stack.details.contains { port, detail in
                detail.master == link && (gone.contains(port) || silenced.contains(port))
            }
            return lost && !rest.ports(of: link).contains { $0.isOperational && !silenced.contains($0.index) }
        }
        for link in silenced { self.rest.snapshot.interfaces[link]?.hasCarrier = false }
    }

    /// What is left of a route; `nil` if it goes.
    package func survivor(of entry: RouteEntry) -> RouteEntry? {
        guard !entry.kind.isRefusing else { return entry }
        let isV4 = entry.prefix.address.family == .v4
        // A preferred source that is no address of the machine any more takes the IPv4 routes of the main table along,
        // and of no other table (fib_sync_down_addr in net/ipv4/fib_semantics.c).
        if isV4, entry.table == RouteEntry.main, let source = entry.preferredSource, addresses.contains(source) {
            return nil
        }
        var entry = entry
        let count = entry.nextHops.count
        // A next-hop object goes with the carrier of its link (nh_netdev_event in net/ipv4/nexthop.c); a next hop of
        // the route's own stays, marked.
        let lost = entry.nextHopObject == nil ? gone : gone.union(silenced)
        entry.nextHops.removeAll { lost.contains($0.interfaceIndex) }
        // Of an IPv4 route with several next hops of its own, the removal of one interface takes all
        // (fib_sync_down_dev); a group of next-hop objects only shrinks, as IPv6 routes do.
        if isV4, entry.nextHopObject == nil, count > 1, entry.nextHops.count < count { return nil }
        // What is delivered on the machine itself takes no carrier, and its routes are not marked for want of one.
        guard entry.kind != .local else { return entry.nextHops.isEmpty ? nil : entry }
        for position in entry.nextHops.indices where silenced.contains(entry.nextHops[position].interfaceIndex) {
            entry.nextHops[position].isLinkDown = true
        }
        return entry.nextHops.isEmpty ? nil : entry
    }

    /// The source address that packets to `destination` by the interface `index` would get, where the one that the
    /// kernel chooses now is gone: an address of the interface, else of another one, by the rules that matter between
    /// them (inet_select_addr for IPv4; RFC 6724, section 5, rules 2, 3, 5 and 8 for IPv6).
    package func source(to destination: IPAddress, by index: Int) -> IPAddress? {
        let candidates = rest.snapshot.interfaces.values.sorted { $0.index < $1.index }.flatMap { interface in
            interface.addresses.map { (address: $0, isOutbound: interface.index == index) }
        }.filter { candidate in
            candidate.address.isUsable && candidate.address.address.family == destination.family
                && !candidate.address.address.isLoopback
        }
        if destination.family == .v4 {
            return (candidates.first(where: \.isOutbound) ?? candidates.first)?.address.address
        }
        func merit(_ candidate: (address: InterfaceAddress, isOutbound: Bool)) -> (Int, Int, Int, Int) {
            let address = candidate.address
            let shared = (0...128).last { address.address.sharesPrefix(with: destination, length: $0) } ?? 0
            return (
                address.address.isLinkLocal == destination.isLinkLocal ? 1 : 0, address.isDeprecated ? 0 : 1,
                candidate.isOutbound ? 1 : 0, min(shared, address.prefixLength)
            )
        }
        // A link-local address says nothing on another link.
        let possible = candidates.filter { $0.isOutbound || !$0.address.address.isLinkLocal }
        return possible.max { merit($0) < merit($1) }?.address.address
    }
}

extension LinkStack {
    /// `links`, and with them every link that `follows` says goes along with those that are in already.
    fileprivate func closure(of links: Set<Int>, _ follows: (Int, LinkDetail, Set<Int>) -> Bool) -> Set<Int> {
        var set = links
        while true {
            let more = details.filter { !set.contains($0.key) && follows($0.key, $0.value, set) }
            if more.isEmpty { return set }
            set.formUnion(more.keys)
        }
    }
}
