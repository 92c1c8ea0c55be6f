// SPDX-License-Identifier: Apache-2.0

/// What a turn of events changed, for those who must look again.
package struct KernelChange: Hashable, Sendable {
    /// The parts of the kernel's state that an event may concern.
    package struct Subjects: OptionSet, Hashable, Sendable {
        /// One bit per part.
        package let rawValue: UInt8

        /// Parts from their bits.
        package init(rawValue: UInt8) { self.rawValue = rawValue }

        /// Interfaces: existence, name, link state, kind, cost.
        package static let interfaces = Subjects(rawValue: 1)
        /// Addresses and their flags.
        package static let addresses = Subjects(rawValue: 2)
        /// Routes, of any table.
        package static let routes = Subjects(rawValue: 4)
        /// Policy rules.
        package static let rules = Subjects(rawValue: 8)
        /// Next-hop objects.
        package static let nextHops = Subjects(rawValue: 16)
        /// Neighbours that are gateways of a path.
        package static let neighbours = Subjects(rawValue: 32)
        /// ``NetworkSnapshot/isCoherent``.
        package static let coherence = Subjects(rawValue: 64)
        /// Everything: after a re-read anything may differ.
        package static let all = Subjects(rawValue: 127)

        /// What each verdict rests on, whatever its target: rules and next hops take routes along in silence, and
        /// coherence is told with every path.
        static let everybodys: Subjects = [.rules, .nextHops, .coherence]
    }

    /// What changed.
    package var subjects: Subjects
    /// Addresses that packets could carry as their source and now cannot, from any interface: removed, or on a link
    /// that went down or lost its carrier. Flows bound to them are dead.
    package var lostAddresses: Set<IPAddress>
    /// The destinations of the routes that changed.
    package var routes: Destinations
    /// The links of which anything changed, addresses included, by index.
    package var links: Set<Int> = []
    /// The links whose routes may be taken or passed over now without a message about them: they went up or down,
    /// gained or lost a carrier or an address, are gone, or one of their neighbours is dead or back; with what they
    /// could lead to.
    package var rerouted: [Int: LinkReach] = [:]
    /// The addresses that came, went, or can be used now and could not before, or the other way round.
    package var addresses: Set<IPAddress> = []
    /// The neighbours that answer now and did not, and those that do not, each time that this is found.
    package var neighbours: Set<NetworkSnapshot.Neighbour> = []
    /// The failed neighbours of which the kernel has forgotten that they failed. Nothing follows from it for a path;
    /// whether they answer is to be found out.
    package var forgotten: Set<NetworkSnapshot.Neighbour> = []
    /// Whether the kernel tells of some of this before it does it, so that an answer of the same moment may be the
    /// old one.
    package var isForetold = false

    /// A change; by default none.
    package init(
        _ subjects: Subjects = [], lostAddresses: Set<IPAddress> = [], routes: Destinations = .none
    ) {
        self.subjects = subjects
        self.lostAddresses = lostAddresses
        self.routes = routes
    }

    /// Whether it concerns every verdict there is.
    package var concernsEverybody: Bool { !subjects.isDisjoint(with: .everybodys) }

    /// Anything may be different, and the last word on some of it may be on its way.
    package static let everything: KernelChange = {
        var change = KernelChange(.all, routes: .all)
        change.isForetold = true
        return change
    }()

    /// Whether nothing changed.
    package var isEmpty: Bool { subjects.isEmpty && lostAddresses.isEmpty && forgotten.isEmpty }

    /// Adds another change to this one.
    package mutating func merge(_ other: KernelChange) {
        subjects.formUnion(other.subjects)
        // Most changes are of one kind; an empty set is not worth a call.
        if !other.lostAddresses.isEmpty { lostAddresses.formUnion(other.lostAddresses) }
        if other.routes != .none { routes = routes.union(other.routes) }
        if !other.links.isEmpty { links.formUnion(other.links) }
        if !other.rerouted.isEmpty { rerouted.merge(other.rerouted) { $0.union($1) } }
        if !other.addresses.isEmpty { addresses.formUnion(other.addresses) }
        if !other.neighbours.isEmpty { neighbours.formUnion(other.neighbours) }
        if !other.forgotten.isEmpty { forgotten.formUnion(other.forgotten) }
        isForetold = isForetold || other.isForetold
    }
}

extension KernelChange {
    /// Some of the addresses there are.
    package enum Destinations: Hashable, Sendable {
        /// Those inside any of these prefixes.
        case inside(Set<IPPrefix>)
        /// All of them.
        case all

        /// None.
        package static let none = Destinations.inside([])

        /// Beyond this many prefixes they are no longer told apart: holding each watched target against each of them
        /// would cost more than asking the kernel, which takes some 10 µs a target.
        static let mostPrefixes = 64

        /// Whether `address` is among them.
        package func contains(_ address: IPAddress) -> Bool {
            switch self {
            case .all: true
            case .inside(let prefixes): prefixes.contains { $0.contains(address) }
            }
        }

        /// These and `other`.
        func union(_ other: Destinations) -> Destinations {
            guard case .inside(let mine) = self, case .inside(let theirs) = other else { return .all }
            let both = mine.union(theirs)
            return both.count <= Self.mostPrefixes ? .inside(both) : .all
        }
    }
}
