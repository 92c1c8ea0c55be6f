// SPDX-License-Identifier: Apache-2.0

/// To which destinations a link may carry routes, as far as that can be known without a copy of the table.
///
/// Routes come with a message, and some come to life or die with their link without one. Of a link that appeared while
/// the kernel was followed, every route through it was told. Of one that was there before, nothing is known, and it may
/// lead anywhere. So a container's link, whose few routes lead nowhere that matters, is known to matter to nobody, and
/// what it does costs nothing; and an uplink with a thousand routes is taken for what it is after the first few dozen.
package struct LinkReach: Hashable, Sendable {
    /// Where the routes lead that were ever told; those that are gone as well, which may come back in silence.
    private var told: KernelChange.Destinations

    /// The reach of a link of which nothing is known.
    static let unknown = LinkReach(told: .all)

    /// The reach of a link that has just appeared.
    static let none = LinkReach(told: .none)

    /// A route through the link was told.
    mutating func add(_ prefix: IPPrefix) {
        if told != .all { told = told.union(.inside([prefix])) }
    }

    /// Whether the link may have a route to `destination`.
    package func mayInclude(_ destination: IPAddress) -> Bool { told.contains(destination) }

    /// The reach of one that may be either: an index is given to another link when the first is gone.
    func union(_ other: LinkReach) -> LinkReach { LinkReach(told: told.union(other.told)) }
}
