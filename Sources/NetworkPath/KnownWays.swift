// SPDX-License-Identifier: Apache-2.0

/// The ways that packets take to the addresses of a host, as they were last known.
package struct KnownWays {
    private var ways: [IPAddress: Path] = [:]

    package init() {}

    /// Notes a path to an address of the host.
    ///
    /// - Returns: what it changes for sockets, where it may change something. No path at all changes nothing: it may
    ///   come back as it was.
    package mutating func note(_ path: Path) -> WayChange? {
        guard path.isCoherent, path.status == .satisfied, let address = path.destination?.unmapped,
            let known = ways.updateValue(path, forKey: address)
        else { return nil }
        let change = WayChange(from: known, to: path)
        return change.isNone ? nil : change
    }
}

/// Packets to an address took one way, and take another one now.
package struct WayChange: Hashable, Sendable {
    /// What becomes of a socket.
    package enum Fate {
        /// It has nothing to do with this, or goes on.
        case untouched
        /// Whether its packets still arrive is not known: another gateway has them now, which may not know it (NAT).
        case inDoubt
        /// Its packets leave by another interface, or its address is gone.
        case lost
    }

    package let old: Path
    package let new: Path

    package init(from old: Path, to new: Path) { (self.old, self.new) = (old, new) }

    /// Whether it matters to no socket.
    fileprivate var isNone: Bool {
        new.interface?.index == old.interface?.index && new.gateway == old.gateway
            && old.ownAddresses.isSubset(of: new.ownAddresses)
    }

    /// What becomes of a socket between two addresses.
    package func fate(from local: IPAddress, to remote: IPAddress) -> Fate {
        // One that was bound to the address of another interface goes by rules of its own.
        guard remote == old.destination?.unmapped, old.ownAddresses.contains(local) else { return .untouched }
        // Another source may be preferred by now, as IPv6 does each day (RFC 8981): what is bound to an earlier one
        // goes on.
        guard new.interface?.index == old.interface?.index, new.ownAddresses.contains(local) else { return .lost }
        return new.gateway == old.gateway ? .untouched : .inDoubt
    }
}

extension Path {
    /// The addresses that packets on it may carry.
    fileprivate var ownAddresses: Set<IPAddress> {
        var addresses = Set((interface?.addresses ?? []).filter(\.isUsable).map(\.address.unmapped))
        if let source { addresses.insert(source.unmapped) }
        return addresses
    }
}
