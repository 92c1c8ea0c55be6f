// SPDX-License-Identifier: Apache-2.0

/// A set of addresses that can be asked quickly whether any of them lies inside a prefix.
///
/// A router's table changes thousands of times a second, and hardly ever where a watched target is. Each change is one
/// binary search here, and ends there.
package struct DestinationIndex: Sendable {
    private let v4: [UInt128]
    private let v6: [UInt128]

    /// An index of `addresses`.
    package init(_ addresses: some Sequence<IPAddress> = []) {
        let unique = Set(addresses)
        v4 = unique.filter { $0.family == .v4 }.map(\.bits).sorted()
        v6 = unique.filter { $0.family == .v6 }.map(\.bits).sorted()
    }

    /// Whether an address of the set lies inside `prefix`.
    package func touches(_ prefix: IPPrefix) -> Bool {
        let width = prefix.address.family.bitWidth
        let sorted = prefix.address.family == .v4 ? v4 : v6
        // A prefix is the run of addresses from its own, host bits cleared, up to the one with all host bits set.
        let hostBits = width - prefix.length
        let mask: UInt128 = hostBits >= 128 ? .max : (1 << UInt128(hostBits)) - 1
        let first = prefix.address.bits & ~mask
        var (low, high) = (0, sorted.count)
        while low < high {
            let middle = (low + high) / 2
            if sorted[middle] < first { low = middle + 1 } else { high = middle }
        }
        return low < sorted.count && sorted[low] <= first | mask
    }
}
