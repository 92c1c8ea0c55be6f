// SPDX-License-Identifier: Apache-2.0

/// What a verdict rests on, and so which changes of the network may alter it.
///
/// The rule is on the safe side everywhere: a change that it calls harmless leaves the kernel's answer and what the
/// path shows of the links as they are. It rests on how the kernel looks up a route:
/// - A route that comes, changes or goes with a message concerns the destinations inside its prefix alone.
/// - Rules and next-hop objects concern everybody.
/// - A link that goes down, loses its carrier or an address takes routes along in silence, and one that comes back
///   brings some back in silence. That concerns whom the link may have a route for (``LinkReach``), even where the
///   present way is another: it may have been the better one, and of a multipath route the packets of a dead next hop
///   are dealt anew to those that are left.
/// - Whatever else happens to a link concerns those whose way leads through it, for a path shows its link.
/// - A gateway that fails or answers again concerns those whose way leads over it, and whom its link may have a route
///   for: of several default routes one whose gateway is dead may be passed over, and is taken again once it answers
///   (RFC 4191, section 3.2; `fib_select_default` in net/ipv4/fib_semantics.c).
/// - An address concerns those who use it as their source, and those whose source is not their own link's to choose.
/// - Where no route was found, all links together make the reason (``LinkSummary``).
package struct VerdictBasis: Hashable, Sendable {
    /// One lookup and what came of it.
    fileprivate struct Leg: Hashable, Sendable {
        var destination: IPAddress
        /// The interface that the question named.
        var askedLink: Int?
        /// The interface and gateway that the answer named.
        var link: Int?
        var gateway: IPAddress?
        /// The source that the question or the answer named.
        var source: IPAddress?
        /// Whether the kernel may choose the source from the addresses of any link.
        var hasOpenSource = false
        /// For a destination without a route: what the links offered.
        var linkSummary: LinkSummary?
    }

    private var legs: [Leg] = []

    /// The basis of a verdict on so many lookups, which are not added yet.
    package init(capacity: Int) {
        legs.reserveCapacity(capacity)
    }

    /// Adds one lookup and the kernel's answer.
    package mutating func add(_ query: RouteQuery, _ answer: RouteAnswer, in snapshot: NetworkSnapshot) {
        var leg = Leg(destination: query.destination, askedLink: query.interfaceIndex, source: query.source)
        switch answer {
        case .route(let route):
            leg.link = route.interfaceIndex
            leg.gateway = route.gateway
            leg.source = route.source
            leg.hasOpenSource = query.source == nil && !snapshot.ownsSource(of: route, to: query.destination)
        case .refused(.noRoute), .refused(.other):
            leg.linkSummary = snapshot.linkSummary
        case .refused(.unreachable), .refused(.prohibited), .refused(.blackhole), .refused(.familyUnsupported):
            break
        }
        legs.append(leg)
    }

    /// The gateways that the answers named.
    package var gateways: some Sequence<NetworkSnapshot.Neighbour> {
        legs.lazy.compactMap { leg in
            guard let link = leg.link, let gateway = leg.gateway else { return nil }
            return NetworkSnapshot.Neighbour(interfaceIndex: link, address: gateway)
        }
    }

    /// Whether the change of `scope` may alter the verdict.
    package func isConcerned(by scope: ChangeScope) -> Bool {
        scope.change.concernsEverybody || legs.contains { $0.isConcerned(by: scope) }
    }
}

/// A change, and what of the network after it tells whom it concerns. Made once a round, for all verdicts.
package struct ChangeScope: Sendable {
    /// The change itself.
    package let change: KernelChange
    /// `nil` where no link changed.
    fileprivate let linkSummary: LinkSummary?
    fileprivate let rerouted: [LinkReach]
    /// The destinations of routes as a list, which is quicker to go through than a set; empty where they are all.
    fileprivate let prefixes: [IPPrefix]

    /// The scope of `change`, after which the network is `snapshot`.
    package init(_ change: KernelChange, in snapshot: NetworkSnapshot) {
        self.change = change
        linkSummary = change.links.isEmpty ? nil : snapshot.linkSummary
        rerouted = Array(change.rerouted.values)
        prefixes = if case .inside(let prefixes) = change.routes { Array(prefixes) } else { [] }
    }
}

extension VerdictBasis.Leg {
    fileprivate func isConcerned(by scope: ChangeScope) -> Bool {
        let change = scope.change
        if case .all = change.routes { return true }
        if scope.prefixes.contains(where: { $0.contains(destination) }) { return true }
        if !change.neighbours.isEmpty, let link, let gateway,
            change.neighbours.contains(.init(interfaceIndex: link, address: gateway))
        {
            return true
        }
        if scope.rerouted.contains(where: { $0.mayInclude(destination) }) { return true }
        guard let present = scope.linkSummary else { return false }
        if let link, change.links.contains(link) { return true }
        if let askedLink, change.links.contains(askedLink) { return true }
        if let source, change.addresses.contains(source) { return true }
        if hasOpenSource, change.addresses.contains(where: { $0.family == destination.family }) { return true }
        return linkSummary?.looks(unlike: present, from: destination.family) ?? false
    }
}

extension NetworkSnapshot {
    /// Whether the source of `route` is one that the kernel chose from the route's own link and would choose from no
    /// other. It looks elsewhere where that link has none of the family, and in IPv6 also where it has only deprecated
    /// ones or such that do not reach as far as the destination (RFC 6724, section 5, rules 2 and 3 before 5).
    fileprivate func ownsSource(of route: Route, to destination: IPAddress) -> Bool {
        guard let source = route.source,
            let own = interfaces[route.interfaceIndex]?.addresses.first(where: { $0.address == source })
        else { return false }
        if source.family == .v4 { return true }
        return own.isUsable && !own.isDeprecated && (!source.isLinkLocal || destination.isLinkLocal)
    }
}
