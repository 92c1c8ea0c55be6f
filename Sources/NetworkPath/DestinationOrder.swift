// SPDX-License-Identifier: Apache-2.0

/// The order in which to try the addresses of one host: RFC 6724, section 6, by the source address that the kernel
/// chose for each.
///
/// The rules for Mobile IP (4) and for prefixes of routers (5.5) are left out: Linux tells nobody of either here.
package enum DestinationOrder {
    /// An address with what the kernel would do with a packet to it.
    package struct Candidate: Hashable, Sendable {
        /// Where the packet would go.
        package var destination: IPAddress
        /// The address it would carry; `nil` when it could not leave.
        package var source: IPAddress?
        /// Whether that address is deprecated: good for flows that stand, not for new ones (RFC 4862, section 5.5.4).
        package var isDeprecated: Bool
        /// Whether the packet would go through a tunnel.
        package var isTunnelled: Bool

        /// A candidate.
        package init(
            _ destination: IPAddress, source: IPAddress?, isDeprecated: Bool = false, isTunnelled: Bool = false
        ) {
            self.destination = destination
            self.source = source
            self.isDeprecated = isDeprecated
            self.isTunnelled = isTunnelled
        }

        /// What a path says of its destination; one that is not satisfied has no source to send from.
        package init(_ destination: IPAddress, by path: Path) {
            let source = path.status == .satisfied ? path.source : nil
            self.init(
                destination, source: source,
                isDeprecated: path.interface?.addresses.contains { $0.address == source && $0.isDeprecated } ?? false,
                isTunnelled: path.interface?.kind == .tunnel)
        }
    }

    /// `candidates`, the best first. Those between which no rule decides stay as they were: whoever gave them (a name
    /// server that spreads its load) meant something by it.
    package static func sorted(_ candidates: [Candidate]) -> [Candidate] {
        let ranks = candidates.enumerated().map { Rank($1, position: $0) }
        return ranks.sorted { $0.precedes($1) }.map(\.candidate)
    }
}

/// A candidate with what the rules compare, worked out once.
private struct Rank {
    let candidate: DestinationOrder.Candidate
    let position: Int
    let destination: AddressPolicy
    let source: AddressPolicy?
    let hasMatchingScope: Bool
    let commonPrefix: Int

    init(_ candidate: DestinationOrder.Candidate, position: Int) {
        self.candidate = candidate
        self.position = position
        destination = AddressPolicy(of: candidate.destination)
        source = candidate.source.map(AddressPolicy.init(of:))
        hasMatchingScope = source?.scope == destination.scope
        // Rule 9 for IPv6 alone. Among IPv4 addresses it pins each host to the servers whose numbers look like its own,
        // which undoes every name server's rotation; section 10.2 of the RFC leaves that to the implementation.
        let isComparable = candidate.destination.family == .v6 && candidate.source?.family == .v6
        commonPrefix = isComparable ? candidate.source?.commonPrefixLength(with: candidate.destination) ?? 0 : 0
    }

    /// Whether this is to be tried before `other`.
    func precedes(_ other: Rank) -> Bool {
        // Rule 1: avoid unusable destinations.
        if (source != nil) != (other.source != nil) { return source != nil }
        // Rule 2: prefer matching scope.
        if hasMatchingScope != other.hasMatchingScope { return hasMatchingScope }
        // Rule 3: avoid deprecated addresses.
        if candidate.isDeprecated != other.candidate.isDeprecated { return !candidate.isDeprecated }
        // Rule 5: prefer matching label.
        let (isLabelled, isOtherLabelled) = (
            source?.label == destination.label, other.source?.label == other.destination.label
        )
        if isLabelled != isOtherLabelled { return isLabelled }
        // Rule 6: prefer higher precedence.
        if destination.precedence != other.destination.precedence {
            return destination.precedence > other.destination.precedence
        }
        // Rule 7: prefer native transport.
        if candidate.isTunnelled != other.candidate.isTunnelled { return !candidate.isTunnelled }
        // Rule 8: prefer smaller scope.
        if destination.scope != other.destination.scope { return destination.scope < other.destination.scope }
        // Rule 9: use longest matching prefix; section 5 counts no further than the source's own prefix, 64 bits.
        if commonPrefix != other.commonPrefix, candidate.destination.family == other.candidate.destination.family {
            return commonPrefix > other.commonPrefix
        }
        // Rule 10: otherwise, leave the order unchanged.
        return position < other.position
    }
}

/// What RFC 6724 knows of an address by its number: its scope (section 3.1), and its row in the default policy table
/// (section 2.1).
private struct AddressPolicy {
    /// The scopes of RFC 4291, section 2.7, by their numbers there.
    enum Scope: Int, Comparable {
        case linkLocal = 2
        case siteLocal = 5
        case global = 14

        static func < (one: Scope, other: Scope) -> Bool { one.rawValue < other.rawValue }
    }

    let scope: Scope
    let precedence: Int
    let label: Int

    init(of address: IPAddress) {
        switch address.family {
        case .v4:
            // Section 3.2: link-local and loopback addresses have link-local scope, private ones global scope.
            scope = address.isLinkLocal || address.isLoopback ? .linkLocal : .global
            (precedence, label) = (35, 4)
        case .v6:
            if address.isLinkLocal || address.isLoopback {
                scope = .linkLocal
            } else {
                scope = Self.siteLocal.contains(address) ? .siteLocal : .global
            }
            // The table is sorted by length: the first row that holds the address is its longest match.
            let row = Self.table.first { $0.prefix.contains(address) }
            (precedence, label) = (row?.precedence ?? 40, row?.label ?? 1)
        }
    }

    private static let siteLocal = IPPrefix(IPAddress(v6: UInt128(0xFEC0) << 112), length: 10)

    /// Section 2.1 but for `::/0`, which is what is left. `::ffff:0:0/96` is IPv4, which has a family of its own here.
    private static let table: [(prefix: IPPrefix, precedence: Int, label: Int)] = [
        (IPPrefix(IPAddress(v6: 1), length: 128), 50, 0),  // ::1
        (IPPrefix(IPAddress(v6: 0), length: 96), 1, 3),  // ::/96, IPv4-compatible
        (IPPrefix(IPAddress(v6: UInt128(0x2001) << 112), length: 32), 5, 5),  // 2001::/32, Teredo
        (IPPrefix(IPAddress(v6: UInt128(0x2002) << 112), length: 16), 30, 2),  // 2002::/16, 6to4
        (IPPrefix(IPAddress(v6: UInt128(0x3FFE) << 112), length: 16), 1, 12),  // 3ffe::/16, 6bone
        (siteLocal, 1, 11),  // fec0::/10
        (IPPrefix(IPAddress(v6: UInt128(0xFC00) << 112), length: 7), 3, 13),  // fc00::/7, unique local
    ]
}

extension IPAddress {
    /// How many leading bits two IPv6 addresses share, no more than 64.
    fileprivate func commonPrefixLength(with other: IPAddress) -> Int {
        min(64, (bits ^ other.bits).leadingZeroBitCount)
    }
}
