// SPDX-License-Identifier: Apache-2.0

/// What one message of the kernel says, as a value.
public enum KernelEvent: Hashable, Sendable {
    /// An interface exists, with these properties (`RTM_NEWLINK`). Its addresses are not part of it.
    case interfacePresent(Interface)
    /// An interface is gone (`RTM_DELLINK`).
    case interfaceRemoved(index: Int)
    /// An interface has an address, with these flags (`RTM_NEWADDR`).
    case addressPresent(InterfaceAddress, interfaceIndex: Int)
    /// It no longer has it (`RTM_DELADDR`).
    case addressRemoved(IPAddress, interfaceIndex: Int)
    /// A route to these destinations appeared, changed or went (`RTM_NEWROUTE`, `RTM_DELROUTE`). What it was does not
    /// matter: the kernel is asked again for every target inside the prefix.
    case routeChanged(IPPrefix)
    /// A policy rule appeared or went (`RTM_NEWRULE`, `RTM_DELRULE`).
    case ruleChanged
    /// A next-hop object appeared, changed or went (`RTM_NEWNEXTHOP`, `RTM_DELNEXTHOP`), and with it, in silence, the
    /// routes through it.
    case nextHopChanged
    /// A setting changed by which the kernel passes over routes: `ignore_routes_with_linkdown` (`RTM_NEWNETCONF`).
    case routeSelectionChanged
    /// A neighbour answers or does not (`RTM_NEWNEIGH`, `RTM_DELNEIGH`).
    case neighbourChanged(NetworkSnapshot.Neighbour, isFailed: Bool)
}

/// What a turn of events changed, for those who must look again.
public struct KernelChange: Hashable, Sendable {
    /// The parts of the kernel's state that an event may concern.
    public struct Subjects: OptionSet, Hashable, Sendable {
        /// One bit per part.
        public let rawValue: UInt8

        /// Parts from their bits.
        public init(rawValue: UInt8) { self.rawValue = rawValue }

        /// Interfaces: existence, name, link state, kind, cost.
        public static let interfaces = Subjects(rawValue: 1)
        /// Addresses and their flags.
        public static let addresses = Subjects(rawValue: 2)
        /// Routes, of any table.
        public static let routes = Subjects(rawValue: 4)
        /// Policy rules.
        public static let rules = Subjects(rawValue: 8)
        /// Next-hop objects.
        public static let nextHops = Subjects(rawValue: 16)
        /// Neighbours that are gateways of a path.
        public static let neighbours = Subjects(rawValue: 32)
        /// ``NetworkSnapshot/isCoherent``.
        public static let coherence = Subjects(rawValue: 64)
        /// Everything: after a re-read anything may differ.
        public static let all = Subjects(rawValue: 127)
    }

    /// What changed.
    public var subjects: Subjects
    /// Addresses that packets could carry as their source and now cannot, from any interface: removed, or on a link
    /// that went down or lost its carrier. Flows bound to them are dead.
    public var lostAddresses: Set<IPAddress>
    /// The destinations of the routes that changed.
    public var routes: Destinations

    /// Some of the addresses there are.
    public enum Destinations: Hashable, Sendable {
        /// Those inside any of these prefixes.
        case inside(Set<IPPrefix>)
        /// All of them.
        case all

        /// None.
        public static let none = Destinations.inside([])

        /// Beyond this many prefixes they are no longer told apart: holding each watched target against each of them
        /// would cost more than asking the kernel, which takes some 10 µs a target.
        static let mostPrefixes = 64

        /// Whether `address` is among them.
        public func contains(_ address: IPAddress) -> Bool {
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

    /// A change; by default none.
    public init(
        _ subjects: Subjects = [], lostAddresses: Set<IPAddress> = [], routes: Destinations = .none
    ) {
        self.subjects = subjects
        self.lostAddresses = lostAddresses
        self.routes = routes
    }

    /// Whether the verdict on a packet to `address` may differ. A change of routes alone concerns only those inside the
    /// routes' prefixes: the longest match that another destination has is not touched by it. Anything else (a link, an
    /// address, a rule, a next hop) takes routes along in silence, and concerns everybody.
    public func mayConcern(_ address: IPAddress) -> Bool {
        subjects != .routes || routes.contains(address)
    }

    /// Anything may be different.
    public static let everything = KernelChange(.all, routes: .all)

    /// Whether nothing changed.
    public var isEmpty: Bool { subjects.isEmpty && lostAddresses.isEmpty }

    /// Adds another change to this one.
    public mutating func merge(_ other: KernelChange) {
        subjects.formUnion(other.subjects)
        lostAddresses.formUnion(other.lostAddresses)
        routes = routes.union(other.routes)
    }
}
