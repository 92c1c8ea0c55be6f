// SPDX-License-Identifier: Apache-2.0

/// What is known of the kernel's network at one moment. Routes are not in it: a router has a million of them, so the
/// kernel is asked for the targets that matter instead (``RouteAnswer``). Never mirror the routing table; keep it so.
package struct NetworkSnapshot: Hashable, Sendable {
    /// A neighbour on a link: the gateway whose silence makes a path useless.
    package struct Neighbour: Hashable, Sendable {
        /// The link it is on.
        package var interfaceIndex: Int
        /// Its address.
        package var address: IPAddress

        /// A neighbour.
        package init(interfaceIndex: Int, address: IPAddress) {
            self.interfaceIndex = interfaceIndex
            self.address = address
        }
    }

    /// Counts the changes that were seen, so that A to B to A is visible as two: those of the kernel's state, and what
    /// else made paths others (name servers, the addresses of a name).
    package var generation: UInt64
    /// The interfaces by index.
    package var interfaces: [Int: Interface] {
        didSet { knownLinkSummary = nil }
    }
    /// What they offer together, where it was found out since the last of them changed.
    var knownLinkSummary: LinkSummary?
    /// Neighbours that do not answer (from `NUD_FAILED`).
    package var failedNeighbours: Set<Neighbour>
    /// Neighbours that the kernel asks for now, of which nothing newer is known than that (from `NUD_INCOMPLETE`).
    package internal(set) var awaitedNeighbours: Set<Neighbour> = []
    /// What is known of the links beyond what a path shows.
    var records: [Int: LinkRecord] = [:]
    /// Whether the state is known to be complete; false between a buffer overrun and the end of the re-read.
    package var isCoherent: Bool
    /// The user's word on what interfaces cost. A change takes effect on all of them at once.
    package var costs = CostPolicy() {
        didSet {
            guard costs != oldValue else { return }
            interfaces = interfaces.mapValues { costs.applied(to: $0) }
            generation += 1
        }
    }

    /// A snapshot, by default an empty and coherent one.
    package init(
        generation: UInt64 = 0, interfaces: [Int: Interface] = [:], failedNeighbours: Set<Neighbour> = [],
        isCoherent: Bool = true
    ) {
        self.generation = generation
        self.interfaces = interfaces
        self.failedNeighbours = failedNeighbours
        self.isCoherent = isCoherent
    }

    /// What is kept of a link for the sake of what it does in silence.
    struct LinkRecord: Hashable, Sendable {
        var reach: LinkReach
        /// `IFF_RUNNING`; `nil` until it is told.
        var isRunning: Bool?
        /// `IFLA_GROUP`; `nil` until it is told.
        var group: UInt32?

        /// The same of a link that may lead elsewhere.
        func with(_ reach: LinkReach) -> LinkRecord {
            LinkRecord(reach: reach, isRunning: isRunning, group: group)
        }
    }

    /// The neighbours from which good news would be news: those that do not answer, and those that may or may not.
    package var openNeighbours: Set<Neighbour> { failedNeighbours.union(awaitedNeighbours) }

    /// Takes over what another snapshot knows of neighbours, which no dump tells.
    package mutating func takeNeighbours(of other: NetworkSnapshot) {
        (failedNeighbours, awaitedNeighbours) = (other.failedNeighbours, other.awaitedNeighbours)
    }

    /// Whether the verdict of `path` rests on a gateway of which it is not known yet whether it answers.
    package func awaitsGateway(of path: Path) -> Bool {
        guard !awaitedNeighbours.isEmpty, let link = path.interface?.index, let gateway = path.gateway else {
            return false
        }
        return awaitedNeighbours.contains(Neighbour(interfaceIndex: link, address: gateway))
    }

    /// Whether packets may carry `address` as their source: some interface has it in a usable state, and is itself up
    /// with a carrier. Linux keeps the IPv4 addresses of a link that is down; packets from them leave by another link,
    /// and nobody can answer.
    package func hasUsable(_ address: IPAddress) -> Bool {
        interfaces.values.contains { interface in
            guard interface.isOperational else { return false }
            return interface.addresses.contains { own in
                guard own.isUsable else { return false }
                if own.address == address { return true }
                // The kernel takes all of the prefix for the machine's own (fib_frontend.c, fib_add_ifaddr).
                return interface.kind == .loopback && address.family == .v4
                    && IPPrefix(own.address, length: own.prefixLength).contains(address)
            }
        }
    }
}
